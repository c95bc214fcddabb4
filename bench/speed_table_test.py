#!/usr/bin/env python3
"""What bench/vs_llamacpp concludes from measurements: made up here, so the answers are known."""
import sys
import unittest

import llamacpp
import measured_run
import speed_table

FILE_BYTES = 1_000_000_000
QUIET = measured_run.MeasuredRun(stdout="", others=0.0)
BUSY = measured_run.MeasuredRun(stdout="", others=0.5)
SHIPPED, PINNED = llamacpp.configs("shim")[0], llamacpp.configs("shim")[2]


def comparison(decode=(210, 200, 220), prefill=(900,), peak=FILE_BYTES, run=QUIET):
    c = speed_table.Comparison("small Q4_0", FILE_BYTES)
    c.add_troupe({"prefill": [{"tokens_per_s": list(prefill)}],
                  "decode": [{"tokens_per_s": list(decode)}],
                  "bytes_touched_per_token": 100_000_000,
                  "read_bandwidth_bytes_per_s": 30e9,
                  "peak_rss_bytes": peak}, run)
    for config, decode_speed, prefill_speed in ((SHIPPED, 50, 500), (PINNED, 100, 400)):
        c.add_llamacpp(config, {"decode": [decode_speed], "prefill": [prefill_speed],
                                "peak_rss_bytes": 2 * FILE_BYTES}, QUIET)
    return c


class SpeedTable(unittest.TestCase):
    def test_TheDenominatorIsTheBestConfigurationOfEachPhase(self):
        self.assertAlmostEqual(comparison().ratio("decode"), 210 / 100)
        self.assertAlmostEqual(comparison().ratio("prefill"), 900 / 500)

    def test_RatiosAgainstTheShippedConfigurationStandBeside(self):
        self.assertAlmostEqual(comparison().ratio("decode", SHIPPED), 210 / 50)
        self.assertIn("4.20x", speed_table.table([comparison()]))

    def test_AMedianForgivesOneSlowRepetition(self):
        self.assertAlmostEqual(comparison(decode=(210, 1, 220)).ratio("decode"), 210 / 100)

    def test_BarsThatHoldAreNotMissed(self):
        self.assertEqual(comparison().missed_bars(), [])
        self.assertIn("all bars held", speed_table.figures([comparison()]))

    def test_EachBarIsMissedByItself(self):
        for name, missing in (("decode", comparison(decode=(199,))),
                              ("prefill", comparison(prefill=(749,))),
                              ("memory", comparison(peak=int(1.11 * FILE_BYTES)))):
            with self.subTest(name):
                missed, = missing.missed_bars()
                self.assertIn(name, missed)
                self.assertIn("bars missed: 1", speed_table.figures([comparison(), missing]))

    def test_TheLineOfFiguresNamesTheWorstModel(self):
        line = speed_table.figures([comparison(decode=(300,)), comparison(decode=(250,))])
        self.assertIn("decode 2.50x", line)
        self.assertNotIn("\n", line)

    def test_BytesTouchedAreHeldAgainstTheBandwidth(self):
        self.assertAlmostEqual(comparison().bandwidth_share(210), 0.7)

    def test_ADisturbedRunIsWarnedAbout(self):
        self.assertIn("disturbed runs: 1;", speed_table.table([comparison(run=BUSY)]))
        self.assertNotIn("disturbed", speed_table.table([comparison()]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
