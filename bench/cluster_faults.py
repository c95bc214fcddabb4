"""The part of bench/cluster in which nodes are killed, stopped and cut off while users ask: nothing may be lost or wrong."""
import asyncio
import random
import signal
import threading
import time

import cluster_net
from cluster_runs import Loopback, Node, PEER_PORT, ask, list_of_peers, nodes_of, planned, serve, wait_until_settled

TOKENS = 24  # of an answer
SLOTS = [72, 72, 144]


class Users:
    """Who ask the first node, one request after the other, and compare its answers."""

    def __init__(self, node, expected, count=2):
        self.node, self.expected = node, expected
        self.asked = self.lost = self.wrong = 0
        self.answered = []  # when
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

    def go_on(self, i):
        prompts = list(self.expected)
        while not self.done.is_set():
            prompt = prompts[i % len(prompts)]
            i += 1
            self.asked += 1
            try:
                _, _, text = asyncio.run(ask(self.node.base, {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0,
                                                              "ignore_eos": True}))
            except Exception:  # whatever came instead of an answer
                text = None
            self.answered.append(time.monotonic())
            self.lost += text is None
            self.wrong += text is not None and text != self.expected[prompt]

    def speed(self, first, last):
        """Tokens a second between two moments."""
        return TOKENS * sum(first <= at < last for at in self.answered) / (last - first)


def again(bench, machines, i, options):
    return Node(machines, i, bench.troupe, bench.model(1, 64),
                ["--slots", SLOTS[i], "--peers", list_of_peers(machines), "--peer-address",
                 f"{machines.address(i)}:{PEER_PORT}", "--node", f"n{i}", "--peer-plain-text", *options])


def lasts(draw, kinds):
    """Most hangs and cuts are over before anybody has noticed; some last until the link is given up (6 s)."""
    if draw.random() < 1 / 6:
        kinds["of them longer than 6 s"] += 1
        return draw.uniform(6.5, 9)
    return draw.uniform(0, 1)


def hurt(bench, machines, nodes, options, kinds):
    draw = random.Random(bench.options.seed)
    ways = list(kinds)
    kinds["of them longer than 6 s"] = 0
    for _ in range(bench.options.faults):
        i = draw.choice([1, 2])
        kind = draw.choice(ways)
        kinds[kind] += 1
        time.sleep(draw.uniform(0, 0.5))
        if kind == "kill":
            nodes[i].process.kill()
            nodes[i].end()
            time.sleep(draw.uniform(0, 0.3))
            nodes[i] = again(bench, machines, i, options)
        elif kind == "hang":
            nodes[i].process.send_signal(signal.SIGSTOP)
            time.sleep(lasts(draw, kinds))
            nodes[i].process.send_signal(signal.SIGCONT)
        else:
            machines.cut(i, kind.split()[1])
            time.sleep(lasts(draw, kinds))
            machines.cut(i, "none")
            machines.limit(bench.options.mbps, only=i)


def recovery(bench, machines, nodes, options, users):
    """Seconds from a return of the node that holds most until the speed is back at 90 %."""
    window = 4.0
    time.sleep(2 * window)
    before = users.speed(time.monotonic() - 2 * window, time.monotonic())
    nodes[2].process.kill()
    nodes[2].end()
    time.sleep(2 * window)
    now = time.monotonic()
    without = users.speed(now - window, now)
    nodes[2] = again(bench, machines, 2, options)
    back = time.monotonic()
    while time.monotonic() < back + 60:
        time.sleep(0.25)
        now = time.monotonic()
        if now - back >= window and users.speed(now - window, now) >= 0.9 * before:
            break
    seconds = now - window - back  # the speed was there all the window long
    print(f"a node is killed: {before:.0f} tokens/s before, {without:.0f} without it, back {seconds:.1f} s after it is", flush=True)
    bench.bar("seconds until the speed is back", max(0.0, seconds), most=10)
    return {"before": before, "without": without, "seconds": seconds}


def faults(bench):
    options = bench.common(bench.options.disk)
    kinds = {"kill": 0, "hang": 0, "cut in": 0, "cut out": 0}
    requests = planned(bench.tasks([3, 0.001, 0.001]), 10, seed=1)[:20]
    with nodes_of(Loopback(1), bench.troupe, bench.model(1, 64), [256], bench.common(), together=False) as alone:
        seen = sorted(serve(alone, requests, TOKENS), key=lambda one: one.at)
        expected = {prompt: one.text for one, (_, _, prompt) in zip(seen, requests)}
        assert None not in expected.values(), "a request was lost"
    with cluster_net.machines(3, bench.options.mbps) as machines:
        with nodes_of(machines, bench.troupe, bench.model(1, 64), SLOTS, options) as nodes:
            wait_until_settled(nodes)
            with Users(nodes[0], expected) as users:
                hurt(bench, machines, nodes, options, kinds)
                wait_until_settled(nodes)
                back = recovery(bench, machines, nodes, options, users)
            print(f"{kinds}: {users.asked} answers under them, {users.lost} lost, {users.wrong} wrong", flush=True)
            bench.bar("lost or wrong answers", users.lost + users.wrong, most=0)
            wait_until_settled(nodes)
    return {**kinds, "asked": users.asked, "lost": users.lost, "wrong": users.wrong, "recovery": back}
