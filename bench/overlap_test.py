#!/usr/bin/env python3
"""bench/overlap's bars have to fail where they should, and its table has to show what it was given."""
import unittest

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


class Tables(unittest.TestCase):
    def test_a_cell_tells_what_was_closed_of_the_gap(self):
        self.assertIn("| m | read | 2 | 50 % | 10.00 | 8.00 | 6.00 | 4.00 | 0.889 | 1.00 | 50 % |",
                      overlap_runs.table([cell(0.006)]))
        self.assertIn("50 to 100 % closed", overlap_runs.figures_line([cell(0.006), cell(0.004)], []))


if __name__ == "__main__":
    unittest.main()
