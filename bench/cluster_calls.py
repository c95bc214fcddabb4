"""Parts of bench/cluster about one node that asks others: what it gains over its disk, and what a call costs."""
import random
import statistics
import time

import cluster_net
from cluster_placement import learn, plan_now
from cluster_runs import Loopback, nodes_of, serve, wait_until_settled

EXPERTS = 256  # of the model: 8 layers of 32
TOKENS = 24    # of an answer
BUSY = 192     # experts that each node has memory for where all have users: a cluster can gain little there, and may lose
ROUNDS = 3     # in which alone and together take turns


def two(bench):
    """One node whose experts do not fit beside two that hold them all, against itself alone."""
    model = bench.model(stream=1, factor=64)
    draw = random.Random(1)
    prompts = [draw.choice(task.prompts) for task in bench.tasks([1, 1, 1]) for _ in range(4)]
    rows = []
    for disk in ("256MiB/100us", "1GiB/100us", "4GiB/100us", None):
        figures = {}
        with cluster_net.machines(3, bench.options.mbps) as machines:
            for together in (False, True):
                with nodes_of(machines, bench.troupe, model, [64, EXPERTS, EXPERTS], bench.common(disk), together,
                              bench.options.processors) as nodes:
                    if together:
                        wait_until_settled(nodes)
                    for timed in (False, True):
                        start = time.monotonic()
                        seen = serve(nodes, [(0.0, 0, prompt) for prompt in prompts[:4 if not timed else None]], TOKENS)
                        seconds = time.monotonic() - start
                    assert all(one.text is not None for one in seen), "a request was lost"
                    figures[together] = (len(seen) * TOKENS / seconds, sorted(one.text for one in seen), nodes[0].metrics())
        assert figures[False][1] == figures[True][1], "another answer than alone"
        alone, together = figures[False][0], figures[True][0]
        by_peers = figures[True][2]['troupe_peer_experts_total{by="peer"}']
        rows.append((disk or "the machine's own", alone, together, by_peers))
        print(f"disk {disk or 'own'}: alone {alone:.1f} tokens/s, together {together:.1f}, {by_peers:.0f} experts by peers",
              flush=True)
        bench.bar(f"together over alone, disk {disk or 'own'}", together / alone,
                  least=2 if disk and disk.startswith("1GiB") else 0.97)
    return rows


def busy(bench):
    """Three nodes that are busy with their own users and miss a fourth of their experts: all alone, and together by a plan for these
    users, in turns."""
    tasks, rows = bench.tasks([1, 1, 1]), []
    requests = [(0.0, i, prompt) for i, task in enumerate(tasks) for prompt in task.prompts[:12]]
    for disk in ("1GiB/100us", None):
        speeds, texts, rested = {False: [], True: []}, None, 0.0
        for number in range(1 if bench.options.quick else ROUNDS):
            for together in (False, True) if number % 2 == 0 else (True, False):
                with cluster_net.machines(3, bench.options.mbps) as machines, \
                        nodes_of(machines, bench.troupe, bench.model(16, 1), [BUSY] * 3, bench.common(disk), together,
                                 bench.options.processors) as nodes:
                    if together:
                        learn(nodes, requests, lambda: plan_now(nodes[0]))
                    for wanted in (requests, requests):  # the first ones fill caches, and measure peers
                        start = time.monotonic()
                        seen = serve(nodes, wanted, TOKENS)
                        seconds = time.monotonic() - start
                    said = [one.text for one in sorted(seen, key=lambda one: one.task)]
                    assert None not in said, "a request was lost"
                    texts = texts or sorted(said)
                    assert sorted(said) == texts, "other answers"
                    speeds[together].append(len(seen) * TOKENS / seconds)
                    if together:
                        rested += sum(node.metrics()['troupe_cluster_layers_total{how="rested"}'] for node in nodes)
        alone, together = (statistics.median(speeds[way]) for way in (False, True))
        rows.append((disk or "the machine's own", alone, together, rested))
        print(f"busy, disk {disk or 'own'}: alone {', '.join(f'{one:.0f}' for one in speeds[False])} tokens/s, together "
              f"{', '.join(f'{one:.0f}' for one in speeds[True])}; {rested:.0f} layers did not ask as that costs more", flush=True)
        bench.bar(f"busy: together over alone, disk {disk or 'own'}", together / alone, least=0.97)
    return rows


def calls(bench):
    """What a call of one row takes beyond the peer's computing, over this machine's loopback, one request at a time."""
    rows = []
    for stream, factor in ((1, 1), (1, 64), (16, 1)):
        with nodes_of(Loopback(2), bench.troupe, bench.model(stream, factor), [16, EXPERTS], bench.common("16MiB/5ms")) as nodes:
            wait_until_settled(nodes)
            prompt = bench.tasks([1, 1, 1])[0].prompts[0][:40]
            for timed in (False, True):
                before = nodes[0].metrics()
                assert serve(nodes, [(0.0, 0, prompt)], 200)[0].text is not None, "a request was lost"
                after = nodes[0].metrics()

        def grown(key):
            return after[key] - before[key]
        count = grown("troupe_peer_calls_answered_total")
        way, waited, computed = (1e6 * grown(f'troupe_peer_call_seconds_total{{part="{part}"}}') / count
                                 for part in ("way", "waited", "computed"))
        width = 256 * stream
        rows.append((width, factor, count, way, waited, computed))
        print(f"rows of {width}, experts {factor} times as wide: {count:.0f} calls, way {way:.0f} us, waited {waited:.0f} us, "
              f"computed {computed:.0f} us", flush=True)
    bench.bar("us of a call beyond computing, smallest rows", rows[0][3] + rows[0][4], most=60)
    return rows
