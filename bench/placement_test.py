#!/usr/bin/env python3
"""bench/placement's bars have to fail where they should, and its plots have to be XML that shows
what it was given."""
import copy
import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import placement_claims
import placement_names
import placement_report
import placement_runs
import placement_svg
import placement_text


def figures():
    run = {"latency_s": 3.0, "p95_s": 9.0, "local_ratio": 0.5, "servers_s": [1.0, 2.0, 6.0],
           "by_seed_s": [2.9, 3.1], "link_peak": 1.5}
    speed = {"events": 1e7, "wall_s": 2.0, "events_per_s": 5e6, "prompts": 10_000,
             "most_in_flight": 9, "placing_wall_s": 0.1, "peak_rss_bytes": 2**20,
             "link_peak": 20.0}
    latency = {"eplb": 4.0, "dancemoe": 3.0, "latency": 2.5}
    methods = {m: {**run, "latency_s": latency.get(m, 6.0)} for m in placement_runs.METHODS}
    gaps = {m: {"remote_calls": 10, "local_ratio": 0.5, "gap_percent": 0.0, "estimate_s": 1}
            for m in placement_runs.METHODS}
    return {"comparison": {placement_runs.TESTBED: methods},
            "in_sample": copy.deepcopy(methods), "cpu": copy.deepcopy(methods),
            "cpu_dearer_calls": copy.deepcopy(methods), "gaps": gaps, "stating_gaps": copy.deepcopy(gaps),
            "placing_load": {"average": 0.9, "processors": 2},
            "served": {"summary": {"prompts": 6, "tokens": 788.2}, "law": {"prompts": 16, "tokens": 205.5}},
            "placing": {s: {m: 1.0 for m in placement_runs.METHODS}
                        for s in ("4x26x64", "256x58x256")},
            "speed": {"testbed": speed, "256 GPUs": dict(speed)}}


def simulated(seconds, end_ratio=0.6, adopted=1):
    """What troupe simulate records of 40 minutes, of which the last ten have `end_ratio`."""
    samples = [{"from_s": 60 * i, "answered": 2, "latency_mean_s": seconds, "local_ratio": 0.3 if i < 30 else end_ratio}
               for i in range(40)]
    move = {"at_s": 300, "loads": 7, "cost_now_s": 9, "cost_after_s": 4, "migration_s": 2, "finished_s": 303.5,
            "fetching_s": 3.25, "loading_s": 0.25, "adopted": True}
    return {"latency": {"mean_s": seconds}, "simulated_s": 2400, "timeline": samples, "migrations": [move] * adopted}


def whole_figures():
    """As of a run without --quick."""
    found = figures()
    methods = found["cpu"]
    for scenario in placement_runs.OTHERS:
        found["comparison"][scenario] = copy.deepcopy(methods)
    one = methods["dancemoe"]
    found["servings"] = {scenario: {gbps: {name: dict(one) for name in placement_runs.SERVINGS} for gbps in (0.5, 10)}
                         for scenario in ("testbed-mixtral.json", placement_runs.TESTBED)}
    found["timeline"] = {m: simulated(3, 0.6 if m == "dancemoe" else 0.5) for m in placement_runs.METHODS}
    found["migration"] = {name: simulated(3, adopted=0 if "without" in name else 2) for name in placement_names.MIGRATION_NAMES}
    found["scaling"] = {interval: {m: {gpus: dict(methods[m]) for gpus in placement_runs.GPUS} for m in placement_runs.SCALED}
                        for interval in (8, 15)}
    found["bandwidth"] = {gpus: {m: {mbps: dict(methods[m]) for mbps in (100, 1000)} for m in placement_runs.SCALED}
                          for gpus in (4, 256)}
    found["recorded"] = copy.deepcopy(methods)
    found["largest"] = {"dancemoe": dict(found["speed"]["testbed"])}
    return found


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
                (lambda f: f["cpu_dearer_calls"]["latency"].update(latency_s=3.0), "with dearer calls: latency"),
                (lambda f: f["gaps"]["dancemoe"].update(gap_percent=placement_runs.STATED_GAPS["dancemoe"] + 0.1), testbed),
                (lambda f: f["stating_gaps"]["eplb"].update(gap_percent=placement_runs.STATING_GAPS["eplb"] + 0.1),
                 placement_runs.STATING),
                (lambda f: f["stating_gaps"]["optimum"].update(gap_percent=0.1), "above the optimum"),
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
            lambda f: f["speed"]["256 GPUs"].update(prompts=placement_runs.QUICK_PROMPTS, wall_s=6.1))), 1)

    def test_gaps_are_stated_by_a_scenario_on_which_they_are_not_held_alone(self):
        self.assertNotEqual(placement_runs.STATING, placement_runs.TESTBED)
        for method, gap in placement_runs.STATED_GAPS.items():
            more = gap - placement_runs.STATING_GAPS[method]
            self.assertEqual(more, 0 if method == "optimum" else placement_runs.GAP_MARGIN, method)


class Tables(unittest.TestCase):
    def test_the_last_line_has_the_figures(self):
        line = placement_report.figures_line(figures(), [])
        self.assertIn("dancemoe/eplb 0.750 (measured costs 0.750, with dearer calls 0.750) latency/dancemoe 0.833", line)
        self.assertIn("| DanceMoE | 1.00 | 2.00 | 6.00 | **3.00** |", placement_report.tables(figures()))


class Words(unittest.TestCase):
    def test_held_out_prompts_and_both_costs_have_tables(self):
        found = figures()
        found["in_sample"]["dancemoe"]["latency_s"] = 2.5
        found["cpu"]["dancemoe"]["latency_s"] = 3.6
        found["cpu_dearer_calls"]["dancemoe"]["latency_s"] = 3.8
        text = placement_report.tables(found)
        self.assertIn("| DanceMoE | 3.00 | 2.50 | +20.0 % | 50.0 % | 50.0 % |", text)
        self.assertIn("| DanceMoE | 3.00 | -25.0 % | 3.60 | -10.0 % | 9.0 | 50.0 % | 3.80 | -5.0 % |", text)
        self.assertIn("assumed GPU, fp16, a prompt every 10 s", text)

    def test_what_a_migration_takes_is_told(self):
        runs = {"with": simulated(5, adopted=2), "without": simulated(6, adopted=0), "without, first tasks": simulated(4, adopted=0)}
        self.assertIn("| 5 | 7 | 9.0 | 4.0 | 2.00 | 3.2 | 0.25 | 3.50 |", placement_report.migration_text(runs))
        text = placement_report.migration_costs_table(runs)
        self.assertIn("| migration, over links and into devices that serve (`with`) | 5.00 | -16.7 % | 2 |", text)
        self.assertIn("| none, placed for the users' first tasks (`without, first tasks`) | 4.00 | -33.3 % | 0 |", text)

    def test_every_scenario_that_compares_placements_holds_prompts_out(self):
        for name in (placement_runs.TESTBED, *placement_runs.OTHERS, placement_runs.ENGINE, "fig8.json", "recorded-requests.json"):
            scenario = json.loads((placement_runs.SCENARIOS / name).read_text())
            self.assertIs(scenario["placement"]["held_out"], True, name)
        for name in ("fig6.json", "fig7.json"):
            self.assertEqual(json.loads((placement_runs.SCENARIOS / name).read_text())["migration"]["loads"], "links", name)


    def test_what_no_sentence_may_say_without_a_figure_is_in_no_fixed_words(self):
        for verdict in ("ends above", "fastest of the", "gains nothing", "gets slower", "wins", "as in the paper", "same order",
                        "gains less", "cannot gain", "stronger", "overloaded", "tokens in the mean"):
            self.assertNotIn(verdict, placement_text.TEXT.lower(), verdict)

    def test_the_whole_page_is_written_with_its_plots(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "placement.md"
            placement_report.write(page, whole_figures())
            text = page.read_text(encoding="utf-8")
            self.assertEqual(len(list((page.parent / "placement").glob("*.svg"))), 6)
        self.assertNotIn("{", text.replace("--set /", ""))
        for words in ("6 and 16 prompts of 788 and 206 tokens in the mean", "drawn from the same counts",
                      "nothing read ahead, nothing overlapped", "0.11 to 0.28 ms", "Live, three nodes"):
            self.assertIn(words, text)


class Claims(unittest.TestCase):
    """Sentences turn when the figures do."""

    def test_the_one_that_ends_highest_is_named_by_its_share(self):
        found = whole_figures()
        self.assertIn("from 30.0 to 60.0 % and ends above the paper's four baselines", placement_claims.timeline(found))
        found["timeline"]["eplb"] = simulated(3, 0.7)
        self.assertIn("ends not above EPLB.", placement_claims.timeline(found))

    def test_the_fastest_of_the_scaled_is_counted(self):
        found = whole_figures()
        self.assertIn("the fastest of the three in all 8 cells", placement_claims.scaling(found))
        found["scaling"][8]["dancemoe"][64]["latency_s"] = 1.0
        self.assertIn("in 7 of 8 cells (not with 64 GPUs at 8 s)", placement_claims.scaling(found))
        found["scaling"][8]["dancemoe"][256].update(latency_s=6.0, link_peak=42.0)
        text = placement_claims.scaling(found)
        self.assertIn("DanceMoE by +0.0 % and +100.0 %", text)
        self.assertIn("sends 42.0 times", text)

    def test_moves_that_the_links_make_dearer_than_they_save_are_counted(self):
        found = whole_figures()
        self.assertIn("here 2 are adopted, 0 of them after the change", placement_claims.migrations(found))
        self.assertIn("0 of the 2 took longer on the links", placement_claims.migrations(found))
        found["migration"]["with"]["migrations"] = [{**found["migration"]["with"]["migrations"][0], "at_s": 4200, "fetching_s": 5.5}]
        self.assertIn("1 are adopted, 1 of them after", placement_claims.migrations(found))
        self.assertIn("1 of the 1 took longer", placement_claims.migrations(found))
        found["migration"]["with"]["migrations"] = []
        self.assertIn("no migration is adopted", placement_claims.migrations(found))

    def test_collaboration_is_compared_with_servers_alone(self):
        found = whole_figures()
        found["servings"]["testbed-mixtral.json"][0.5]["naive"]["latency_s"] = 6.0
        found["servings"][placement_runs.TESTBED][10]["redirected"]["latency_s"] = 9.0
        self.assertIn("is +100.0 % with Mixtral-8x7B at 0.5 Gbps (the paper: -20.8 %)", placement_claims.servings(found))

    def test_a_bar_that_placing_missed_is_on_the_page(self):
        found = whole_figures()
        self.assertIn("all are within the bar of 5 s", placement_claims.placing_load(found))
        found["placing"]["256x58x256"]["latency"] = 6767
        self.assertIn("is missed by latency search (ours) with 6.8 s", placement_claims.placing_load(found))

    def test_gains_that_are_not_the_headlines_stand_beside_it(self):
        found = whole_figures()
        found["comparison"][placement_runs.OTHERS[1]]["dancemoe"]["latency_s"] = 3.9
        self.assertIn("-25.0 % with the tasks rotated, -2.5 % and -25.0 % with Mixtral-8x7B", placement_claims.elsewhere(found))

    def test_dearer_calls_tell_what_they_change(self):
        found = whole_figures()
        found["cpu_dearer_calls"]["dancemoe"]["latency_s"] = 3.9
        self.assertIn("the means are +0 to +30 %, DanceMoE is -2.5 % against EPLB (without them -25.0 %)",
                      placement_claims.dearer_calls(found))


class Scenarios(unittest.TestCase):
    def test_the_busiest_link_is_told_by_what_servers_send(self):
        record = {"servers": [{"bytes_sent": 1}, {"bytes_sent": 1}, {"bytes_sent": 4}]}
        self.assertEqual(placement_runs.link_peak(record), 2)
        self.assertEqual(placement_runs.link_peak({"servers": [{"bytes_sent": 0}]}), 1)

    def test_figure_7_changes_tasks_when_its_plot_says(self):
        scenario = json.loads((placement_runs.SCENARIOS / "fig7.json").read_text())
        for user in scenario["users"]:
            self.assertEqual(user["phases"][1]["from_s"], placement_runs.TASKS_CHANGE_S)

    def test_two_constants_are_not_written_as_samples(self):
        for path in (placement_runs.SCENARIOS / "costs").glob("*.json"):
            for name, cost in json.loads(path.read_text()).items():
                if isinstance(cost, dict) and len(cost.get("samples", [])) > 2:
                    (x, y), (u, v), *others = cost["samples"]
                    slope = (v - y) / (u - x)
                    self.assertTrue(any(abs(y + slope * (a - x) - b) > 1e-6 * b for a, b in others), f"{path.name}: {name}")


class Runs(unittest.TestCase):
    """What is asked of troupe, by a runner that only notes it."""

    class Noting:
        def __init__(self):
            self.asked = []

        def simulate(self, scenario, method, seed=1, sets=()):
            self.asked.append((scenario, method, list(sets)))
            times = {"mean_s": 1, "p95_s": 2}
            return {"latency": times, "local_ratio": 0.5, "servers": [{"latency": times, "bytes_sent": 3}]}

    def test_the_control_of_held_out_prompts_serves_the_same(self):
        runner = self.Noting()
        placement_runs.compare_in_sample(runner, (1,))
        self.assertEqual({tuple(sets) for _, _, sets in runner.asked}, {('/placement/held_out="served"',)})

    def test_dearer_calls_change_nothing_but_calls(self):
        runner = self.Noting()
        placement_runs.run_dearer_calls(runner)
        costs = json.loads(runner.asked[0][2][0].removeprefix("/costs="))
        known = json.loads((placement_runs.SCENARIOS / "costs/cpu-deepseek-v2-lite.json").read_text())
        self.assertEqual({**costs, "call": None}, {key: value for key, value in known.items() if key != "note"} | {"call": None})
        self.assertGreater(costs["call"]["base_s"], known["call"]["base_s"])

    def test_what_stays_is_also_placed_for_the_first_tasks(self):
        runner = self.Noting()
        placement_runs.run_migration(runner)
        self.assertIn(["/migration=null", '/placement/statistics=["intent", "summary", "law"]'], [sets for _, _, sets in runner.asked])


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
