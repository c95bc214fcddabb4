#!/usr/bin/env python3
"""What `troupe run --json` counts where reading ahead does not pay, where a cache spares what its layer asked for, and
where it begins with what a profile says is used most.

usage: read_ahead_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import serve_test
from serve_test import Server

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
EXPERTS = 8 * 32
TROUPE = None  # the binary, set at the end of this file


def record(tokens, *arguments, model=MODEL):
    done = subprocess.run([TROUPE, "run", model, "--prompt", "The kernel", "-n", str(tokens), "--temperature", "0",
                           "--threads", "1", "--ignore-eos", "--speculate", "off", *map(str, arguments), "--json", "-"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class ReadAhead(unittest.TestCase):
    def test_guesses_that_are_always_wrong_are_wasted(self):
        runs = [record(200, "--predict", "wrong", "--ungoverned", "--slots", slots)
                for slots in (EXPERTS * 3 // 4, EXPERTS * 15 // 16, EXPERTS // 2)]
        self.assertEqual({run["predictor"] for run in runs}, {"wrong"})
        for run in runs:  # by no governor, which follows the clock; some come true by chance
            self.assertLess(run["prefetch_useful"], run["prefetch_wasted"])
        self.assertGreater(max(run["prefetch_wasted_share"] for run in runs), 0.5)

    def test_no_trial_of_the_governor_ends_within_a_dozen_tokens(self):
        # That it rests where reading ahead makes tokens slower is governor_engine_test.cc's part.
        self.assertEqual(record(12, "--slots", EXPERTS // 2)["governor_rests"], 0)

    def test_a_cache_by_scores_spares_what_the_layer_under_way_asked_for(self):
        # In one pool loads for the next layer choose among the experts of the one under way, too.
        shared = ("--slots", EXPERTS // 4, "--cache-share", "global")
        run = record(200, "--cache", "score", *shared)
        self.assertGreater(run["shielded"], 0)
        self.assertLess(run["shielded"], run["evictions"])
        self.assertEqual(record(24, "--cache", "lru", *shared)["shielded"], 0)


class Filling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        text = folder / "text"
        text.write_text((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")[:6000], encoding="utf-8")
        cls.model = folder / "model.gguf"  # calibration leaves files beside it
        shutil.copyfile(MODEL, cls.model)
        cls.profile = folder / "model.profile.json"
        for command in (("pack", cls.model), ("calibrate", cls.model, "--text", text, "--threads", "1")):
            subprocess.run([TROUPE, *command], check=True, capture_output=True)

    def run_filled(self, fill, *more):
        return record(8, "--slots", EXPERTS // 2, "--predict", "none", "--fill", fill, *more, model=self.model)

    def test_a_cache_begins_with_what_the_profile_says_is_used_most(self):
        empty, filled = self.run_filled("off"), self.run_filled("on")
        self.assertEqual(empty["filled_experts"], 0)
        self.assertGreater(filled["filled_experts"], EXPERTS * 3 // 8)
        self.assertLessEqual(filled["filled_experts"], EXPERTS // 2)
        self.assertLess(filled["expert_misses"], empty["expert_misses"])
        self.assertEqual(filled["token_ids"], empty["token_ids"])

    def test_an_answer_alone_begins_with_an_empty_cache_and_a_server_does_not(self):
        self.assertEqual(self.run_filled("auto")["filled_experts"], 0)
        with Server("--slots", EXPERTS // 2, model=self.model) as server:
            self.assertRegex("".join(server.said), "the cache begins with the [0-9]+ experts")

    def test_an_expert_that_cannot_be_read_ends_the_start_only_where_filling_was_asked_for(self):
        spoiled = self.model.with_name("spoiled")
        spoiled.mkdir()
        for path in self.model.parent.glob("model.*"):
            shutil.copyfile(path, spoiled / path.name)
        container = bytearray((spoiled / "model.experts").read_bytes())
        for at in range(len(container) // 4, len(container) * 3 // 4, 5000):
            container[at] ^= 1
        (spoiled / "model.experts").write_bytes(container)
        with self.assertRaises(AssertionError) as failed:
            record(1, "--slots", EXPERTS // 2, "--fill", "on", model=spoiled / "model.gguf")
        self.assertIn("checksum", str(failed.exception))
        with Server("--slots", EXPERTS // 2, model=spoiled / "model.gguf") as server:
            self.assertRegex("".join(server.said), "the cache begins with fewer experts: .*checksum")

    def test_what_cannot_be_filled_or_recorded_is_said(self):
        for more, words in ((("--profile", "none"), "no profile says which experts are used most"),
                            (("--trace", self.profile.with_name("t.trace")),
                             "a recorded run begins with an empty cache")):
            with self.assertRaises(AssertionError) as failed:
                record(1, "--slots", EXPERTS // 2, "--fill", "on", *more, model=self.model)
            self.assertIn(words, str(failed.exception))


if __name__ == "__main__":
    TROUPE = serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
