"""The runs of bench/substitution: one model, one cache size, several ways to answer what is missing, each token by
token or three at a time. Time is measured with the experts widened to real sizes; quality, which does not depend on
sizes, on the model as it is, with nothing read ahead: more is missing then than in the timed run. What is learned is
learned from one text; settings are chosen on the first problems of another, and quality and times are those of its
other problems. Every run but the recorded one begins with the cache filled by popularity in the first text, so that
the share in memory is one even where a chain loads next to nothing. Controls are measured behind the gates of the buddies
that they are held to, at the same rate (substitution_rivals.py). What is made of the figures is substitution_report.py's.
"""
import itertools
import math
import os
import pathlib
import shutil
import statistics

import disk_speed
import measured_run
import offload_runs
import substitution_rivals

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "tests/data/prose/mixed.txt"  # calibrated on, and on nothing else
QUESTIONS = ROOT / "tests/data/prose/questions.txt"  # settings are chosen on its first problems; all figures are of the rest
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
MODEL = ("tiny-widened-q8_0.gguf", ["--widen", TINY, "--factor", 256])
BATCHES = (1, 3)
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
PAPERS_ALPHA = 0.3
RESIDENT = 50  # % of the experts
FILLED = ["--fill", "on"]
TIMED_TOKENS = 600
MOST_LOSS = 0.01  # of perplexity, that a setting may cost
MOST_BYTES = 0.80  # of exact's, that buddies may read

# Ways that change no answer; the fastest is what the others are held to.
EXACT = {
    "exact": [],
    "exact, scores": ["--predict", "scores"],
    "exact, next gate only": ["--predict", "gate"],
    "exact, nothing read ahead": ["--predict", "none"],
}
# The paper's parts, one on top of the other; A stands for the alpha chosen. Its prefetching has a forecast of its own
# (`smoe`) and the rule that only top scores are worth it; `top-score` is that rule on the forecasts of the engine.
PARTS = {
    "base": ["--cache", "lru", "--predict", "none"],
    "CE": ["--cache", "score", "--predict", "none"],
    "CE+CR": ["--cache", "score", "--predict", "none", "--substitute", "smoe:alpha=A"],
    "CE+CR+look-ahead": ["--cache", "score", "--predict", "smoe", "--substitute", "smoe:alpha=A"],
    "CE+CR+top scores": ["--cache", "score", "--predict", "top-score", "--substitute", "smoe:alpha=A"],
}
# Ours in place of a part, and the router of ours in place of theirs.
OURS = {
    "echo for CE": ["--predict", "top-score", "--substitute", "smoe:alpha=A"],
    "echo, lookahead": ["--predict", "lookahead", "--substitute", "smoe:alpha=A"],
    "echo, nothing ahead": ["--predict", "none", "--substitute", "smoe:alpha=A"],
    "bias 0.05": ["--substitute", "bias:bonus=0.05"],
    "bias 0.1": ["--substitute", "bias:bonus=0.1"],
    "bias 0.2": ["--substitute", "bias:bonus=0.2"],
}
# Balance needs a second lane, which a machine without a second device has not: a replay of the recorded run has one
# that answers an expert in so many times what its load takes. Costs in us, near those of the timed model and its disk.
LANES = {"none": None, "half as fast as the link": 2, "as fast as the link": 1}
LOAD_US, COSTS = 2000, ["--link", "3.3GiB/80us", "--expert-us", 250, "--layer-us", 250]
CACHED_AT = (75, 50, 37.5)  # the budgets of the paper, % of the experts
# Buddies, and what they are to beat: behind the gate on entropy alone, and behind all gates. The paper has no number for
# gamma and beta, so they are chosen, with rho, among these. Beta: of the four experts that a token asks for, one or two
# may be missing.
OPEN_BUDDIES = ("buddies", "buddies:tau=layers:rho=2")
GATED_BUDDIES = "buddies, all gates"
GAMMAS, BETAS, RHOS = (0.1, 0.2, 0.4), (0.5, 0.75), (1, 2)


def gated_buddies():
    return [f"buddies:tau=layers:gamma={gamma:g}:beta={beta:g}:rho={rho}"
            for gamma, beta, rho in itertools.product(GAMMAS, BETAS, RHOS)]


def loss(row):
    """At most, as docs/formats/quality.md has it: the worse of two, as perplexity on one text can be won by luck, by the
    upper ends of their 95 % intervals."""
    ratio, kl = row["perplexity_ratio_interval"][1], row["mean_kl_interval"][1]
    return math.inf if ratio is None or kl is None else max(ratio, math.exp(kl)) - 1


def use_hit_rate(record):
    """Of the (token, expert) pairs that were computed, those whose expert was in memory."""
    uses = record["use_hits"] + record["use_misses"]
    return record["use_hits"] / uses if uses else 1.0


def bytes_a_token(record):
    return record["bytes_read"] / record["tokens"]


def choose_alpha(measured):
    """The name of what reads least within the limit of loss, of {name: record} on a text that is not reported; what
    loses least where all lose more."""
    allowed = [name for name in measured if loss(measured[name]) <= MOST_LOSS]
    if not allowed:
        return min(measured, key=lambda name: loss(measured[name]))
    return min(allowed, key=lambda name: bytes_a_token(measured[name]))


def choose_buddies(measured, exact):
    """The chain that costs least for each slot that it replaces, of those that read few enough bytes; of all where none
    does."""
    few = [chain for chain in measured if bytes_a_token(measured[chain]) <= MOST_BYTES * bytes_a_token(exact)]
    return min(few or measured, key=lambda chain: substitution_rivals.cost_of_a_slot(measured[chain]))


def halves(text):
    """Of problems with blank lines between them, the first ones and the rest: a problem's words are those of its answer, so
    none may be on both sides."""
    problems = [problem for problem in text.split("\n\n") if problem.strip()]
    middle = len(problems) // 2
    return tuple("\n\n".join(part).rstrip("\n") + "\n" for part in (problems[:middle], problems[middle:]))


class Comparison:
    def __init__(self, troupe, folder, quick):
        self._troupe = measured_run.Troupe(troupe, folder, "substitution")
        self._folder, self._quick = folder, quick
        self._rounds = 1 if quick else 2
        name, arguments = MODEL
        self._model, self._container = offload_runs.make_model(troupe, folder / name, arguments)

    def measure(self):
        inspected = self._troupe.record("inspect", self._model)
        layers = sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"])
        experts = layers * inspected["experts"]
        self._experts = experts
        self._slots = experts * RESIDENT // 100
        self._top_k = inspected["experts_per_token"]
        self._expert_bytes = sum(layer["expert_bytes"] for layer in inspected["layer_bytes"]) // experts
        self._troupe.say("calibrating")
        self._chosen_on, self._reported_on = self._halves()
        self._tiny = self._folder / TINY.name
        shutil.copy(TINY, self._tiny)
        for model in (self._tiny, self._model):
            self._troupe.record("calibrate", model, "--text", TEXT)
        figures = {"layers": layers, "experts": experts, "top_k": inspected["experts_per_token"], "processors": os.cpu_count(),
                   "disk_bytes_per_s": disk_speed.sequential_bytes_per_s(self._container, 1 << 30),
                   "batches": {batch: self._batch(batch) for batch in
                               (BATCHES[:1] if self._quick else BATCHES)}}
        figures["balance"] = self._balance(figures["batches"][BATCHES[0]]["chosen"])
        figures["disturbed"] = self._troupe.disturbed
        return figures

    def _halves(self):
        paths = tuple(self._folder / f"substitution-{part}.txt" for part in ("chosen", "reported"))
        for path, part in zip(paths, halves(QUESTIONS.read_text(encoding="utf-8"))):
            path.write_text(part, encoding="utf-8")
        return paths

    def _batch(self, batch):
        systems = {f"smoe {alpha:g}": ["--substitute", f"smoe:alpha={alpha:g}"]
                   for alpha in (ALPHAS[2::3] if self._quick else ALPHAS)}
        self._troupe.say(f"batch {batch}: choosing on the first problems")
        exact = self._take_reference(batch, self._chosen_on)
        there = {name: self._compared(batch, arguments) for name, arguments in systems.items()}
        gated = {chain: self._compared(batch, ["--substitute", chain]) for chain in gated_buddies()}
        best, chosen_buddies = choose_alpha(there), choose_buddies(gated, exact)
        self._take_reference(batch, self._reported_on)
        rows = self._systems(batch, {**EXACT, **systems})
        alpha = best.split()[1]
        rows.update(self._systems(batch, {name: [word.replace("alpha=A", f"alpha={alpha}") for word in arguments]
                                          for name, arguments in {**PARTS, **OURS}.items()}))
        buddies = {OPEN_BUDDIES[0]: OPEN_BUDDIES[1], GATED_BUDDIES: chosen_buddies}
        rows.update(self._systems(batch, {name: ["--substitute", chain] for name, chain in buddies.items()}))
        rivals = {name: self._rivals(batch, buddies[name], rows[name]) for name in (
            [GATED_BUDDIES] if self._quick else buddies)}
        self._reference.unlink()
        return {"chosen": best, "chosen_loss_there": loss(there[best]), "buddies": buddies, "systems": rows,
                "rivals": rivals, "budgets": self._budgets(batch, best, systems[best], rows)}

    def _rivals(self, batch, buddies, row):
        """Each control behind the gates of these buddies, at the rate at which they replace."""
        found = {}
        for control in substitution_rivals.CONTROLS:
            self._troupe.say(f"batch {batch}: {control} at the rate of {buddies}")
            measured = {}

            def rate_of(share, control=control, measured=measured):
                chain = substitution_rivals.chain_of(control, buddies, self._top_k, share)
                measured[share] = self._compared(batch, ["--substitute", chain]) | {"chain": chain}
                return substitution_rivals.rate_in(measured[share])

            share, rate = substitution_rivals.match_rate(rate_of, row["replaced_there"])
            quality = measured[share]
            found[control] = {"chain": quality["chain"], "rate": rate, "measured": len(measured),
                              "matched": substitution_rivals.is_matched(rate, row["replaced_there"]),
                              **{key: quality[key] for key in ("mean_kl", "kl_blocks", "perplexity_ratio", "perplexity_ratio_interval")}}
        return found

    def _take_reference(self, batch, text):
        self._text, self._reference = text, self._folder / "substitution.logits"
        return self._quality(batch, [], "--logits", self._reference)

    def _compared(self, batch, arguments):
        return self._quality(batch, arguments, "--reference", self._reference)

    def _budgets(self, batch, name, arguments, rows):
        """The share of expert uses served from cache with nothing read ahead, and tokens/s as usual, exact and chosen."""
        found = {}
        for budget in CACHED_AT:
            slots, ways = round(self._experts * budget / 100), {"exact": [], "chosen": arguments}
            cached = {way: use_hit_rate(self._quality(batch, flags, slots=slots)) for way, flags in ways.items()}
            if budget == RESIDENT:
                speed = {"exact": rows["exact"]["tokens_per_s"], "chosen": rows[name]["tokens_per_s"]}
            elif self._quick:
                speed = dict.fromkeys(ways)
            else:
                speed = self._speeds(batch, ways, slots, f"with {budget:g} %")
            found[f"{budget:g}"] = {"cached": cached, "tokens_per_s": speed}
        return found

    def _speeds(self, batch, ways, slots, words):
        seconds = {way: [] for way in ways}
        for turn in range(self._rounds):
            for way, flags in ways.items():
                self._troupe.say(f"batch {batch}, round {turn + 1} of {self._rounds}: {way} {words}")
                record = self._timed(batch, flags, slots)
                seconds[way].append(record["pass_s"] / record["tokens"])
        return {way: 1 / statistics.median(of) for way, of in seconds.items()}

    def _balance(self, chosen):
        """Tokens/s of a replay, by lane and chain."""
        self._troupe.say("balance, replayed")
        trace, expert_bytes = self._folder / "substitution.trace", self._expert_bytes
        self._troupe.record("eval", self._tiny, "--text", self._reported_on, "--tokens", TIMED_TOKENS, "--together", 1,
                            "--trace", trace, "--trace-scores", "all")
        chains = ["exact", f"smoe:alpha={chosen.split()[1]}"]
        table = {}
        for lane, times in LANES.items():
            second = [] if times is None else ["--second-lane-us", times * LOAD_US]
            (played,) = self._troupe.record("replay", trace, "--pass", 1, "--policy", "echo", "--budget", RESIDENT,
                                       "--substitute", ",".join(chains), "--expert-bytes", expert_bytes,
                                       *COSTS, *second)
            table[lane] = {run["substitution"]: 1 / (run["stall_s_per_token"] + run["compute_s_per_token"])
                           for run in played["results"]}
        trace.unlink()
        return table

    def _systems(self, batch, systems):
        quality = {name: self._compared(batch, arguments) for name, arguments in systems.items()}
        records = {name: [] for name in systems}
        for turn in range(self._rounds):
            for name, arguments in systems.items():
                self._troupe.say(f"batch {batch}, round {turn + 1} of {self._rounds}: {name}")
                records[name].append(self._timed(batch, arguments))
        return {name: self._figures(runs, quality[name]) for name, runs in records.items()}

    def _timed(self, batch, arguments, slots=None):
        return self._troupe.record("eval", self._model, "--text", self._reported_on, "--tokens", TIMED_TOKENS,
                                   "--together", batch, "--slots", slots or self._slots,
                                   "--experts", self._container, *FILLED, *arguments)

    def _quality(self, batch, arguments, *more, slots=None):
        arguments = list(arguments)
        if "--predict" in arguments:
            place = arguments.index("--predict")
            del arguments[place:place + 2]
        return self._troupe.record("eval", self._tiny, "--text", self._text, "--together", batch,
                                   "--slots", slots or self._slots, *FILLED, *arguments, "--predict", "none", *more)

    @staticmethod
    def _figures(records, quality):
        record = records[0]
        tokens = record["tokens"]
        return {
            "tokens_per_s": tokens / statistics.median(r["pass_s"] for r in records),
            **{key: quality[key] for key in ("perplexity_ratio", "perplexity_ratio_interval", "mean_kl", "mean_kl_interval",
                                             "kl_blocks")},
            "replaced_there": substitution_rivals.rate_in(quality),
            "hit_rate": use_hit_rate(record),
            "gates": {link["link"]: link["counts"] for link in quality["substitution_links"]},
            "MiB_per_token": record["bytes_read"] / 2**20 / tokens,
            "stall_ms": 1e3 * record["stall_s"] / tokens,
            "replaced": (record["substituted"] + record["dropped"]) / tokens,
            "deciding": max(r["deciding_s"] / r["pass_s"] for r in records)}
