"""The part of bench/cluster that goes past this room: the cluster that was measured, with more nodes, other links and nodes
that are lost, as `troupe simulate` sees it."""
import json
import pathlib
import subprocess
import sys
import tempfile

from cluster_placement import FACTOR, STREAM
from cluster_speeds import EXPERTS, LAYERS, PROMPTS, TOKENS, expert_bytes_of, record_traces, scenario

NODES, SPEEDS = (4, 16, 64, 256), (100, 1000, 10_000)
HELD = 64  # experts that a node is given, of 256
FREE = 8   # and that it has room for besides
LOSSES = {"mean_up_s": 3600, "away_s": 300, "notice_s": 6}
COSTS = pathlib.Path(__file__).parent / "scenarios/costs/troupe-node.json"
DISK = {"bytes_per_s": float(1 << 30), "latency_s": 1e-4, "free_slots": FREE, "reads_ahead": True}


def simulate(bench, folder, setup):
    path = folder / "scenario.json"
    path.write_text(json.dumps(setup), encoding="utf-8")
    done = subprocess.run([bench.troupe, "simulate", path, "--json", "-"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def cluster_of(count, tasks, costs, mbps, expert_bytes, held=HELD, disks=(DISK,)):
    setup = scenario(tasks, [held] * count, costs, mbps, expert_bytes, list(disks))
    for server in setup["servers"]:
        server["devices"] = [{"memory": held * expert_bytes, "load_bytes_per_s": DISK["bytes_per_s"]}]
    return setup | {"prompts": max(4000, 100 * count)}


def beyond(bench):
    """Mean latency by nodes and links, and what it becomes when each node is lost once an hour."""
    if not bench.options.costs.exists():
        sys.exit(f"cluster: {bench.options.costs}: no such file; `--part speeds --save-costs` makes it")
    costs = json.loads(bench.options.costs.read_text(encoding="utf-8"))
    tasks = bench.tasks(bench.options.rates)
    for task in tasks:
        task.prompts = task.prompts[:PROMPTS]
    model = bench.model(STREAM, FACTOR)
    expert_bytes = expert_bytes_of(bench, model)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record_traces(bench, model, tasks, folder)
        print(f"{LAYERS} layers of {EXPERTS} experts of {expert_bytes / 2**20:.2f} MiB, {HELD} a node and room for {FREE} more; "
              f"prompts of at most {bench.options.characters} characters, {TOKENS} tokens; mean latency in s", flush=True)
        print(f"{'nodes':>5} {'Mbit/s':>7} {'alone':>7} {'uniform':>8} {'dancemoe':>9} {'local':>6} {'p95':>7}   losses: {'mean':>7} "
              f"{'p95':>7} {'losses':>6} {'again':>6} {'in vain':>8} {'disk':>6}", flush=True)
        for count in bench.options.nodes or NODES:
            for mbps in bench.options.speeds or SPEEDS:
                setup = cluster_of(count, tasks, costs, mbps, expert_bytes)
                alone = simulate(bench, folder, cluster_of(count, tasks, costs, mbps, expert_bytes, HELD + FREE, ()) |
                                 {"serving": "alone"})
                uniform = simulate(bench, folder, setup | {"placement": {"method": "uniform"}})
                calm = simulate(bench, folder, setup)
                lossy = simulate(bench, folder, setup | {"losses": LOSSES})
                asked, loaded = (sum(sum(server[key] for key in keys) for server in lossy["servers"]) for keys in
                                 (("local_calls", "remote_calls", "loaded_calls"), ("loaded_calls",)))
                rows.append({"nodes": count, "mbps": mbps, "alone_s": alone["latency"]["mean_s"],
                             "uniform_s": uniform["latency"]["mean_s"], "calm": calm["latency"], "lossy": lossy["latency"],
                             "local_ratio": calm["local_ratio"], "losses": lossy["losses"],
                             "begun_again": lossy["begun_again"], "unanswered_calls": lossy["unanswered_calls"],
                             "from_disk": loaded / asked})
                print(f"{count:>5} {mbps:>7} {alone['latency']['mean_s']:>7.3f} {uniform['latency']['mean_s']:>8.3f} "
                      f"{calm['latency']['mean_s']:>9.3f} {calm['local_ratio']:>6.1%} {calm['latency']['p95_s']:>7.3f} "
                      f"          {lossy['latency']['mean_s']:>7.3f} {lossy['latency']['p95_s']:>7.3f} {lossy['losses']:>6} "
                      f"{lossy['begun_again']:>6} {lossy['unanswered_calls']:>8} {loaded / asked:>6.2%}", flush=True)
    return rows
