"""The part `task` of bench/endcloud, the paper's: passes over 256 tokens, four at a time, of which a label comes back. Each way of
answering them beside what the simulator says of it."""
import json
import pathlib
import tempfile

import cluster_net
import endcloud_runs as runs
from endcloud_net import Fluctuation, gate_of_groups, limit_of_loss

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, TOKENS, ANSWER = 4, 256, 1  # prompts of a request, their tokens, and what comes back of each
# What an option is given is learned of a text where a way needs it.
GATE, LOSS = "the gate's file", "a limit of loss"
# A name, where answers are chosen, and what the ends are told besides. The cut is in the middle of the six layers.
TASK_WAYS = [("cloud", "cloud", []), ("end", "end", []), ("cut", "layers:3", []), ("cut one chunk", "layers:3", ["--cut-chunk", 256]),
             ("cut int8", "layers:3", ["--cut-code", "int8"]),
             ("cut int8 one chunk", "layers:3", ["--cut-code", "int8", "--cut-chunk", 256]), ("cut loss", "layers:3", ["--cut-loss", LOSS]),
             ("end with groups", "end", ["--gate", "groups", "--group-gate", GATE]),
             ("auto", "auto", []), ("route-aware", "route-aware", [])]
# What is taken away, from which way, and what is left. Answers beside a cloud are exact, so the gate of groups, which is not, cannot be
# a part of a cut.
ABLATIONS = [("without the pipeline", "cut int8", "cut int8 one chunk"), ("without the codec", "cut int8", "cut"),
             ("without the codec that loses 1 % at most, where it is sooner", "cut loss", "cut"),
             ("without the gate of groups", "end with groups", "end")]
LEARNED = {GATE: gate_of_groups, LOSS: limit_of_loss}
SIMULATED = ("cloud", "end", "auto", "route-aware")


def changed_text(whole, without):
    rows = f", bytes a row {without['row_bytes']:.0f} in place of {whole['row_bytes']:.0f}" if whole["row_bytes"] else ""
    return (f"throughput times {without['per_second'] / whole['per_second']:.2f}, mean latency times {without['over'] / whole['over']:.2f} over "
            f"and {without['below'] / whole['below']:.2f} below the cloud's rate{rows}")


def loads_of(options, per_second):
    """When requests come, by what a load is called: at 1.3 times what the cloud alone answers, at 0.52 times, and at the rates asked for."""
    return {"over": runs.arrivals(1.3 * per_second, options.seconds, 1), "below": runs.arrivals(0.52 * per_second, options.seconds, 2),
            **{f"{rate:g}/s": runs.arrivals(rate, options.seconds, 3) for rate in options.rates}}


def grown(before, after):
    return [{name: value - old.get(name, 0.0) for name, value in new.items()} for new, old in zip(after, before)]


def measure(bench, setting, way, loads):
    """What one way makes of these loads, or of those that follow from its own speed where it is the first; and the loads."""
    options, (name, place, more) = bench.options, way
    prose = ROOT / "tests" / "data" / "prose" / "mixed.txt"
    more = [LEARNED[word](options.troupe, setting.model, prose) if word in LEARNED else word for word in more]
    with runs.cloud_and_ends(setting, [place] * setting.ends, more=more) as (cloud, nodes), \
            Fluctuation(setting.machines, options.mbps, options.fluctuation, 1):
        runs.measure_both(nodes, TOKENS, ANSWER)
        before = runs.both_costs(cloud, nodes[0], TOKENS, BATCH) if name in SIMULATED else None
        seen = {"per_second": runs.saturate(nodes, options.seconds, 3, BATCH, TOKENS, ANSWER)}
        loads = loads or loads_of(options, seen["per_second"])
        for load, times in loads.items():
            counted = [node.metrics() for node in nodes]
            seen[load] = runs.arrive(nodes, times, BATCH, TOKENS, ANSWER, load)
            seen[f"{load}_ran"] = runs.where_it_ran(grown(counted, [node.metrics() for node in nodes]))
        seen.update(runs.where_it_ran([node.metrics() for node in nodes]))
        if before:
            seen["costs"] = runs.middle_costs(before, runs.both_costs(cloud, nodes[0], TOKENS, BATCH))
    return seen, loads


def print_seen(what, seen, rates):
    print(f"task: {what}: {seen['per_second']:.2f} requests/s, mean {seen['over']:.3f} s at 1.3 times the cloud's rate, "
          f"{seen['below']:.3f} s at 0.52" + "".join(f", {seen[f'{rate:g}/s']:.3f} s at {rate:g}/s" for rate in rates) +
          f"; answers {seen['at_end']:.0f} begun at ends, {seen['in_cloud']:.0f} in the cloud, {seen['cut']:.0f} of these cut; "
          f"tokens {seen['end_tokens']:.0f} chosen at ends, {seen['cloud_tokens']:.0f} in the cloud"
          + runs.lanes_text(seen) + runs.prediction_text("at 1.3", seen["over_ran"])
          + runs.prediction_text("at 0.52", seen["below_ran"]), flush=True)


def bars(bench, of, found):
    auto, cloud, end = (found[place] for place in ("auto", "cloud", "end"))
    bench.bar(f"{of}: throughput over the sum of cloud and ends", auto["per_second"] / (cloud["per_second"] + end["per_second"]), least=0.9)
    bench.bar(f"{of}: mean latency over cloud only's where that is saturated", auto["over"] / cloud["over"], most=0.33)
    bench.bar(f"{of}: mean latency over end only's there", auto["over"] / end["over"], most=0.47)
    bench.bar(f"{of}: mean latency below saturation over the better one's", auto["below"] / min(cloud["below"], end["below"]), most=1.02)
    for rate in bench.options.rates:
        load = f"{rate:g}/s"
        if rate > cloud["per_second"]:
            bench.bar(f"{of}, {load}: mean latency over cloud only's", auto[load] / cloud[load], most=0.33)
        else:
            bench.bar(f"{of}, {load}: mean latency over the better one's", auto[load] / min(cloud[load], end[load]), most=1.02)


def print_beside_the_paper(of, found, ends):
    auto, cloud, end = (found[place]["per_second"] for place in ("auto", "cloud", "end"))
    print(f"{of}: {auto / cloud:.2f} times cloud only's throughput (the paper: 2.2; cloud and ends added up: {1 + end / cloud:.2f}), "
          f"{auto / end * ends:.2f} times one end's (5.1)", flush=True)


def task(bench):
    options, record = bench.options, []
    ways = [way for way in TASK_WAYS if options.ways is None or way[0] in options.ways + ["cloud", "end", "auto"]]
    for experts in options.experts:
        for ends in options.ends:
            of, found, loads = f"task, {experts} experts, {ends} ends", {}, None
            with cluster_net.machines(1 + ends, options.mbps) as machines:
                setting = bench.setting(machines, experts, ends, options.round_trip_ms)
                for way in ways:
                    found[way[0]], loads = measure(bench, setting, way, loads)
                    print_seen(f"{experts} experts, {ends} ends, {way[0]}", found[way[0]], options.rates)
            for what, whole, without in ABLATIONS:
                if whole in found and without in found:
                    print(f"ablation: {experts} experts, {ends} ends, {what}: {changed_text(found[whole], found[without])}", flush=True)
            bars(bench, of, found)
            print_beside_the_paper(of, found, ends)
            record.append({"experts": experts, "ends": ends, "simulated": simulate(bench, of, setting, found, loads), **found})
    return record


def simulated_latency(bench, setting, costs, place, times):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as requests:
        requests.writelines(json.dumps({"timestamp": 1000 * time, "input_length": TOKENS, "output_length": ANSWER}) + "\n" for time in times)
        requests.flush()
        return runs.predicted(bench.options.troupe, costs, setting, place, ["--prompts", BATCH, "--requests", requests.name])["latency_s"]["mean"]


def simulate(bench, of, setting, found, loads):
    """What the simulator says of the same loads, by what a pass takes on these machines, and how far off it is."""
    said = {}
    together = ["--prompts", BATCH, "--prompt", TOKENS, "--answer", ANSWER, "--seconds", bench.options.seconds, "--together", 3]
    for place in (place for place in SIMULATED if place in found):
        costs = found[place]["costs"]
        said[place] = {"per_second": runs.predicted(bench.options.troupe, costs, setting, place, together)["requests_per_s"],
                       **{load: simulated_latency(bench, setting, costs, place, times) for load, times in loads.items()}}
        errors = {what: value / found[place][what] - 1 for what, value in said[place].items()}
        print(f"simulated: {place}: " + ", ".join(f"{value:.3f} {what} ({100 * errors[what]:+.0f} %)" for what, value in said[place].items())
              + f"; {runs.costs_text(costs)}", flush=True)
        bench.bar(f"{of}, {place}: worst error of the simulator", max(map(abs, errors.values())), most=0.2)
    return said
