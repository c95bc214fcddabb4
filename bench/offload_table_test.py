#!/usr/bin/env python3
"""What bench/offload concludes from measurements: made up here, so the answers are known."""
import sys
import unittest

import offload_figures
import offload_table

GIB, MIB = 1 << 30, 1 << 20
COMPUTE_SPEED = 40.0   # tokens/s in memory: 25 ms a token
DISK = 1000 * MIB      # bytes/s
READ_PER_TOKEN = 50 * MIB  # 50 experts, 50 ms of that disk: the bound
TOKENS = 11            # ten of them decoded


def record(decode=16.0, prefill=300.0, peak=GIB, reading_speed=DISK, tokens=range(TOKENS)):
    return {"decode_tokens_per_s": decode, "prefill_tokens_per_s": prefill,
            "peak_rss_bytes": peak, "memory_budget_bytes": GIB, "token_ids": list(tokens),
            "bytes_read": 12 * READ_PER_TOKEN, "reading_s": 12 * READ_PER_TOKEN / reading_speed,
            "decode": {"bytes_read": 10 * READ_PER_TOKEN,
                       "reading_s": 10 * READ_PER_TOKEN / reading_speed, "stall_s": 0.3,
                       "expert_hits": 150, "expert_misses": 450, "prefetch_useful": 50,
                       "prefetch_late": 20}}


def model(peers=((1.0, 60.0), (1.5, 100.0)), in_memory=(COMPUTE_SPEED, COMPUTE_SPEED),
          shares=(0.25, 0.5), name="small-q8_0", **changes):
    m = offload_figures.Offload(name, "random weights", 2 * GIB,
                                {"one_expert_bytes": MIB, "bytes_per_token": 100 * MIB})
    m.unlimited, m.roomy = [in_memory[0]], [in_memory[1]]
    for share in shares:
        budget = offload_figures.Budget(share, GIB, GIB + 64 * MIB)
        for store in ("packed", "GGUF in place"):
            runs = offload_figures.TroupeRuns(records=[record(**changes)], disk=[DISK])
            if share == offload_figures.PREFILL_SHARE:
                runs.prefills.append(record(**changes))
            budget.stores[store] = runs
        for i, (decode, prefill) in enumerate(peers):
            prefills = [prefill] if share == offload_figures.PREFILL_SHARE else []
            budget.peers[f"way {i}"] = offload_figures.PeerRuns([decode], prefills, [11])
        m.budgets.append(budget)
    return m


class OffloadFigures(unittest.TestCase):
    def test_TheDenominatorIsLlamaCppsBestWay(self):
        first, second = model().budgets
        self.assertAlmostEqual(first.decode_ratio(), 16 / 1.5)
        self.assertAlmostEqual(second.prefill_ratio(), 300 / 100)

    def test_WhatATokenReadsAndWaitsIsCountedFromTheSecondTokenOn(self):
        runs = model().budgets[0].held()
        self.assertAlmostEqual(runs.bytes_per_token(), READ_PER_TOKEN)
        self.assertAlmostEqual(runs.stall_per_token(), 0.03)
        self.assertAlmostEqual(runs.hit_rate(), 0.25)

    def test_TheBoundIsTheGreaterOfComputingAndReading(self):
        m = model()
        self.assertAlmostEqual(m.bound_ratio(m.budgets[0].held()), (1 / 16) / 0.05)
        slow_to_compute = model(in_memory=(17, 17))
        self.assertAlmostEqual(slow_to_compute.bound_ratio(slow_to_compute.budgets[0].held()),
                               17 / 16)

    def test_WhatIsReadForNothingDoesNotRaiseTheBound(self):
        m = model()
        runs = m.budgets[0].held()
        runs.records[0]["decode"]["bytes_read"] *= 2
        self.assertAlmostEqual(m.bound_ratio(runs), (1 / 16) / 0.05)

    def test_ReadingIsHeldAgainstTheDisk(self):
        runs = model(reading_speed=0.95 * DISK).budgets[0].held()
        self.assertAlmostEqual(runs.disk_share(), 0.95)

    def test_APromptsReadingDoesNotCountAsDecoding(self):
        runs = model().budgets[1].held()
        for run in runs.records + runs.prefills:
            run["reading_s"] *= 2
        self.assertAlmostEqual(runs.disk_share(), 1.0)
        self.assertAlmostEqual(runs.prefill_disk_share(), 0.5)

    def test_BarsThatHoldAreNotMissed(self):
        self.assertEqual(model().missed_bars(), [])
        self.assertIn("all bars held", offload_table.figures([model()]))

    def test_EachBarIsMissedByItself(self):
        for what, missing, times in (
                ("decode", model(peers=((1.7, 60),)), 2),
                ("prefill", model(peers=((1.0, 101),)), 1),
                ("disk", model(reading_speed=0.89 * DISK), 3),  # of decode with each budget, and of the prompt
                ("bound", model(decode=15.9, peers=((1.0, 60),)), 2),
                ("in memory", model(in_memory=(40, 38.7)), 1),
                ("peak", model(peak=GIB + 1), 2)):
            with self.subTest(what):
                missed = missing.missed_bars()
                self.assertEqual(len(missed), times, missed)
                self.assertTrue(all(what in line for line in missed), missed)
                self.assertIn(f"bars missed: {times}", offload_table.figures([model(), missing]))

    def test_AMissedBarSaysWhereTheTimeGoes(self):
        spent = "hits 25.0%, 2.0 experts a token still on their way, 50.0 MiB read a token, 30.0 of 62.5 ms waiting"
        missed = model(peers=((1.7, 60),)).missed_bars()
        self.assertEqual(missed[0], "small-q8_0: decode at 25% of the experts 9.41, at least 10.0; 16.0 tokens/s against 1.70, all in "
                                    f"memory 40.0; {spent}")
        missed = model(decode=15.0, peers=((1.0, 60),)).missed_bars()
        self.assertIn("time over its bound at 25% of the experts, packed 1.33, at most 1.25; computing alone takes 25.0 ms, reading what "
                      "is missing 50.0; hits 25.0%", missed[0])

    def test_APromptsReadingIsHeldToTheDisk(self):
        m = model()
        m.budgets[1].held().prefills[0]["reading_s"] *= 2
        missed, = m.missed_bars()
        self.assertIn("prefill's share of the disk's speed at 50% of the experts, packed 0.50, at least 0.9; 300.0 tokens/s, 600 MiB read",
                      missed)

    def test_APeakThatBreaksABudgetCountsInEitherStore(self):
        m = model()
        m.budgets[0].stores["GGUF in place"].records[0]["peak_rss_bytes"] = 2 * GIB
        self.assertEqual(len(m.missed_bars()), 1)

    def test_ARunWithOtherTokensIsAMissedBar(self):
        m = model()
        m.differing = 1
        missed, = m.missed_bars()
        self.assertIn("other tokens", missed)

    def test_AModelInMemoryHitsAlways(self):
        self.assertEqual(offload_figures.TroupeRuns().hit_rate(), 1.0)


    def test_AThrottledLinkIsHeldToReadingAloneAndNotToLlamaCpp(self):
        m = model()
        slow = offload_figures.TroupeRuns(records=[record(decode=1.0)], disk=[DISK])
        m.budgets[1].stores[offload_figures.LINK] = slow
        missed, = m.missed_bars()
        self.assertIn("time over its bound at 50% of the experts, packed, through a link", missed)
        slow.records[0]["decode"]["reading_s"] *= 2
        self.assertEqual(len(m.missed_bars()), 2)
        self.assertIsNone(m.as_dict()["budgets"][1]["ratios"][offload_figures.LINK]["decode"])
        self.assertIn("through a link", offload_table.table([m]))


class OffloadTable(unittest.TestCase):
    def test_TheLineOfFiguresNamesTheWorst(self):
        line = offload_table.figures([model(), model(decode=15.8, peers=((1.0, 60),))])
        self.assertIn("offload: 2 models", line)
        self.assertIn("decode 10.7x", line)
        self.assertIn("time 1.27x", line)
        self.assertNotIn("\n", line)

    def test_EachWayToRunHasItsRow(self):
        text = offload_table.table([model()])
        for name in ("troupe, packed", "troupe, GGUF in place", "llama.cpp way 0",
                     "llama.cpp way 1", "25% of the experts", "50% of the experts",
                     "random weights"):
            self.assertIn(name, text)

    def test_ADisturbedRunIsWarnedAbout(self):
        m = model()
        self.assertNotIn("disturbed", offload_table.table([m]))
        m.disturbed, m.runs = 3, 40
        self.assertIn("disturbed runs: 3 of 40;", offload_table.table([m]))

    def test_HowFarLlamaCppCameInItsTimeIsShown(self):
        m = model()
        m.budgets[0].peers["way 0"].take_decode({"decode_tokens_per_s": 1.0, "decoded_tokens": 34})
        self.assertRegex(offload_table.table([m]), r"llama.cpp way 0 +1.00  in 11 to 34 tokens")

    def test_EverythingMeasuredGoesIntoTheRecord(self):
        as_dict = model().as_dict()
        self.assertEqual(as_dict["budgets"][1]["stores"]["packed"]["prefills"], [record()])
        self.assertAlmostEqual(as_dict["budgets"][0]["ratios"]["packed"]["time_over_bound"], 1.25)
        self.assertIsNone(as_dict["budgets"][0]["ratios"]["packed"]["prefill"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
