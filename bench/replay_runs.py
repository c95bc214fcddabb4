"""What bench/replay runs, and the bars its figures are held to. Knows no tables."""
import json
import os
import pathlib
import re
import statistics
import subprocess

import measured_run
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
FLOOR = "floor"  # one pool, in which a layer keeps some of an even share
SHARINGS = {"layer": "a share for each layer", "global": "one pool", FLOOR: "one pool with a floor"}
FLOORS = (25, 50, 75)  # % of an even share; which of them a trace gets is chosen on the others
LEAST_CLOSED = 0.40  # of the gap from the better of LRU and LFU to the optimum, by the default policy
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
                                  "none,previous,eap,oracle", "--link", "3GiB/80us",
                                  "--expert-us", 250, "--layer-us", 900)["results"]
            figures[name] = {r["predictor"]: r for r in results}
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
    """Of each trace what it is with the floor that closes the most of the gap on the other traces."""
    closed = {name: {floor: [share or 0 for share in (closed_share(by_policy(of_floor(all_floors, floor)), size) for size in CLOSED_AT)]
                     for floor in FLOORS} for name, all_floors in played.items()}
    best = {name: max(FLOORS, key=lambda floor, name=name: sum(sum(of[floor]) for other, of in closed.items() if other != name))
            for name in played}
    return {name: of_floor(all_floors, best[name]) for name, all_floors in played.items()}


def by_policy(played):
    """{policy: {% in memory: result}}"""
    table = {}
    for result in played["results"]:
        table.setdefault(result["policy"], {})[round(100 * result["share"], 1)] = result
    return table


def closed_share(table, share):
    """Of the gap from the better of LRU and LFU to the optimum; None where there is none, or was not played."""
    if share not in table["optimum"]:
        return None
    simple = max(table[policy][share]["hit_rate"] for policy in SIMPLE)
    gap = table["optimum"][share]["hit_rate"] - simple
    return (table[DEFAULT_POLICY][share]["hit_rate"] - simple) / gap if gap > 0 else None


def _missed_gaps(name, played, sharing):
    table = by_policy(played)
    for share in CLOSED_AT:
        closed = closed_share(table, share)
        if closed is None or closed >= LEAST_CLOSED:
            continue
        better = max(SIMPLE, key=lambda policy, share=share: table[policy][share]["hit_rate"])
        hits = {policy: 100 * table[policy][share]["hit_rate"] for policy in (better, DEFAULT_POLICY, "optimum")}
        needed = hits[better] + LEAST_CLOSED * (hits["optimum"] - hits[better])
        yield (f"{name}, {SHARINGS[sharing]}, {share} % in memory: {DEFAULT_POLICY} closes {100 * closed:.1f} % of the gap from "
               f"{better} to the optimum, at least {100 * LEAST_CLOSED:.0f}: {hits[better]:.1f}, {hits[DEFAULT_POLICY]:.1f} and "
               f"{hits['optimum']:.1f} % hits, so {needed - hits[DEFAULT_POLICY]:.1f} points are missing; it knows only what was used "
               "before, and the optimum what comes")


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
            missed += _missed_gaps(name, played, sharing)
            for result in played["results"]:
                if result["below_optimum"] < 0:
                    missed.append(f"{name}, {SHARINGS[sharing]}: {result['policy']} with {result['slots']} slots hits more "
                                  "often than the optimum")
    memory = figures["memory"]
    if memory["longer_peak"] > memory["once_peak"] + MOST_GROWTH:
        missed.append(f"memory grows with the trace: {memory['once_peak'] >> 20} MiB, "
                      f"{memory['longer_peak'] >> 20} MiB over {memory['times']} times as much")
    if not figures["brute_force"]:
        missed.append("the optimum is not the best of all choices on small cases")
    return missed
