"""That bench/heart's bars can be missed, each by its own figure."""
import unittest

import heart_figures


def figures(compile_s=44.0, decode=100.0, prefill=100.5, eight=96.0, limit=110.0, longest=0.029):
    cell = {"model": "m", "share": "50 %", "decode": {"old": [100.0, 99.0, 101.0], "new": [decode] * 3},
            "prefill": {"old": [100.0] * 3, "new": [prefill] * 3}}
    row = {"share": "in memory", "sequences": 8, "tokens_per_s": eight, "prompt_tokens_per_s": 100.0,
           "limit_tokens_per_s": limit, "processors_tokens_per_s": 400.0, "experts_a_pass": 30.0,
           "prompt_experts_a_pass": 28.0}
    return {"compile": {"old_cpu_s": 100.0, "new_cpu_s": compile_s}, "speed": [cell], "together": [row],
            "join": {"median_gap_s": 0.01, "longest_gap_s": longest, "prompt_tokens": 2048, "sequences": 8,
                     "prompt_seconds": 3.0, "prompt_seconds_alone": 2.5},
            "disturbed": 0}


class Bars(unittest.TestCase):
    def missed(self, **changes):
        return heart_figures.missed_bars(figures(**changes))

    def test_all_hold_for_good_figures(self):
        self.assertEqual(self.missed(), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what in (({"compile_s": 46.0}, "compiling"), ({"decode": 96.0, "prefill": 110.0}, "decode 0.960"),
                              ({"prefill": 98.1}, "geometric mean"), ({"eight": 94.0}, "chunks of eight"),
                              ({"limit": 125.0}, "their limit"), ({"longest": 0.031}, "longest gap")):
            missed = self.missed(**changes)
            self.assertEqual(len(missed), 1, (changes, missed))
            self.assertIn(what, missed[0])

    def test_what_noise_may_explain_is_not_missed(self):
        self.assertEqual(heart_figures.interval_of_median([1.0, 0.9, 1.1]), (1.0, 0.9, 1.1))
        eight = [0.5, 0.91, 0.92, 0.93, 0.95, 0.96, 0.97, 2.0]
        self.assertEqual(heart_figures.interval_of_median(eight), (0.94, 0.91, 0.97))
        noisy, steady = figures(), figures()
        for cell, new in ((noisy["speed"][0], [90.0, 97.0, 110.0]), (steady["speed"][0], [96.0, 95.0, 97.0])):
            cell["decode"]["new"] = new
            cell["prefill"]["new"] = [106.0] * 3
        self.assertEqual(heart_figures.missed_bars(noisy), [])
        self.assertEqual(len(heart_figures.missed_bars(steady)), 1)

    def test_the_mean_takes_decode_and_prefill_of_a_round_as_one(self):
        cell = {"model": "m", "share": "s", "decode": {"old": [1, 1], "new": [0.8, 1.25]},
                "prefill": {"old": [1, 1], "new": [0.8, 1.25]}}
        mean = heart_figures.mean_ratio([cell])
        self.assertAlmostEqual(mean.middle, 1.0)
        self.assertAlmostEqual(mean.high, 1.25**2)  # two standard errors of +-log(1.25) in two rounds
        self.assertAlmostEqual(mean.low, 0.8**2)
        self.assertEqual(len(heart_figures.untold_cells([cell])), 2)
        self.assertIn("2 of 2 cells cannot be told from 0.98 by these rounds; 0 hold, 0 lie below. The mean is 1.000 (0.640 to 1.56",
                      heart_figures.table("speed", [cell]))

    def test_a_part_that_was_not_run_has_no_bar(self):
        self.assertEqual(heart_figures.missed_bars({"disturbed": 0}), [])

    def test_tables_and_the_line_show_the_figures(self):
        all_figures = figures()
        for part in ("compile", "speed", "together", "join"):
            self.assertRegex(heart_figures.table(part, all_figures[part]), r"\d")
        self.assertIn("bars missed 1", heart_figures.line(all_figures, ["x"]))


if __name__ == "__main__":
    unittest.main()
