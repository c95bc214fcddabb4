#!/usr/bin/env python3
"""What `troupe run` says of where the time of tokens went, and of what was foreseen of their loads.

usage: run_time_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TROUPE = None  # the binary, set at the end of this file


def run(*arguments):
    return subprocess.run([TROUPE, "run", MODEL, "--prompt", "The kernel", "-n", "24", "--temperature", "0",
                           "--threads", "1", "--ignore-eos", "--speculate", "off", *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class RunTime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ok(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_record_divides_the_time_of_tokens_and_tells_what_was_foreseen(self):
        figures = self.folder / "run.json"
        said = self.ok("--slots", 96, "--json", figures).stderr
        record = json.loads(figures.read_text())
        decode = record["decode"]
        self.assertAlmostEqual(sum(decode["time"].values()), decode["pass_s"])
        self.assertAlmostEqual(decode["time"]["stall_s"], decode["stall_s"])
        foresight = decode["foresight"]
        self.assertGreater(foresight["named"], 0)
        self.assertTrue(foresight["needed"] >= foresight["named"] >= foresight["likely"] >= foresight["in_time"])
        self.assertEqual(len(foresight["by_layers_ahead"]), 5)
        self.assertLessEqual(foresight["by_layers_ahead"][0]["likely"], foresight["likely"])
        # All that was missed or read ahead in time had to be loaded.
        self.assertEqual(foresight["needed"], decode["expert_misses"] + decode["prefetch_useful"])
        self.assertRegex(said, r"\[each token: .* \d+\.\d ms computing \(\d+\.\d ms of it while reading\), \d+\.\d ms waiting\]\n"
                               r"\[prefetch: of the experts that had to be loaded")

    def test_the_record_tells_what_came_of_chances_where_scores_gave_some(self):
        figures = self.folder / "run.json"
        self.ok("--slots", 96, "--predict", "scores", "--json", figures)
        chances = json.loads(figures.read_text())["chances"]
        self.assertEqual([len(chances[token]) for token in ("same_token", "next_token")], [5, 5])
        self.assertGreater(chances["same_token"][0]["misses"], 0)
        self.ok("--slots", 96, "--predict", "lookahead", "--json", figures)
        self.assertNotIn("chances", json.loads(figures.read_text()))

    def test_explains_layer_by_layer_what_the_slowest_token_waited_for(self):
        said = self.ok("--slots", 96, "--explain-time").stderr
        self.assertIn("the slowest of the last 23 tokens:", said)
        self.assertRegex(said, r"token \d+ took \d+\.\d\d ms: \d+\.\d\d computing, \d+\.\d\d computing while reading")
        self.assertRegex(said, r"\n +expert \d+, .* from .*: waited \d+\.\d\d of \d+\.\d\d ms; (not )?predicted|in memory|reading")
        self.assertIn("nothing is read ahead", self.ok("--slots", 96, "--explain-time", "--predict", "none").stderr)
        self.assertIn("every expert is in memory", self.ok("--explain-time").stderr)

    def test_watching_changes_no_token(self):
        plain, watched = self.ok("--slots", 60), self.ok("--slots", 60, "--explain-time")
        self.assertEqual(plain.stdout, watched.stdout)

    def test_the_timeline_has_a_row_for_each_of_the_last_tokens(self):
        path = self.folder / "t.svg"
        self.ok("--slots", 96, "--plot-timeline", path)
        words = [node.text for node in ElementTree.parse(path).iter() if node.text]
        self.assertEqual([word for word in words if word.startswith("token ")], [f"token {n}" for n in range(16, 24)])
        self.assertEqual(words.count("disk"), 8)
        refused = run("--slots", 96, "--plot-timeline", self.folder / "t.png")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("ends in .svg", refused.stderr)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
