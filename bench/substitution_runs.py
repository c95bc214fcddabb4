"""The runs of bench/substitution: one model, one cache size, several ways to answer what is missing, each token by
token or three at a time. Time is measured with the experts widened to real sizes; quality, which does not depend on
sizes, on the model as it is, over a longer text that nothing was calibrated on and nothing was chosen on (settings are
chosen on its other half), and with nothing read ahead: more is missing then than in the timed run. Controls are measured
behind the gates of the buddies that they are held to, at the same rate (substitution_rivals.py). What is made of the
figures is substitution_report.py's.
"""
import math
import pathlib
import shutil
import statistics

import measured_run
import offload_runs
import substitution_rivals

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "tests/data/prose/mixed.txt"  # calibrated and timed on
QUESTIONS = ROOT / "tests/data/prose/questions.txt"  # quality: settings are chosen on one half and reported on the other
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
MODEL = ("tiny-widened-q8_0.gguf", ["--widen", TINY, "--factor", 256])
BATCHES = (1, 3)
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
RESIDENT = 50  # % of the experts
TIMED_TOKENS = 600
MOST_LOSS = 0.01  # of perplexity, that a setting may cost

# Ways that change no answer; the fastest is what the others are held to.
EXACT = {
    "exact": [],
    "exact, next gate only": ["--predict", "gate"],
    "exact, nothing read ahead": ["--predict", "none"],
}
# The paper's parts, one on top of the other; A stands for the alpha chosen.
PARTS = {
    "base": ["--cache", "lru", "--predict", "none"],
    "CE": ["--cache", "score", "--predict", "none"],
    "CE+CR": ["--cache", "score", "--predict", "none", "--substitute", "smoe:alpha=A"],
    "CE+CR+Pre": ["--cache", "score", "--predict", "top-score", "--substitute", "smoe:alpha=A"],
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
# Buddies, and what they are to beat. delta is 1 at most, so that a beta above it
# closes for nobody, and no margin reaches a gamma of 2. With all gates: beta for a budget of two or three of the four
# experts that a token asks for; the paper has no number for gamma, 0.2 closes for about a third of
# the tokens that miss some.
BUDDIES = {
    "buddies": "buddies:tau=layers:rho=2",
    "buddies, all gates": "buddies:tau=layers:gamma=0.2:beta=0.75:rho=2",
    "buddies, beta 0.5": "buddies:tau=layers:gamma=0.2:beta=0.5:rho=2",
}


def loss(row):
    """The worse of two, as docs/formats/quality.md has it: perplexity on one text can be won by luck."""
    return max(row["perplexity_ratio"], math.exp(row["mean_kl"])) - 1


def use_hit_rate(record):
    """Of the (token, expert) pairs that were computed, those whose expert was in memory."""
    uses = record["use_hits"] + record["use_misses"]
    return record["use_hits"] / uses if uses else 1.0


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
        figures = {"layers": layers, "experts": experts, "top_k": inspected["experts_per_token"],
                   "batches": {batch: self._batch(batch) for batch in
                               (BATCHES[:1] if self._quick else BATCHES)}}
        figures["balance"] = self._balance(figures["batches"][BATCHES[0]]["chosen"])
        figures["disturbed"] = self._troupe.disturbed
        return figures

    def _halves(self):
        """Of the text of quality, every second line: to choose on, and to report."""
        lines = QUESTIONS.read_text(encoding="utf-8").splitlines(keepends=True)
        paths = tuple(self._folder / f"substitution-{part}.txt" for part in ("chosen", "reported"))
        for first, path in enumerate(paths):
            path.write_text("".join(lines[first::2]), encoding="utf-8")
        return paths

    def _batch(self, batch):
        systems = {f"smoe {alpha:g}": ["--substitute", f"smoe:alpha={alpha:g}"]
                   for alpha in (ALPHAS[1::2] if self._quick else ALPHAS)}
        buddies = {name: ["--substitute", chain] for name, chain in BUDDIES.items()}
        self._troupe.say(f"batch {batch}: choosing on the other half of the text")
        self._take_reference(batch, self._chosen_on)
        there = {name: self._compared(batch, arguments) for name, arguments in {**systems, **buddies}.items()}
        self._take_reference(batch, self._reported_on)
        rows = self._systems(batch, {**EXACT, **systems})
        best = max((name for name in systems if loss(there[name]) <= MOST_LOSS),
                   key=lambda name: rows[name]["tokens_per_s"], default=next(iter(systems)))
        alpha = best.split()[1]
        parts = {name: [word.replace("alpha=A", f"alpha={alpha}") for word in arguments]
                 for name, arguments in {**PARTS, **OURS}.items()}
        rows.update(self._systems(batch, parts))
        rows.update(self._systems(batch, buddies))
        chosen_buddies = min(buddies, key=lambda name: substitution_rivals.cost_of_a_slot(there[name]))
        rivals = {name: self._rivals(batch, name, rows[name]) for name in (
            [chosen_buddies] if self._quick else buddies)}
        self._reference.unlink()
        return {"chosen": best, "chosen_loss_there": loss(there[best]), "chosen_buddies": chosen_buddies, "systems": rows,
                "rivals": rivals, "cached": self._cached(batch, systems[best])}

    def _rivals(self, batch, buddies, row):
        """Each control behind the gates of these buddies, at the rate at which they replace."""
        found = {}
        for control in substitution_rivals.CONTROLS:
            self._troupe.say(f"batch {batch}: {control} at the rate of {buddies}")
            measured = {}

            def rate_of(share, control=control, measured=measured):
                chain = substitution_rivals.chain_of(control, BUDDIES[buddies], self._top_k, share)
                measured[share] = self._compared(batch, ["--substitute", chain]) | {"chain": chain}
                return substitution_rivals.rate_in(measured[share])

            share, rate = substitution_rivals.match_rate(rate_of, row["replaced_there"])
            quality = measured[share]
            found[control] = {"chain": quality["chain"], "rate": rate, "measured": len(measured),
                              "matched": substitution_rivals.is_matched(rate, row["replaced_there"]),
                              **{key: quality[key] for key in ("mean_kl", "perplexity_ratio", "perplexity_ratio_interval")}}
        return found

    def _take_reference(self, batch, text):
        self._text, self._reference = text, self._folder / "substitution.logits"
        self._quality(batch, [], "--logits", self._reference)

    def _compared(self, batch, arguments):
        return self._quality(batch, arguments, "--reference", self._reference)

    def _cached(self, batch, arguments):
        """The share of expert uses served from cache, by budget."""
        records = {budget: self._quality(batch, arguments, slots=round(self._experts * budget / 100))
                   for budget in CACHED_AT}
        return {f"{budget:g}": use_hit_rate(record) for budget, record in records.items()}

    def _balance(self, chosen):
        """Tokens/s of a replay, by lane and chain."""
        self._troupe.say("balance, replayed")
        trace, expert_bytes = self._folder / "substitution.trace", self._expert_bytes
        self._troupe.record("eval", self._tiny, "--text", self._reported_on, "--together", 1,
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

    def _timed(self, batch, arguments):
        return self._troupe.record("eval", self._model, "--text", TEXT, "--tokens", TIMED_TOKENS,
                                   "--together", batch, "--slots", self._slots,
                                   "--experts", self._container, *arguments)

    def _quality(self, batch, arguments, *more, slots=None):
        arguments = list(arguments)
        if "--predict" in arguments:
            place = arguments.index("--predict")
            del arguments[place:place + 2]
        return self._troupe.record("eval", self._tiny, "--text", self._text, "--together", batch,
                                   "--slots", slots or self._slots, *arguments, "--predict", "none", *more)

    @staticmethod
    def _figures(records, quality):
        record = records[0]
        tokens = record["tokens"]
        return {
            "tokens_per_s": tokens / statistics.median(r["pass_s"] for r in records),
            "perplexity_ratio": quality["perplexity_ratio"],
            "perplexity_ratio_interval": quality["perplexity_ratio_interval"],
            "mean_kl": quality["mean_kl"],
            "replaced_there": substitution_rivals.rate_in(quality),
            "hit_rate": use_hit_rate(record),
            "gates": {link["link"]: link["counts"] for link in quality["substitution_links"]},
            "MiB_per_token": record["bytes_read"] / 2**20 / tokens,
            "stall_ms": 1e3 * record["stall_s"] / tokens,
            "replaced": (record["substituted"] + record["dropped"]) / tokens,
            "deciding": max(r["deciding_s"] / r["pass_s"] for r in records)}
