#!/usr/bin/env python3
"""bench/overlap's bars have to fail where they should, and its table has to show what it was given."""
import unittest

import overlap_live
import overlap_runs


def result(stall, loads=100):
    return {"stall_s_per_token": stall, "compute_s_per_token": 0.010, "loads": loads}


def cell(ahead, loads=100):
    return overlap_runs.cell("m", "read", 2, 50, result(0.008), result(ahead, loads), result(0.004))


class Bars(unittest.TestCase):
    def test_none_is_missed_by_good_figures(self):
        self.assertEqual(overlap_runs.missed_bars([cell(0.006), cell(0.005, 114)]), [])

    def test_each_bar_can_be_missed(self):
        for spoiled, words in ((cell(0.0083), "1.017 of the time"), (cell(0.006, 116), "1.16 of its bytes"),
                               (cell(0.007), "25 % of the gap closed")):
            missed = overlap_runs.missed_bars([cell(0.006), spoiled])
            self.assertTrue(any(words in line for line in missed), missed)


def live_run(ms, loaded, computing=10.0, overlapped=2.0):
    time = {"computing_s": computing / 10, "overlapped_s": overlapped / 10, "stall_s": 0}
    return {"decode_steps": 100, "decode": {"pass_s": ms / 10, "bytes_read": 100 * loaded, "time": time,
                                            "foresight": {"needed": 10, "in_time": 4}}}


def live_cell(ms, loaded=10_000_000, budget=50):
    return overlap_live.cell("disk", budget, 1e9, {"none": [live_run(20, 10_000_000)], "scores": [live_run(ms, loaded)]})


class Live(unittest.TestCase):
    def test_the_bound_is_the_larger_of_computing_and_reading(self):
        self.assertAlmostEqual(overlap_live.over_bound(live_cell(15), "scores"), 15 / 12)
        self.assertIn("| disk | 50 % | scores | 15.00 | 0.750 | 1.25 | 12.00 | 10.00 | 1.00 | 40 % |",
                      overlap_live.table([live_cell(15)]))

    def test_a_link_is_no_faster_than_the_disk(self):
        self.assertEqual(overlap_live.speed_of("1000MB/100us", 2e9), 1e9)
        self.assertEqual(overlap_live.speed_of("1000MB/100us", 5e8), 5e8)
        self.assertEqual(overlap_live.speed_of("disk", 5e8), 5e8)

    def test_each_bar_can_be_missed(self):
        self.assertEqual(overlap_live.missed_bars([live_cell(14.9)]), [])
        for spoiled, words in ((live_cell(20.5), "1.025 of the time"), (live_cell(14, 12_000_000), "1.20 of its bytes"),
                               (live_cell(14.9, budget=25), "1.24 of what computing")):
            self.assertTrue(any(words in line for line in overlap_live.missed_bars([spoiled])), words)


class Tables(unittest.TestCase):
    def test_a_cell_tells_what_was_closed_of_the_gap(self):
        self.assertIn("| m | read | 2 | 50 % | 10.00 | 8.00 | 6.00 | 4.00 | 0.889 | 1.00 | 50 % |",
                      overlap_runs.table([cell(0.006)]))
        self.assertIn("50 to 100 % closed", overlap_runs.figures_line([cell(0.006), cell(0.004)], []))


if __name__ == "__main__":
    unittest.main()
