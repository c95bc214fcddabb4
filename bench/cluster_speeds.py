"""The part of bench/cluster that asks whether `troupe simulate` knows what a live cluster does: costs are measured on it at
one speed of the links, and the mean latency at others is predicted."""
import json
import pathlib
import random
import re
import subprocess
import tempfile

import cluster_net
from cluster_placement import FACTOR, STREAM, Asks
from cluster_runs import mean, nodes_of, planned, serve, wait_until_settled

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


def measured_costs(nodes, tasks, mbps):
    """(an expert on n rows, the rest of a layer on n tokens, handling a call of n bytes): by what peers tell, by what passes took
    beyond waiting and experts, and by what calls took on their way."""
    keys = {"calls": "troupe_peer_calls_answered_total", "way": 'troupe_peer_call_seconds_total{part="way"}', "experts":
            "troupe_host_experts_total", "host_rows": "troupe_host_rows_total", "computed": "troupe_host_seconds_total",
            "out": 'troupe_peer_bytes_total{way="sent"}', "passes": "troupe_passes_total", "seconds": "troupe_pass_seconds_total",
            "stall": "troupe_stall_seconds_total", "rows": "troupe_pass_rows_sum"}
    keys |= {tier: f'troupe_tier_expert_asks_total{{tier="{tier}"}}' for tier in ("memory", "disk", "loading")}
    computing, handling, windows = [], [], []
    for tokens in (1, 2 * TOKENS):
        for i, task in enumerate(tasks):
            for prompt in task.prompts[:4]:
                with Window(nodes, keys) as window:
                    serve(nodes, [(0.0, i, prompt)], tokens)
                computing.append(((window["experts"], window["host_rows"]), window["computed"]))
                transfer = window["out"] * 8 / (mbps * 1e6)
                handling.append(((window["calls"], window["out"]), max(0.0, window["way"] - transfer)))
                windows.append(window)
    expert, dense = solve(computing), []
    for window in windows:
        own = window["memory"] + window["disk"] + window["loading"]
        own_rows = window["rows"] * TOP_K * LAYERS - window["host_rows"]
        seconds = window["seconds"] - window["stall"] - expert[0] * own - expert[1] * own_rows
        dense.append(((LAYERS * window["passes"], LAYERS * window["rows"]), max(0.0, seconds)))
    return expert, solve(dense), solve(handling)


def record_traces(bench, model, tasks, folder):
    """What the router chooses for each task's prompts, and for the answers to them."""
    for task in tasks:
        parts = []
        for i, prompt in enumerate(task.prompts):
            parts.append(folder / f"{task.name}-{i}.trace")
            subprocess.run([bench.troupe, "run", model, "--prompt", prompt, "-n", str(TOKENS), "--ignore-eos", "--trace", parts[-1]],
                           check=True, capture_output=True)
        subprocess.run([bench.troupe, "trace", "merge", *parts, "-o", folder / f"{task.name}.trace"], check=True,
                       capture_output=True)


def disk_of(text):
    """What --disk says, as a scenario has it: "1GiB/100us"."""
    speed, _, latency = text.partition("/")
    number, unit = re.fullmatch(r"([\d.]+)\s*([KMGT]i?B|B)?(?:/s)?", speed.strip()).groups()
    power = "BKMGT".index((unit or "B")[0])
    scale = (1024 if unit and "i" in unit else 1000) ** power
    waits = re.fullmatch(r"([\d.]+)\s*(us|ms|s)", latency.strip() or "0s").groups()
    return {"bytes_per_s": float(number) * scale, "latency_s": float(waits[0]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[waits[1]]}


def expert_bytes_of(bench, model):
    facts = json.loads(subprocess.run([bench.troupe, "inspect", model, "--json", "-"], check=True, capture_output=True,
                                      text=True).stdout)
    return max(layer["expert_bytes"] for layer in facts["layer_bytes"]) // EXPERTS


def scenario(tasks, held, costs, mbps, expert_bytes, disks=None):
    """`held` experts in each node's memory; `disks`: of nodes that read what others hold where that is sooner."""
    setup = {"format": "troupe scenario", "version": 1, "name": "the live cluster",
             "model": {"layers": LAYERS, "experts": EXPERTS, "experts_per_token": TOP_K, "expert_bytes": expert_bytes},
             "servers": [{"name": f"n{i}", "devices": [{"memory": count * expert_bytes, "load_bytes_per_s": 1e9}]}
                         for i, count in enumerate(held)],
             "links": {"latency_s": 0, "bytes_per_s": mbps * 1e6 / 8, "sharing": "both"},
             "traces": {task.name: {"file": f"{task.name}.trace", "answers": True} for task in tasks},
             "users": [{"phases": [{"from_s": 0, "trace": task.name, "mean_interval_s": 1 / task.per_second}]} for task in tasks],
             "output_tokens": TOKENS, "prompts_at_once": 4, "prompts": 3000, "seed": 1, "costs": costs,
             "placement": {"method": "dancemoe"}}
    return setup | ({"disks": disks} if disks else {})


def speeds(bench):
    """The mean latency at several speeds of the links, live and as the simulator says."""
    options = bench.options
    model, slots = bench.model(STREAM, FACTOR), bench.slots(LAYERS * EXPERTS)
    tasks = bench.tasks(options.rates)
    draw = random.Random(options.seed)
    for task in tasks:
        task.prompts = draw.sample(task.prompts, PROMPTS)
    live, shares, rows = {}, {}, []
    with cluster_net.machines(3, SPEEDS[-1]) as machines:
        with nodes_of(machines, bench.troupe, model, slots, bench.common(options.disk) + ["--plan-every-s", 15],
                      processors=options.processors) as nodes:
            wait_until_settled(nodes)
            serve(nodes, planned(tasks, options.warm_seconds, seed=7), TOKENS)
            wait_until_settled(nodes)
            held = [node["experts"] for node in nodes[0].cluster()["plan"]["nodes"]]
            expert, dense, call = measured_costs(nodes, tasks, SPEEDS[-1])
            for mbps in SPEEDS:
                machines.limit(mbps)
                serve(nodes, planned(tasks, options.warm_seconds, seed=8), TOKENS)  # until nodes know these links
                requests = planned(tasks, options.seconds, seed=options.seed)
                asks = Asks(nodes)
                asks.look()
                live[mbps] = mean(one.seconds for one in serve(nodes, requests, TOKENS))
                asks.look()
                shares[mbps] = asks.shares()
    costs = {name: {"base_s": base, "each_s": each} for name, (base, each) in
             (("expert", expert), ("dense", dense), ("call", call))}
    costs |= {"bytes_per_token": ASK_BYTES, "bytes_per_answer": ANSWER_BYTES}
    if options.save_costs:
        note = (f"Measured by `bench/cluster --part speeds` on a node with one thread, {SPEEDS[-1]} Mbit/s, rows of {WIDTH}, "
                f"experts {FACTOR} times as wide as the trained model's.")
        options.save_costs.write_text(json.dumps({"note": note} | costs, indent=1) + "\n", encoding="utf-8")
    print(f"an expert {1e6 * expert[0]:.0f} us and {1e6 * expert[1]:.0f} a row; the rest of a layer {1e6 * dense[0]:.0f} and "
          f"{1e6 * dense[1]:.0f} a token; a call {1e6 * call[0]:.0f} and {1e6 * call[1] * 2**20:.0f} a MiB; held {held}", flush=True)
    expert_bytes = expert_bytes_of(bench, model)
    disks = [disk_of(options.disk) | {"free_slots": all_slots - count, "reads_ahead": True} for all_slots, count in
             zip(slots, held)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record_traces(bench, model, tasks, folder)
        for mbps in SPEEDS:
            (folder / "scenario.json").write_text(json.dumps(scenario(tasks, held, costs, mbps, expert_bytes, disks)))
            done = subprocess.run([bench.troupe, "simulate", folder / "scenario.json", "--json", "-"], check=True,
                                  capture_output=True, text=True)
            record = json.loads(done.stdout)
            predicted = record["latency"]["mean_s"]
            rows.append((mbps, live[mbps], predicted))
            print(f"{mbps:5} Mbit/s: live {live[mbps]:.3f} s, simulated {predicted:.3f} s; by the own memory {shares[mbps]['memory']:.1%} and "
                  f"{record['local_ratio']:.1%}", flush=True)
            bench.bar(f"error of the prediction at {mbps} Mbit/s", abs(predicted / live[mbps] - 1), most=0.15)
    return {"costs": costs, "held": held, "means": rows}
