#!/usr/bin/env python3
"""Two nodes of a cluster, each with a budget and in a memory cgroup of its own that is hardly larger: they compute for each
other and move experts while many ask, nobody is killed, and neither takes more than its budget.

usage: cluster_memory_test.py TROUPE [unittest arguments]
Exits with 77 (skipped) and the reason where no memory cgroup can be made.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import memory_cgroup
import serve_test
import troupe_cli
from cluster_test import free_ports
from end_memory_test import SHAPE
from serve_test import LONGEST, PROMPTS, Server

MIB = 1 << 20
ALLOWANCE = 2 * MIB  # what the kernel charges beyond the process: tables of pages, its sockets
MORE = (60 * MIB, 110 * MIB)  # beyond the least budget of a node that serves peers, for experts: of 153 MiB
CONTEXT = 512


class ClusterMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = troupe_cli.packed_model(serve_test.TROUPE, pathlib.Path(folder.name) / "model.gguf", SHAPE)
        with Server("--ctx", CONTEXT, model=cls.model) as alone:
            cls.expected = {prompt: alone.complete(prompt, 24) for prompt in PROMPTS}

    def node_options(self, i):
        return ["--ctx", CONTEXT, "--parallel", 4, "--link", "512MiB/100us", "--gather-s", 1, "--plan-every-s", 4, "--verify", 20,
                "--peers", ",".join(self.addresses), "--peer-address", self.addresses[i], "--node", f"n{i}"]

    def least_budget(self):
        done = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", "0", "--memory", "1MiB",
                               *map(str, self.node_options(0))], capture_output=True, text=True, check=False)
        return int(float(re.search(r"([\d.]+) MiB are the least", done.stderr)[1]) + 1) * MIB

    def wait(self, what):
        give_up = time.monotonic() + LONGEST
        while not all(what(node) for node in self.nodes):
            self.assertLess(time.monotonic(), give_up, "".join(line for node in self.nodes for line in node.said))
            time.sleep(0.05)

    def ask_all(self, rounds):
        """From the second round on each prompt goes to the other node."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = [(prompt, pool.submit(self.nodes[(i + r) % 2].complete, prompt, 24))
                    for r in range(rounds) for i, prompt in enumerate(PROMPTS)]
            for prompt, job in jobs:
                self.assertEqual(job.result(LONGEST), self.expected[prompt], prompt)

    def test_under_load_each_node_stays_within_its_budget(self):
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        least = self.least_budget()
        budgets = [least + more for more in MORE]
        self.nodes, groups = [], []
        for i, budget in enumerate(budgets):
            groups.append(self.enterContext(memory_cgroup.MemoryCgroup(budget + ALLOWANCE)))
        for i, (budget, group) in enumerate(zip(budgets, groups)):
            self.nodes.append(self.enterContext(Server("--memory", budget, *self.node_options(i), model=self.model, group=group)))
        self.wait(lambda node: node.metric("troupe_cluster_peers") == 1 and node.metric("troupe_cluster_plan_epoch") > 0)
        # The next plan is of what was asked by then, and is carried out under load.
        epoch = max(node.metric("troupe_cluster_plan_epoch") for node in self.nodes)
        self.ask_all(1)
        end = time.monotonic() + LONGEST
        rounds = 0
        while rounds < 2 or self.nodes[0].metric("troupe_cluster_plan_epoch") == epoch:
            self.assertLess(time.monotonic(), end, self.nodes[0].ask("/cluster")["events"])
            self.ask_all(2)
            rounds += 1
        self.assertGreater(self.total("troupe_plan_experts_read_total") + self.total('troupe_peer_fetches_total{end="came"}'), 0)
        for node, budget, group in zip(self.nodes, budgets, groups):
            status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text(encoding="ascii")
            most = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024
            charged = group.peak_bytes()
            print(f"{most / MIB:.1f} MiB at most of {budget / MIB:.0f}, charged {(charged or 0) / MIB:.1f}", file=sys.stderr)
            self.assertEqual(group.kills(), 0)
            self.assertLessEqual(most, budget)
            self.assertGreater(node.metric('troupe_peer_experts_total{by="peer"}'), 0)
            self.assertGreater(node.metric("troupe_host_rows_total"), 0)
            self.assertLess(node.metric("troupe_held_experts"), 192)

    def total(self, name):
        return sum(node.metric(name) for node in self.nodes)


def may_make_cgroups():
    try:
        with memory_cgroup.MemoryCgroup(64 * MIB):
            return True
    except memory_cgroup.NotPermitted as why:
        print(f"skipped: {why}")
        return False


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    if not may_make_cgroups():
        sys.exit(77)
    unittest.main()
