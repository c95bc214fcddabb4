#!/usr/bin/env python3
"""Several machines as one, on machines of their own: nodes and etcd in network namespaces, whose links are cut in one
direction, slow, or lead to some and not to others, and whose clocks differ by an hour. Every answer stays the one
that a model alone gives.

usage: cluster_net_test.py TROUPE [unittest arguments]

Needs root; exits with 77 where it may not make network namespaces.
"""
import asyncio
import concurrent.futures
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import cluster_net  # noqa: E402
import troupe_cli  # noqa: E402
from cluster_runs import Etcd, KEY, KEYS, Node, PEER_PORT, ask, list_of_peers  # noqa: E402

TROUPE = None  # the binary, set at the end of this file
LONGEST = 600 if "TROUPE_SANITIZED" in os.environ else 120  # seconds that anything may take
PROMPTS = ["The kernel", "One two three", "def main():", "Once upon a time", "In 1999", "#include <"]
TOKENS = 16
MBPS = 500
DISK = "4MiB/5ms"  # that peers are faster than
SLOW_DISK = "1MiB/20ms"
FAST_DISK = "2GiB/20us"  # that no peer is faster than


def readme():
    """The commands for several machines as README.md has them: certificates, a node on `a`, and questions."""
    text = (pathlib.Path(__file__).resolve().parent.parent / "README.md").read_text()
    section = text.split("## Several machines\n")[1].split("\n## ")[0]
    making, asking = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    certificates, serve = making.replace("\\\n", " ").splitlines()
    return certificates, serve, asking


def answer(node, prompt):
    _, _, text = asyncio.run(ask(node.base, {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}))
    return text


class ClusterNet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = troupe_cli.packed_model(TROUPE, pathlib.Path(folder.name) / "model.gguf", "tiny-olmoe")
        cls.machines = cls.enterClassContext(cluster_net.machines(4, MBPS))
        alone = Node(cls.machines, 0, TROUPE, cls.model, ["--ctx", 512])
        cls.expected = {prompt: answer(alone, prompt) for prompt in PROMPTS}
        alone.end()

    def tearDown(self):
        self.machines.heal(MBPS)

    def start(self, who, count=3, before=(), disks=(DISK,) * 3):
        self.who, self.nodes = who, []
        for i in range(count):
            self.nodes.append(self.node(i, before, disk=disks[i]))

    def node(self, i, before=(), prefixes=None, disk=DISK):
        kept = ["--prefix-file", prefixes] if prefixes else ["--no-prefix-cache"]
        node = Node(self.machines, i, TROUPE, self.model,
                    ["--slots", 10, "--ctx", 512, "--link", disk, "--peer-address", f"{self.machines.address(i)}:{PEER_PORT}",
                     "--node", f"n{i}", "--gather-s", 1, "--peer-plain-text", *kept, *self.who], before)
        self.addCleanup(node.end)
        return node

    def start_by_list(self, **more):
        peers = ",".join(list_of_peers(self.machines).split(",")[:3])
        self.start(["--peers", peers], **more)
        self.wait_until_settled()

    def start_by_etcd(self):
        etcd = Etcd(self.machines, 3)
        self.addCleanup(etcd.end)
        self.start(["--etcd", etcd.address, "--lease-s", 2])
        self.wait_until_settled()

    def wait(self, what, *nodes):
        end = time.monotonic() + LONGEST
        for node in nodes or self.nodes:
            while not what(node.metrics()):
                if time.monotonic() > end:
                    self.fail(node.get("/cluster"))
                time.sleep(0.05)

    def wait_until_settled(self):
        self.wait(lambda m: m["troupe_cluster_peers"] == len(self.nodes) - 1 and m["troupe_cluster_plan_epoch"] > 0
                  and m["troupe_cluster_settled"] == 1 and m["troupe_held_experts"] > 0)

    def ask_all(self, rounds=1, nodes=None):
        nodes = nodes or self.nodes
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            jobs = [(prompt, pool.submit(answer, nodes[(i + r) % len(nodes)], prompt))
                    for r in range(rounds) for i, prompt in enumerate(PROMPTS)]
            for prompt, job in jobs:
                self.assertEqual(job.result(LONGEST), self.expected[prompt], prompt)

    def explained(self, node):
        done = subprocess.run([TROUPE, "cluster", "explain", node.base], capture_output=True, text=True, env=os.environ | KEYS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_explained(self, node, said):
        """`troupe cluster explain` tells of it, soon if not yet."""
        end = time.monotonic() + LONGEST
        while not re.search(said, text := self.explained(node)):
            self.assertLess(time.monotonic(), end, f"{said} is not in\n{text}")
            time.sleep(0.2)

    def ask_until_explained(self, node, said):
        """What is measured, is measured of what is asked."""
        end = time.monotonic() + LONGEST
        while said not in self.explained(node):
            self.assertLess(time.monotonic(), end, self.explained(node))
            self.ask_all(nodes=self.nodes[:2])

    def total(self, key):
        return sum(node.metrics().get(key, 0) for node in self.nodes)

    @contextlib.contextmanager
    def asking(self):
        """All nodes are asked meanwhile, and to the end."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self.ask_all, 4)
            time.sleep(0.1)
            yield
            job.result(LONGEST)

    def test_the_commands_of_the_readme_make_three_machines_one(self):
        """By names, each of which its own machine knows by its loopback alone."""
        names = ["a", "b", "c"]
        self.machines.name([*names, "etcd"])
        etcd = Etcd(self.machines, 3)
        self.addCleanup(etcd.end)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pathlib.Path(folder.name, "keys").write_text(f"{KEY}\nanother\n")
        pathlib.Path(folder.name, "troupe").symlink_to(TROUPE.resolve())
        certificates, serve, questions = readme()

        def inside(command):
            return ["bash", "-c", f"cd {folder.name} && PATH=.:$PATH && {command}"]
        subprocess.run(inside(certificates), check=True, capture_output=True)
        small = serve.replace("big.gguf", str(self.model)).replace("--memory 6GiB", f"--slots 10 --ctx 512 --link {DISK} --gather-s 1")
        self.assertNotEqual(small, serve)
        self.nodes = []
        for i, name in enumerate(names):
            own = small.replace(" a.", f" {name}.") + f" --no-prefix-cache --node n{i}"  # as the other tests name them
            machine = ["unshare", "--uts", *inside(f"hostname {name} && exec {own}")]
            self.nodes.append(Node(self.machines, i, TROUPE, None, None, command=machine))
            self.addCleanup(self.nodes[-1].end)
        self.wait_until_settled()
        self.ask_all(2)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)
        self.assertEqual([node.cluster()["address"] for node in self.nodes], [f"{name}:{PEER_PORT}" for name in names])
        for i in range(3):  # from the node itself, and from others
            done = subprocess.run(self.machines.inside(i, inside(questions)), capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("n1", done.stdout)
            self.assertRegex(done.stdout, r"plan \d")

    # Users ask from this machine, over the same links: only what leaves a node for its peers may be cut.
    def unreachable(self, i, others, on):
        for other in others:
            self.machines.blackhole(i, other, on)

    def test_a_link_that_is_cut_in_one_direction_costs_no_answer(self):
        self.start_by_list()
        for way in ([1, 2], [2, 1]):
            with self.subTest(way), self.asking():
                self.unreachable(way[0], way[1:], True)
                self.assert_explained(self.nodes[way[0]], f"n{way[1]} is late again|n{way[1]} is gone: |no link to")
                self.unreachable(way[0], way[1:], False)
            self.wait_until_settled()
        self.ask_all()

    def test_an_answer_that_ends_while_its_node_is_cut_off_comes_once_the_link_is_back(self):
        node = Node(self.machines, 0, TROUPE, self.model, ["--ctx", 512, "--slots", 10, "--link", SLOW_DISK])
        self.addCleanup(node.end)
        begun = threading.Event()
        body = {"prompt": PROMPTS[0], "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(lambda: asyncio.run(ask(node.base, body, begun.set)))
            self.assertTrue(begun.wait(LONGEST))
            self.machines.cut(0, "out")
            time.sleep(14)  # the answer has ended, and its connection is closed
            self.assertFalse(job.done())
            self.machines.heal(MBPS)
            self.assertEqual(job.result(LONGEST)[2], self.expected[PROMPTS[0]])

    def test_a_node_that_nobody_reaches_any_more_serves_its_users_and_is_one_of_them_again_later(self):
        self.start_by_list()
        with self.asking():
            self.unreachable(1, [0, 2], True)
            self.unreachable(0, [1], True)
            self.unreachable(2, [1], True)
            self.ask_all(nodes=[self.nodes[1]])
        self.wait(lambda m: m["troupe_cluster_peers"] == 0, self.nodes[1])
        for i, lost in ((0, 1), (1, 0), (1, 2)):
            self.assert_explained(self.nodes[i], f"node n{lost} is gone: ")
        self.ask_all(nodes=[self.nodes[1]])
        self.machines.heal(MBPS)
        self.wait_until_settled()
        self.ask_all()

    def test_a_slow_link_is_asked_less_and_costs_no_answer(self):
        self.start_by_list()
        self.ask_all(2)

        def answered():
            before = self.nodes[2].metrics()["troupe_host_experts_total"]
            self.ask_all(2, nodes=self.nodes[:2])
            return self.nodes[2].metrics()["troupe_host_experts_total"] - before
        fast = answered()
        self.machines.limit(0.25, only=2)
        self.ask_all(2, nodes=self.nodes[:2])  # they learn it
        slow = answered()
        self.assertGreater(fast, 0)
        self.assertLess(slow, fast)
        self.ask_until_explained(self.nodes[0], "the link to n2 is slow: ")
        self.machines.heal(MBPS)
        self.ask_until_explained(self.nodes[0], "the link to n2 is as fast as usual again")

    def misses(self, node):
        """Of all prompts: how many its peers computed, and how many it read."""
        before = node.metrics()
        self.ask_all(nodes=[node])
        grown = {key: value - before.get(key, 0) for key, value in node.metrics().items()}
        return (grown['troupe_tier_expert_asks_total{tier="elsewhere"}'],
                sum(grown[f'troupe_tier_expert_asks_total{{tier="{tier}"}}'] for tier in ("disk", "loading")))

    def test_a_node_with_a_slow_disk_is_answered_by_its_peers_and_costs_no_answer(self):
        self.start_by_list(disks=[DISK, DISK, FAST_DISK])
        self.ask_all(2)
        by_peers, by_disk = self.misses(self.nodes[2])
        self.assertGreater(by_disk, 0)
        share = by_peers / (by_peers + by_disk)
        self.nodes.pop().end()
        self.nodes.append(self.node(2, disk=SLOW_DISK))
        self.wait_until_settled()
        self.ask_all()
        by_peers, by_disk = self.misses(self.nodes[2])
        self.assertGreater(by_peers, by_disk)
        self.assertGreater(by_peers / (by_peers + by_disk), share)
        self.assert_explained(self.nodes[2], "layers shared with peers")

    def test_a_full_disk_costs_log_lines_and_kept_prefixes_and_no_answer(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder.name], capture_output=True).returncode:
            self.skipTest("no tmpfs may be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder.name])
        full = pathlib.Path(folder.name) / "full"

        def fill():
            with contextlib.suppress(OSError), open(full, "wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
        fill()
        peers = ",".join(list_of_peers(self.machines).split(",")[:2])
        self.who, self.nodes = ["--peers", peers], []
        self.nodes.append(self.node(0))
        self.who += ["--access-log", f"{folder.name}/log"]
        self.nodes.append(self.node(1, prefixes=f"{folder.name}/prefixes"))
        self.wait_until_settled()
        self.ask_all(2)
        self.assertGreater(self.nodes[1].metrics()['troupe_log_lines_total{end="lost"}'], 0)
        self.assert_explained(self.nodes[1], "requests go on without their lines in the log: .*No space left on device")
        full.unlink()
        self.ask_all()
        self.assert_explained(self.nodes[1], "the log of requests is written again")
        fill()
        self.nodes.pop().end()
        self.assertFalse(pathlib.Path(f"{folder.name}/prefixes").exists())
        self.ask_all(nodes=self.nodes)

    def test_clocks_that_differ_by_an_hour_change_nothing(self):
        def later(hours):
            return ["unshare", "--time", "--monotonic", str(hours * 3600)]
        tell = ["python3", "-c", "import time; print(time.monotonic())"]
        there = subprocess.run([*later(1), *tell], capture_output=True, text=True).stdout
        if not there or float(there) < time.monotonic() + 1800:
            self.skipTest("this kernel gives a program no clock of its own")
        peers = ",".join(list_of_peers(self.machines).split(",")[:3])
        self.who, self.nodes = ["--peers", peers], []
        for i, hours in enumerate((0, 1, 30)):
            self.nodes.append(self.node(i, later(hours) if hours else []))
        self.wait_until_settled()
        self.ask_all(2)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)

    def test_a_leader_that_loses_etcd_alone_leads_no_more_and_another_one_plans(self):
        self.start_by_etcd()
        leads = [node.metrics()["troupe_cluster_leads"] for node in self.nodes]
        first = leads.index(1)
        epoch = self.nodes[first].cluster()["plan"]["epoch"]
        with self.asking():
            self.unreachable(first, [3], True)
            self.wait(lambda m: m["troupe_cluster_leads"] == 0 and m["troupe_cluster_listed"] == 0, self.nodes[first])
            end = time.monotonic() + LONGEST
            while sum(node.metrics()["troupe_cluster_leads"] for node in self.nodes) != 1:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
        second = [node.metrics()["troupe_cluster_leads"] for node in self.nodes].index(1)
        self.assertNotEqual(first, second)
        self.assert_explained(self.nodes[first], "etcd is away, so nobody plans: ")
        self.assert_explained(self.nodes[3 - first - second], f"node n{second} leads")
        self.unreachable(first, [3], False)
        self.wait(lambda m: m["troupe_cluster_listed"] == 1)
        self.assertEqual([node.metrics()["troupe_cluster_leads"] for node in self.nodes].index(1), second)
        self.wait_until_settled()
        self.assertGreaterEqual(self.nodes[first].cluster()["plan"]["epoch"], epoch)
        self.ask_all()


def may_make_namespaces():
    if os.geteuid() != 0:
        return False
    made = subprocess.run(["ip", "netns", "add", "troupe-bench-try"], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "delete", "troupe-bench-try"], capture_output=True)
    return made


if __name__ == "__main__":
    TROUPE = pathlib.Path(sys.argv.pop(1))
    if not may_make_namespaces():
        print("skipped: it may not make network namespaces here")
        sys.exit(77)
    unittest.main()
