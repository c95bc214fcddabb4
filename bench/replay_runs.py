"""What bench/replay runs, and the bars its figures are held to. Knows no tables."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import typing

import measured_run
import replay_echo
import troupe_commands

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
DEEPSEEK = "routing/deepseek-v2-lite-esft"
# name, recording, and what an expert of the model weighs in 4-bit K-quants or as published
TRACES = (("intent", f"{DEEPSEEK}/intent.meta.json", 4_866_048),
          ("law", f"{DEEPSEEK}/law.meta.json", 4_866_048),
          ("summary", f"{DEEPSEEK}/summary.meta.json", 4_866_048),
          ("gpt-oss-20b", "routing/gpt-oss-20b-mmlu/trace.meta.json", 13_219_200))
LIVE_POLICIES = ("lru", "lfu", "arc", "echo", "score")
DEFAULT_POLICY, SIMPLE = "echo", ("lru", "lfu")
BEATEN = (*SIMPLE, "arc")  # none of them hits more often than the default policy with the same slots, shared alike
FLOOR = "floor"  # one pool, in which a layer keeps some of an even share
SHARINGS = {"layer": "a share for each layer", "global": "one pool", FLOOR: "one pool with a floor"}
FLOORS = (25, 50, 75)  # % of an even share; which of them a trace gets is chosen on the others
LEAST_CLOSED = 0.40  # of the gap from the better of LRU and LFU, shared as suits them best, to the optimum, by the default policy
WORST_LAYERS = 3  # that a missed bar names
CLOSED_AT = (25, 50, 75)  # % of the experts in memory
LEAST_USES_PER_S = 5e6
MOST_GROWTH = 16 * 2**20  # of the peak, over a trace many times as long


class Runner:
    def __init__(self, build, data, folder):
        self._troupe = pathlib.Path(build) / "tools/troupe/troupe"
        self.commands = troupe_commands.Commands(self._troupe)
        self._build = pathlib.Path(build)
        self._folder = folder
        for name, meta, expert_bytes in TRACES:
            self.commands.run("trace", "convert", data / meta, "-o", self.trace(name), "--expert-bytes", expert_bytes)

    def trace(self, name):
        return self._folder / f"{name}.trace"

    def replay(self, trace, *options):
        return self.commands.json("replay", trace, "--pass", 1, *options)[0]

    def play_all(self, budgets, sharing):
        """Every token alone, as if it had been generated."""
        sizes = ("--budget", ",".join(map(str, budgets)))
        if sharing != FLOOR:
            return {name: self.replay(self.trace(name), *sizes, "--cache-share", sharing) for name, *_ in TRACES}
        played = {name: self.replay(self.trace(name), *sizes, "--policy", ",".join((*SIMPLE, DEFAULT_POLICY, "optimum")),
                                    "--cache-share", "global", "--floor", ",".join(map(str, FLOORS)))
                  for name, *_ in TRACES}
        return with_floors(played)

    def read_ahead(self):
        """LRU with half of the experts, behind a drive of 3 GiB/s, as a small computer runs it."""
        figures = {}
        for name, *_ in TRACES:
            results = self.replay(self.trace(name), "--policy", "lru", "--budget", 50, "--predict",
                                  "none,previous,eap,oracle,oracle:unlimited", "--link", "3GiB/80us",
                                  "--expert-us", 250, "--layer-us", 900)["results"]
            figures[name] = {r["predictor"]: r for r in results}
        return figures

    def held_out(self):
        """The default policy with what suits the other models' traces best."""
        def play(name, settings, sharing):
            results = self.replay(self.trace(name), "--policy", DEFAULT_POLICY, "--budget", ",".join(map(str, CLOSED_AT)),
                                  "--cache-share", sharing, "--echo", settings)["results"]
            return {round(100 * result["share"]): result["hit_rate"] for result in results}
        return replay_echo.held_out(play, CLOSED_AT)

    def first_uses(self):
        """By trace the share of asks that no policy can answer from memory: with room for all experts, what still misses."""
        figures = {}
        for name, *_ in TRACES:
            result = self.replay(self.trace(name), "--policy", "lru", "--budget", 100)["results"][0]
            figures[name] = 1 - result["hit_rate"]
        return figures

    def compare_with_live(self, quick):
        """Runs of a model, each beside the replay of its own trace."""
        runs = []
        trace, record = self._folder / "live.trace", self._folder / "live.json"
        for slots in ((40, 128) if quick else (8, 40, 96, 128, 200)):
            for share in ("layer", "global"):
                for policy in LIVE_POLICIES:
                    self.commands.run(
                        "run", MODEL, "--prompt", "The scheduler picks the next task and", "-n", 48, "--temperature", 0,
                        "--ignore-eos", "--threads", 1, "--slots", slots, "--cache", policy, "--cache-share", share,
                        "--predict", "none", "--trace", trace, "--trace-scores", "all", "--json", record)
                    live = json.loads(record.read_text())
                    again = self.commands.json("replay", trace, "--as-recorded")
                    result = again[0]["results"][0]
                    runs.append({"slots": slots, "share": share, "policy": policy,
                                 "live_hits": live["expert_hits"],
                                 "live_misses": live["expert_misses"],
                                 "hits": result["expert_hits"],
                                 "misses": result["expert_misses"]})
        return runs

    def measure_speed(self, repetitions):
        """Expert uses a second of one LRU cache on one thread, the median."""
        figures = {}
        for name, *_ in TRACES:
            rates = []
            for _ in range(repetitions):
                played = self.replay(self.trace(name), "--policy", "lru", "--budget", 50,
                                     "--threads", 1)
                uses = played["tokens"] * played["layers"] * played["top_k"]
                rates.append(uses / played["replay_s"])
            figures[name] = statistics.median(rates)
        return figures

    def measure_memory(self, times):
        """Peak resident bytes with a trace, and with as many of it in one file; all policies."""
        longer = self._folder / "longer.trace"
        once = self.trace("gpt-oss-20b")
        self.commands.run("trace", "merge", *[once] * times, "-o", longer)
        figures = {"times": times, "bytes": once.stat().st_size, "longer_bytes": longer.stat().st_size,
                   "once_peak": self._peak(once), "longer_peak": self._peak(longer)}
        longer.unlink()
        return figures

    def _peak(self, trace):
        with subprocess.Popen([self._troupe, "replay", trace, "--budget", "50", "--threads", "1"],
                              stdout=subprocess.DEVNULL) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise measured_run.RunFailed(f"troupe replay {trace} failed")
        return usage.ru_maxrss * 1024

    def check_brute_force(self):
        """Whether the optimum is the best of all choices on small cases, by trying all of them, and no policy beats it there."""
        return all(self._passes(*tests) for tests in (
            ("src/expert/cache/expert_cache_tests", "PassOptimumTest.*"),
            ("src/sim/replay/replay_tests", "*TheOptimumIsTheBest*:*NoPolicyHits*:*NoPolicyBeats*")))

    def _passes(self, program, tests):
        done = subprocess.run([self._build / program, f"--gtest_filter={tests}"], capture_output=True, text=True, check=False)
        return done.returncode == 0 and re.search(r"\] [1-9]\d* tests? from .* ran", done.stdout) is not None


def of_floor(played, floor):
    """What was played with one floor, and the optimum, which has none."""
    return {**played, "floor": floor, "results": [r for r in played["results"]
                                                  if r["policy"] == "optimum" or round(100 * r["floor"]) == floor]}


def with_floors(played):
    """Of each trace what it is with the floor with which the default policy hits most often on the other traces."""
    hits = {name: {floor: sum(by_policy(of_floor(all_floors, floor))[DEFAULT_POLICY][size]["hit_rate"] for size in CLOSED_AT)
                   for floor in FLOORS} for name, all_floors in played.items()}
    best = {name: max(FLOORS, key=lambda floor, name=name: sum(of[floor] for other, of in hits.items() if other != name))
            for name in played}
    return {name: of_floor(all_floors, best[name]) for name, all_floors in played.items()}


def by_policy(played):
    """{policy: {% in memory: result}}"""
    table = {}
    for result in played["results"]:
        table.setdefault(result["policy"], {})[round(100 * result["share"], 1)] = result
    return table


class Simple(typing.NamedTuple):
    """LRU or LFU, and how the slots are shared where it hits most often."""
    policy: str
    sharing: str
    hit_rate: float


def best_simple(hits, name, share):
    """Over all ways to share that many slots, as whoever uses it would choose the best; None where it was not played."""
    found = [Simple(policy, sharing, table[policy][share]["hit_rate"])
             for sharing, table in ((sharing, by_policy(traces[name])) for sharing, traces in hits.items())
             for policy in SIMPLE if share in table[policy]]
    return max(found, key=lambda simple: simple.hit_rate, default=None)


def closed_share(hits, name, sharing, share):
    """Of the gap from the best of LRU and LFU to the optimum of this sharing; None where there is none, or was not played."""
    mine = by_policy(hits[sharing][name])[DEFAULT_POLICY].get(share)
    return closed_by(mine["hit_rate"], hits, name, sharing, share) if mine else None


def closed_by(hit_rate, hits, name, sharing, share):
    """The same of any hit rate."""
    table, simple = by_policy(hits[sharing][name]), best_simple(hits, name, share)
    if simple is None or share not in table["optimum"]:
        return None
    gap = table["optimum"][share]["hit_rate"] - simple.hit_rate
    return (hit_rate - simple.hit_rate) / gap if gap > 0 else None


def _worst_layers(mine, best):
    """Where the points are that the default policy is below the optimum."""
    below = [best_rate - rate for rate, best_rate in zip(mine["hit_rate_by_layer"], best["hit_rate_by_layer"])]
    worst = sorted(range(len(below)), key=lambda layer: -below[layer])[:WORST_LAYERS]
    return ", ".join(f"{layer} ({100 * below[layer]:.1f})" for layer in worst)


def _missed_gaps(figures, name, sharing):
    hits = figures["hits"]
    table = by_policy(hits[sharing][name])
    for share in CLOSED_AT:
        closed = closed_share(hits, name, sharing, share)
        if closed is None or closed >= LEAST_CLOSED:
            continue
        simple = best_simple(hits, name, share)
        mine, best = (100 * table[policy][share]["hit_rate"] for policy in (DEFAULT_POLICY, "optimum"))
        needed = 100 * simple.hit_rate + LEAST_CLOSED * (best - 100 * simple.hit_rate)
        first = 100 * figures["first_uses"][name]
        yield (f"{name}, {SHARINGS[sharing]}, {share} % in memory: {DEFAULT_POLICY} closes {100 * closed:.1f} % of the gap from "
               f"{simple.policy} ({SHARINGS[simple.sharing]}) to the optimum, at least {100 * LEAST_CLOSED:.0f}: "
               f"{100 * simple.hit_rate:.1f}, {mine:.1f} and {best:.1f} % hits, so {needed - mine:.1f} points are missing; of its "
               f"{100 - mine:.1f} % misses {first:.2f} are first uses, {100 - best - first:.2f} more the optimum has, too, and "
               f"{best - mine:.1f} are experts that it gave up too soon, most in layers (points) "
               f"{_worst_layers(table[DEFAULT_POLICY][share], table['optimum'][share])}")


def held_out_closed(figures, name, sharing, share):
    rates = figures["held_out"]["hit_rates"][sharing][name]
    return closed_by(rates[share], figures["hits"], name, sharing, share) if share in rates else None


def _missed_held_out(figures):
    held_out = figures.get("held_out")
    for sharing, traces in held_out["hit_rates"].items() if held_out else ():
        for name, rates in traces.items():
            for share in CLOSED_AT:
                closed = held_out_closed(figures, name, sharing, share)
                if closed is None or closed >= LEAST_CLOSED:
                    continue
                usual = by_policy(figures["hits"][sharing][name])[DEFAULT_POLICY][share]["hit_rate"]
                yield (f"{name}, {SHARINGS[sharing]}, {share} % in memory: judging by what suits the other model best "
                       f"({held_out['settings'][name]}) {DEFAULT_POLICY} closes {100 * closed:.1f} % of the gap, at least "
                       f"{100 * LEAST_CLOSED:.0f}: {100 * rates[share]:.1f} % hits, {100 * usual:.1f} with its own constants")


def _beaten(name, played, sharing):
    table = by_policy(played)
    for share, mine in table[DEFAULT_POLICY].items():
        for policy in BEATEN:
            other = table.get(policy, {}).get(share)
            if other and other["hit_rate"] > mine["hit_rate"]:
                yield (f"{name}, {SHARINGS[sharing]}, {share:g} % in memory: {policy} hits {100 * other['hit_rate']:.2f} %, "
                       f"{DEFAULT_POLICY} {100 * mine['hit_rate']:.2f}")


def missed_bars(figures):
    missed = []
    for run in figures["live"]:
        if (run["hits"], run["misses"]) != (run["live_hits"], run["live_misses"]):
            missed.append(f"{run['policy']}, {run['slots']} slots by {run['share']}: live "
                          f"{run['live_hits']} hits and {run['live_misses']} misses, replayed "
                          f"{run['hits']} and {run['misses']}")
    for name, rate in figures["speed"].items():
        if rate < LEAST_USES_PER_S:
            missed.append(f"{name}: {rate / 1e6:.1f} million expert uses a second, at least 5 expected")
    for sharing in SHARINGS:
        for name, played in figures["hits"][sharing].items():
            missed += _missed_gaps(figures, name, sharing)
            missed += _beaten(name, played, sharing)
            for result in played["results"]:
                if result["below_optimum"] < 0:
                    missed.append(f"{name}, {SHARINGS[sharing]}: {result['policy']} with {result['slots']} slots hits more "
                                  "often than the optimum")
    missed += _missed_held_out(figures)
    memory = figures["memory"]
    if memory["longer_peak"] > memory["once_peak"] + MOST_GROWTH:
        missed.append(f"memory grows with the trace: {memory['once_peak'] >> 20} MiB, "
                      f"{memory['longer_peak'] >> 20} MiB over {memory['times']} times as much")
    if not figures["brute_force"]:
        missed.append("the optimum is not the best of all choices on small cases")
    return missed
