"""That bench/answers' bars can be missed, each by its own figure, and what it makes of right answers."""
import unittest

import answers_report
import answers_runs


def row(right=9, of=10, **more):
    return {"right": {name: [i < right for i in range(of)] for name in ("recall", "copy", "sort", "close", "pattern")},
            "substituted": 3, "dropped": 0, "uses": 30, **more}


def figures(exact=9, int8=9, floats=9, cut_loss=9):
    ends = {"cloud only": row(exact=True), "end only": row(exact=True), "cut, floats": row(floats, exact=True),
            "cut, int8": row(int8, held=True, note="1 and 2 of 139 bytes"), "cut, --cut-loss 1": row(cut_loss, held=True), "cut, int4": row(2)}
    chance = dict.fromkeys(row()["right"], 0.1)
    return {"lossy": {"chance": chance, "rows": {"50": {"exact": row(exact), "drop, rho 4": row(1)}}},
            "loop": {"chance": chance, "rows": {"50": {"exact": row(exact)}}},
            "ends": {"chance": chance, "rows": {"loopback": ends}}}


class Bars(unittest.TestCase):
    def test_all_hold_for_good_figures(self):
        self.assertEqual(answers_report.missed_bars(figures()), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what, times in (({"exact": 7}, "0 exercises are answered rightly", 2), ({"int8": 8}, "int8: -10.00 points", 1),
                                     ({"cut_loss": 8}, "--cut-loss 1: -10.00 points", 1), ({"floats": 10}, "though exact", 1)):
            missed = answers_report.missed_bars(figures(**changes))
            self.assertEqual(len([line for line in missed if what in line]), times, (what, missed))
            self.assertEqual(len(missed), times, missed)

    def test_a_few_points_within_the_bar_are_none(self):
        cloud = [True] * 399 + [False]
        change, least, most = answers_report.difference(cloud, [True] * 398 + [False] * 2)
        self.assertAlmostEqual(change, -1 / 400)
        self.assertLess(least, change)
        self.assertGreater(most, 0)


class Tables(unittest.TestCase):
    def test_shares_differences_and_what_changed_are_in_it(self):
        table = answers_report.table("lossy", figures()["lossy"])
        self.assertIn("| exact | 90.0 | 90.0 | 90.0 | 90.0 | 90.0 | 90.0 (78.6 to 95.7) |  | 10.0 % |", table)
        self.assertIn("| drop, rho 4 | 10.0 | 10.0 | 10.0 | 10.0 | 10.0 | 10.0 (4.3 to 21.4) | -80.0 (", table)
        self.assertIn("1 and 2 of 139 bytes", answers_report.table("ends", figures()["ends"]))

    def test_intervals_are_wilsons_and_agrestis(self):
        least, most = answers_report.wilson(8, 10)
        self.assertAlmostEqual(least, 0.4902, places=4)
        self.assertAlmostEqual(most, 0.9433, places=4)
        change, least, most = answers_report.difference([True, True, False, True], [True, False, False, True])
        self.assertEqual(change, -0.25)
        self.assertTrue(least < change < most)


class Answers(unittest.TestCase):
    def test_more_after_the_answer_is_no_fault_and_less_is(self):
        self.assertTrue(answers_runs.is_answer(" a b c", "a b"))
        self.assertFalse(answers_runs.is_answer(" a", "a b"))
        self.assertFalse(answers_runs.is_answer(" a c b", "a b"))

    def test_questions_are_spread_over_their_file(self):
        every = answers_runs.questions("copy")
        self.assertEqual(answers_runs.questions("copy", 3), [every[i * len(every) // 3] for i in range(3)])
        self.assertTrue(0 < answers_runs.chance("copy") < 0.1)


if __name__ == "__main__":
    unittest.main()
