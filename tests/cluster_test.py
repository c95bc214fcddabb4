#!/usr/bin/env python3
"""Several machines as one: nodes of a cluster on this machine's loopback, each a real `troupe serve`, find
each other, share the experts between them and compute for each other. Whatever happens to a node, every
answer is the one that a model alone gives.

usage: cluster_test.py TROUPE [unittest arguments]
"""
import concurrent.futures
import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import serve_test
import troupe_cli
from serve_test import LONGEST, PROMPTS, Server

SHAPE = "tiny-olmoe"
SLOTS = 10  # of the experts a node can hold some, never all
LINK = "4MiB/5ms"  # a disk that peers are faster than
AT_ONCE = 3  # tests, in processes of their own: they wait for leases, links and plans, and not for processors
MADE = "TROUPE_CLUSTER_TEST_MODEL"  # the folder where such a process finds the model


def own_hundred():
    """A hundred ports below those that outgoing connections take, which no other process with these tests has: a node that was
    killed and comes back finds its port free."""
    for number in range(200):
        first = 10_000 + (os.getpid() + number) % 200 * 100
        lock = open(pathlib.Path(tempfile.gettempdir()) / f"troupe-test-ports-{first}", "w", encoding="ascii")
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock, range(first, first + 100)
        lock.close()
    raise AssertionError("all hundreds of ports are taken by other tests")


PORTS_LOCK, HUNDRED = own_hundred()  # for as long as this process runs
PORTS = itertools.cycle(HUNDRED)


def free_ports(count):
    ports = []
    while len(ports) < count:
        port = next(PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.append(port)
    return ports


def make_model(folder):
    """There, with what it answers alone."""
    model = troupe_cli.packed_model(serve_test.TROUPE, folder / "model.gguf", SHAPE)
    with Server("--ctx", 1024, model=model) as alone:
        expected = {prompt: alone.complete(prompt, 24) for prompt in PROMPTS}
    (folder / "expected.json").write_text(json.dumps(expected))


class Etcd:
    """A real one, alone, in a folder of its own. It may be killed and started again."""

    def __init__(self, tls=None, more=()):
        """With the files of `tls` if there are any, as a node is given them; it then talks to none without a certificate of theirs."""
        self.tls = tls
        self.folder = tempfile.TemporaryDirectory()
        client, peer = free_ports(2)
        self.address = f"127.0.0.1:{client}"
        url = f"http{'s' if tls else ''}://{self.address}"
        self.command = ["etcd", "--name", "e", "--data-dir", self.folder.name, "--listen-client-urls", url,
                        "--advertise-client-urls", url, "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                        "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                        "--initial-cluster", f"e=http://127.0.0.1:{peer}", *more]
        if tls:
            self.command += ["--cert-file", tls[3], "--key-file", tls[5], "--client-cert-auth", "--trusted-ca-file", tls[1]]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait(LONGEST)

    def close(self):
        self.kill()
        self.folder.cleanup()

    def ctl(self, *words):
        proof = ["--cacert", self.tls[1], "--cert", self.tls[3], "--key", self.tls[5]] if self.tls else []
        return subprocess.run(["etcdctl", "--endpoints", self.address, *proof, *words], capture_output=True, text=True,
                              env={**os.environ, "ETCDCTL_API": "3"})

    def get(self, key):
        done = self.ctl("get", "--print-value-only", key)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def save(self, path):
        done = self.ctl("snapshot", "save", path)
        assert done.returncode == 0, done.stderr

    def restore(self, path):
        """What it knew when that was saved, as an operator would: in a new folder, once it is dead."""
        self.kill()
        shutil.rmtree(self.folder.name)
        options = dict(zip(self.command[1::2], self.command[2::2]))
        same = [word for name in ("--name", "--data-dir", "--initial-advertise-peer-urls", "--initial-cluster")
                for word in (name, options[name])]
        done = self.ctl("snapshot", "restore", path, *same)
        assert done.returncode == 0, done.stderr
        self.start()


class TlsListener:
    """Shows whoever comes a certificate, as a node of another cluster would, for as long as it stands."""

    def __init__(self, certificate, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, args=(context,))
        self.thread.start()

    def serve(self, context):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as stream:
                stream.recv(1)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


class Forwarder:
    """An address that leads to another one, as a container's published port does."""

    def __init__(self, to_port):
        self.to_port, self.came = to_port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.listener.accept()
                self.came += 1
                try:
                    there = socket.create_connection(("127.0.0.1", self.to_port))
                except OSError:  # nobody listens yet
                    here.close()
                    continue
                for ends in ((here, there), (there, here)):
                    threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    @staticmethod
    def pass_on(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = os.environ.get(MADE)
        if not folder:
            made = tempfile.TemporaryDirectory()
            cls.addClassCleanup(made.cleanup)
            folder = made.name
            make_model(pathlib.Path(folder))
        cls.model = pathlib.Path(folder) / "model.gguf"
        cls.expected = json.loads((pathlib.Path(folder) / "expected.json").read_text())

    def folder(self):
        """One of this test's own."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)

    def start(self, count, *more, etcd=None, models=None):
        """By a list of all addresses, or by etcd."""
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
        self.more = more
        self.etcd = etcd
        self.nodes = [self.node(i, model=models[i] if models else None) for i in range(count)]

    link = LINK

    def node(self, i, name=None, model=None, slots=SLOTS, env=None):
        who = (["--etcd", self.etcd.address, "--lease-s", 2] if self.etcd else ["--peers", ",".join(self.addresses)])
        if self.addresses:
            who += ["--peer-address", self.addresses[i]]
        server = Server("--slots", slots, "--ctx", 1024, "--link", self.link, "--gather-s", 1, *who, "--node", name or f"n{i}", *self.more, model=model or self.model, env=env)
        server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        return server

    def planned_copies(self):
        """Of each expert, on how many nodes the plan has it."""
        plan = self.nodes[0].ask("/cluster/plan")
        return [sum(expert in node["planned"][layer] for node in plan["nodes"])
                for layer in range(plan["layers"]) for expert in range(plan["experts"])]

    def other_model(self):
        other = self.folder() / "other.gguf"
        subprocess.run([serve_test.TROUPE, "synth", other, "--shape", SHAPE, "--type", "Q8_0", "--seed", "5"],
                       check=True, capture_output=True)
        return other

    def wait(self, what, *nodes):
        end = time.monotonic() + LONGEST
        for node in nodes:
            while not what(node):
                if time.monotonic() > end:
                    raise AssertionError("".join(line for one in self.nodes for line in one.said))
                time.sleep(0.05)

    def wait_until_settled(self, peers):
        def is_settled(node):
            return (node.metric("troupe_cluster_peers") == peers and node.metric("troupe_cluster_plan_epoch") > 0
                    and node.metric("troupe_cluster_settled") == 1 and node.metric("troupe_held_experts") > 0)
        self.wait(is_settled, *self.nodes)

    def ask_all(self, nodes, rounds=1):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = [(prompt, pool.submit(nodes[(i + r) % len(nodes)].complete, prompt, 24))
                    for r in range(rounds) for i, prompt in enumerate(PROMPTS)]
            for prompt, job in jobs:
                self.assertEqual(job.result(), self.expected[prompt], prompt)

    def assert_explained(self, node, *said):
        """`troupe cluster explain` tells of each, soon if not yet."""
        for text in said:
            self.wait(lambda one: re.search(text, self.verb("explain", one.address).stdout), node)

    def total(self, name, nodes=None):
        return sum(node.metric(name) for node in nodes or self.nodes)

    def test_nodes_compute_for_each_other_and_every_answer_is_that_of_the_model_alone(self):
        self.start(3, "--verify", 20)
        self.wait_until_settled(2)
        # One link to each, where both had dialled.
        self.wait(lambda node: self.total("troupe_peer_links_spared_total") == 3 and node.metric("troupe_peer_links") == 2, *self.nodes)
        self.ask_all(self.nodes, rounds=3)
        self.wait(lambda node: node.metric('troupe_peer_checks_total{found="true"}') >= 1, *self.nodes)
        self.assertEqual(self.total('troupe_peer_checks_total{found="wrong"}'), 0)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)
        self.assertGreater(self.total("troupe_host_rows_total"), 0)
        self.assertGreater(self.total("troupe_plan_experts_read_total"), 0)
        # What each link carries and takes is known for it alone, and how far the plan was carried out.
        for node in self.nodes:
            record = node.ask("/cluster")
            self.assertEqual(len(record["peers"]), 2)
            for peer in record["peers"]:
                self.assertGreater(min(peer[key] for key in ("sent", "received", "call_s")), 0, peer)
            self.assertLessEqual(sum(peer["sent"] for peer in record["peers"]), node.ask("/cluster")["bytes"]["sent"])
            peer = record["peers"][0]
            self.assertGreaterEqual(node.metric(f'troupe_peer_link_bytes_total{{peer="{peer["name"]}",way="sent"}}'), peer["sent"])
            self.assertGreater(node.metric(f'troupe_peer_link_round_trip_seconds{{peer="{peer["name"]}"}}'), 0)
        self.wait(lambda node: (moved := node.ask("/cluster")["migration"]) and moved["moved"] == moved["experts"], self.nodes[0])
        moved = self.nodes[0].ask("/cluster")["migration"]
        self.assertGreater(moved["bytes"], 0)
        self.assertEqual(moved["bytes_moved"], moved["bytes"])
        self.assertEqual(moved["epoch"], self.nodes[0].ask("/cluster")["plan"]["epoch"])
        self.assertEqual(self.nodes[0].metric('troupe_migration_experts{state="moved"}'), moved["experts"])
        # What was shared and what was not is decided, counted and told.
        self.assertGreater(self.total('troupe_cluster_layers_total{how="shared"}'), 0)
        explained = self.verb("explain", self.nodes[0].address).stdout
        self.assertIn("layers shared with peers", explained)
        self.assertRegex(explained, r"disk alone +as shared +took\n +\d+ ")
        self.assertEqual([node.metric("troupe_cluster_leads") for node in self.nodes], [1, 0, 0])

    def test_nodes_of_other_instruction_sets_give_each_other_the_same_bytes(self):
        """As a machine with AVX-512 beside one with AVX2; where this one has no more than AVX2, AVX2 beside none."""
        best = troupe_cli.kernels(serve_test.TROUPE)
        less = next((name for name in ("avx2", "neon", "scalar") if name != best and troupe_cli.kernels(serve_test.TROUPE, name)), None)
        if less is None:
            self.skipTest(f"{best} is all that this machine runs")
        self.addresses, self.more, self.etcd = [f"127.0.0.1:{port}" for port in free_ports(2)], ("--verify", 100), None
        self.nodes = [self.node(0), self.node(1, env={**os.environ, "TROUPE_KERNELS": less})]
        self.wait_until_settled(1)
        self.assertEqual([node.ask("/cluster")["kernels"] for node in self.nodes], [best, less])
        self.ask_all(self.nodes[:1])  # all prompts by each of them
        self.ask_all(self.nodes[1:])
        for node in self.nodes:
            self.assertGreater(node.metric('troupe_peer_experts_total{by="peer"}'), 0)
            self.assertGreater(node.metric("troupe_host_rows_total"), 0)
            # What the other one computed was computed again here, by other instructions.
            self.wait(lambda node: node.metric('troupe_peer_checks_total{found="true"}') >= 10, node)
        for found in ("wrong", "own_wrong", "undecided"):
            self.assertEqual(self.total(f'troupe_peer_checks_total{{found="{found}"}}'), 0)

    def test_a_node_that_listens_elsewhere_than_where_its_peers_reach_it_is_one_of_them(self):
        ports = free_ports(2)
        ways = [Forwarder(port) for port in ports]
        for way in ways:
            self.addCleanup(way.close)
        self.addresses, self.etcd, self.nodes = [way.address for way in ways], None, []
        for i, port in enumerate(ports):
            self.more = ("--peer-listen", f"127.0.0.1:{port}")
            self.nodes.append(self.node(i))
        self.wait_until_settled(1)
        self.ask_all(self.nodes)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)
        self.assertGreater(sum(way.came for way in ways), 0)
        said = f"peers reach this node at {ways[0].address}, and it listens at 127.0.0.1:{ports[0]}"
        self.wait(lambda node: any(said in line for line in node.said), self.nodes[0])

    def test_answers_in_fewer_bits_go_to_who_asks_for_them_are_counted_and_never_to_exact_requests(self):
        self.addresses, self.etcd = [f"127.0.0.1:{port}" for port in free_ports(2)], None
        self.more = ("--peer-answers", "q8", "--verify", 20)
        rounding = self.node(0)
        self.more = ()
        exact = self.node(1)
        self.nodes = [rounding, exact]
        self.wait_until_settled(1)
        counter = 'troupe_inexact_total{kind="peer_q8"}'

        def answer_to(prompt, **more):
            return rounding.ask("/v1/completions", {"prompt": prompt, "max_tokens": 24, "temperature": 0.8, "seed": 7,
                                                    "ignore_eos": True, **more})
        told = answer_to(PROMPTS[0])["troupe"]
        self.assertGreater(told["peer_q8"], 0)
        self.assertGreater(told["by_peers"], 0)
        self.assertEqual(told["substitutions"], told["peer_q8"])
        counted = rounding.metric(counter)
        self.assertGreaterEqual(counted, told["peer_q8"])
        # A request that wants every bit gets it, of the same peers.
        by_peers = rounding.metric('troupe_peer_experts_total{by="peer"}')
        for prompt in PROMPTS[:2]:
            answer = answer_to(prompt, quality="exact")
            self.assertEqual(answer["choices"][0]["text"], self.expected[prompt])
            self.assertEqual(answer["troupe"]["substitutions"], 0)
        self.assertGreater(rounding.metric('troupe_peer_experts_total{by="peer"}'), by_peers)
        self.assertEqual(rounding.metric(counter), counted)
        # So do the users of a node that was not told to take less.
        self.ask_all([exact])
        self.assertEqual(exact.metric(counter), 0)
        self.wait(lambda node: node.metric('troupe_peer_checks_total{found="true"}') >= 1, rounding)
        self.assertEqual(rounding.metric('troupe_peer_checks_total{found="wrong"}'), 0)
        self.assertEqual([node.ask("/props")["lossiness"] for node in self.nodes], ["peers in 8-bit codes", "exact"])
        self.assertIn("not exact", self.verb("status", rounding.address).stdout)
        self.assertNotIn("not exact", self.verb("status", exact.address).stdout)

    def test_a_node_that_is_killed_costs_no_answer_and_is_one_of_them_again_later(self):
        self.start(3)
        self.wait_until_settled(2)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asking = pool.submit(self.ask_all, self.nodes[:2], 4)
            time.sleep(0.2)
            self.nodes[2].process.send_signal(signal.SIGKILL)
            asking.result()
        self.wait(lambda node: node.metric("troupe_cluster_peers") == 1, *self.nodes[:2])
        for node in self.nodes[:2]:
            self.assert_explained(node, "node n2 is gone: ")
        self.nodes[2].__exit__(None, None, None)
        self.nodes[2] = self.node(2)
        self.wait_until_settled(2)
        self.assert_explained(self.nodes[0], "(?s)node n2 is gone: .*node n2 at .* is here")
        self.ask_all(self.nodes)

    def test_a_node_that_hangs_costs_no_answer(self):
        self.start(2)
        self.wait_until_settled(1)
        self.nodes[1].process.send_signal(signal.SIGSTOP)
        try:
            self.ask_all(self.nodes[:1], 2)
            # It was found to be late, or its link was given up before that.
            self.assert_explained(self.nodes[0], "is late again|node n1 is gone: ")
        finally:
            self.nodes[1].process.send_signal(signal.SIGCONT)
        self.wait_until_settled(1)
        self.ask_all(self.nodes)

    def held_by_both_others(self, asker):
        """How many experts `asker` lacks and each other node has."""
        nodes = self.nodes[0].ask("/cluster/plan")["nodes"]
        own = next(node for node in nodes if node["name"] == f"n{asker}")
        others = [node for node in nodes if node is not own]
        return sum(expert not in own["held"][layer] and all(expert in other["held"][layer] for other in others)
                   for layer in range(len(own["held"])) for expert in range(8))

    def test_another_holder_is_asked_where_one_hangs(self):
        self.addresses, self.more, self.etcd = [f"127.0.0.1:{port}" for port in free_ports(3)], ("--copies", 2), None
        self.nodes = [self.node(i, slots=15) for i in range(3)]
        self.wait_until_settled(2)
        self.ask_all(self.nodes, 2)  # now links and disks are measured
        i = max(range(3), key=self.held_by_both_others)
        self.assertGreater(self.held_by_both_others(i), 0)
        asker, hedges = self.nodes[i], 'troupe_peer_calls_total{kind="hedge"}'
        before, end = asker.metric(hedges), time.monotonic() + LONGEST
        # The first calls after it hangs may go to the other holder, and then the one that hangs is asked less.
        for hung in itertools.cycle(node for node in self.nodes if node is not asker):
            hung.process.send_signal(signal.SIGSTOP)
            try:
                self.ask_all([asker])
            finally:
                hung.process.send_signal(signal.SIGCONT)
            if asker.metric(hedges) > before:
                break
            self.assertLess(time.monotonic(), end, self.verb("status", asker.address).stdout)
            self.wait(lambda node: node.metric("troupe_cluster_peers") == 2, *self.nodes)
        self.wait_until_settled(2)
        self.ask_all(self.nodes)

    def expect_end(self, node, *said):
        """It ends by itself, with one line that says why."""
        self.assertEqual(node.process.wait(LONGEST), 1)
        node.reader.join(LONGEST)
        for text in said:
            self.assertIn(text, node.said[-1], "".join(node.said))

    def test_a_newcomer_that_does_not_fit_ends_with_one_clear_line_and_the_cluster_is_unharmed(self):
        self.start(2)
        self.wait_until_settled(1)
        self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
        own = self.more
        for changes, more, said in (({"model": self.other_model()}, (), "cluster 'troupe' serves another model: "),
                                    ({}, ("--cluster", "other"), "is of cluster 'troupe', not 'other'"),
                                    ({"name": "n1"}, (), "cluster 'troupe' has a node 'n1' already")):
            with self.subTest(said):
                self.more = (*own, *more)
                self.expect_end(self.node(2, **changes), said)
        self.ask_all(self.nodes)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def certificates(self, *names, hosts=("127.0.0.1",), days=825):
        """Files of that many authorities, which know nothing of each other, for the first host; and for the others."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in names:
            os.mkdir(f"{folder.name}/{name}")
            done = self.verb("certificates", f"{folder.name}/{name}", "--hosts", ",".join(hosts), "--days", str(days))
            self.assertRegex(done.stdout, rf"^{len(hosts)} node certificates?, valid for {days} days?; keep authority.key where no node is\n")

        def files(name, host):
            return ("--peer-authority", f"{folder.name}/{name}/authority.pem", "--peer-certificate",
                    f"{folder.name}/{name}/{host}.pem", "--peer-key", f"{folder.name}/{name}/{host}.key")
        return {name: files(name, hosts[0]) for name in names} | {(name, host): files(name, host) for name in names
                                                                  for host in hosts[1:]}

    def test_certificates_are_good_on_machines_whose_calendars_differ_by_an_hour(self):
        """Their dates are all that nodes read of a calendar; cluster_net_test.py has clocks."""
        files = self.certificates("lab")["lab"]
        for hours in (-1, 0, 1):
            done = subprocess.run(["openssl", "verify", "-attime", str(int(time.time()) + hours * 3600), "-CAfile", files[1], files[3]],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_certificate_that_ends_soon_is_told_of(self):
        files = self.certificates("lab", days=20)["lab"]
        self.start(1, *files)
        self.assert_explained(self.nodes[0], re.escape(files[3]) + " expires in (19|20) days, on ")
        expires = self.nodes[0].metric("troupe_peer_certificate_expires_timestamp_seconds")
        self.assertAlmostEqual(expires, time.time() + 20 * 86400, delta=LONGEST + 3600)

    def test_a_newcomer_whose_certificate_is_not_of_its_address_ends_with_one_clear_line_and_the_others_serve_on(self):
        """It has a certificate of the right authority, of another host, and would pass for any node with it."""
        files = self.certificates("lab", hosts=("127.0.0.1", "127.0.0.9"))
        for etcd in (None, Etcd()):
            with self.subTest(etcd=etcd is not None):
                if etcd:
                    self.addCleanup(etcd.close)
                self.start(2, *files["lab"], etcd=etcd)
                self.wait_until_settled(1)
                self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
                self.more = files["lab", "127.0.0.9"]
                self.expect_end(self.node(2), "says that this node's certificate is not of " + self.addresses[2])
                said = [line for node in self.nodes for line in node.said]
                self.assertTrue(any(f"node n2 at {self.addresses[2]}: its certificate is not of that address" in line
                                    for line in said), said)
                self.ask_all(self.nodes)
                self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_a_node_whose_certificate_has_a_name_tells_others_that_name(self):
        """Nobody says by which address it is reached, and that which it finds is not in its certificate."""
        hosts = ("localhost", "192.0.2.1")
        files = self.certificates("lab", hosts=hosts)
        self.etcd, self.addresses, self.nodes = Etcd(), [], []
        self.addCleanup(self.etcd.close)
        ports = free_ports(2)
        for i, port in enumerate(ports):
            self.more = (*files["lab"], "--peer-listen", f"127.0.0.1:{port}")
            self.nodes.append(self.node(i))
        self.wait_until_settled(1)
        self.assertEqual([node.ask("/cluster")["address"] for node in self.nodes], [f"localhost:{port}" for port in ports])
        self.ask_all(self.nodes)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)
        foreign = files["lab", hosts[1]]
        done = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", "0", "--slots", "8", "--etcd", self.etcd.address,
                               *foreign], capture_output=True, text=True, timeout=LONGEST)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{foreign[3]} names 192.0.2.1, not 127.0.0.1: give --peer-address 192.0.2.1", done.stderr.splitlines()[-1])

    def test_a_newcomer_of_another_authority_ends_with_one_clear_line_and_the_cluster_is_unharmed(self):
        files = self.certificates("lab", "stranger")
        for etcd in (None, Etcd()):
            with self.subTest(etcd=etcd is not None):
                if etcd:
                    self.addCleanup(etcd.close)
                self.start(2, *files["lab"], etcd=etcd)
                self.wait_until_settled(1)
                self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
                self.more = files["stranger"]
                self.expect_end(self.node(2), "certificates of different authorities", "certificate verify failed")
                self.ask_all(self.nodes)
                self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_a_listed_peer_of_another_authority_is_dialled_in_vain_and_each_node_says_so_once(self):
        files = self.certificates("lab", "stranger")
        stranger = TlsListener(*files["stranger"][3::2])
        self.addCleanup(stranger.close)
        self.addresses = [*(f"127.0.0.1:{port}" for port in free_ports(2)), stranger.address]
        self.etcd, self.more = None, files["lab"]
        self.nodes = [self.node(i) for i in range(2)]
        self.wait(lambda node: node.metric("troupe_peer_dials_failed_total") > 2, *self.nodes)
        self.wait_until_settled(1)
        for node in self.nodes:
            said = [line for line in node.said if f"no link to {stranger.address}: " in line]
            self.assertEqual(len(said), 1, node.said)
            self.assertIn("certificate verify failed", said[0])
            self.assertIn(f"no link to {stranger.address}: ", self.verb("explain", node.address).stdout)
        self.ask_all(self.nodes)

    def test_an_etcd_of_another_authority_ends_a_node_with_one_clear_line(self):
        files = self.certificates("lab", "stranger")
        etcd = Etcd(tls=files["lab"])
        self.addCleanup(etcd.close)
        self.more, self.etcd, self.addresses = ("--etcd-authority", files["stranger"][1]), etcd, [f"127.0.0.1:{free_ports(1)[0]}"]
        self.nodes = []
        self.expect_end(self.node(0), "etcd: ", "certificate verify failed")

    def test_an_etcd_that_asks_for_a_certificate_gets_the_nodes_and_serves_none_without(self):
        files = self.certificates("lab")["lab"]
        etcd = Etcd(tls=files)
        self.addCleanup(etcd.close)
        own = [word.replace("--peer-", "--etcd-") for word in files]
        self.start(2, *own, etcd=etcd)
        self.wait_until_settled(1)
        self.ask_all(self.nodes)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)
        self.assertEqual([node["name"] for node in etcd.get("/troupe/troupe/plan")["plan"]["nodes"]], ["n0", "n1"])
        self.assertFalse([line for node in self.nodes for line in node.said if "without TLS" in line or "plain text" in line])
        self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
        self.more = own[:2]  # it trusts that etcd, and shows it nothing: by TLS 1.3 it is not told what is amiss
        stranger = self.node(2)
        self.assert_explained(stranger, "etcd is away, so nobody plans: ")
        self.assertEqual(stranger.metric("troupe_cluster_listed"), 0)
        self.ask_all(self.nodes)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_a_plan_that_a_node_has_no_memory_for_after_its_restart_does_not_stay(self):
        self.start(2)
        self.wait_until_settled(1)
        before = self.nodes[1].metric("troupe_held_experts")
        self.nodes[1].__exit__(None, None, None)
        self.nodes[1] = self.node(1, slots=SLOTS - 2)
        self.wait(lambda node: "was to hold more than its memory can" in "".join(node.said), self.nodes[0])
        self.wait_until_settled(1)
        self.assertLess(self.nodes[1].metric("troupe_held_experts"), before)
        self.assertIn("was to hold more than its memory can", self.verb("explain", self.nodes[0].address).stdout)
        self.ask_all(self.nodes)

    def test_copies_that_are_demanded_come_in_place_of_a_plan_without_them_and_of_a_node_that_dies(self):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        self.addresses, self.more, self.etcd = [f"127.0.0.1:{port}" for port in free_ports(3)], (), etcd
        self.nodes = [self.node(i, slots=15) for i in range(3)]
        self.wait_until_settled(2)
        single = self.planned_copies()
        self.assertIn(1, single)
        for node in self.nodes:
            node.__exit__(None, None, None)
        self.more = ("--copies", 2)
        self.nodes = [self.node(i, slots=24) for i in range(3)]  # a share of them stays a cache
        self.wait(lambda node: min(self.planned_copies()) >= 2, self.nodes[0])
        self.wait_until_settled(2)
        self.assert_explained(self.nodes[0], "copies were lacking")
        self.nodes[2].process.kill()
        self.nodes[2].process.wait(LONGEST)
        self.nodes.pop()
        self.wait(lambda node: node.metric("troupe_cluster_peers") == 1, *self.nodes)
        held = [set(), set()]
        for node in self.nodes[0].ask("/cluster/plan")["nodes"]:
            for layer, experts in enumerate(node["held"] if node["here"] else []):
                held[layer] |= set(experts)
        self.assertEqual([len(layer) for layer in held], [8, 8])
        self.ask_all(self.nodes)

    def start_by_etcd(self, count):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        self.start(count, etcd=etcd)
        self.wait_until_settled(count - 1)
        return etcd

    def leader(self):
        """Which node leads, once one does."""
        end = time.monotonic() + LONGEST
        while True:
            leads = [node.metric("troupe_cluster_leads") for node in self.nodes if node.process.poll() is None]
            if sum(leads) == 1:
                return [node for node in self.nodes if node.process.poll() is None][leads.index(1)]
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_by_etcd_nodes_need_no_list_and_another_leads_when_the_leader_is_killed(self):
        etcd = self.start_by_etcd(3)
        self.ask_all(self.nodes)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), 0)
        self.assertEqual([node["name"] for node in etcd.get("/troupe/troupe/plan")["plan"]["nodes"]], ["n0", "n1", "n2"])
        first = self.leader()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            staying = [node for node in self.nodes if node is not first]
            asking = pool.submit(self.ask_all, staying, 4)
            first.process.kill()
            asking.result()
        i = self.nodes.index(first)
        first.process.wait(LONGEST)
        second = self.leader()
        self.assertIsNot(second, first)
        self.assert_explained(next(node for node in staying if node is not second), f"node n{self.nodes.index(second)} leads")
        self.assert_explained(second, f"node n{i} is gone: ")
        self.nodes[i] = self.node(i)
        self.wait_until_settled(2)
        self.ask_all(self.nodes)

    def test_a_node_that_hung_while_another_plan_was_made_follows_that_one_when_it_goes_on(self):
        self.start_by_etcd(3)
        leader = self.leader()
        hung, other = [node for node in self.nodes if node is not leader]
        before = leader.metric("troupe_cluster_plan_epoch")
        hung.process.send_signal(signal.SIGSTOP)
        try:
            # Its lease has ended, and it is no peer any more.
            self.wait(lambda node: node.metric("troupe_cluster_peers") == 1, leader, other)
            self.assert_explained(leader, f"node n{self.nodes.index(hung)} is gone: ")
            i = self.nodes.index(other)
            other.__exit__(None, None, None)
            self.nodes[i] = other = self.node(i, slots=SLOTS - 2)
            end = time.monotonic() + LONGEST
            while leader.metric("troupe_cluster_plan_epoch") <= before:
                self.assertLess(time.monotonic(), end, "".join(leader.said))
                self.verb("place", leader.address)
                time.sleep(0.5)
        finally:
            hung.process.send_signal(signal.SIGCONT)
        self.wait_until_settled(2)
        epoch = leader.metric("troupe_cluster_plan_epoch")
        self.assertGreater(epoch, before)
        self.wait(lambda node: node.metric("troupe_cluster_plan_epoch") >= epoch, *self.nodes)
        self.assert_explained(hung, f"plan {epoch:.0f}: ")
        self.ask_all(self.nodes)

    def test_an_etcd_whose_disk_is_full_is_told_of_once_and_costs_no_answer(self):
        etcd = Etcd(more=("--quota-backend-bytes", "8388608"))
        self.addCleanup(etcd.close)
        self.start(2, etcd=etcd)
        self.wait_until_settled(1)
        for i in range(300):
            if etcd.ctl("put", f"/fill/{i}", "x" * 100_000).returncode:
                break
        self.assertIn("NOSPACE", etcd.ctl("alarm", "list").stdout)
        self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
        newcomer = self.node(2)
        self.assert_explained(newcomer, "s ago  etcd does not list this node: .*space", "(?m)^etcd does not list this node: .*space")
        leader = self.leader()
        for _ in range(3):
            self.verb("place", leader.address)
        self.ask_all([*self.nodes, newcomer])
        said = self.verb("explain", newcomer.address).stdout
        self.assertEqual(len(re.findall("s ago  etcd does not list this node", said)), 1, said)
        self.assertEqual(etcd.ctl("del", "--prefix", "/fill/").returncode, 0)
        revision = json.loads(etcd.ctl("get", "/fill/0", "--write-out", "json").stdout)["header"]["revision"]
        for words in (("compact", str(revision)), ("defrag",), ("alarm", "disarm")):
            done = etcd.ctl(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.nodes.append(newcomer)
        self.wait(lambda node: node.metric("troupe_cluster_listed") == 1, *self.nodes)
        self.wait_until_settled(2)
        self.assertNotIn("\netcd does not list this node", self.verb("explain", newcomer.address).stdout)

    def test_while_etcd_is_away_nothing_but_planning_stops(self):
        etcd = self.start_by_etcd(2)
        etcd.kill()
        self.wait(lambda node: node.metric("troupe_cluster_listed") == 0, *self.nodes)
        for node in self.nodes:
            self.assert_explained(node, "etcd is away, so nobody plans: ")
        calls = self.total('troupe_peer_experts_total{by="peer"}')
        self.ask_all(self.nodes)
        self.assertGreater(self.total('troupe_peer_experts_total{by="peer"}'), calls)
        self.assertEqual(self.total("troupe_cluster_leads"), 0)
        etcd.start()
        self.wait(lambda node: node.metric("troupe_cluster_listed") == 1, *self.nodes)
        self.leader()
        self.ask_all(self.nodes)

    def test_an_etcd_that_is_restored_from_a_backup_gets_a_newer_plan_and_no_answer_is_lost(self):
        etcd = self.start_by_etcd(2)
        backup = f"{self.folder()}/etcd.backup"
        etcd.save(backup)
        # What the backup knows nothing of: a third node, and a plan with it.
        self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
        self.nodes.append(self.node(2))
        self.wait_until_settled(2)
        self.wait(lambda node: {one["name"] for one in node.ask("/cluster/plan")["nodes"] if any(one["planned"])} ==
                  {"n0", "n1", "n2"}, *self.nodes)
        epoch = self.nodes[0].metric("troupe_cluster_plan_epoch")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asking = pool.submit(self.ask_all, self.nodes, 4)
            etcd.restore(backup)
            asking.result()
        self.wait(lambda node: node.metric("troupe_cluster_listed") == 1, *self.nodes)
        leader = self.leader()
        self.wait(lambda node: node.metric("troupe_cluster_plan_epoch") >= epoch, *self.nodes)
        self.wait_until_settled(2)

        def stored():
            plan = etcd.get("/troupe/troupe/plan")
            return plan and {node["name"] for node in plan["plan"]["nodes"]}
        self.wait(lambda node: stored() == {"n0", "n1", "n2"}, leader)
        newest = leader.metric("troupe_cluster_plan_epoch")
        for node in self.nodes:  # whether one was away meanwhile for as long as is said is chance
            self.assert_explained(node, f"plan {newest:.0f}: ")
        self.ask_all(self.nodes)

    def test_a_mistyped_cluster_ends_a_node_with_one_clear_line_and_a_new_one_must_be_asked_for(self):
        self.start_by_etcd(2)
        self.ask_all(self.nodes)
        self.wait(lambda node: node.metric("troupe_cluster_listed") == 1, *self.nodes)
        self.addresses += [f"127.0.0.1:{port}" for port in free_ports(3)]
        self.more = ("--cluster", "trouqe")
        self.expect_end(self.node(2), "etcd has no cluster 'trouqe', but 'troupe': did you mean 'troupe'? A new one begins with "
                                      "--new-cluster")
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])
        self.more += ("--new-cluster",)
        others = [self.node(i, name=f"m{i}") for i in (2, 3, 4)]
        self.wait(lambda node: node.metric("troupe_cluster_peers") == 2, *others)
        self.ask_all(others)
        said = "\n".join(line for node in others for line in node.said)
        self.assertIn("cluster 'trouqe' begins: etcd has 'troupe'", said)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_a_name_that_is_taken_or_another_model_ends_a_node_with_one_clear_line(self):
        self.start_by_etcd(2)
        self.addresses.append(f"127.0.0.1:{free_ports(1)[0]}")
        for changes, said in (({"name": "n0"}, f"cluster 'troupe' has a node 'n0' already, at {self.addresses[0]}"),
                              ({"model": self.other_model()}, "cluster 'troupe' serves another model: ")):
            with self.subTest(said):
                self.expect_end(self.node(2, **changes), said)
        self.ask_all(self.nodes)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_a_machine_with_another_model_that_starts_while_all_others_are_off_ends_and_their_plan_stays(self):
        etcd = self.start_by_etcd(2)
        for node in self.nodes:
            node.__exit__(None, None, None)
        kept = etcd.get("/troupe/troupe/plan")
        other = self.other_model()
        self.expect_end(self.node(0, model=other), f"cluster 'troupe' serves another model: plan {kept['epoch']} in etcd is for ",
                        "--new-model goes over to it")
        self.assertEqual(etcd.get("/troupe/troupe/plan"), kept)
        self.nodes = [self.node(i) for i in range(2)]
        self.wait_until_settled(1)
        self.ask_all(self.nodes)
        for node in self.nodes:
            node.__exit__(None, None, None)
        self.more = ("--new-model",)
        self.nodes = [self.node(i, model=other) for i in range(2)]
        self.wait_until_settled(1)
        self.assertNotEqual(etcd.get("/troupe/troupe/plan")["plan"]["model"], kept["plan"]["model"])

    def verb(self, *words):
        return subprocess.run([serve_test.TROUPE, "cluster", *words], capture_output=True, text=True, timeout=LONGEST)

    def test_a_node_that_is_drained_gives_its_experts_to_others_and_can_be_stopped(self):
        self.link = "1MiB/5ms"  # so that what others hold comes from them
        self.start(3)
        self.wait_until_settled(2)
        leader, _, going = self.nodes
        done = self.verb("place", going.address)
        self.assertEqual(done.returncode, 1)
        self.assertIn("n0 leads, not n2", done.stderr)
        self.ask_all(self.nodes)  # now links and disks are measured
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asking = pool.submit(self.ask_all, self.nodes, 3)
            self.assertIn("others take what it holds", self.verb("drain", going.address).stdout)
            end = time.monotonic() + LONGEST
            while going.metric("troupe_held_experts") > 0:
                self.assertLess(time.monotonic(), end, self.verb("status", going.address).stdout)
                self.assertEqual(self.verb("place", leader.address).returncode, 0)
                time.sleep(0.5)
            asking.result()
        # What it held came from it, not from disks that are slower.
        self.assertGreater(self.total('troupe_peer_fetches_total{end="came"}'), 0)
        self.assertGreater(going.metric('troupe_peer_fetched_bytes_total{way="sent"}'), 0)
        self.assertEqual(json.loads(self.verb("status", leader.address, "--json").stdout)["fetched"]["wrong"], 0)
        self.assertIn("is to go: 0 experts are left", self.verb("status", going.address).stdout)
        self.assertIn("what is held here goes to other nodes", self.verb("explain", going.address).stdout)
        plan = json.loads(self.verb("plan", leader.address, "--json").stdout)
        self.assertEqual([node["name"] for node in plan["nodes"] if any(node["planned"])], ["n0", "n1"])
        self.assertIn("n0: ", self.verb("plan", leader.address).stdout)
        going.__exit__(None, None, None)
        self.ask_all(self.nodes[:2])
        self.nodes[1].__exit__(None, None, None)
        self.wait(lambda node: node.metric("troupe_cluster_peers") == 0, leader)
        alone = self.verb("drain", leader.address)
        self.assertEqual(alone.returncode, 1)
        self.assertIn("stop it as it is", alone.stderr)

    def test_a_node_that_has_all_experts_in_memory_can_be_drained_too(self):
        self.addresses, self.more, self.etcd = [f"127.0.0.1:{port}" for port in free_ports(2)], (), None
        self.nodes = [self.node(0), self.node(1, slots=16)]
        self.wait_until_settled(1)
        self.assertEqual(self.nodes[1].metric("troupe_held_experts"), 16)
        self.assertEqual(self.verb("drain", self.nodes[1].address).returncode, 0)
        end = time.monotonic() + LONGEST
        while self.nodes[1].metric("troupe_held_experts") > 0:
            self.assertLess(time.monotonic(), end, self.verb("status", self.nodes[1].address).stdout)
            self.verb("place", self.nodes[0].address)
            time.sleep(0.5)
        self.ask_all(self.nodes)

    def rotten_model(self):
        """Each expert has another weight, where a fingerprint takes no sample."""
        rotten = self.folder() / "rotten.gguf"
        data = bytearray(self.model.read_bytes())
        tensors = subprocess.run([serve_test.TROUPE, "inspect", self.model, "--tensors"], check=True, capture_output=True,
                                 text=True).stdout
        for size, at in re.findall(r"ffn_gate_exps\.weight.*\] +(\d+) +(\d+)$", tensors, re.MULTILINE):
            for expert in range(1, 8):  # the first is a part of what nodes prove to each other
                data[int(at) + expert * (int(size) // 8) + 10_000] ^= 0x40
        rotten.write_bytes(data)
        return rotten

    def test_a_peer_whose_disk_has_rotted_is_found_by_spot_checks_and_thrown_out(self):
        self.start(2, "--verify", 100, models=[self.model, self.rotten_model()])
        self.wait_until_settled(1)
        for prompt in PROMPTS:  # an answer may be wrong before the first check has found it out
            self.nodes[0].complete(prompt, 24)
        self.wait(lambda node: node.metric('troupe_peer_checks_total{found="wrong"}') >= 1, self.nodes[0])
        self.wait(lambda node: node.metric("troupe_cluster_peers") == 0, self.nodes[0])
        time.sleep(1)  # no request is under way
        self.ask_all(self.nodes[:1])
        self.assert_explained(self.nodes[0], "wrong rows")
        self.assert_explained(self.nodes[1], "refused by a peer.*wrong rows")
        # It stays out though it starts anew, and with another disk, until an operator says otherwise.
        first = self.nodes[0]
        self.nodes[1].__exit__(None, None, None)
        self.nodes[1] = self.node(1)
        self.wait(lambda node: any("it has answered wrong rows" in line for line in node.said), first)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [0, 0])
        self.assertEqual(first.metric("troupe_peers_thrown_out"), 1)
        self.assertIn(f"n1 at {self.addresses[1]} is thrown out: wrong rows of ", self.verb("status", first.address).stdout)
        self.assertIn("n1 has thrown nobody out", self.verb("readmit", self.nodes[1].address).stderr)
        self.nodes[1].__exit__(None, None, None)
        self.assertEqual(self.verb("readmit", first.address).returncode, 0)
        self.nodes[1] = self.node(1)
        self.wait_until_settled(1)
        self.ask_all(self.nodes)

    def test_a_node_whose_own_disk_has_rotted_finds_that_out_and_throws_nobody_out(self):
        self.addresses, self.more, self.etcd = [f"127.0.0.1:{port}" for port in free_ports(3)], (), None
        self.more = ("--verify", 100, "--copies", 2)
        rotten = self.rotten_model()  # without a container, so without checksums: a third node has to say
        self.nodes = [self.node(0, slots=16), self.node(1, slots=16), self.node(2, model=rotten)]
        self.wait_until_settled(2)
        for prompt in PROMPTS:
            self.nodes[2].complete(prompt, 24)
        self.wait(lambda node: node.metric('troupe_peer_checks_total{found="own_wrong"}') >= 1, self.nodes[2])
        self.assertEqual(self.nodes[2].metric('troupe_peer_checks_total{found="wrong"}'), 0)
        self.assert_explained(self.nodes[2], "this node's own copy is wrong")
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [2, 2, 2])
        self.ask_all(self.nodes[:2])

    def test_a_reload_to_another_model_is_refused_and_the_node_serves_on(self):
        own = self.folder() / "model.gguf"
        shutil.copy(self.model, own)
        self.start(2, models=[own, None])
        self.wait_until_settled(1)
        os.replace(self.other_model(), own)
        self.nodes[0].process.send_signal(signal.SIGHUP)
        self.wait(lambda node: any("not reloaded: model: " in line and "another model than the cluster's" in line
                                   for line in node.said), self.nodes[0])
        self.ask_all(self.nodes)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_what_is_wrong_with_the_options_is_one_clear_line(self):
        cases = [(["--peers", "127.0.0.1:1,127.0.0.1:2"], "--peer-address"),
                 (["--peers", "127.0.0.1:1,127.0.0.1:2", "--peer-address", "127.0.0.1:3"], "none of --peers"),
                 (["--peers", "127.0.0.1:x", "--peer-address", "127.0.0.1:x"], "127.0.0.1:x"),
                 (["--peers", "192.0.2.1", "--peer-plain-text"], "none of them is this machine's"),
                 (["--peers", "127.0.0.1:1,127.0.0.1:1", "--peer-address", "127.0.0.1:1"], "twice"),
                 (["--peers", "10.0.0.1:7000", "--peer-address", "10.0.0.1:7000"], "TLS")]
        for options, said in cases:
            with self.subTest(options):
                done = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", "0", *options],
                                      capture_output=True, text=True, timeout=LONGEST)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(said, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_a_node_whose_cloud_cannot_be_used_ends_in_order(self):
        mine = f"127.0.0.1:{free_ports(1)[0]}"
        done = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", "0", "--slots", "8", "--peers", mine, "--peer-address",
                               mine, "--cloud", "http://127.0.0.1:1", "--cloud-key", "/nowhere"], capture_output=True, text=True,
                              timeout=LONGEST)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("/nowhere", done.stderr.splitlines()[-1])

    def test_a_port_in_use_is_one_clear_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            done = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", "0", "--slots", "8", "--peers",
                                   address, "--peer-address", address], capture_output=True, text=True, timeout=LONGEST)
            mine = f"127.0.0.1:{free_ports(1)[0]}"
            http = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", address.split(":")[1], "--slots", "8",
                                   "--peers", mine, "--peer-address", mine], capture_output=True, text=True, timeout=LONGEST)
        for ended in (done, http):
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn(address, ended.stderr.strip().splitlines()[-1])

    # Valid on the first day of 2020.
    EXPIRED = """-----BEGIN CERTIFICATE-----
MIIBADCBpgIBATAKBggqhkjOPQQDAjAMMQowCAYDVQQDDAFhMB4XDTIwMDEwMTAw
MDAwMFoXDTIwMDEwMjAwMDAwMFowDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABFxLEg0g1nyuBMym3CwgAh6ba1l0y99oLLa2SbjitT/xfo3P
zYR1UKGE1IiVcEZz88soG1qGjRYhboXJsCW94mIwCgYIKoZIzj0EAwIDSQAwRgIh
AOuDRY8MLZ7w2fs2R8mZgQ8wYNm+eaA8saXtDvMstgHKAiEAiV0cvuueso32GDZK
laotAekm5dwXumeXHL+9XOtje6I=
-----END CERTIFICATE-----
"""

    def test_a_reload_with_a_certificate_that_has_expired_is_refused_and_the_node_serves_on(self):
        own = self.folder() / "model.gguf"
        shutil.copy(self.model, own)
        files = self.certificates("lab")["lab"]
        self.start(2, *files, models=[own, None])
        self.wait_until_settled(1)
        pathlib.Path(files[3]).write_text(self.EXPIRED)
        shutil.copy(self.model, own.with_suffix(".next"))
        os.replace(own.with_suffix(".next"), own)
        self.nodes[0].process.send_signal(signal.SIGHUP)
        self.wait(lambda node: any(f"not reloaded: {files[3]} has expired, on 2020-01-02" in line for line in node.said),
                  self.nodes[0])
        self.ask_all(self.nodes)
        self.assertEqual([node.metric("troupe_cluster_peers") for node in self.nodes], [1, 1])

    def test_a_refused_reload_to_another_model_names_new_model_by_etcd_alone(self):
        etcd = Etcd()
        self.addCleanup(etcd.close)
        other = self.other_model()
        for store in (etcd, None):
            own = self.folder() / "model.gguf"
            shutil.copy(self.model, own)
            self.start(1, etcd=store, models=[own])
            shutil.copy(other, own.with_suffix(".next"))
            os.replace(own.with_suffix(".next"), own)
            self.nodes[0].process.send_signal(signal.SIGHUP)
            is_refusal = re.compile("not reloaded: model: .*another model than the cluster's").search
            self.wait(lambda node: any(map(is_refusal, node.said)), self.nodes[0])
            said = next(filter(is_refusal, self.nodes[0].said))
            self.assertEqual("--new-model" in said, store is not None, said)


def run_several_at_once():
    """Whether all have passed. What a test says is shown once it has ended."""
    tests = unittest.defaultTestLoader.getTestCaseNames(Cluster)

    def run(test):
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-B", __file__, serve_test.TROUPE, f"Cluster.{test}"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        passed = done.returncode == 0
        print(f"{time.monotonic() - start:6.1f} s  {'passed' if passed else 'FAILED'}  {test}", flush=True)
        if not passed:
            print(done.stdout, flush=True)
        return passed
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        make_model(pathlib.Path(folder))
        os.environ[MADE] = folder
        return all(list(pool.map(run, tests)))


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    if len(sys.argv) > 1:
        unittest.main()
    sys.exit(0 if run_several_at_once() else 1)
