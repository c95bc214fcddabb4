"""The parts `task` and `rates` of bench/endcloud, the paper's task: passes over 256 tokens, four at a time, of which a label comes back. Each way of
answering them beside what the simulator says of it."""
import json
import pathlib
import tempfile

import cluster_net
import endcloud_runs as runs
import endcloud_turns
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
SATURATES = 1.3  # times what the cloud alone answers: queues grow from the beginning
RATES_OF, FLUCTUATIONS = (16, 6), (0.0, 0.4)  # experts and ends
SIMULATED = ("cloud", "end", "auto", "route-aware")


def changed_text(whole, without):
    rows = f", bytes a row {without['row_bytes']:.0f} in place of {whole['row_bytes']:.0f}" if whole["row_bytes"] else ""
    return (f"throughput times {without['per_second'] / whole['per_second']:.2f}, mean latency times {without['over'] / whole['over']:.2f} over "
            f"and {without['below'] / whole['below']:.2f} below the cloud's rate{rows}")


LOSSY = ("cut int8", "cut int8 one chunk", "cut loss", "end with groups")  # all others answer as the cloud alone does


def around_saturation(options, per_second):
    """When requests come, by what a load is called: at 1.3 times what the cloud alone answers, and at 0.52 times."""
    return {"over": runs.arrivals(SATURATES * per_second, options.seconds, 1), "below": runs.arrivals(0.52 * per_second, options.seconds, 2)}


def at_rates(options, per_second):
    del per_second
    return {rate_name(rate): runs.arrivals(rate, options.seconds, 3) for rate in options.rates}


def rate_name(rate):
    return f"{rate:g}/s"


def measure(bench, setting, way, loads, fluctuation):
    """What one way makes of these loads, or of those that a function makes of its own speed where it is the first; and the loads."""
    options, (name, place, more) = bench.options, way
    prose = ROOT / "tests" / "data" / "prose" / "mixed.txt"
    more = [LEARNED[word](options.troupe, setting.model, prose) if word in LEARNED else word for word in more]
    with runs.cloud_and_ends(setting, [place] * setting.ends, more=more) as (cloud, nodes), \
            Fluctuation(setting.machines, options.mbps, fluctuation, 1):
        runs.first_requests(nodes, TOKENS, ANSWER)
        before = runs.both_costs(cloud, nodes[0], TOKENS, BATCH) if name in SIMULATED else None
        seen = {"per_second": runs.saturate(nodes, options.seconds, 3, BATCH, TOKENS, ANSWER), "answers": {}}
        loads = loads(options, seen["per_second"]) if callable(loads) else loads
        for load, times in loads.items():
            counted = [node.metrics() for node in nodes]
            seen[load], seen["answers"][load] = runs.arrive(nodes, times, BATCH, TOKENS, ANSWER, load)
            seen[f"{load}_ran"] = runs.where_it_ran(runs.grown(counted, [node.metrics() for node in nodes]))
        seen.update(runs.where_it_ran([node.metrics() for node in nodes]))
        if before:
            seen["costs"] = runs.middle_costs(before, runs.both_costs(cloud, nodes[0], TOKENS, BATCH))
    return seen, loads


def measure_ways(bench, of, ends, experts, ways, loads, fluctuation):
    """All of them under the same loads; exact ones answer the same."""
    found = {}
    with cluster_net.machines(1 + ends, bench.options.mbps) as machines:
        setting = bench.setting(machines, experts, ends, bench.options.round_trip_ms)
        for way in ways:
            found[way[0]], loads = measure(bench, setting, way, loads, fluctuation)
            print_seen(of, way[0], found[way[0]], loads)
    answers = {name: seen.pop("answers") for name, seen in found.items()}
    other = [name for name in found if name not in LOSSY and answers[name] != answers[ways[0][0]]]
    bench.bar(f"{of}: exact ways with other answers than {ways[0][0]} only", len(other), most=0)
    return found, loads, setting


CALLED = {"over": "at 1.3 times the cloud's rate", "below": "at 0.52 times"}


def print_seen(of, name, seen, loads):
    print(f"{of}, {name}: {seen['per_second']:.2f} requests/s; mean " +
          ", ".join(f"{seen[load]:.3f} s {CALLED.get(load, f'at {load}')}" for load in loads) +
          f"; answers {seen['at_end']:.0f} begun at ends, {seen['in_cloud']:.0f} in the cloud, {seen['cut']:.0f} of these cut; "
          f"tokens {seen['end_tokens']:.0f} chosen at ends, {seen['cloud_tokens']:.0f} in the cloud" + runs.lanes_text(seen) +
          "".join(runs.prediction_text(CALLED.get(load, f"at {load}"), seen[f"{load}_ran"]) for load in loads), flush=True)


def bars(bench, of, found):
    auto, cloud, end = (found[place] for place in ("auto", "cloud", "end"))
    bench.bar(f"{of}: throughput over the sum of cloud and ends", auto["per_second"] / (cloud["per_second"] + end["per_second"]), least=0.9)
    bars_of_saturation(bench, of, "over", found)
    bar_below_saturation(bench, of, "below", found)


def bars_of_saturation(bench, of, load, found):
    bench.bar(f"{of}: mean latency over cloud only's where that is saturated", found["auto"][load] / found["cloud"][load], most=0.33)
    bench.bar(f"{of}: mean latency over end only's there", found["auto"][load] / found["end"][load], most=0.47)


def bar_below_saturation(bench, of, load, found):
    bench.bar(f"{of}: mean latency below saturation over the better one's", found["auto"][load] / min(found["cloud"][load], found["end"][load]),
              most=1.02)


def print_beside_the_paper(of, found, ends):
    auto, cloud, end = (found[place]["per_second"] for place in ("auto", "cloud", "end"))
    print(f"{of}: {auto / cloud:.2f} times cloud only's throughput (the paper: 2.2; cloud and ends added up: {1 + end / cloud:.2f}), "
          f"{auto / end * ends:.2f} times one end's (5.1)", flush=True)


def ways_of(options, wanted):
    return [way for way in TASK_WAYS if wanted is None or way[0] in wanted + ["cloud", "end", "auto"]]


def task(bench):
    options, record = bench.options, []
    for experts in options.experts:
        for ends in options.ends:
            of = f"task, {experts} experts, {ends} ends"
            found, loads, setting = measure_ways(bench, of, ends, experts, ways_of(options, options.ways), around_saturation, options.fluctuation)
            for what, whole, without in ABLATIONS:
                if whole in found and without in found:
                    print(f"ablation: {experts} experts, {ends} ends, {what}: {changed_text(found[whole], found[without])}", flush=True)
            bars(bench, of, found)
            print_beside_the_paper(of, found, ends)
            record.append({"experts": experts, "ends": ends, "simulated": simulate(bench, of, setting, found, loads), **found})
    return record


def rates(bench):
    """The same at some rates, behind links that do not change and that change much."""
    options, record = bench.options, []
    experts, ends = RATES_OF
    for fluctuation in FLUCTUATIONS[-1:] if options.quick else FLUCTUATIONS:
        of = f"rates, links that change by {100 * fluctuation:.0f} %"
        found, loads, setting = measure_ways(bench, of, ends, experts, ways_of(options, []), at_rates, fluctuation)
        for rate in options.rates:
            load = rate_name(rate)
            if rate >= SATURATES * found["cloud"]["per_second"]:
                bars_of_saturation(bench, f"{of}, {load}", load, found)
        record.append({"fluctuation": fluctuation, "simulated": simulate(bench, of, setting, found, loads), **found})
    return record


def turns(bench):
    """The same below saturation, where the ways differ by less than a machine does from one minute to the next."""
    experts, ends = RATES_OF
    return [endcloud_turns.turns_at(bench, (BATCH, TOKENS, ANSWER), experts, ends, rate, fluctuation)
            for fluctuation in bench.options.turn_links for rate in bench.options.turn_rates]


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
