#!/usr/bin/env python3
"""bench/placement's bars have to fail where they should, and its plots have to be XML that shows
what it was given."""
import copy
import json
import re
import unittest
import xml.etree.ElementTree as ElementTree

import placement_report
import placement_runs
import placement_svg


def figures():
    run = {"latency_s": 3.0, "p95_s": 9.0, "local_ratio": 0.5, "servers_s": [1.0, 2.0, 6.0]}
    speed = {"events": 1e7, "wall_s": 2.0, "events_per_s": 5e6, "prompts": 10_000,
             "most_in_flight": 9, "placing_wall_s": 0.1, "peak_rss_bytes": 2**20}
    latency = {"eplb": 4.0, "dancemoe": 3.0, "latency": 2.5}
    methods = {m: {**run, "latency_s": latency.get(m, 6.0)} for m in placement_runs.METHODS}
    return {"comparison": {placement_runs.TESTBED: methods},
            "in_sample": copy.deepcopy(methods), "cpu": copy.deepcopy(methods),
            "gaps": {m: {"remote_calls": 10, "local_ratio": 0.5, "gap_percent": 0.0,
                         "estimate_s": 1} for m in placement_runs.METHODS},
            "placing": {s: {m: 1.0 for m in placement_runs.METHODS}
                        for s in ("4x26x64", "256x58x256")},
            "speed": {"testbed": speed, "256 GPUs": dict(speed)}}


class Bars(unittest.TestCase):
    def missed(self, spoil):
        spoiled = copy.deepcopy(figures())
        spoil(spoiled)
        return placement_runs.missed_bars(spoiled)

    def test_none_is_missed_by_good_figures(self):
        self.assertEqual(placement_runs.missed_bars(figures()), [])

    def test_each_bar_can_be_missed(self):
        testbed = placement_runs.TESTBED
        for spoil, words in (
                (lambda f: f["comparison"][testbed]["dancemoe"].update(latency_s=4.0), "eplb"),
                (lambda f: f["comparison"][testbed]["latency"].update(latency_s=3.0), "dancemoe"),
                (lambda f: f["cpu"]["dancemoe"].update(latency_s=4.0), "costs of this engine: dancemoe"),
                (lambda f: f["gaps"]["dancemoe"].update(gap_percent=8.1), "above the optimum"),
                (lambda f: f["gaps"]["optimum"].update(gap_percent=0.1), "above the optimum"),
                (lambda f: f["placing"]["4x26x64"].update(latency=51), "4x26x64"),
                (lambda f: f["placing"]["256x58x256"].update(eplb=5001), "256x58x256"),
                (lambda f: f["speed"]["testbed"].update(events_per_s=9e5), "events/s"),
                (lambda f: f["speed"]["256 GPUs"].update(wall_s=61), "256 GPUs")):
            missed = self.missed(spoil)
            self.assertEqual(len(missed), 1, missed)
            self.assertIn(words, missed[0])

    def test_a_short_run_is_held_to_the_time_of_a_long_one(self):
        self.assertEqual(len(self.missed(
            lambda f: f["speed"]["256 GPUs"].update(prompts=1000, wall_s=6.1))), 1)


class Tables(unittest.TestCase):
    def test_the_last_line_has_the_figures(self):
        line = placement_report.figures_line(figures(), [])
        self.assertIn("dancemoe/eplb 0.750 (measured costs 0.750) latency/dancemoe 0.833", line)
        self.assertIn("| DanceMoE | 1.00 | 2.00 | 6.00 | **3.00** |", placement_report.tables(figures()))


class Words(unittest.TestCase):
    def test_held_out_prompts_and_both_costs_have_tables(self):
        found = figures()
        found["in_sample"]["dancemoe"]["latency_s"] = 2.5
        found["cpu"]["dancemoe"]["latency_s"] = 3.6
        text = placement_report.tables(found)
        self.assertIn("| DanceMoE | 3.00 | 2.50 | +20.0 % | 50.0 % | 50.0 % |", text)
        self.assertIn("| DanceMoE | 3.00 | -25.0 % | 3.60 | -10.0 % | 9.0 | 50.0 % |", text)

    def test_what_a_migration_takes_is_told(self):
        def run(seconds, adopted):
            move = {"at_s": 300, "loads": 7, "cost_now_s": 9, "cost_after_s": 4, "migration_s": 2, "finished_s": 303.5,
                    "fetching_s": 3.25, "loading_s": 0.25, "adopted": True}
            return {"latency": {"mean_s": seconds}, "migrations": [move] * adopted}
        runs = {"with": run(5, 2), "with, devices wait": run(4, 1), "with, loads beside": run(4, 1), "without": run(6, 0)}
        self.assertIn("| 5 | 7 | 9.0 | 4.0 | 2.00 | 3.2 | 0.25 | 3.50 |", placement_report.migration_text(runs))
        self.assertIn("| over links and into devices that serve | 5.00 | -16.7 % | 2 |", placement_report.migration_costs_table(runs))

    def test_every_scenario_that_compares_placements_holds_prompts_out(self):
        for name in (placement_runs.TESTBED, *placement_runs.OTHERS, placement_runs.ENGINE, "fig8.json", "recorded-requests.json"):
            scenario = json.loads((placement_runs.SCENARIOS / name).read_text())
            self.assertTrue(scenario["placement"]["held_out"], name)
        for name in ("fig6.json", "fig7.json"):
            self.assertEqual(json.loads((placement_runs.SCENARIOS / name).read_text())["migration"]["loads"], "links", name)


class Plots(unittest.TestCase):
    def test_lines_and_bars_are_xml_with_every_series(self):
        for text in (placement_svg.lines("a < b", "x", "y", {"one": [(0, 0.2), (9, 0.7)],
                                                             "two": [(0, 1), (5, 3)]}),
                     placement_svg.bars("a < b", "y", ["g", "h"], {"one": [1, 2], "two": [3, 0]})):
            root = ElementTree.fromstring(text)
            words = [node.text for node in root.iter() if node.text]
            self.assertIn("a < b", words)
            self.assertTrue({"one", "two"} <= set(words))

    def test_what_is_grey_or_white_is_another_colour_on_a_dark_screen(self):
        text = placement_svg.lines("t", "x", "y", {"one": [(0, 1), (1, 2)]}, marks=[(0.5, "here")])
        style = ElementTree.fromstring(text).find("{http://www.w3.org/2000/svg}style").text
        self.assertIn("prefers-color-scheme: dark", style)
        for way, colour in re.findall('(fill|stroke)="([^"]+)"', text.split("</style>")[1]):
            if colour not in ("none", *placement_svg.COLOURS):
                self.assertIn(f'[{way}="{colour}"]', style)

    def test_a_higher_value_is_drawn_higher(self):
        text = placement_svg.bars("t", "y", ["g"], {"low": [1], "high": [4]})
        rects = [r for r in ElementTree.fromstring(text).iter()
                 if r.tag.endswith("rect") and float(r.get("height")) > 12 and r.get("y")]
        heights = [float(r.get("height")) for r in rects]
        self.assertAlmostEqual(heights[1] / heights[0], 4, delta=0.05)


if __name__ == "__main__":
    unittest.main()
