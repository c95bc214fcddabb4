"""The part of bench/cluster in which nodes, the one that leads among them, and etcd are killed, stopped, cut off and slowed
down while users ask all of them: nothing may be lost or wrong."""
import contextlib
import random
import signal
import time

import cluster_net
from cluster_runs import Etcd, Loopback, Node, PEER_PORT, nodes_of, planned, serve, wait_until, wait_until_settled
from cluster_users import Users

TOKENS = 24  # of an answer
SLOTS = [72, 72, 144]
NODES = len(SLOTS)
LARGEST = 2  # the node that holds most
LEASE_S = 2
FORGET_S = 10  # then a plan does without a node
SLOWED = 50  # times
# "cut": of all that a machine gets or sends, its users' too; "deaf" and "mute": of what comes from other nodes and etcd, and
# goes to them.
KINDS = ("kill", "hang", "cut in", "cut out", "deaf", "mute", "slow", "kill leader", "hang leader", "kill etcd", "hang etcd")
OUTAGE_S = 150  # of etcd, at the end: leases have ended long before


class Hurt:
    """The cluster, and what is done to it."""

    def __init__(self, bench, machines, etcd, expected):
        self.bench, self.machines, self.etcd = bench, machines, etcd
        self.nodes = []
        self.users = Users(self.nodes, NODES, expected, TOKENS)
        self.kinds = dict.fromkeys(KINDS, 0)
        self.long = dict.fromkeys(KINDS, 0)

    def begin(self):
        for i in range(NODES):
            self.nodes.append(self.start(i))
        wait_until_settled(self.nodes)

    def start(self, i):
        options = ["--slots", SLOTS[i], "--etcd", self.etcd.address, "--lease-s", LEASE_S, "--forget-s", FORGET_S,
                   "--peer-address", f"{self.machines.address(i)}:{PEER_PORT}", "--node", f"n{i}", "--peer-plain-text"]
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

    def lasts(self, draw, kind, long):
        """Most are over before anybody has noticed; some last until links are given up (6 s) and leases have ended, and some
        until a plan does without the node."""
        if not long:
            return draw.uniform(0, 1)
        self.long[kind] += 1
        return draw.choice((draw.uniform(6.5, 9), draw.uniform(FORGET_S + 2, FORGET_S + 5)))

    def once(self, draw, kind, long):
        self.kinds[kind] += 1
        time.sleep(draw.uniform(0, 0.8))
        seconds = self.lasts(draw, kind, long)
        with self.hurt(kind, draw.randrange(NODES)):
            time.sleep(seconds)

    def hurt(self, kind, i):
        """That kind of fault, within: of etcd, of the node that leads, or else of node i."""
        self.users.suffering = f"{kind}, node {i} if of one"
        what, _, whom = kind.partition(" ")
        if whom == "etcd":
            return self.etcd_hurt(what)
        return self.node_hurt(what, self.leader()) if whom == "leader" else self.node_hurt(kind, i)

    @contextlib.contextmanager
    def etcd_hurt(self, what):
        if what == "kill":
            self.etcd.kill()
            yield
            self.etcd.start()
        else:
            self.etcd.process.send_signal(signal.SIGSTOP)
            yield
            self.etcd.process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def node_hurt(self, kind, i):
        if kind == "kill":
            with self.users.without(i):
                self.nodes[i].kill()
                yield
                self.nodes[i] = self.start(i)
        elif kind == "hang":
            self.nodes[i].process.send_signal(signal.SIGSTOP)
            yield
            self.nodes[i].process.send_signal(signal.SIGCONT)
        elif kind == "slow":
            self.machines.limit(self.bench.options.mbps / SLOWED, only=i)
            yield
            self.machines.limit(self.bench.options.mbps, only=i)
        elif kind in ("deaf", "mute"):
            others = [other for other in range(NODES + 1) if other != i]  # etcd is the last
            ways = [(i, other) if kind == "mute" else (other, i) for other in others]
            for one, other in ways:
                self.machines.blackhole(one, other, True)
            yield
            for one, other in ways:
                self.machines.blackhole(one, other, False)
        else:
            self.machines.cut(i, kind.split()[1])
            yield
            self.machines.cut(i, "none")
            self.machines.limit(self.bench.options.mbps, only=i)

    def calm_speed(self, window):
        """Tokens a second of all users while nothing is done to anybody."""
        wait_until_settled(self.nodes)
        time.sleep(window)
        now = time.monotonic()
        return self.users.speed(now - window, now)

    def recovery(self, kind, before, window):
        """Seconds from the end of what etcd, the node that leads or the one that holds most suffers, which has lasted until a plan does
        without it, until the speed of all users is back at 90 % of that before all faults. If it comes to an end at all: 60 s are waited for."""
        wait_until_settled(self.nodes)
        with self.hurt(kind, LARGEST):
            time.sleep(FORGET_S + 3)
            now = time.monotonic()
            without = self.users.speed(now - window, now)
        back = time.monotonic()
        while now < back + 60:
            time.sleep(0.25)
            now = time.monotonic()
            if now - back >= window and self.users.speed(now - window, now) >= 0.9 * before:
                break
        seconds = max(0.0, now - window - back)  # the speed was there all the window long
        print(f"{kind}: {before:.0f} tokens/s before, {without:.0f} meanwhile, back {seconds:.1f} s after its end", flush=True)
        self.bench.bar(f"seconds until the speed is back after: {kind}", seconds, most=10)
        return {"before": before, "without": without, "seconds": seconds}

    def without_etcd(self, before, window):
        """While etcd is away for minutes users are served as before, and nobody plans; once it is back one node leads again."""
        wait_until_settled(self.nodes)
        epochs, led = self.epochs(), 0
        with self.etcd_hurt("kill"):
            end = time.monotonic() + OUTAGE_S
            time.sleep(5 * LEASE_S)  # until then one may lead
            while time.monotonic() < end:
                led += sum(node.cluster()["leads"] for node in self.nodes)
                time.sleep(1)
            during = self.users.speed(end - window, end)
            planned_in_it = self.epochs() != epochs
        self.leader()
        wait_until_settled(self.nodes)
        print(f"etcd away for {OUTAGE_S} s: {before:.0f} tokens/s before, {during:.0f} in the last {window:g} s of it", flush=True)
        self.bench.bar("speed while etcd is away over that before", during / before, least=0.9)
        self.bench.bar("nodes that led, and plans that were made, while etcd was away", led + planned_in_it, most=0)
        return {"before": before, "during": during}

    def epochs(self):
        return [node.cluster()["plan"]["epoch"] for node in self.nodes]

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


def drawn(draw, count):
    """(kind, whether it is long): each kind in turn at first, then by chance; of each six one is long."""
    for n in range(count):
        yield KINDS[n % len(KINDS)] if n < len(KINDS) else draw.choice(KINDS), draw.random() < 1 / 6


def faults(bench):
    quick = bench.options.quick
    expected = answers_alone(bench)
    draw = random.Random(bench.options.seed)
    with cluster_net.machines(NODES + 1, bench.options.mbps) as machines, contextlib.ExitStack() as ends:
        etcd = Etcd(machines, NODES)
        ends.callback(etcd.end)
        hurt = Hurt(bench, machines, etcd, expected)
        ends.callback(hurt.end)
        hurt.begin()
        with hurt.users as users:
            for kind, long in drawn(draw, bench.options.faults):
                hurt.once(draw, kind, long)
            calm = hurt.calm_speed(window=20.0)
            back = {kind: hurt.recovery(kind, calm, window=4.0) for kind in (KINDS[:1] if quick else KINDS)}
            outage = None if quick else hurt.without_etcd(calm, window=30.0)
        print(f"{hurt.kinds}, of them long: {sum(hurt.long.values())}: {users.asked} answers under them, {users.lost} lost, "
              f"{users.wrong} wrong; {users.broken} died with their node, and were asked for again", flush=True)
        bench.bar("lost or wrong answers", users.lost + users.wrong, most=0)
        bench.bar("users whose node died and who did not get their answer later", users.broken - users.asked_again, most=0)
        wait_until_settled(hurt.nodes)
    return {"faults": hurt.kinds, "long": hurt.long, "asked": users.asked, "lost": users.lost, "wrong": users.wrong,
            "broken": users.broken, "asked_again": users.asked_again, "recovery": back,
            "etcd_away": outage}
