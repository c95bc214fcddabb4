"""What bench/overlap plays, its table, and the bars that its figures are held to."""
import pathlib

import overlap_recall
import troupe_commands

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ("tiny-qwen2moe", "small-qwen2moe")
BUDGETS = (25, 50, 75)        # % of the experts in memory
LAYER_TIMES = (0.5, 1, 2, 4)  # that loading an expert takes
# As the trained model is with its experts widened to 6.7 MB: a layer without them, and an expert.
LAYER_US, EXPERT_US, EXPERT_BYTES = 360, 200, 6_684_672
TOP_K = 4
MOST_TIME, MOST_BYTES = 1 / 0.99, 1.15  # over nothing read ahead
LEAST_CLOSED = 0.5  # of the gap between nothing read ahead and everything foreseen
FORESEEN = "oracle:unlimited"
DEPTHS = (1, 2, 4)  # layers that an oracle of limited depth knows


def costs(times):
    """Of a replay in which loading an expert takes `times` layer times."""
    speed = EXPERT_BYTES / (times * (LAYER_US + TOP_K * EXPERT_US) * 1e-6)
    return ("--pass", 1, "--policy", "echo", "--link", f"{speed / 1024:.0f}KiB/0us", "--expert-bytes", EXPERT_BYTES,
            "--expert-us", EXPERT_US, "--layer-us", LAYER_US)


class Runner:
    def __init__(self, troupe, folder, predictor):
        self._commands, self._folder, self._predictor = troupe_commands.Commands(troupe), folder, predictor

    def read(self, model, text):
        """A text as it is, to be played token by token."""
        trace = self._folder / "read"
        self._commands.run("eval", model_path(model), "--text", text, "--trace", trace, "--trace-scores", "all")
        return trace

    def written(self, model):
        """One that the model writes."""
        trace = self._folder / "written"
        self._commands.run("run", model_path(model), "--prompt", "The", "-n", 1900, "--temperature", 1, "--seed", 1, "--ignore-eos",
                           "--speculate", "off", "--trace", trace, "--trace-scores", "all")
        return trace

    def play_all(self, text, long_text):
        """The cells, and what the forecast knew of the long text's second half: of each model."""
        cells, known = [], []
        for model in MODELS:
            for kind, trace in (("read", self.read(model, text)), ("written", self.written(model))):
                for times in LAYER_TIMES:
                    cells += self.play(model, kind, trace, times)
            if self._predictor == overlap_recall.PREDICTOR:
                trace = self.read(model, long_text)
                known.append(overlap_recall.know(self._commands, model, trace, self._folder / "half", costs))
        return cells, known

    def play(self, model, kind, trace, times):
        names = ["none", self._predictor, *(f"oracle:{depth}" for depth in DEPTHS), FORESEEN]
        results = self._commands.json("replay", trace, *costs(times), "--budget", ",".join(map(str, BUDGETS)),
                                      "--predict", ",".join(names))[0]["results"]
        by = {(round(100 * r["share"]), r["predictor"]): r for r in results}
        return [cell(model, kind, times, budget, by[budget, "none"], by[budget, self._predictor],
                     {depth: by[budget, f"oracle:{depth}"] for depth in DEPTHS}, by[budget, FORESEEN])
                for budget in BUDGETS]


def model_path(model):
    return ROOT / f"models/{model}-q8_0.gguf"


def seconds(result):
    return result["stall_s_per_token"] + result["compute_s_per_token"]


def cell(model, kind, times, budget, none, ahead, limited, foreseen):
    """`limited`: by oracles of limited depth, by their layers."""
    gap = seconds(none) - seconds(foreseen)

    def closed(result):
        return (seconds(none) - seconds(result)) / gap if gap > 0 else 1.0
    return {"model": model, "text": kind, "layer_times": times, "budget": budget,
            "compute_ms": 1e3 * none["compute_s_per_token"],
            "stall_ms": {"none": 1e3 * none["stall_s_per_token"], "ahead": 1e3 * ahead["stall_s_per_token"],
                         "foreseen": 1e3 * foreseen["stall_s_per_token"]},
            "time": seconds(ahead) / seconds(none), "bytes": ahead["loads"] / max(1, none["loads"]),
            "closed": closed(ahead), "closed_by_oracle": {depth: closed(result) for depth, result in limited.items()}}


def name(one):
    return f"{one['model']}, {one['text']}, {one['budget']} %, {one['layer_times']:g} layer times"


def missed_bars(cells):
    missed = []
    for one in cells:
        if one["time"] > MOST_TIME:
            missed.append(f"{name(one)}: {one['time']:.3f} of the time of nothing read ahead, at most {MOST_TIME:.3f}")
        if one["bytes"] > MOST_BYTES:
            missed.append(f"{name(one)}: {one['bytes']:.2f} of its bytes, at most {MOST_BYTES}")
        if one["closed"] < LEAST_CLOSED - 1e-9:
            missed.append(f"{name(one)}: {100 * one['closed']:.0f} % of the gap closed, at least {100 * LEAST_CLOSED:.0f}")
    return missed


def table(cells):
    lines = ["| model | text | layer times a load | in memory | computing ms | stall ms: none | ahead | foreseen | time | bytes "
             "| closed | closed by " + " | ".join(f"oracle:{depth}" for depth in DEPTHS) + " |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |" + " --- |" * len(DEPTHS)]
    for one in cells:
        stall = one["stall_ms"]
        lines.append(f"| {one['model']} | {one['text']} | {one['layer_times']:g} | {one['budget']} % | "
                     f"{one['compute_ms']:.2f} | {stall['none']:.2f} | {stall['ahead']:.2f} | {stall['foreseen']:.2f} | "
                     f"{one['time']:.3f} | {one['bytes']:.2f} | {100 * one['closed']:.0f} % | " +
                     " | ".join(f"{100 * share:.0f} %" for share in one["closed_by_oracle"].values()) + " |")
    return "\n".join(lines)


def bar_rows(cells):
    """Of the report's table of bars: the bar, what was found, and in how many cells it held."""
    def row(bar, found, holds):
        held = sum(map(holds, cells))
        return f"| {bar} | {found} | held in {held} of {len(cells)} cells |"

    times, loads, closed = ([one[key] for one in cells] for key in ("time", "bytes", "closed"))
    return [row(f"time over that of nothing read ahead, at most {MOST_TIME:.3f}", f"{min(times):.3f} to {max(times):.3f}",
                lambda one: one["time"] <= MOST_TIME),
            row(f"its bytes, at most {MOST_BYTES}", f"{min(loads):.2f} to {max(loads):.2f}",
                lambda one: one["bytes"] <= MOST_BYTES),
            row(f"of the gap to what is foreseen without limit closed, at least {100 * LEAST_CLOSED:.0f} %",
                f"{100 * min(closed):.0f} to {100 * max(closed):.0f} %, {100 * median(closed):.0f} in the median",
                lambda one: one["closed"] >= LEAST_CLOSED - 1e-9)] + [
            row(f"the same by oracle:{depth}, who knows as many layers",
                f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %, {100 * median(shares):.0f} in the median",
                lambda one, depth=depth: one["closed_by_oracle"][depth] >= LEAST_CLOSED - 1e-9)
            for depth, shares in ((depth, [one["closed_by_oracle"][depth] for one in cells]) for depth in DEPTHS)]


def median(values):
    return sorted(values)[len(values) // 2]


def figures_line(cells, missed):
    closed = [one["closed"] for one in cells]
    return (f"overlap: {len(cells)} cells; time {min(one['time'] for one in cells):.2f} to "
            f"{max(one['time'] for one in cells):.3f} of nothing read ahead, bytes at most "
            f"{max(one['bytes'] for one in cells):.2f}; of the gap to what is foreseen {100 * min(closed):.0f} to "
            f"{100 * max(closed):.0f} % closed, median {100 * median(closed):.0f}; bars missed: {len(missed)}")
