#!/usr/bin/env python3
"""What a served end makes of its device: how many experts it keeps by the memory, the speed and the share that it is
told or has measured.

usage: end_device_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import serve_test
from end_cloud_test import KEY, STRONG, Cloud, EndsAndCloud

NOBODY = ["--ctx", 1024, "--cloud", "http://127.0.0.1:9"]  # a cloud that is never there
MOST = 0.4  # of all experts, unless told


class Device(EndsAndCloud):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)
        self.env = {**os.environ, "XDG_CACHE_HOME": folder.name}

    @staticmethod
    def may_run(end):
        """How many experts it said at its start that it may run, and of how many."""
        line = next(line for line in end.said if "may run" in line)
        return [int(number) for number in re.findall(r"\d+", line)[:2]]

    def allowed(self, end):
        """How many it may run as of its last look."""
        def has_looked():
            with end.open("/metrics") as response:
                return b"troupe_device_experts" in response.read()
        self.wait(has_looked, end)
        return end.metric("troupe_device_experts")

    def saved(self):
        return list(self.cache.glob("troupe/cost-*.json"))

    def device(self, *args):
        done = subprocess.run([serve_test.TROUPE, "device", *map(str, args), "--json", "-"], check=True,
                              capture_output=True, text=True, env=self.env)
        return json.loads(done.stdout)

    def make_slow(self, token_seconds):
        """What was measured says from now on that a token's experts take as long."""
        model = self.device(self.model)["model"]
        saved, = self.saved()
        costs = json.loads(saved.read_text(encoding="utf-8"))
        for compute in costs["compute"]:
            for expert in compute["experts"]:
                expert["first_row_s"]["mean"] = token_seconds / model["experts_a_token"]
        saved.write_text(json.dumps(costs), encoding="utf-8")

    def test_an_end_keeps_as_many_experts_as_its_device_may_run_and_measures_its_link(self):
        cloud = self.server(*STRONG, kind=Cloud, env={**os.environ, "TROUPE_API_KEY": KEY})
        address, key = f"http://127.0.0.1:{cloud.port}", self.folder / "key"
        end = self.server("--ctx", 1024, "--cloud", address, "--cloud-key", key, "--most-experts", 25, env=self.env)
        may, every = self.may_run(end)
        self.assertEqual(may, every // 4)
        self.assertEqual(end.ask("/props")["experts_in_memory"], may)
        self.wait_for_line(end, "the cloud is there")
        self.assertEqual(self.allowed(end), may)
        link = self.device("--cloud", address, "--cloud-key", key)["link"]
        for figure in ("round_trip_s", "up_bytes_per_s", "down_bytes_per_s"):
            self.assertGreater(link[figure], 0)

    def test_measures_its_experts_once_and_no_limit_comes_of_fast_ones(self):
        for measures in (True, False):
            end = self.server(*NOBODY, env=self.env)
            self.assertEqual(any("us for a token here, measured now" in line for line in end.said), measures, end.said)
            may, every = self.may_run(end)
            self.assertEqual(may, int(MOST * every))
            self.assertTrue(any("by --most-experts" in line for line in end.said), end.said)
            self.assertEqual(len(self.saved()), 1)

    def test_keeps_fewer_experts_where_a_token_of_them_takes_too_long(self):
        self.make_slow(token_seconds=1)  # half of them are within half a second
        end = self.server(*NOBODY, "--most-experts", 100, env=self.env)
        self.assertTrue(any("experts, by speed" in line for line in end.said), end.said)
        may, every = self.may_run(end)
        self.assertLessEqual(may, every // 2)
        self.assertEqual(end.ask("/props")["experts_in_memory"], may)
        self.assertLessEqual(self.allowed(end), every // 2)

    def test_an_end_with_a_named_budget_measures_nothing_and_tells_what_speed_would_allow(self):
        end = self.server(*NOBODY, "--slots", 10, env=self.env)
        allowed = self.allowed(end)
        self.assertGreater(allowed, 0)
        self.assertEqual(self.saved(), [])
        self.make_slow(token_seconds=10)
        slow = self.server(*NOBODY, "--slots", 10, env=self.env)
        self.assertEqual(slow.ask("/props")["experts_in_memory"], 10)
        self.assertLess(self.allowed(slow), allowed)


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
