#!/usr/bin/env python3
"""What `troupe run --json` counts where reading ahead does not pay, and where a cache spares what its layer asked for.

usage: read_ahead_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
EXPERTS = 8 * 32
TROUPE = None  # the binary, set at the end of this file


def record(tokens, *arguments):
    done = subprocess.run([TROUPE, "run", MODEL, "--prompt", "The kernel", "-n", str(tokens), "--temperature", "0",
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

    def test_a_cache_by_scores_spares_what_the_layer_under_way_asked_for(self):
        # In one pool loads for the next layer choose among the experts of the one under way, too.
        shared = ("--slots", EXPERTS // 4, "--cache-share", "global")
        run = record(200, "--cache", "score", *shared)
        self.assertGreater(run["shielded"], 0)
        self.assertLess(run["shielded"], run["evictions"])
        self.assertEqual(record(24, "--cache", "lru", *shared)["shielded"], 0)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
