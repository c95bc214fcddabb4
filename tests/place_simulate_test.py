#!/usr/bin/env python3
"""What a shell sees of `troupe place` and `troupe simulate`, on the examples of docs/formats/placement.md
and the small scenario under tests/data.

usage: place_simulate_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/formats/placement.md"
SCENARIO = ROOT / "tests/data/routing/scenario.json"
TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments):
    return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


def example(heading):
    """The indented block under a heading of the page."""
    lines = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("    "))
    last = next(i for i, line in enumerate(lines[first:], first) if not line.startswith("    "))
    return textwrap.dedent("\n".join(lines[first:last]))


class PlaceAndSimulate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.problem = self.folder / "problem.json"
        self.problem.write_text(example("A placement problem"), encoding="utf-8")

    def run_json(self, *arguments):
        done = troupe(*arguments, "--json", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def assert_fails(self, code, words, *arguments):
        done = troupe(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_every_method_is_at_or_above_the_optimum(self):
        record = self.run_json("place", self.problem, "--method", "all")
        self.assertTrue(record["bound_is_optimum"])
        self.assertEqual([m["method"] for m in record["methods"]],
                         ["uniform", "redundance", "smartmoe", "eplb", "dancemoe", "optimum"])
        for method in record["methods"]:
            self.assertGreaterEqual(method["remote_calls"], record["remote_calls_bound"])
        self.assertEqual(record["methods"][-1]["remote_calls"], record["remote_calls_bound"])

    def test_the_pages_placement_is_one_of_its_problem(self):
        now, next_ = self.folder / "now.json", self.folder / "next.json"
        now.write_text(example("A placement"), encoding="utf-8")
        done = troupe("place", self.problem, "--from", now, "-o", next_, "--seconds-per-call", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("loads and", done.stdout)
        again = troupe("place", self.problem, "--from", next_)
        self.assertIn("0 loads and 0 drops", again.stdout)
        self.assertIn("--seconds-per-call tells whether that pays", again.stdout)
        self.assertNotIn("adopt", self.run_json("place", self.problem, "--from", next_)["migration"])
        uniform = self.folder / "uniform.json"
        troupe("place", self.problem, "--method", "uniform", "-o", uniform)
        for seconds, adopted in ((1, True), (0, False)):
            move = self.run_json("place", self.problem, "--method", "optimum", "--from", uniform,
                                 "--seconds-per-call", seconds)["migration"]
            self.assertGreater(move["loads"], 0)
            self.assertEqual(move["cost_after_s"] + move["migration_s"] < move["cost_now_s"],
                             move["adopt"])
            self.assertEqual(move["adopt"], adopted)

    def test_a_scenario_is_placed_and_simulated_alike_every_time(self):
        placed = self.run_json("place", SCENARIO, "--method", "all")
        by_latency = {one["method"]: one["latency_s"] for one in placed["methods"]}
        self.assertEqual(placed["methods"][-1]["method"], "latency")
        self.assertEqual(min(by_latency, key=by_latency.get), "latency")  # by its own measure
        first = self.run_json("simulate", SCENARIO)
        self.assertEqual(first, self.run_json("simulate", SCENARIO))
        self.assertEqual(first["prompts"], 600)
        self.assertNotEqual(first, self.run_json("simulate", SCENARIO, "--seed", 2))
        slow = self.run_json("simulate", SCENARIO, "--set", "/links/bytes_per_s=20e6")
        self.assertGreater(slow["latency"]["mean_s"], first["latency"]["mean_s"])

    def test_what_a_migration_took_of_links_and_devices_is_recorded(self):
        links = self.run_json("simulate", SCENARIO, "--set", '/migration/loads="links"')
        beside, stays = self.run_json("simulate", SCENARIO), self.run_json("simulate", SCENARIO, "--set", "/migration=null")
        self.assertEqual(stays["migrations"], [])
        for record in (links, beside):
            for move in record["migrations"]:
                self.assertEqual(move["adopted"], move["cost_after_s"] + move["migration_s"] < move["cost_now_s"])
            adopted = [move for move in record["migrations"] if move["adopted"]]
            self.assertGreater(sum(move["loads"] for move in adopted), 0)
            self.assertGreater(sum(move["loading_s"] for move in adopted), 0)
            self.assertEqual(sum(move["fetching_s"] for move in adopted) > 0, record is links)
            for move in adopted:
                self.assertGreater(move["finished_s"] - move["at_s"], 0.999 * (move["fetching_s"] + move["loading_s"]))
            self.assertGreater(record["local_ratio"], stays["local_ratio"])

    def test_methods_are_compared_and_plotted(self):
        record = self.run_json("simulate", SCENARIO, "--method", "all")
        methods = {one["method"]: one["latency"]["mean_s"] for one in record["methods"]}
        self.assertEqual(methods["dancemoe"], self.run_json("simulate", SCENARIO, "--method", "dancemoe")["latency"]["mean_s"])
        best = min(methods, key=methods.get)
        for plot in (self.folder / "a.html", self.folder / "a.svg"):
            done = troupe("simulate", SCENARIO, "--method", "all", "--plot", plot)
            self.assertEqual((done.returncode, done.stderr), (0, f"plot: {plot}\n"))
            self.assertIn(f"fastest as {best} places", done.stdout.splitlines()[0])
            for method in methods:
                self.assertIn(f">{method}</text>", plot.read_text(encoding="utf-8"))
        for method, words in (("all", ">optimum</text>"), ("eplb", "placed by eplb")):
            done = troupe("place", SCENARIO, "--method", method, "--plot", self.folder / "b.html")
            self.assertEqual((done.returncode, done.stderr), (0, f"plot: {self.folder / 'b.html'}\n"))
            self.assertIn(words, (self.folder / "b.html").read_text(encoding="utf-8"))
        for command in ("place", "simulate"):
            self.assert_fails(2, [".svg or .html"], command, SCENARIO, "--plot", self.folder / "c.png")

    def test_recorded_requests_are_played_through_one_servers_passes(self):
        requests = ROOT / "tests/data/serving/azure_conv.csv.zst"
        few = self.run_json("simulate-server", requests, "--requests", 200, "--times", 10)
        self.assertEqual(few, self.run_json("simulate-server", requests, "--requests", 200, "--times", 10))
        self.assertEqual((few["answered"], few["dropped"]), (200, 0))
        self.assertEqual(few["time_to_first_token_s"]["count"], 200)
        self.assertLess(few["time_between_tokens_s"]["p99"], 0.3)
        longer = self.run_json("simulate-server", requests, "--requests", 200, "--times", 10, "--pass-ms", 400)
        self.assertGreater(longer["time_between_tokens_s"]["p99"], few["time_between_tokens_s"]["p99"])
        hasty = self.run_json("simulate-server", requests, "--requests", 200, "--timeout-s", 20)
        self.assertGreater(hasty["dropped"], 0)
        self.assertEqual(hasty["answered"] + hasty["dropped"], 200)

    def test_ends_and_their_cloud_are_played_with_recorded_requests_or_made_ones(self):
        machines = ("--ends", 3, "--end-row-cost-ms", 1, "--cloud-row-cost-ms", 0.25)
        ways = {way: self.run_json("simulate-ends", *machines, "--prompts", 4, "--rate", 3, "--place", way) for way in ("auto", "cloud", "end")}
        self.assertEqual(ways["cloud"]["tokens"]["end"], 0)
        self.assertEqual(ways["end"]["tokens"]["cloud"], 0)
        self.assertLess(ways["auto"]["latency_s"]["mean"], ways["end"]["latency_s"]["mean"])
        requests = self.folder / "requests.jsonl"
        requests.write_text("".join(f'{{"timestamp": {1000 * i}, "input_length": {100 * i + 1}, "output_length": 2}}\n' for i in range(5)),
                            encoding="utf-8")
        played = self.run_json("simulate-ends", *machines, "--requests", requests, "--place", "end")
        self.assertEqual((played["requests"], played["tokens"]["end"]), (5, 10))
        self.assertAlmostEqual(played["latency_s"]["max"], 0.402, 3)
        self.assertGreater(played["requests_per_s"], 0.5)
        for words, options in ((["excludes"], ("--rate", 1, "--together", 2)), (["1e+07 requests"], ("--rate", 1e6, "--seconds", 1e6))):
            self.assert_fails(2, words, "simulate-ends", *options)
        quiet = self.run_json("simulate-ends", "--rate", 0.001, "--seconds", 0.1, "--place", "end")
        self.assertEqual((quiet["requests"], quiet["busy"]["end"], quiet["moved"]), (0, 0, 0))

    def test_a_scenario_is_placed_as_the_simulation_places_it(self):
        scenario = json.loads(SCENARIO.read_text(encoding="utf-8"))
        scenario["placement"] = {"method": "uniform", "seed": 7}
        path, data = self.folder / "scenario.json", ("--data", SCENARIO.parent)
        path.write_text(json.dumps(scenario), encoding="utf-8")
        calls = {seed: self.run_json("place", path, *data, "--method", "uniform", *options)["methods"][0]["remote_calls"]
                 for seed, options in ((None, ()), (7, ("--seed", 7)), (1, ("--seed", 1)))}
        self.assertEqual(calls[None], calls[7])
        self.assertNotEqual(calls[None], calls[1])

    def test_a_record_in_a_file_does_not_silence_the_table(self):
        record = self.folder / "record.json"
        for arguments, words in ((("place", self.problem), "remote calls"), (("simulate", SCENARIO), "all: 600 prompts")):
            done = troupe(*arguments, "--json", record)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(words, done.stdout)
            self.assertIsInstance(json.loads(record.read_text(encoding="utf-8")), dict)

    def test_mistakes_are_one_line_and_the_right_code(self):
        self.assert_fails(2, ["--method"], "place", self.problem, "--method", "best")
        self.assert_fails(2, ["want one --method"], "place", self.problem, "--method", "all", "-o", "x")
        self.assert_fails(2, ["requires --from"], "place", self.problem, "--seconds-per-call", 1)
        self.assert_fails(2, ["--seconds-per-call"], "place", self.problem, "--from", self.problem,
                          "--seconds-per-call", -1)
        self.assert_fails(1, ["nowhere.json"], "place", self.folder / "nowhere.json")
        self.assert_fails(1, ["wants --costs"], "place", self.problem, "--method", "latency")
        self.assert_fails(1, ["expected \"troupe scenario\""], "simulate", self.problem)
        self.assert_fails(1, ["prompts: 0, expected a whole number"], "simulate", SCENARIO, "--set",
                          "/prompts=0")
        for text, word in (('{"format": 5}', "format: 5, expected a text"), ("[]", "expected an object"),
                           ("[" * 100_000, "nested more than 64 deep")):
            self.problem.write_text(text, encoding="utf-8")
            self.assert_fails(1, ["problem.json", word], "place", self.problem)
            self.assert_fails(1, ["problem.json", word], "simulate", self.problem)
        self.problem.write_text("{", encoding="utf-8")
        self.assert_fails(1, ["problem.json: not JSON"], "place", self.problem)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
