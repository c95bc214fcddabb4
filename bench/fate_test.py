"""That bench/fate's bars can be missed, each by its own figure and with its reason; and, with a program that only answers
records, what is run: the same cache where it says so, and nothing chosen on the text that is reported."""
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import fake_troupe
import fate_bars
import fate_kept
import fate_pairs
import fate_report
import fate_runs
import fate_systems
import measured_run

TIER = "held in memory, 0.5 layer times an expert"


def decode(troupe=40.0, demand=10.0, nothing=40.0, paths=18.0, guessed=0.98, differing=0, wrong=38.5, hits=0.995):
    def system(speed, **more):
        return {"tokens_per_s": speed, "speeds": [speed, speed], "hit_rate": hits, "late": 0.001, "MiB_per_token": 1.0,
                "stall_ms": 1.0, "gates_ms": 3.5, "layer_hits": [1.0, 0.5], "settings": "some", "differing": 0, **more}
    return fate_runs.with_ratios({
        "on demand, no cache": system(demand), "on demand": system(35.0),
        "activation paths": system(paths, guessed=1.0), "Fate": system(30.0, guessed=0.9),
        "troupe, nothing ahead": system(nothing),
        "troupe": system(troupe, guessed=0.5, differing=differing),
        "troupe, profile": system(troupe, guessed=guessed, first_layer_asks=0.02),
        "troupe, tuned": system(troupe, guessed=guessed),
        "troupe, wrong guesses": system(wrong, guessed=0.0)})


def prompts(prefill=95.0, nothing=30.0, filled=70.0, tuned=None):
    def system(speed):
        return {"tokens_per_s": speed, "speeds": [speed], "MiB": 100.0, "time_ms": 512e3 / speed, "stall_ms": 100.0,
                "settings": "some"}
    return fate_runs.with_ratios({
        "on demand, no cache": system(20.0), "on demand": system(30.0), "activation paths": system(45.0),
        "Fate": system(80.0), "troupe, nothing ahead": system(nothing), "troupe": system(prefill),
        "troupe, profile": system(prefill), "troupe, tuned": system(tuned or prefill), "troupe, wrong guesses": system(30.0),
        "troupe, filled": system(filled), "activation paths, filled": system(50.0)})


def with_low_copies(systems, pairs):
    row = systems["troupe"]
    return {**systems, "troupe, pairs": {**row, "tokens_per_s": pairs}, "activation paths, pairs": {**row, "tokens_per_s": 60.0}}


def figures(lost=0.005, prefill=95.0, prompt_nothing=30.0, filled=70.0, pairs=120.0, prompts_differing=0, tier=None, disk=None,
            layer_times=0.5, kept=40.0):
    names = {fate_runs.DISK: disk or {}, TIER: tier or {}}
    loss = {"ratio": 1 + lost, "mean_kl": 0.01, "interval": [1.0, 1.02]}
    quality = {"expected": 0.8, "guessed": 0.9, "similarity": 0.9, "tokens": 9}
    some = with_low_copies(prompts(prefill, prompt_nothing), pairs)
    del some["troupe, profile"]
    return {
        "calibration": {"layers": [{"layer": 1, "gate input": quality, "corrected": [quality] * 3}],
                        "means": {**{place: quality for place in fate_report.PLACES},
                                  **{f"corrected {i}": quality for i in (1, 2, 3)}}},
        "profile_keeps": [[0.25, 0], [0.5, 1]], "layers": 8, "experts": 256, "expert_bytes": 6_680_000, "in_memory": 150.0, "layer_ms": 0.8, "rounds": 2,
        "system_rounds": 4, "disk_bytes_per_s": 3e9, "too_fast_for_the_disk": [2], "copied_bytes_per_s": 9e9,
        "links": {fate_runs.DISK: {"held": False}, TIER: {"held": True, "wanted": 0.5, "layer_times": layer_times}},
        "decode": {link: {50: decode(**changes)} for link, changes in names.items()},
        "prefill": {link: {512: prompts(prefill, prompt_nothing, filled)} for link in names},
        "same_cache": {link: {50: {"none": decode()["on demand"], "eap": decode()["activation paths"]}} for link in names},
        "keeping": {link: {50: {"shallow 0": decode()["troupe"], "shallow 1": decode(kept)["troupe"]}} for link in names},
        "same_predictor": {"lru, shallow 0": decode()["on demand"]},
        "prompts_differing": prompts_differing, "runs": 9, "disturbed": 0,
        "pairs": {"share": 0.5, "loss": loss, "all_low": {**loss, "ratio": 1.02}, "prefill": {512: some},
                  "pack": {"high_type": "Q4_K", "low_type": "Q2_K", "matrices_in_fallback_types": 0, "expert_bytes": 4,
                           "low_expert_bytes": 3}}}


class Bars(unittest.TestCase):
    def missed(self, **changes):
        return fate_bars.missed_bars(figures(**changes))

    def test_all_hold_for_good_figures(self):
        self.assertEqual(self.missed(), [])

    def test_each_is_missed_by_its_own_figure_and_says_why(self):
        for changes, what in (
                ({"disk": {"guessed": 0.96}}, "disk: experts guessed before they are asked for: 96.0 %, at least 97.0 %; all asks count: 2.0 %"),
                ({"disk": {"demand": 11.0}}, "disk: decode over loading on demand without a cache: 3.64x, at least 4.00x; the median of all "
                                             "cells 3.64x; the best of 1 cells"),
                ({"disk": {"paths": 19.0}}, "disk: decode over activation paths: 2.11x"),
                ({"tier": {"guessed": 0.96}}, "held in memory: experts guessed"),
                ({"tier": {"demand": 11.0}}, "held in memory: decode over loading"),
                ({"tier": {"hits": 0.98}}, f"hits, {TIER}, 50 % in memory: 98.0 %, at least 99.0 %; Fate (some) has the most; 0.1 % were on"),
                ({"prefill": 85.0}, "prefill over loading on demand without a cache: 4.25x, at least 4.50x"),
                ({"prefill": 84.0}, "prefill over activation paths: 1.87x"),
                ({"filled": 64.5}, f"prefill from a filled cache over loading on demand with the same slots, {TIER}: 2.15x, at least 2.20x; "
                                   "1.29x activation paths from a filled cache; filled before the request"),
                ({"pairs": 110.0}, "prefill over activation paths, both with the same share of low copies: 1.83x, at least 1.90x"),
                ({"lost": 0.011}, "loss of perplexity by the pair of precisions: 1.1 %, at most 1.0 %; 50.0 % of a layer's work"),
                ({"disk": {"differing": 1}}, "other tokens"), ({"prompts_differing": 1}, "other tokens")):
            missed = self.missed(**changes)
            self.assertTrue(any(what in line for line in missed), (changes, missed))

    def test_reading_ahead_is_held_to_the_same_cache_without_it_in_every_cell(self):
        missed = self.missed(disk={"nothing": 41.0})
        self.assertEqual(len([line for line in missed if "against nothing read ahead" in line]), 3, missed)
        self.assertIn("this disk, 50 % in memory: troupe against nothing read ahead: 0.976x, at least 0.980x; 0.976 to 0.976 over 2 "
                      "rounds, hits 99.5 % against 99.5 %, late 0.1 %", missed[0])
        self.assertTrue(any(TIER in line for line in self.missed(tier={"nothing": 41.0})))
        self.assertTrue(any("a prompt of 512: troupe against" in line for line in self.missed(prompt_nothing=98.0)))
        # A cache that is better than LRU does not hide it: `on demand` has 35 tokens/s here.
        self.assertTrue(any("wrong guesses against" in line for line in self.missed(disk={"wrong": 37.0})))

    def test_what_is_lossy_or_begins_filled_is_never_the_best_of_an_exact_row_that_begins_empty(self):
        """Both are far above the bars here, and the exact systems below them."""
        missed = self.missed(prefill=70.0, filled=999.0, pairs=999.0)
        for what in ("prefill over loading on demand without a cache: 4.00x", "prefill over activation paths: 1.78x"):
            self.assertEqual(len([line for line in missed if what in line]), 2, missed)

    def test_the_best_cell_has_the_median_of_all_beside_it_and_one_system_is_taken_in_all_of_them(self):
        many = figures()
        # `tuned` wins in one cell of three, and by so much that it would be the best: it is the worst in the others.
        many["prefill"][fate_runs.DISK] = {128: prompts(90.0, tuned=200.0), 256: prompts(100.0, tuned=20.0), 512: prompts(110.0, tuned=20.0)}
        del many["pairs"]
        bar = next(bar for bar in fate_bars.headline_bars(many) if bar.what == "disk: prefill over activation paths")
        self.assertEqual(bar.ours(), "2.44x, the median of all cells 2.22x")
        self.assertIn("this disk, a prompt of 512: troupe (some)", bar.reason)

    def test_a_tier_that_processors_cannot_copy_fast_enough_is_said(self):
        self.assertIn("1.20 layer times in place of 0.5", self.missed(tier={"hits": 0.9}, layer_times=1.2)[0])

    def test_the_report_has_the_columns_that_a_headline_needs(self):
        text = fate_report.tables(figures(disk={"paths": 19.0}))
        self.assertIn("| measure | paper | ours | bar | baseline and its settings | tuned, and where | command |", text)
        self.assertIn("| disk: decode over activation paths | 2.2x | 2.11x, the median of all cells 2.11x (missed) | 2.20x | "
                      "activation paths (some) | ", text)
        self.assertIn("0 matrices in other types", text)
        self.assertIn("## Same cache", text)
        self.assertIn("| hits, % | late, % | MiB/token | guessed, % | gates, ms |", text)
        self.assertIn("| none | 35.00 | 1.00 | 99.5 | 0.1 | 1.0 |  | 3.5 |", text)
        self.assertIn("| system | settings | tokens/s |", text)

    def test_whether_a_shallow_layer_is_worth_its_slots_follows_from_the_figures(self):
        self.assertIn("Keeping a layer pays in 0 of 2 cells (at least 2 % faster, and faster in every round), so the defaults keep none",
                      fate_report.keeping(figures()))
        self.assertIn(f"pays in 2 of 2 cells (at least 2 % faster, and faster in every round): this disk, 50 % in memory; {TIER}, 50 % in "
                      "memory. The defaults without a profile keep none there, and lose that.", fate_report.keeping(figures(kept=41.0)))
        uneven = figures(kept=42.0)
        uneven["keeping"][TIER][50]["shallow 1"]["speeds"] = [44.0, 39.0]
        self.assertIn("pays in 1 of 2 cells", fate_report.keeping(uneven))
        self.assertIn("## Keeping a shallow layer", fate_report.tables(uneven))
        self.assertIn("The profile, which counts misses of a cache like the engine's, keeps 0 at 25 %, 1 at 50 %.", fate_report.keeping(uneven))

    def test_the_line_counts_what_was_missed(self):
        bad = figures(disk={"demand": 11.0})
        line = fate_report.figures_line(bad, fate_bars.missed_bars(bad))
        self.assertTrue(line.endswith("bars missed: 1"), line)


class Pairs(unittest.TestCase):
    def test_a_pair_of_other_types_is_refused(self):
        fine = {"output": "o", "matrices_in_fallback_types": 0, "high_matrices_in_fallback_types": 0}
        fate_pairs.check_no_fallbacks(fine)
        with self.assertRaisesRegex(measured_run.RunFailed, "32 matrices fit neither Q4_K nor Q2_K .16 of the high copy, 16 of"):
            fate_pairs.check_no_fallbacks({**fine, "matrices_in_fallback_types": 32, "high_matrices_in_fallback_types": 16})


    def test_the_share_is_chosen_on_other_paragraphs_than_it_is_reported_on(self):
        first, second = fate_pairs.in_halves("one\n\ntwo, which is longer\nthan one\n\nthree\n")
        self.assertEqual((first, second), ("one\n\ntwo, which is longer\nthan one\n\n", "three\n"))
        with self.assertRaisesRegex(measured_run.RunFailed, "no paragraph"):
            fate_pairs.in_halves("one\n\ntwo\nthree\nfour\n")


class AnsweringTroupe(fake_troupe.FakeTroupe):
    def calibrate(self, arguments):
        quality = {"expected": 0.8, "guessed": 0.9, "similarity": 0.9, "tokens": 9}
        forecasts = [{"layer": layer, "gate input": quality, "corrected": [quality] * 3} for layer in (1, 2)]
        pathlib.Path(arguments[-1]).write_text(json.dumps({"forecasts": forecasts, "shallow": [{"share": 0.5, "best": 0}]}))
        return {**{place: quality for place in fate_report.PLACES}, **{f"corrected {i}": quality for i in (1, 2, 3)}}

    def inspect(self, _):
        return {"layer_bytes": [{"expert_bytes": 32 * 6_680_000}] * 8, "experts": 32}

    def pack(self, arguments):
        folder = pathlib.Path(arguments[0]).parent
        for name in ("-q4_k.gguf", "-q4_k.experts"):
            (folder / (pathlib.Path(arguments[0]).stem + name)).write_text("made")
        return {"output": arguments[-1], "layers": 8, "experts_per_layer": 32, "high_type": "Q4_K", "low_type": "Q2_K",
                "matrices_in_fallback_types": 0, "high_matrices_in_fallback_types": 0, "expert_bytes": 4, "low_expert_bytes": 3,
                "seconds": 9}

    def eval(self, arguments):
        if "--logits" in arguments:
            pathlib.Path(arguments[arguments.index("--logits") + 1]).write_text("logits")
        return {"low_share": 0.5, "perplexity_ratio": 1.01, "mean_kl": 0.1, "perplexity_ratio_interval": [1.0, 1.02]}

    def run(self, arguments):
        if "--file" in arguments:
            other = "chosen" in arguments[arguments.index("--file") + 1]
            return {"prompt_ids": list(range(1000, 1600)) if other else list(range(600))}
        speed = 60.0 if "arc" in arguments else 50.0
        reads = "none" not in arguments[arguments.index("--predict"):][:2] if "--predict" in arguments else True
        decode = {"expert_hits": 90, "expert_misses": 10, "prefetch_late": 1, "bytes_read": 1 << 20, "stall_s": 0.1,
                  "layer_hits": [9, 9], "layer_asks": [10, 10], "experts_asked_for": 100 if reads else 0, "experts_guessed": 80}
        return {"decode_tokens_per_s": speed, "prefill_tokens_per_s": speed, "token_ids": [1], "decode_steps": 95,
                "bytes_read": 1 << 20, "stall_s": 0.2, "gate_s": 0.004, "decode": decode}


class Runs(unittest.TestCase):
    def measure(self, quick, tier=False, **more):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file in ("m.experts", "small-wide128.gguf"):
                (folder / file).write_text("x" * 100)
            with mock.patch("measured_run.Troupe", AnsweringTroupe), \
                 mock.patch("offload_runs.make_model", lambda *_: (folder / "m.gguf", folder / "m.experts")), \
                 mock.patch("disk_speed.sequential_bytes_per_s", lambda *_: 3e9), \
                 mock.patch("disk_speed.copied_bytes_per_s", lambda *_: 9e9):
                comparison = fate_runs.Comparison("troupe", folder, quick, folder)
                found = comparison.measure(tier, **more)
        return found, comparison._troupe.calls

    def test_every_figure_can_be_shown(self):
        for quick, tier in ((True, False), (False, False), (True, True)):
            found, _ = self.measure(quick, tier)
            missed = fate_bars.missed_bars(found)
            self.assertIn("## Systems at their best", fate_report.tables(found))
            self.assertIn("against nothing read ahead at least", fate_report.figures_line(found, missed))
            self.assertEqual(json.loads(json.dumps(found))["disturbed"], 0)
            with tempfile.TemporaryDirectory() as plots:
                fate_report.draw(found, pathlib.Path(plots))
                drawn = [path.name for path in pathlib.Path(plots).iterdir()]
                shown = fate_report.pictures(found, "fate")
                self.assertEqual(sorted(f"fate/{name}" in shown for name in drawn), [True] * len(drawn))
                self.assertEqual(len(drawn), 1 if quick else 1 + len(found["links"]))
            self.assertEqual([link for link in found["links"] if found["links"][link]["held"]],
                             [TIER, "held in memory, 2 layer times an expert"])
            self.assertEqual(fate_runs.DISK in found["links"], not tier)

    def test_a_run_that_ended_early_goes_on_with_the_pieces_that_it_lacks(self):
        class Cut(Exception):
            pass

        def cut_at_the_second(figures):
            fate_kept.write(path, figures, run)
            if len(figures["pieces"]) == 2:
                raise Cut()

        with tempfile.TemporaryDirectory() as name:
            path, binary = pathlib.Path(name) / "f.json", pathlib.Path(name) / "troupe"
            binary.write_text("one")
            run = fate_kept.of_run(binary, quick=False)
            self.assertIsNone(fate_kept.read(path, run))
            with self.assertRaises(Cut):
                self.measure(False, keep=cut_at_the_second)
            kept = fate_kept.read(path, run)
            runs_before = kept["runs"]
            found, calls = self.measure(False, kept=kept)
            through, all_calls = self.measure(False)
            again = 2  # tokens of the two texts
            self.assertEqual(found, {**through, "runs": through["runs"] + again})
            self.assertEqual(len(calls), len(all_calls) - runs_before + again)
            binary.write_text("another")
            with self.assertRaisesRegex(measured_run.RunFailed, "it is of program .*, expected .*; without --go-on"):
                fate_kept.read(path, fate_kept.of_run(binary, quick=False))
            path.write_text("{}")
            with self.assertRaisesRegex(measured_run.RunFailed, "no figures of bench/fate"):
                fate_kept.read(path, run)

    def test_nothing_is_chosen_on_the_text_that_is_reported(self):
        found, calls = self.measure(quick=False)
        runs = [arguments for command, arguments in calls if command == "run" and "--prompt-ids" in arguments]
        seed = lambda arguments: arguments[arguments.index("--seed") + 1]
        first = lambda arguments: arguments[arguments.index("--prompt-ids") + 1].split(",")[0]
        self.assertEqual({(first(run), seed(run)) for run in runs}, {("0", "1"), ("1000", "2")})
        self.assertTrue(found["decode"][fate_runs.DISK][25]["activation paths"]["settings"].startswith("arc, shallow 0"))
        self.assertEqual(len(found["tried"][fate_runs.DISK][25]["activation paths"]), 12)
        self.assertEqual(len(found["tried"][fate_runs.DISK][25]["on demand"]), 6)

    def test_the_table_of_one_cache_differs_by_the_predictor_alone(self):
        rows = fate_systems.same_cache(quick=True)
        self.assertEqual(list(rows), ["none", "eap", "gate", "smoe", "lookahead"])
        self.assertEqual({tuple(arguments[2:]) for arguments in rows.values()},
                         {("--cache", "echo", "--shallow", "0", fate_systems.PROFILE)})

    def test_nothing_read_ahead_has_the_cache_of_those_that_are_held_to_it(self):
        self.assertEqual(fate_systems.FIXED[fate_systems.NOTHING], ["--predict", "none"])
        self.assertEqual(fate_systems.FIXED[fate_systems.TROUPE], [])
        # A profile may keep shallow layers, which would be another cache.
        self.assertEqual(fate_systems.FIXED[fate_systems.PROFILED], [fate_systems.PROFILE, "--shallow", "0"])

    def test_every_system_has_as_many_rounds_as_its_rivals(self):
        found, _ = self.measure(quick=False)
        for cells in (*found["decode"].values(), *found["prefill"].values(), found["pairs"]["prefill"]):
            for systems in cells.values():
                self.assertEqual({len(figure["speeds"]) for figure in systems.values()}, {found["system_rounds"]})

    def test_activation_paths_are_filled_and_have_low_copies_where_this_engine_does(self):
        _, calls = self.measure(quick=True)
        runs = [arguments for command, arguments in calls if command == "run"]
        for flag in ("--fill", "--low-copy"):
            which = ["eap" in run for run in runs if flag in run]
            self.assertEqual(which.count(True), which.count(False), flag)
            self.assertGreater(which.count(True), 0, flag)


if __name__ == "__main__":
    unittest.main()
