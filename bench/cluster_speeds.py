"""The part of bench/cluster that asks whether `troupe simulate` knows what a live cluster does: costs are measured on it at
one speed of the links, and the mean latency at others is predicted."""
import json
import pathlib
import random
import subprocess
import tempfile

import cluster_net
from cluster_placement import FACTOR, STREAM
from cluster_runs import Loopback, mean, nodes_of, planned, serve, wait_until_settled

TOKENS = 24  # of an answer
LAYERS, EXPERTS, TOP_K, WIDTH = 8, 32, 4, 256 * STREAM
ASK_BYTES = WIDTH + WIDTH // 32 * 4  # codes and scales of a row, as it goes out
ANSWER_BYTES = WIDTH * 4             # floats of an expert's answer
PROMPTS = 40                         # of a task
SPEEDS = (100, 250, 500, 1000)       # Mbit/s; the last one is fitted to


def sums_of(nodes, keys):
    """By key, of all nodes."""
    metrics = [node.metrics() for node in nodes]
    return {key: sum(m.get(name, 0) for m in metrics) for key, name in keys.items()}


class Window:
    """How much some sums have grown while requests were served."""

    def __init__(self, nodes, keys):
        self.nodes, self.keys = nodes, keys

    def __enter__(self):
        self.before = sums_of(self.nodes, self.keys)
        return self

    def __exit__(self, *_):
        after = sums_of(self.nodes, self.keys)
        self.grown = {key: after[key] - self.before[key] for key in self.keys}

    def __getitem__(self, key):
        return self.grown[key]


def solve(rows):
    """The least squares solution x, none below 0, of a few equations (coefficients, value) with two unknowns."""
    def fit(columns):
        if len(columns) == 1:
            i = columns[0]
            return {i: max(0.0, sum(c[i] * v for c, v in rows) / sum(c[i] * c[i] for c, _ in rows))}
        aa, ab, bb = (sum(c[i] * c[j] for c, _ in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
        av, bv = (sum(c[i] * v for c, v in rows) for i in (0, 1))
        det = aa * bb - ab * ab
        return {0: (av * bb - bv * ab) / det, 1: (bv * aa - av * ab) / det}
    found = fit([0, 1])
    if min(found.values()) < 0:
        found = {0: 0.0, 1: 0.0, **fit([max(found, key=found.get)])}
    return found[0], found[1]


def local_costs(bench, model, prompts, expert):
    """The dense part of a layer on n tokens: a node alone that has all in memory, without what its experts take."""
    keys = {"passes": "troupe_passes_total", "seconds": "troupe_pass_seconds_total", "asks":
            'troupe_tier_expert_asks_total{tier="memory"}', "read": 'troupe_tokens_total{kind="prompt"}',
            "written": 'troupe_tokens_total{kind="generated"}'}
    rows = []
    with nodes_of(Loopback(1), bench.troupe, model, [LAYERS * EXPERTS], bench.common(), together=False) as nodes:
        serve(nodes, [(0.0, 0, prompts[0])], TOKENS)
        for tokens in (1, 2 * TOKENS):
            for prompt in prompts[:8]:
                with Window(nodes, keys) as window:
                    serve(nodes, [(0.0, 0, prompt + " ")], tokens)
                computed = window["read"] + window["written"] - 1
                experts = expert[0] * window["asks"] + expert[1] * computed * TOP_K * LAYERS
                rows.append(((LAYERS * window["passes"], LAYERS * computed), max(0.0, window["seconds"] - experts)))
    return solve(rows)


def remote_costs(nodes, tasks, mbps):
    """(an expert on n rows, handling a call of n bytes), of what peers tell and what calls take on their way."""
    keys = {"calls": "troupe_peer_calls_answered_total", "way": 'troupe_peer_call_seconds_total{part="way"}', "experts":
            "troupe_host_experts_total", "rows": "troupe_host_rows_total", "computed": "troupe_host_seconds_total",
            "out": 'troupe_peer_bytes_total{way="sent"}'}
    computing, handling = [], []
    for tokens in (1, 2 * TOKENS):
        for i, task in enumerate(tasks):
            for prompt in task.prompts[:4]:
                with Window(nodes, keys) as window:
                    serve(nodes, [(0.0, i, prompt)], tokens)
                computing.append(((window["experts"], window["rows"]), window["computed"]))
                transfer = window["out"] * 8 / (mbps * 1e6)
                handling.append(((window["calls"], window["out"]), max(0.0, window["way"] - transfer)))
    return solve(computing), solve(handling)


def record_traces(bench, model, tasks, folder):
    """What the router chooses for each task's prompts."""
    for task in tasks:
        parts = []
        for i, prompt in enumerate(task.prompts):
            parts.append(folder / f"{task.name}-{i}.trace")
            subprocess.run([bench.troupe, "run", model, "--prompt", prompt, "-n", "1", "--ignore-eos", "--trace", parts[-1]],
                           check=True, capture_output=True)
        subprocess.run([bench.troupe, "trace", "merge", *parts, "-o", folder / f"{task.name}.trace"], check=True,
                       capture_output=True)


def scenario(tasks, held, costs, mbps):
    return {"format": "troupe scenario", "version": 1, "name": "the live cluster",
            "model": {"layers": LAYERS, "experts": EXPERTS, "experts_per_token": TOP_K, "expert_bytes": 1 << 20},
            "servers": [{"name": f"n{i}", "devices": [{"memory": count << 20, "load_bytes_per_s": 1e9}]} for i, count in
                        enumerate(held)],
            "links": {"latency_s": 0, "bytes_per_s": mbps * 1e6 / 8, "sharing": "egress"},
            "traces": {task.name: {"file": f"{task.name}.trace"} for task in tasks},
            "users": [{"phases": [{"from_s": 0, "trace": task.name, "mean_interval_s": 1 / task.per_second}]} for task in tasks],
            "output_tokens": TOKENS, "prompts_at_once": 4, "prompts": 3000, "seed": 1, "costs": costs,
            "placement": {"method": "dancemoe"}}


def speeds(bench):
    """The mean latency at several speeds of the links, live and as the simulator says."""
    options = bench.options
    model, slots = bench.model(STREAM, FACTOR), bench.slots(LAYERS * EXPERTS)
    tasks = bench.tasks(options.rates)
    draw = random.Random(options.seed)
    for task in tasks:
        task.prompts = draw.sample(task.prompts, PROMPTS)
    live, rows = {}, []
    with cluster_net.machines(3, SPEEDS[-1]) as machines:
        with nodes_of(machines, bench.troupe, model, slots, bench.common(options.disk) + ["--plan-every-s", 15]) as nodes:
            wait_until_settled(nodes)
            serve(nodes, planned(tasks, options.warm_seconds, seed=7), TOKENS)
            wait_until_settled(nodes)
            held = [node["experts"] for node in nodes[0].cluster()["plan"]["nodes"]]
            expert, call = remote_costs(nodes, tasks, SPEEDS[-1])
            for mbps in SPEEDS:
                machines.limit(mbps)
                requests = planned(tasks, options.seconds, seed=options.seed)
                live[mbps] = mean(one.seconds for one in serve(nodes, requests, TOKENS))
    dense = local_costs(bench, model, [prompt for task in tasks for prompt in task.prompts[:3]], expert)
    costs = {name: {"base_s": base, "each_s": each} for name, (base, each) in
             (("expert", expert), ("dense", dense), ("call", call))}
    costs |= {"bytes_per_token": ASK_BYTES, "bytes_per_answer": ANSWER_BYTES}
    if options.save_costs:
        note = (f"Measured by `bench/cluster --part speeds` on a node with one thread, {SPEEDS[-1]} Mbit/s, rows of {WIDTH}, "
                f"experts {FACTOR} times as wide as the trained model's.")
        options.save_costs.write_text(json.dumps({"note": note} | costs, indent=1) + "\n", encoding="utf-8")
    print(f"an expert {1e6 * expert[0]:.0f} us and {1e6 * expert[1]:.0f} a row; the rest of a layer {1e6 * dense[0]:.0f} and "
          f"{1e6 * dense[1]:.0f} a token; a call {1e6 * call[0]:.0f} and {1e6 * call[1] * 2**20:.0f} a MiB; held {held}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record_traces(bench, model, tasks, folder)
        for mbps in SPEEDS:
            (folder / "scenario.json").write_text(json.dumps(scenario(tasks, held, costs, mbps)))
            done = subprocess.run([bench.troupe, "simulate", folder / "scenario.json", "--json", "-"], check=True,
                                  capture_output=True, text=True)
            record = json.loads(done.stdout)
            predicted = record["latency"]["mean_s"]
            rows.append((mbps, live[mbps], predicted))
            print(f"{mbps:5} Mbit/s: live {live[mbps]:.3f} s, simulated {predicted:.3f} s, local {record['local_ratio']:.1%}", flush=True)
            bench.bar(f"error of the prediction at {mbps} Mbit/s", abs(predicted / live[mbps] - 1), most=0.15)
    return {"costs": costs, "held": held, "means": rows}
