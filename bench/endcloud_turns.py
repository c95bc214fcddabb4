"""The part `turns` of bench/endcloud: requests below saturation to ends that ask the cloud only and to ends that choose places, beside one cloud
and in turns, so that a machine that becomes slower for some seconds is slower for both; and by how much the means differ, with its interval."""
import random
import statistics

import cluster_net
import endcloud_runs as runs
from endcloud_net import Fluctuation

PLAIN, CHOOSING = "cloud", "auto"
IDLE = 0.6  # seconds without an arrival, after which the cloud has answered all that came before
SATURATED = 6  # seconds, in which ends see what a busy cloud takes
TRIES = 4  # prompts by which each end learns what a cut takes: of that nobody is to wait in what is timed


def bursts(times, idle=IDLE):
    """The arrivals between two pauses, by the time since the first of each."""
    found = []
    for before, at in zip([None, *times], times):
        if before is None or at - before > idle:
            found.append([])
            first = at
        found[-1].append(at - first)
    return found


def ratio_of_means(pairs, draws=2000):
    """The mean of the second seconds over that of the first, and the interval in which it is in 95 of 100 cases: bursts are drawn anew,
    as requests of one are not independent."""
    def ratio(of):
        return statistics.fmean(pair[1] for burst in of for pair in burst) / statistics.fmean(pair[0] for burst in of for pair in burst)
    draw = random.Random(1)
    drawn = sorted(ratio(draw.choices(pairs, k=len(pairs))) for _ in range(draws))
    return ratio(pairs), drawn[round(0.025 * draws)], drawn[round(0.975 * draws) - 1]


def turned(ends, by):
    return ends[by % len(ends):] + ends[:by % len(ends)]


def answer_in_turns(ends, times, batch, tokens, answer):
    """Of each burst the pairs of seconds, in the order of `ends`, and whether all answered the same. `ends`: of each way."""
    pairs, same, asked = [], True, 0
    for number, burst in enumerate(bursts(times)):
        seen = {}
        for way in runs.in_turn(list(ends), number):
            # By its salt: nobody finds in the cloud what it has read for the other way.
            seen[way] = runs.arrive_each(turned(ends[way], asked), burst, batch, tokens, answer, f"turns {number}", salt=way)
        asked += len(burst)
        first, second = (seen[way] for way in ends)
        pairs.append([(one[0], other[0]) for one, other in zip(first, second)])
        same &= [answers for _, answers in first] == [answers for _, answers in second]
    return pairs, same


def turns_at(bench, shape, experts, ends_of_each, rate, fluctuation):
    """`shape`: prompts of a request, their tokens, and those of an answer."""
    options, (batch, tokens, answer) = bench.options, shape
    times = runs.arrivals(rate, options.requests / rate, 3)
    with cluster_net.machines(1 + 2 * ends_of_each, options.mbps) as machines:
        setting = bench.setting(machines, experts, ends_of_each, options.round_trip_ms)
        with runs.cloud_and_ends(setting, [PLAIN] * ends_of_each + [CHOOSING] * ends_of_each) as (_, nodes), \
                Fluctuation(machines, options.mbps, fluctuation, 1):
            ends = {PLAIN: nodes[:ends_of_each], CHOOSING: nodes[ends_of_each:]}
            runs.first_requests(nodes, tokens, answer)
            runs.saturate(ends[CHOOSING], SATURATED, 3, batch, tokens, answer)
            for number in range(TRIES * ends_of_each):
                runs.arrive_each(turned(ends[CHOOSING], number), [0.0], 1, tokens, answer, f"tries {number}")
            before = [node.metrics() for node in ends[CHOOSING]]
            pairs, same = answer_in_turns(ends, times, batch, tokens, answer)
            ran = runs.where_it_ran(runs.grown(before, [node.metrics() for node in ends[CHOOSING]]))
    plain, choosing = (statistics.fmean(pair[i] for burst in pairs for pair in burst) for i in (0, 1))
    ratio, low, high = ratio_of_means(pairs)
    of = f"turns, links that change by {100 * fluctuation:.0f} %, {rate:g}/s"
    print(f"{of}: mean {plain:.3f} s of {PLAIN} only, {choosing:.3f} s of {CHOOSING}; ratio {ratio:.3f}, in 95 of 100 cases {low:.3f} to {high:.3f}, of "
          f"{len(times)} requests each in {len(pairs)} bursts; of {CHOOSING} {ran['at_end']:.0f} answers begun at ends, {ran['in_cloud']:.0f} in the cloud"
          + runs.prediction_text("there", ran), flush=True)
    bench.bar(f"{of}: answers that differ", int(not same), most=0)
    bench.bar(f"{of}: mean latency below saturation over cloud only's", ratio, most=1.02)
    return {"rate": rate, "fluctuation": fluctuation, "pairs": pairs, "ratio": ratio, "low": low, "high": high, "ran": ran}
