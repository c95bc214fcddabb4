#!/usr/bin/env python3
"""bench/overlap's bars have to fail where they should, and its tables have to show what they were given."""
import pathlib
import unittest

import measured_run
import overlap_live
import overlap_media
import overlap_recall
import overlap_runs


def result(stall, loads=100):
    return {"stall_s_per_token": stall, "compute_s_per_token": 0.010, "loads": loads}


def cell(ahead, loads=100):
    limited = {1: result(0.007), 2: result(0.006), 4: result(0.004)}
    return overlap_runs.cell("m", "read", 2, 50, result(0.008), result(ahead, loads), limited, result(0.004))


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


def live_cell(ms, loaded=10_000_000, budget=50, model="trained"):
    medium = overlap_media.Medium("disk", 1e9, layer_times=2.5)
    return overlap_live.cell(model, medium, budget, {"none": [live_run(20, 10_000_000)], "scores": [live_run(ms, loaded)]})


class Live(unittest.TestCase):
    def test_the_bound_is_the_larger_of_computing_and_reading(self):
        self.assertAlmostEqual(overlap_live.over_bound(live_cell(15), "scores"), 15 / 12)
        self.assertIn("| trained | disk | 2.5 | 50 % | scores | 15.00 | 0.750 | 1.25 | 12.00 | 10.00 | 1.00 | 40 % |",
                      overlap_live.table([live_cell(15)]))

    def test_answers_are_the_same_in_every_round(self):
        runs = {way: [{"token_ids": [1, 2]}, {"token_ids": [3]}] for way in ("none", "scores")}
        self.assertFalse(overlap_live.answers_differ(runs))
        runs["scores"][1] = {"token_ids": [4]}
        self.assertTrue(overlap_live.answers_differ(runs))

    def test_random_weights_have_bars_of_their_own(self):
        self.assertEqual(overlap_live.missed_bars([live_cell(16, model="small")]), [])
        self.assertIn("small, disk, 50 %, scores: 1.36 of what computing", overlap_live.missed_bars([live_cell(16.3, model="small")])[0])
        self.assertIn("1.33 of what computing", overlap_live.missed_bars([live_cell(16)])[0])

    def test_each_bar_can_be_missed(self):
        self.assertEqual(overlap_live.missed_bars([live_cell(14.9)]), [])
        for spoiled, words in ((live_cell(20.5), "1.025 of the time"), (live_cell(14, 12_000_000), "1.20 of its bytes"),
                               (live_cell(14.9, budget=25), "1.24 of what computing")):
            self.assertTrue(any(words in line for line in overlap_live.missed_bars([spoiled])), words)


class Media(unittest.TestCase):
    def of(self, name, disk=2e9, memory=8e9):
        """With experts of 5 MB and layers of a millisecond."""
        return overlap_media.medium(name, 5_000_000, 1e-3, disk, lambda: memory)

    def test_a_link_is_no_faster_than_the_disk(self):
        self.assertEqual(self.of("1000MB/100us").bytes_per_s, 1e9)
        self.assertEqual(self.of("1000MB/100us", disk=5e8).bytes_per_s, 5e8)
        self.assertEqual(self.of("disk"), overlap_media.Medium("disk", 2e9, layer_times=2.5))

    def test_layer_times_make_a_link_or_what_is_held_in_memory(self):
        self.assertEqual(self.of("4x"), overlap_media.Medium("4x", 1.25e9, "1250000000/100us", layer_times=4))
        self.assertEqual(self.of("1x"), overlap_media.Medium("1x", 5e9, "5000000000/100us", held=True, layer_times=1))
        # Memory is copied at a speed, too.
        self.assertEqual(self.of("0.5x"), overlap_media.Medium("0.5x", 8e9, "", held=True, layer_times=0.625))

    def test_what_is_no_medium_is_refused(self):
        overlap_media.check(["disk", "0.5x", "400MB/100us"])
        for name in ("x", "-1x", "tape", "fastMB"):
            with self.assertRaisesRegex(measured_run.RunFailed, "--media"):
                overlap_media.check([name])


def histogram(*counts):
    """Of (bin, said, asked)."""
    made = {"said": [0] * 100, "asked": [0] * 100}
    for in_bin, said, asked in counts:
        made["said"][in_bin], made["asked"][in_bin] = said, asked
    return made


def chances(*counts):
    return {token: [histogram(*counts) for _ in range(5)] for token in ("same_token", "next_token")}


def known(likely=75, predicting_ms=0.2):
    layers = overlap_recall.by_layers(chances((90, 100, likely), (0, 1000, 25)))
    return {"model": "m", "tokens": 100, "whole": layers, "second_half": layers, "predicting_ms": predicting_ms, "computing_ms": 10.0,
            "token_ms": 20.0}


class Played:
    """A troupe whose whole text has twice what its half has."""
    def __init__(self, sequences=3):
        self.ran, self._sequences = [], sequences

    def run(self, *arguments):
        self.ran.append(arguments)

    def json(self, *arguments):
        self.ran.append(arguments)
        if arguments[:2] == ("trace", "info"):
            return [{"sequences": self._sequences}]
        times = 2 if arguments[1] == "read" else 1
        counted = chances((90, 10 * times, 8 * times), (0, 100 * times, 2 * times))
        return [{"tokens": 100, "results": [{**result(0.020), "prefetch": {"chances": counted}}]}]

    def cpu_seconds(self, *arguments):
        return 2.0 if "50,51" in arguments else 1.0


class Recall(unittest.TestCase):
    def test_it_is_that_of_the_lowest_threshold_that_is_precise_enough(self):
        # From the top: 8 of 10, 10 of 20, 16 of 26, 20 of 126.
        of = histogram((90, 10, 8), (80, 10, 2), (70, 6, 6), (0, 100, 4))
        self.assertEqual(overlap_recall.recall_at(of, 80), 0.4)
        self.assertEqual(overlap_recall.recall_at(of, 70), 0.4)
        self.assertEqual(overlap_recall.recall_at(of, 60), 0.8)
        self.assertEqual(overlap_recall.recall_at(of, 15), 1)
        self.assertEqual(overlap_recall.recall_at(of, 90), 0)
        self.assertEqual(overlap_recall.recall_at(histogram((90, 10, 0)), 50), 0)

    def test_a_second_half_is_what_the_first_has_not(self):
        left = overlap_recall.since(chances((90, 10, 8), (5, 7, 1)), chances((90, 4, 4)))
        self.assertEqual(left["same_token"][2], histogram((90, 6, 4), (5, 7, 1)))
        with self.assertRaisesRegex(measured_run.RunFailed, "otherwise than its whole"):
            overlap_recall.since(chances((90, 4, 4)), chances((90, 10, 8)))

    def test_each_bar_can_be_missed(self):
        self.assertEqual(overlap_recall.missed_bars([known()]), [])
        for spoiled, words in ((known(likely=55), "m: 0 % of misses known 3 layers ahead"),
                               (known(predicting_ms=0.5), "predicting takes 2.5 % of a token's time, at most 2")):
            missed = overlap_recall.missed_bars([known(), spoiled])
            self.assertEqual(len(missed), 1, missed)
            self.assertIn(words, missed[0])

    def test_what_is_known_within_a_waste_is_the_most_that_a_threshold_finds_with_it(self):
        of = histogram((90, 10, 8), (50, 4, 2), (10, 100, 0))
        self.assertEqual(overlap_recall.known_within(of, 0.2), 0.8)   # 2 in vain
        self.assertEqual(overlap_recall.known_within(of, 0.4), 1)     # 4
        self.assertEqual(overlap_recall.known_within(of, 0.1), 0)
        self.assertEqual(overlap_recall.known_within(histogram((90, 10, 0)), 0.5), 0)

    def test_a_model_is_known_by_the_half_that_was_not_learned_from(self):
        commands = Played()
        of = overlap_recall.know(commands, "m", "read", pathlib.Path("no such folder/half"), overlap_runs.costs)
        self.assertIn(("trace", "cut", "read", "-o", pathlib.Path("no such folder/half"), "--sequences", "0,1"), commands.ran)
        self.assertEqual(of["second_half"][2]["same_token"], {"misses": 10, "recall": {70: 0.8, 60: 0.8, 50: 0.8}})
        self.assertEqual(of["whole"][2]["same_token"]["misses"], 20)
        self.assertEqual((of["predicting_ms"], of["computing_ms"], of["token_ms"]), (10.0, 10.0, 30.0))

    def test_a_text_of_one_window_has_no_half(self):
        commands = Played(sequences=1)
        with self.assertRaisesRegex(measured_run.RunFailed, "one window of text"):
            overlap_recall.know(commands, "m", "read", pathlib.Path("no such folder/half"), overlap_runs.costs)

    def test_predicting_is_what_a_second_cache_that_predicts_takes_more(self):
        taken = {"50": iter((3.0, 2.0, 2.5)), "50,51": iter((4.0, 3.2, 3.5))}
        self.assertAlmostEqual(overlap_recall.predicting_seconds(lambda budgets, _: next(taken[budgets])), 1.2)


class Tables(unittest.TestCase):
    def test_a_cell_tells_what_was_closed_of_the_gap(self):
        self.assertIn("| m | read | 2 | 50 % | 10.00 | 8.00 | 6.00 | 4.00 | 0.889 | 1.00 | 50 % | 25 % | 50 % | 100 % |",
                      overlap_runs.table([cell(0.006)]))
        self.assertIn("50 to 100 % closed", overlap_runs.figures_line([cell(0.006), cell(0.004)], []))

    def test_predicting_is_told_of_a_token_and_of_its_computing_alone(self):
        self.assertIn("| m | 0.200 | 20.00 | 1.0 % | 2.0 % |", overlap_recall.predicting_table([known()]))

    def test_every_table_has_as_many_cells_in_each_row(self):
        for table in (overlap_runs.table([cell(0.006)]), overlap_live.table([live_cell(15)]), overlap_recall.table([known()]),
                      overlap_recall.predicting_table([known()])):
            self.assertEqual(len({row.count("|") for row in table.splitlines()}), 1, table)
        rows = overlap_runs.bar_rows([cell(0.006)]) + overlap_live.bar_rows([live_cell(15)]) + overlap_recall.bar_rows([known()])
        self.assertEqual({row.count("|") for row in rows}, {4})

    def test_a_bar_tells_in_how_many_cells_it_held(self):
        rows = "\n".join(overlap_runs.bar_rows([cell(0.006), cell(0.007)]))
        self.assertIn("at least 50 % | 25 to 50 %, 50 in the median | held in 1 of 2 cells |", rows)
        self.assertIn("the same by oracle:1, who knows as many layers | 25 to 25 %, 25 in the median "
                      "| held in 0 of 2 cells |", rows)
        self.assertIn("`scores`: time over that of nothing read ahead, at most 1.010 | 0.75 to 0.75 | held in 1 of 1 cells |",
                      "\n".join(overlap_live.bar_rows([live_cell(15)])))


if __name__ == "__main__":
    unittest.main()
