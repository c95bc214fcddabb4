"""The runs of bench/answers that ask servers: `loop`, where one model generates its answers with some of its experts in memory,
and `ends`, where an end and a cloud have one model, and each token is a request of its own, so that its prompt can be cut by layers
and its rows cross by a lossy code.
"""
import asyncio
import contextlib
import json
import urllib.request

import answers_runs
from cluster_runs import HTTP_PORT, KEY, Loopback, Node, wait_until
from endcloud_net import Delay

CUT = 3  # before this layer, of six
CLOUD, END = 0, 1
CODES = ("int8", "int4", "96:int8", "64:int8", "32:int8")
MOST_LOSS = 1  # % of perplexity, of --cut-loss


class Narrow(Delay):
    """A relay on this machine that hands on at most this many Mbit/s each way, of each connection."""

    def __init__(self, host, target, mbps):
        self.second_a_byte = 8 / (mbps * 1e6)
        super().__init__(host, target, 0)

    async def carry(self, reader, writer):
        try:
            while data := await reader.read(1024):
                await asyncio.sleep(len(data) * self.second_a_byte)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


def _complete(node, text, tokens):
    body = json.dumps({"prompt": text, "max_tokens": tokens, "temperature": 0}).encode()
    request = urllib.request.Request(node.base + "/v1/completions", body, {"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())["choices"][0]["text"]


def _grown(before, after, name):
    return after.get(name, 0.0) - before.get(name, 0.0)


def loop(bench, items):
    """With half of the experts in memory: the prompt is exact, and what follows is not. Each symbol of an answer is one token."""
    rows = {}
    for name in ("exact", *answers_runs.GENERATED):
        bench.say(f"generating, {name}")
        chain = ["--substitute", answers_runs.CHAINS[name]] if name != "exact" else []
        node = Node(Loopback(1), 0, bench.binary, bench.model, ["--ctx", 128, "--threads", 1, "--slots", bench.slots(50),
                                                                "--predict", "none", *answers_runs.FILLED, *chain])
        try:
            before = node.metrics()
            right = {exercise: [answers_runs.is_answer(_complete(node, given, len(answer.split())), answer)
                                for given, answer in answers_runs.questions(exercise, items)] for exercise in bench.names}
            after = node.metrics()
        finally:
            node.end()
        changed = {kind: _grown(before, after, f'troupe_inexact_total{{kind="{kind}"}}') for kind in ("substituted", "dropped", "low_copy")}
        rows[name] = {"right": right, **changed, "note": f"{sum(changed.values()):.0f}"}
    return {"chance": {name: answers_runs.chance(name) for name in bench.names}, "last": "uses changed", "rows": {"50": rows}}


@contextlib.contextmanager
def _pair(bench, mbps, place, more=()):
    common, machines = ["--ctx", 128, "--threads", 1], Loopback(2)
    cloud = Node(machines, CLOUD, bench.binary, bench.model, [*common, "--for-ends"])
    end, link = None, None
    try:
        if mbps:
            link = Narrow(machines.address(CLOUD), (machines.address(CLOUD), HTTP_PORT), mbps)
        end = Node(machines, END, bench.binary, bench.model, [*common, "--slots", bench.slots(50), "--cloud",
                                                              link.address if link else cloud.base, "--place", place, *more])
        wait_until(lambda: end.metrics()["troupe_split_cloud"] == 1, "the end's cloud")
        yield end
    finally:
        for node in (end, cloud):
            if node is not None:
                node.end()
        if link is not None:
            link.close()


def _answered(end, given, answer):
    """Each token by a request of its own; ends with the first word that is not the answer's."""
    said = ""
    while len(said.split()) <= len(answer.split()) and not answers_runs.is_answer(said, answer):
        token = _complete(end, given + said, 1)
        if not token or not f" {answer} ".startswith(said + token):
            return False
        said += token
    return answers_runs.is_answer(said, answer)


def _asked(bench, mbps, items, place, more=()):
    with _pair(bench, mbps, place, more) as end:
        before = end.metrics()
        right = {name: [_answered(end, given, answer) for given, answer in answers_runs.questions(name, items)] for name in bench.names}
        after = end.metrics()
    def grown(name):
        return _grown(before, after, name)
    rows = {code: grown(f'troupe_split_cut_rows_total{{code="{code}"}}') for code in ("exact", "lossy")}
    crossed = sum(rows.values())
    bytes_a_row = grown("troupe_split_cut_bytes_total") / crossed if crossed else 0.0
    return {"right": right, "rows": rows, "bytes_a_row": bytes_a_row, "cut": grown('troupe_split_cut_prompts_total{state="answered"}'),
            "not_cut": grown('troupe_split_cut_prompts_total{state="failed"}'),
            "note": f"{rows['exact']:.0f} and {rows['lossy']:.0f} of {bytes_a_row:.0f} bytes" if crossed else "no rows"}


def ends(bench, items, mbps):
    bench.fit_cut(CUT)
    ways = {"cloud only": ("cloud", [], {"exact": True}), "end only": ("end", [], {"exact": True}),
            "cut, floats": (f"layers:{CUT}", [], {"exact": True}),
            f"cut, --cut-loss {MOST_LOSS}": (f"layers:{CUT}", ["--cut-loss", MOST_LOSS], {"held": True}),
            **{f"cut, {code}": (f"layers:{CUT}", ["--cut-code", code], {"held": code == "int8"}) for code in CODES}}
    rows = {}
    for name, (place, more, bar) in ways.items():
        bench.say(f"asking an end, {name}")
        rows[name] = {**_asked(bench, mbps, items, place, more), **bar}
    return {"chance": {name: answers_runs.chance(name) for name in bench.names}, "last": "rows exact and lossy",
            "rows": {f"a link of {mbps:g} Mbit/s" if mbps else "loopback": rows}}
