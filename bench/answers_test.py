"""That bench/answers' bars can be missed, each by its own figure, and what it makes of right answers."""
import pathlib
import tempfile
import unittest
from unittest import mock

import answers_report
import answers_runs
import fake_troupe


def row(right=9, of=10, **more):
    return {"right": {name: [i < right for i in range(of)] for name in ("recall", "copy", "sort", "close", "pattern")},
            "substituted": 3, "dropped": 0, "uses": 30, **more}


def figures(exact=9, int8=9, floats=9, cut_loss=9, smoe=9, balanced="smoe:alpha=0.1", control=1, of=10):
    ends = {"cloud only": row(exact=True), "end only": row(exact=True), "cut, floats": row(floats, exact=True),
            "cut, int8": row(int8, held=True, note="1 and 2 of 139 bytes"), "cut, --cut-loss 1": row(cut_loss, held=True), "cut, int4": row(2)}
    chance = dict.fromkeys(row()["right"], 0.1)
    lossy = {"exact": row(exact * of // 10, of), "smoe, alpha 0.4": row(smoe * of // 10, of), "drop, rho 4": row(of // 10, of),
             "random, rho 4": row(control * of // 10, of), "--quality balanced": row(exact * of // 10, of, chain=balanced)}
    return {"lossy": {"chance": chance, "rows": {"50": lossy, "25": lossy}},
            "loop": {"chance": chance, "rows": {"50": {"exact": row(exact)}}},
            "ends": {"chance": chance, "rows": {"loopback": ends}}}


class Bars(unittest.TestCase):
    def test_all_hold_for_good_figures(self):
        self.assertEqual(answers_report.missed_bars(figures()), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what, times in (({"exact": 7}, "0 exercises are answered rightly", 3), ({"int8": 8}, "int8: -10.00 points", 1),
                                     ({"cut_loss": 8}, "--cut-loss 1: -10.00 points", 1), ({"floats": 10}, "though exact", 1),
                                     ({"smoe": 8, "of": 100}, "smoe, alpha 0.4: -10.0 points of right answers, and maybe -12.6", 2),
                                     ({"balanced": "smoe:alpha=0.1+buddies"}, "--quality balanced answers by smoe:alpha=0.1+buddies", 2),
                                     ({"control": 9}, "lossy, 25: random, rho 4 may lose nothing", 1)):
            missed = answers_report.missed_bars(figures(**changes))
            self.assertEqual(len([line for line in missed if what in line]), times, (what, missed))
            self.assertEqual(len(missed), times, missed)

    def test_too_few_questions_hold_no_way_to_its_limit(self):
        self.assertEqual(answers_report.missed_bars(figures(smoe=8)), [])

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
        self.assertIn("lossy, 50: exact 90.0 % of 50 right, 2 ways held lose 10.0 points at most",
                      answers_report.figures_line(figures(smoe=8), []))

    def test_a_group_gate_does_not_count_as_changed_what_it_chose(self):
        lossy = {"chance": figures()["lossy"]["chance"], "rows": {"50": {"exact": row(), "gate of groups": row(grouped=30)}}}
        self.assertRegex(answers_report.table("lossy", lossy), r"(?m)^\| gate of groups .*\) \|  \|$")

    def test_intervals_are_wilsons_and_agrestis(self):
        least, most = answers_report.wilson(8, 10)
        self.assertAlmostEqual(least, 0.4902, places=4)
        self.assertAlmostEqual(most, 0.9433, places=4)
        change, least, most = answers_report.difference([True, True, False, True], [True, False, False, True])
        self.assertEqual(change, -0.25)
        self.assertTrue(least < change < most)


class AnsweringTroupe(fake_troupe.FakeTroupe):
    def inspect(self, _):
        return {"layer_bytes": [{"expert_bytes": 1}] * 6, "experts": 16}

    def calibrate(self, _):
        return {}

    def eval(self, arguments):
        return {"tasks": [{"answers": [{"right": True}]} for word in arguments if word.endswith(".jsonl")], "use_hits": 1, "use_misses": 1,
                "substitution": "exact"}


class Answers(unittest.TestCase):
    def test_every_way_begins_with_a_full_cache_and_quality_is_measured_as_it_is_used(self):
        with tempfile.TemporaryDirectory() as name, mock.patch("measured_run.Troupe", AnsweringTroupe), \
             mock.patch("measured_run.run", lambda *_: None):
            bench = answers_runs.Answers("troupe", pathlib.Path(name))
            rows = bench.given(3)["rows"]
            calls = bench._troupe.calls
        self.assertEqual(list(rows["25"]), ["exact", *answers_runs.CHAINS])
        self.assertIn("--quality balanced", rows["50"])
        scored = [arguments for command, arguments in calls if command == "eval"]
        (measured,) = [arguments for command, arguments in calls if "--measure-quality" in arguments]
        for arguments in (*scored, measured):
            self.assertEqual([arguments[arguments.index(option) + 1] for option in ("--fill", "--predict")], ["on", "none"])

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
