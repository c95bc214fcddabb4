#!/usr/bin/env python3
"""bench/models' bars have to fail where they should, its sections have to show what they were
given, and a model's section has to go where it belongs."""
import pathlib
import unittest

import llamacpp
import measured_run
import models_families
import models_figures
import offload_figures
import speed_table

QUIET = measured_run.MeasuredRun(stdout="", others=0.0)
BUSY = measured_run.MeasuredRun(stdout="", others=0.5)
SHIPPED, PINNED = llamacpp.configs("shim")[0], llamacpp.configs("shim")[2]
FAMILY = models_families.FAMILIES[0]
GB, MIB = 10**9, 1 << 20


def memory(decode=12.0, prefill=90.0, run=QUIET):
    c = speed_table.Comparison("m", 5 * GB)
    c.add_troupe({"prefill": [{"tokens_per_s": [prefill]}], "decode": [{"tokens_per_s": [decode]}],
                  "bytes_touched_per_token": GB, "read_bandwidth_bytes_per_s": 24e9,
                  "peak_rss_bytes": 5 * GB}, run)
    for config, decode_speed, prefill_speed in ((SHIPPED, 5, 40), (PINNED, 10, 30)):
        c.add_llamacpp(config, {"decode": [decode_speed], "prefill": [prefill_speed],
                                "peak_rss_bytes": 9 * GB}, QUIET)
    return c


def limited(speed=8.0, peers=(0.4, 0.5), shares=(0.25, 0.5, 0.75), compute=10.0):
    m = offload_figures.Offload("m", "", 5 * GB, {"one_expert_bytes": MIB, "bytes_per_token": GB})
    m.unlimited = [compute]
    for share in shares:
        budget = offload_figures.Budget(share, 1 << 30, (1 << 30) + 64 * MIB)
        # Ten steps that miss 50 experts each, of a disk that gives 1,000 a second.
        record = {"decode_tokens_per_s": speed, "token_ids": list(range(11)),
                  "decode": {"bytes_read": 600 * MIB, "expert_hits": 500, "expert_misses": 500,
                             "prefetch_useful": 0, "stall_s": 0.1, "reading_s": 0.6},
                  "bytes_read": 700 * MIB, "reading_s": 0.7, "peak_rss_bytes": 1,
                  "memory_budget_bytes": 2}
        budget.stores[offload_figures.PACKED] = offload_figures.TroupeRuns([record], [], [1000 * MIB])
        budget.peers = {str(i): offload_figures.PeerRuns([p]) for i, p in enumerate(peers)}
        m.budgets.append(budget)
    return m


def measured(layers=8, **parts):
    return models_figures.Measured(FAMILY, layers, 5 * GB, **parts)


class Bars(unittest.TestCase):
    def test_none_is_missed_by_good_figures(self):
        good = measured(memory=memory(), limited=limited())
        self.assertEqual(good.missed_bars(), [])
        self.assertIn("All bars held.", models_figures.section(good))

    def test_each_bar_can_be_missed(self):
        for spoiled, words in (
                (measured(memory=memory(decode=9.9)), "decode in memory 0.99x, bar 1x"),
                (measured(memory=memory(prefill=79)), "prefill in memory 1.98x, bar 2x"),
                (measured(limited=limited(peers=(0.1, 0.81))), "decode with 25% of the experts 9.88x"),
                (measured(limited=limited(speed=7.9)), "time over its bound with 50% of the experts 1.27")):
            self.assertTrue(any(words in line for line in spoiled.missed_bars()),
                            spoiled.missed_bars())
            self.assertIn(words, models_figures.section(spoiled))

    def test_with_three_quarters_in_memory_the_ratio_is_told_but_not_held(self):
        only = measured(limited=limited(peers=(1, 1), shares=(0.75,)))
        self.assertEqual(only.missed_bars(), [])
        self.assertIn("| 75% | 1024 | 8.0 | 1.00 | 8.0 |  | 50.0% |", models_figures.section(only))

    def test_other_tokens_are_a_missed_bar(self):
        other = measured(limited=limited())
        other.limited.differing = 1
        self.assertIn("gave other tokens", other.missed_bars()[0])

    def test_the_line_of_figures_has_the_worst_of_each(self):
        line = models_figures.figures([measured(memory=memory(), limited=limited()),
                                       measured(memory=memory(decode=8), limited=limited(peers=(1, 2)))])
        for words in ("2 models", "decode 0.80x (bar 1x)", "prefill 2.25x", "4.0x llama.cpp's mmap",
                      "bars missed: 3"):
            self.assertIn(words, line)


class Sections(unittest.TestCase):
    def test_ratios_are_to_llama_cpps_best_way_and_to_the_shipped_one(self):
        text = models_figures.section(measured(memory=memory()))
        self.assertIn("| decode | 12.0 | 10.0 | pinned, mmap | 1.20 | 1 | 5.0 | 2.40 |", text)
        self.assertIn("| prefill | 90.0 | 40.0 | as shipped, mmap | 2.25 | 2 | 40.0 | 2.25 |", text)
        self.assertIn("at 50% of the speed", text)

    def test_a_section_tells_how_deep_the_model_was_and_who_disturbed(self):
        text = models_figures.section(measured(memory=memory(run=BUSY)))
        self.assertIn("(Q4_K_M, 8 of 40 layers)", text)
        self.assertIn("Others disturbed 1 of the runs.", text)
        self.assertIn("(Q4_K_M, whole)", models_figures.section(measured(40, memory=memory())))

    def test_every_table_has_as_many_cells_in_each_row(self):
        lines = models_figures.section(measured(memory=memory(), limited=limited())).splitlines()
        bars = {line.count("|") for line in lines if line.startswith("|")}
        self.assertEqual(bars, {9, 10})

    def test_a_section_replaces_its_models_own_and_nothing_else(self):
        begin, end = "<!-- bench/models {} -->\n", "\n<!-- end of bench/models {} -->"
        text = "".join(f"{begin.format(n)}old {n}{end.format(n)}\nbehind {n}\n" for n in "ab")
        self.assertEqual(models_figures.with_section(text, "b", "new"), text.replace("old b", "new"))
        self.assertIsNone(models_figures.with_section(text, "c", "new"))

    def test_the_report_has_a_place_for_every_model(self):
        report = pathlib.Path(llamacpp.ROOT / "docs/reports/models.md").read_text(encoding="utf-8")
        for family in models_families.FAMILIES:
            self.assertIsNotNone(models_figures.with_section(report, family.name, ""), family.name)


class Families(unittest.TestCase):
    def test_they_are_chosen_by_how_model_or_family_begins(self):
        names = [f.name for f in models_families.chosen(["gpt", "lfm2moe"])]
        self.assertEqual(names, ["gpt-oss-20b", "LFM2-8B-A1B"])
        self.assertEqual(len(models_families.chosen([""])), len(models_families.FAMILIES))
        self.assertIsNone(models_families.chosen(["gpt", "mixtral"]))

    def test_fewer_layers_keep_every_kind_of_layer(self):
        for family in models_families.FAMILIES:
            for layers in (family.layers, family.quick):
                self.assertLessEqual(layers, family.whole)
            every = {"qwen35moe": 4, "gpt-oss": 2, "gemma4": 6}.get(family.family, 1)
            self.assertEqual((family.layers % every, family.quick % every), (0, 0), family.name)


if __name__ == "__main__":
    unittest.main()
