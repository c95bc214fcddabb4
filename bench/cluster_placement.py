"""Parts of bench/cluster about which node holds what: Tables I and II of the paper, and Fig. 7's change of workload."""
import argparse
import contextlib
import statistics
import threading
import time

import cluster_net
import placement_svg
from cluster_runs import mean, nodes_of, planned, serve, wait_until_settled

TOKENS = 24  # of an answer
# "optimum" has the fewest calls of peers that any placement of the same counts has: it bounds what the others may reach.
PLACERS = ["uniform", "redundance", "smartmoe", "optimum", "eplb", "dancemoe"]
# Without peers: each node with its disk; and the same, with requests sent to who is least busy.
ALONE = {"alone": "offloading alone", "redirect": "redirecting"}
TIERS = ("memory", "elsewhere", "disk", "loading")
# Rows as long as in models that people run: the stream 16 times as wide, the experts as they were.
STREAM, FACTOR = 16, 1
FOLLOW = {"plans stay": 86400, "plans follow": 15}  # seconds between plans
PAIRS = 3  # of runs, each with requests of its own


class Asks:
    """Who answered the experts that nodes asked for, as it went on."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.samples = []

    def look(self):
        metrics = [node.metrics() for node in self.nodes]
        sums = {tier: sum(m.get(f'troupe_tier_expert_asks_total{{tier="{tier}"}}', 0) for m in metrics) for tier in TIERS}
        self.samples.append((time.monotonic(), sums))

    @contextlib.contextmanager
    def followed(self, every=5.0):
        done = threading.Event()

        def follow():
            while not done.wait(every):
                self.look()
        self.look()
        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield self
        finally:
            done.set()
            thread.join()
            self.look()

    def shares(self, first=0, last=-1):
        grown = {tier: self.samples[last][1][tier] - self.samples[first][1][tier] for tier in TIERS}
        return {tier: value / max(1, sum(grown.values())) for tier, value in grown.items()}

    def course(self):
        """(seconds from the start, share that memory answered since the sample before); not of when nobody asked."""
        start = self.samples[0][0]
        return [(self.samples[i][0] - start, self.shares(i - 1, i)["memory"]) for i in range(1, len(self.samples))
                if self.samples[i][1] != self.samples[i - 1][1]]


def answers_of(seen):
    lost = sum(one.text is None for one in seen)
    assert lost == 0, f"{lost} answers were lost"
    return [one.text for one in sorted(seen, key=lambda one: (one.at, one.task))]


@contextlib.contextmanager
def followed_nodes(bench, model, slots, more, together=True):
    """The nodes of a run and who answers the experts they ask for."""
    options = bench.options
    with cluster_net.machines(3, options.mbps) as machines:
        with nodes_of(machines, bench.troupe, model, slots, bench.common(options.disk) + more, together, options.processors) as nodes:
            asks = Asks(nodes)
            with asks.followed():
                yield nodes, asks


def learn(nodes, warm, plan, **extra):
    """Lets nodes see what their users ask, and has them follow the plan that comes of it."""
    wait_until_settled(nodes)
    serve(nodes, warm, TOKENS, **extra)
    plan()
    wait_until_settled(nodes)


def tell(name, by_node, whole, shares):
    print(f"{name:<18} {' '.join(f'{value:7.3f}' for value in by_node)}  mean {whole:7.3f} s  local {shares['memory']:5.1%}, "
          f"peers {shares['elsewhere']:5.1%}, disk {shares['disk'] + shares['loading']:5.1%}", flush=True)


def tell_bars(bench, means, of=""):
    """Of whatever ran; `of` is put before their names."""
    if "eplb" in means:
        if "dancemoe" in means:
            bench.bar(f"{of}DanceMoE's mean over EPLB's", means["dancemoe"] / means["eplb"], most=1 - 0.306)
        print(f"all in each node's memory over EPLB's: {means['all in memory'] / means['eplb']:.3g}", flush=True)
        if "optimum" in means:
            print(f"fewest calls of peers over EPLB's: {means['optimum'] / means['eplb']:.3g}", flush=True)
    for other in means:
        if "dancemoe" in means and other not in ("dancemoe", "eplb", "latency", "optimum", "all in memory"):
            bench.bar(f"{of}DanceMoE's mean over {other}'s", means["dancemoe"] / means[other], most=1)


def placement(bench, plot="cluster-local.svg", of=""):
    """Table II: the same requests under each placement. Table I: without peers, and sent to who is least busy. The bound:
    each node has memory for all experts."""
    options = bench.options
    tasks = bench.tasks(options.rates)
    model, slots, experts = bench.placed_model(STREAM, FACTOR)
    warm = planned(tasks, options.warm_seconds, seed=7)
    requests = planned(tasks, options.seconds, seed=options.seed)
    print(f"{len(warm)} requests to learn from, {len(requests)} timed", flush=True)
    ways = []
    for name in options.placers or ([*PLACERS[-2:], "alone"] if options.quick else [*PLACERS, *ALONE]):
        if name in ALONE:
            to_least_busy = (lambda task, busy: min(range(3), key=lambda i: (busy[i], (i - task) % 3))) if name == "redirect" else None
            ways.append((ALONE[name], slots, False, [], to_least_busy))
        else:
            ways.append((name, slots, True, ["--placer", name, "--plan-every-s", 15], None))
    ways.append(("all in memory", [experts] * 3, False, [], None))
    means, courses, expected = {}, {}, None
    for name, memory, together, more, choose in ways:
        extra = {} if choose is None else {"choose": choose}
        with followed_nodes(bench, model, memory, more, together) as (nodes, asks):
            if together:
                learn(nodes, warm, lambda: time.sleep(20), **extra)  # a report and a plan
            else:
                serve(nodes, warm, TOKENS, **extra)
            asks.look()
            learned = len(asks.samples) - 1
            seen = serve(nodes, requests, TOKENS, **extra)
        answers = answers_of(seen)
        expected = expected or answers
        assert answers == expected, f"{name}: other answers"
        means[name] = mean(one.seconds for one in seen)
        tell(name, [mean(one.seconds for one in seen if one.task == i) for i in range(3)], means[name], asks.shares(learned))
        if together:
            courses[name] = asks.course()
    if options.plots and courses:
        options.plots.mkdir(parents=True, exist_ok=True)
        (options.plots / plot).write_text(placement_svg.lines(
            "Experts that the node's own memory answered", "seconds", "share", courses, 0))
    tell_bars(bench, means, of)
    return {"means": means, "local": courses}


def plan_now(node):
    time.sleep(12)  # all have told
    node.post("/cluster/place")
    time.sleep(3)


def change(bench):
    """Fig. 7: the users of each node begin to ask what another node's users asked. With plans that follow, and without, in turns."""
    options = bench.options
    tasks = bench.tasks(options.rates)
    model, slots, _ = bench.placed_model(STREAM, FACTOR)
    warm = planned(tasks, options.warm_seconds, seed=7)
    pairs, courses = [], {}
    for number in range(1 if options.quick else PAIRS):
        requests = [(at, (task + 1) % 3, prompt) for at, task, prompt in planned(tasks, options.seconds, seed=options.seed + number)]
        means, expected = {}, None
        for name in FOLLOW if number % 2 == 0 else reversed(FOLLOW):
            with followed_nodes(bench, model, slots, ["--plan-every-s", FOLLOW[name]]) as (nodes, asks):
                learn(nodes, warm, lambda: plan_now(nodes[0]))
                asks.look()
                changed = len(asks.samples) - 1
                seen = serve(nodes, requests, TOKENS)
            answers = answers_of(seen)
            expected = expected or answers
            assert answers == expected, f"{name}: other answers"
            means[name] = mean(one.seconds for one in seen)
            tell(name, [mean(one.seconds for one in seen if one.task == i) for i in range(3)], means[name], asks.shares(changed))
            courses[name] = asks.course()
        pairs.append(means)
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        (options.plots / "cluster-change.svg").write_text(placement_svg.lines(
            "Experts that the node's own memory answered", "seconds", "share", courses, 0))
    ratios = [means["plans follow"] / means["plans stay"] for means in pairs]
    print("mean with plans that follow over without, by pair: " + ", ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)
    bench.bar("mean with plans that follow over without, median of the pairs", statistics.median(ratios), most=0.9)
    return {"means": pairs, "local": courses}


def shape(bench):
    """The placements of a published shape, its weights random."""
    options = argparse.Namespace(**vars(bench.options))
    options.shape, options.rates = options.shape or "olmoe-1b-7b", [0.12] * 3
    options.layers = options.layers or (4 if options.quick else None)
    return placement(bench.beside(options), "cluster-shape.svg", f"{options.shape}: ")
