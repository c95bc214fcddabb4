"""The part of bench/cluster in which nodes, the one that leads among them, and etcd are killed, stopped and cut off while users
ask the others: nothing may be lost or wrong."""
import asyncio
import contextlib
import random
import signal
import threading
import time

import cluster_net
from cluster_runs import Etcd, Loopback, Node, PEER_PORT, ask, nodes_of, planned, serve, wait_until, wait_until_settled

TOKENS = 24  # of an answer
SLOTS = [72, 72, 144]
NODES = len(SLOTS)
LARGEST = 2  # the node that holds most
LEASE_S = 2
KINDS = ("kill", "hang", "cut in", "cut out", "kill leader", "hang leader", "kill etcd", "hang etcd")


class Users:
    """Who ask nodes in turn, one request after the other, and compare the answers. Whoever asks a node that dies loses its
    answer: nobody asks the one that is to be hurt."""

    def __init__(self, nodes, expected, count=3):
        self.nodes, self.expected = nodes, expected
        self.asked = self.lost = self.wrong = 0
        self.answered = []  # when
        self.busy = [0] * NODES
        self.avoided = None
        self.changed = threading.Condition()
        self.done = threading.Event()
        self.threads = [threading.Thread(target=self.go_on, args=(i,)) for i in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        assert all(thread.is_alive() for thread in self.threads), "a user has gone"
        for thread in self.threads:
            thread.join()

    @contextlib.contextmanager
    def elsewhere(self, i):
        """Nobody asks node i any more, once it has answered those that do."""
        with self.changed:
            self.avoided = i
            self.changed.wait_for(lambda: self.busy[i] == 0)
        try:
            yield
        finally:
            with self.changed:
                self.avoided = None

    def begin(self, turn):
        with self.changed:
            allowed = [i for i in range(NODES) if i != self.avoided]
            i = allowed[turn % len(allowed)]
            self.busy[i] += 1
            return i

    def end(self, i, text, prompt):
        with self.changed:
            self.busy[i] -= 1
            self.asked += 1
            self.answered.append(time.monotonic())
            self.lost += text is None
            self.wrong += text is not None and text != self.expected[prompt]
            self.changed.notify_all()

    def go_on(self, turn):
        prompts = list(self.expected)
        while not self.done.is_set():
            prompt = prompts[turn % len(prompts)]
            i = self.begin(turn)
            turn += 1
            try:
                _, _, text = asyncio.run(ask(self.nodes[i].base, {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0,
                                                                  "ignore_eos": True}))
            except Exception:  # whatever came instead of an answer
                text = None
            self.end(i, text, prompt)

    def speed(self, first, last):
        """Tokens a second between two moments."""
        return TOKENS * sum(first <= at < last for at in self.answered) / (last - first)


class Hurt:
    """The cluster, and what is done to it."""

    def __init__(self, bench, machines, etcd, expected):
        self.bench, self.machines, self.etcd = bench, machines, etcd
        self.nodes = []
        self.users = Users(self.nodes, expected)
        self.kinds = dict.fromkeys(KINDS, 0)
        self.long = 0

    def begin(self):
        for i in range(NODES):
            self.nodes.append(self.start(i))
        wait_until_settled(self.nodes)

    def start(self, i):
        options = ["--slots", SLOTS[i], "--etcd", self.etcd.address, "--lease-s", LEASE_S, "--peer-address",
                   f"{self.machines.address(i)}:{PEER_PORT}", "--node", f"n{i}", "--peer-plain-text"]
        return Node(self.machines, i, self.bench.troupe, self.bench.model(1, 64),
                    options + self.bench.common(self.bench.options.disk))

    def leader(self):
        """Its number; of the nodes one leads before long."""
        found = []

        def one_leads():
            found[:] = [i for i, node in enumerate(self.nodes) if node.cluster()["leads"]]
            return len(found) == 1
        wait_until(one_leads, "a leader")
        return found[0]

    def lasts(self, draw):
        """Most are over before anybody has noticed; some last until links are given up (6 s) and leases have ended."""
        if draw.random() < 1 / 6:
            self.long += 1
            return draw.uniform(6.5, 9)
        return draw.uniform(0, 1)

    def once(self, draw, kind):
        self.kinds[kind] += 1
        time.sleep(draw.uniform(0, 0.5))
        if kind.endswith("etcd"):
            return self.hurt_etcd(kind, self.lasts(draw))
        i = self.leader() if kind.endswith("leader") else draw.randrange(NODES)
        with self.users.elsewhere(i):
            time.sleep(draw.uniform(0, 0.3))  # the others' calls to it go on
            self.hurt_node(kind, i, self.lasts(draw))

    def hurt_etcd(self, kind, seconds):
        if kind.startswith("kill"):
            self.etcd.kill()
            time.sleep(seconds)
            self.etcd.start()
        else:
            self.etcd.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            self.etcd.process.send_signal(signal.SIGCONT)

    def hurt_node(self, kind, i, seconds):
        if kind.startswith("kill"):
            self.nodes[i].kill()
            time.sleep(min(seconds, 1))
            self.nodes[i] = self.start(i)
        elif kind.startswith("hang"):
            self.nodes[i].process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            self.nodes[i].process.send_signal(signal.SIGCONT)
        else:
            self.machines.cut(i, kind.split()[1])
            time.sleep(seconds)
            self.machines.cut(i, "none")
            self.machines.limit(self.bench.options.mbps, only=i)

    def recovery(self):
        """Seconds from a return of the node that holds most until the speed of the others is back at 90 %."""
        window = 4.0
        with self.users.elsewhere(LARGEST):
            time.sleep(2 * window)
            before = self.users.speed(time.monotonic() - 2 * window, time.monotonic())
            self.nodes[LARGEST].kill()
            time.sleep(2 * window)
            now = time.monotonic()
            without = self.users.speed(now - window, now)
            self.nodes[LARGEST] = self.start(LARGEST)
            back = time.monotonic()
            while time.monotonic() < back + 60:
                time.sleep(0.25)
                now = time.monotonic()
                if now - back >= window and self.users.speed(now - window, now) >= 0.9 * before:
                    break
        seconds = max(0.0, now - window - back)  # the speed was there all the window long
        print(f"a node is killed: {before:.0f} tokens/s before, {without:.0f} without it, back {seconds:.1f} s after it is",
              flush=True)
        self.bench.bar("seconds until the speed is back", seconds, most=10)
        return {"before": before, "without": without, "seconds": seconds}

    def end(self):
        for node in self.nodes:
            node.end()


def answers_alone(bench):
    """What a node alone answers, by prompt."""
    requests = planned(bench.tasks([3, 0.001, 0.001]), 10, seed=1)[:20]
    with nodes_of(Loopback(1), bench.troupe, bench.model(1, 64), [256], bench.common(), together=False) as alone:
        seen = sorted(serve(alone, requests, TOKENS), key=lambda one: one.at)
    expected = {prompt: one.text for one, (_, _, prompt) in zip(seen, requests)}
    assert None not in expected.values(), "a request was lost"
    return expected


def faults(bench):
    expected = answers_alone(bench)
    draw = random.Random(bench.options.seed)
    with cluster_net.machines(NODES + 1, bench.options.mbps) as machines, contextlib.ExitStack() as ends:
        etcd = Etcd(machines, NODES)
        ends.callback(etcd.end)
        hurt = Hurt(bench, machines, etcd, expected)
        ends.callback(hurt.end)
        hurt.begin()
        with hurt.users as users:
            for n in range(bench.options.faults):
                hurt.once(draw, KINDS[n % len(KINDS)] if n < len(KINDS) else draw.choice(KINDS))
            wait_until_settled(hurt.nodes)
            back = hurt.recovery()
        print(f"{hurt.kinds}, {hurt.long} of them for more than 6 s: {users.asked} answers under them, {users.lost} lost, "
              f"{users.wrong} wrong", flush=True)
        bench.bar("lost or wrong answers", users.lost + users.wrong, most=0)
        wait_until_settled(hurt.nodes)
    return {**hurt.kinds, "long": hurt.long, "asked": users.asked, "lost": users.lost, "wrong": users.wrong, "recovery": back}
