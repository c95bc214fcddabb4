"""What bench/endcloud runs: one cloud, some ends, their users, and what the users saw."""
import asyncio
import contextlib
import dataclasses
import json
import pathlib
import random
import statistics
import subprocess
import time

import cluster_net
from cluster_runs import HTTP_PORT, Node, ask, mean
from endcloud_net import Delay
from processors import Confined, Processors

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLOUD = 0  # its machine; the ends are those after it
CONTEXT = 512
PASS_ROWS = 512  # of a pass at most, as --chunk is if nobody says more


@dataclasses.dataclass
class Setting:
    """What stays the same within a comparison."""
    troupe: str
    model: str
    machines: object
    ends: int
    cloud_processors: float
    end_processors: float
    end_slots: int
    round_trip_ms: float


@contextlib.contextmanager
def cloud_and_ends(setting, places, cloud_parallel=8, end_parallel=4, more=()):
    """A cloud and an end for each of these rules by which places are chosen; the ends are told more."""
    common = ["--ctx", CONTEXT, "--threads", 1, "--queue", 500]
    processors, nodes, relay = [], [], None
    try:
        processors.append(Processors("cloud", setting.cloud_processors))
        cloud = Node(Confined(setting.machines, processors[0]), CLOUD, setting.troupe, setting.model,
                     [*common, "--for-ends", "--parallel", cloud_parallel])
        nodes.append(cloud)
        relay = Delay(cluster_net.HOST, (setting.machines.address(CLOUD), HTTP_PORT), setting.round_trip_ms)
        for i, place in enumerate(places):
            processors.append(Processors(f"end{i}", setting.end_processors))
            nodes.append(Node(Confined(setting.machines, processors[-1]), 1 + i, setting.troupe, setting.model,
                              [*common, "--slots", setting.end_slots, "--parallel", end_parallel, "--cloud", relay.address,
                               "--place", place, *more]))
        for end in nodes[1:]:
            give_up = time.monotonic() + 60
            while end.metrics()["troupe_split_cloud"] != 1:
                if time.monotonic() > give_up:
                    raise SystemExit("endcloud: an end has not found its cloud")
                time.sleep(0.05)
        yield cloud, nodes[1:]
    finally:
        for node in reversed(nodes):
            node.end()
        if relay is not None:
            relay.close()
        for group in processors:
            group.close()


def prompt_of(draw, tokens):
    return [draw.randrange(3, 2000) for _ in range(tokens)]


def text_of(draw):
    text = (ROOT / "docs" / "design" / "placement.md").read_text()
    begin = draw.randrange(len(text) - 300)
    return text[begin:begin + 300]


def body(prompts, tokens):
    return {"prompt": prompts, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}


def first_requests(ends, prompt_tokens, answer_tokens):
    """What ends are asked before anything is timed: caches fill, and ends that choose places see some answers."""
    draw = random.Random("warm")

    async def warm():
        for _ in range(6):
            await asyncio.gather(*(ask(end.base, body(prompt_of(draw, prompt_tokens), max(answer_tokens, 4))) for end in ends))
    asyncio.run(warm())


def engine_costs(machine, prompt_tokens, batch, here):
    """What a pass and a row of it take on a machine that nobody else uses, in ms, of a prompt alone and of some together. Where a
    machine would ask another one, `here` has it answer itself."""
    draw = random.Random("costs")
    more = {"logprobs": 1} if here else {}

    async def took(prompts):
        seconds = []
        for _ in range(9):
            _, whole, text = await ask(machine.base, {**body([prompt_of(draw, prompt_tokens) for _ in range(prompts)], 1), **more})
            assert text is not None, "an answer was lost"
            seconds.append(whole)
        return statistics.median(seconds[2:])  # the first ones fill caches

    async def both():
        return await took(1), await took(batch)
    one, all_of_them = asyncio.run(both())
    passes = -(-batch * prompt_tokens // PASS_ROWS)
    assert passes < batch, "some prompts share a pass, or a pass and its rows cannot be told apart"
    row = (all_of_them - passes * one) / (prompt_tokens * (batch - passes))
    row = min(max(row, 2e-6), all_of_them / (prompt_tokens * batch))
    return {"pass_ms": 1000 * max(0.0, one - prompt_tokens * row), "row_ms": 1000 * row}


def both_costs(cloud, end, prompt_tokens, batch):
    return {"cloud": engine_costs(cloud, prompt_tokens, batch, here=False), "end": engine_costs(end, prompt_tokens, batch, here=True)}


def middle_costs(before, after):
    """Of what was measured before a load and after it: machines become slower and faster by some per cent within minutes."""
    return {side: {what: (before[side][what] + after[side][what]) / 2 for what in before[side]} for side in before}


def costs_text(costs):
    return ", ".join(f"{side} {of['pass_ms']:.1f} ms a pass and {of['row_ms']:.3f} a row" for side, of in costs.items())


def predicted(troupe, costs, setting, place, load):
    """What `troupe simulate-ends` says of a load: seconds of a request on average, and requests a second."""
    options = ["--ends", setting.ends, "--round-trip-ms", setting.round_trip_ms, "--one-key", "--place", place]
    for side in ("end", "cloud"):
        options += [f"--{side}-pass-cost-ms", costs[side]["pass_ms"], f"--{side}-row-cost-ms", costs[side]["row_ms"]]
    done = subprocess.run([str(word) for word in [troupe, "simulate-ends", *options, *load, "--json", "-"]], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


async def answers_of(node, wanted):
    """The answers to the prompts of one request, in their order."""
    texts = [""] * len(wanted["prompt"])

    def came(choice):
        texts[choice["index"]] += choice["text"]
    _, _, finished = await ask(node.base, wanted, choice_came=came)
    assert finished is not None, "an answer was lost or refused"
    return texts


def saturate(ends, seconds, together, batch, prompt_tokens, answer_tokens, seed=1):
    """Requests a second that are answered where each end always has `together` of them under way."""
    done = []

    async def user(end, draw, start):
        while time.monotonic() - start < seconds:
            _, _, text = await ask(end.base, body([prompt_of(draw, prompt_tokens) for _ in range(batch)], answer_tokens))
            assert text is not None, "an answer was lost or refused"
            done.append(time.monotonic() - start)

    async def run():
        start = time.monotonic()
        await asyncio.gather(*(user(end, random.Random(f"{seed} {i} {k}"), start)
                               for i, end in enumerate(ends) for k in range(together)))
    asyncio.run(run())
    # What ends after the time was begun within it: the rate is that of the middle part.
    first, last = seconds * 0.2, seconds
    return sum(first < at <= last for at in done) / (last - first)


def arrivals(per_second, seconds, seed):
    """The times of a Poisson process."""
    draw, at, times = random.Random(seed), 0.0, []
    while (at := at + draw.expovariate(per_second)) < seconds:
        times.append(at)
    return times


def arrive_each(ends, times, batch, prompt_tokens, answer_tokens, seed, salt=None):
    """Of arrivals at these times shared among the ends, each: seconds from its arrival to its end, and what was answered."""
    draw = random.Random(f"prompts {seed}")

    async def one(at, end, prompts, start):
        await asyncio.sleep(max(0.0, start + at - time.monotonic()))
        answers = await answers_of(end, {**body(prompts, answer_tokens), **({"cache_salt": salt} if salt else {})})
        return time.monotonic() - start - at, answers

    async def run():
        start = time.monotonic()
        return await asyncio.gather(*(one(at, ends[i % len(ends)], [prompt_of(draw, prompt_tokens) for _ in range(batch)], start)
                                      for i, at in enumerate(times)))
    return asyncio.run(run())


def arrive(ends, times, batch, prompt_tokens, answer_tokens, seed):
    """The same: seconds on average, and what was answered."""
    seen = arrive_each(ends, times, batch, prompt_tokens, answer_tokens, seed)
    return mean(seconds for seconds, _ in seen), [answers for _, answers in seen]


def grown(before, after):
    return [{name: value - old.get(name, 0.0) for name, value in new.items()} for new, old in zip(after, before)]


def where_it_ran(metrics):
    """Of some ends, by their metrics: answers by place, those whose prompts were cut, and how the lanes of these were used."""
    def total(name):
        return sum(of.get(name, 0.0) for of in metrics)
    seen = {"at_end": total('troupe_split_answers_total{place="end"}'), "in_cloud": total('troupe_split_answers_total{place="cloud"}'),
            "cut": total('troupe_split_cut_prompts_total{state="answered"}'), "not_cut": total('troupe_split_cut_prompts_total{state="failed"}')}
    seen |= {f"{place}_tokens": total(f'troupe_split_tokens_total{{place="{place}"}}') for place in ("end", "cloud")}
    for way in ("end", "cloud", "cut", "drafts"):
        answers, said, took = (total(f'troupe_split_{name}_total{{way="{way}"}}')
                               for name in ("predicted_answers", "predicted_seconds", "predicted_took_seconds"))
        seen[f"{way}_predicted"] = (answers, said / answers, took / answers) if answers else None
    seen["moved"] = total('troupe_split_moved_total{place="end"}') + total('troupe_split_moved_total{place="cloud"}')
    rows = sum(total(f'troupe_split_cut_rows_total{{code="{code}"}}') for code in ("exact", "lossy"))
    seen["row_bytes"] = total("troupe_split_cut_bytes_total") / rows if rows else 0.0
    for lane in ("end", "link", "cloud"):
        busy, idle = (total(f'troupe_split_cut_lane_seconds_total{{lane="{lane}",state="{state}"}}') for state in ("busy", "idle"))
        seen[f"{lane}_busy"] = busy / (busy + idle) if busy + idle else 0.0
    return seen


def lanes_text(seen):
    if not seen["cut"]:
        return ""
    return "; while prompts were cut " + ", ".join(f"{lane} {100 * seen[f'{lane}_busy']:.0f} %" for lane in ("end", "link", "cloud")) + " busy"


def prediction_text(when, seen):
    said = [f"{way} {said[1]:.2f} and {said[2]:.2f} ({said[0]:.0f})" for way in ("end", "cloud", "cut", "drafts") if (said := seen[f"{way}_predicted"])]
    return f"; {when}: {seen['moved']:.0f} answers moved; seconds predicted and measured: " + ", ".join(said) if said else ""


@dataclasses.dataclass
class Chat:
    """An answer of one user, or medians of some: seconds to the first token, between tokens, and in all."""
    first: float
    between: float
    whole: float
    places: str = ""  # tokens, by where they were chosen, and what became of drafts


def places_of(metrics):
    chosen = {place: metrics[f'troupe_split_tokens_total{{place="{place}"}}'] for place in ("end", "cloud")}
    drafts = {state: metrics[f'troupe_split_draft_tokens_total{{state="{state}"}}'] for state in ("guessed", "late", "checked", "right")}
    learned, expected, took = (metrics.get(f"troupe_split_draft_{what}_total", 0.0) for what in ("learned", "expected_seconds", "took_seconds"))
    return (f"{chosen['end']:.0f} tokens at the end, {chosen['cloud']:.0f} in the cloud; drafts: {drafts['guessed']:.0f} guessed, "
            f"{drafts['late']:.0f} of these late, {drafts['checked']:.0f} checked, {drafts['right']:.0f} right"
            + (f"; with drafts {expected:.2f} s expected and {took:.2f} s taken ({learned:.0f} answers)" if learned else ""))


def in_turn(ways, number):
    """Their order in that round: a machine that becomes slower or faster favours none of them."""
    return ways if number % 2 == 0 else ways[::-1]


def medians(seen):
    """Of answers; what their ends counted last."""
    return Chat(*(statistics.median(getattr(one, name) for one in seen) for name in ("first", "between", "whole")), places=seen[-1].places)


def chat(ends, answers, prompt_tokens, answer_tokens, cloud, load, seed):
    """The answers of the users of some ends, by name, who ask for the same in turns, so that one answer is under way at a time, while
    `load` others keep the cloud busy. Without a number of prompt tokens they ask for texts to go on."""
    def prompt(draw):
        return text_of(draw) if prompt_tokens is None else prompt_of(draw, prompt_tokens)
    over = asyncio.Event()
    seen = {name: [] for name in ends}
    draw_user = random.Random(f"chat {seed}")

    async def other(draw):
        while not over.is_set():
            await ask(cloud.base, body(prompt(draw), answer_tokens))

    async def users():
        if load:
            await asyncio.sleep(3)
        for number in range(answers):
            wanted = body(prompt(draw_user), answer_tokens)
            for name in in_turn(list(ends), number):
                # By its salt: nobody finds in the cloud what it has read for another way.
                first, whole, text = await ask(ends[name].base, {**wanted, "cache_salt": name})
                assert text is not None, "an answer was lost"
                seen[name].append(Chat(first, (whole - first) / (answer_tokens - 1), whole))
        over.set()

    async def run():
        await asyncio.gather(users(), *(other(random.Random(f"load {i}")) for i in range(load)))
    asyncio.run(run())
    for name, end in ends.items():
        seen[name][-1].places = places_of(end.metrics())
    return seen
