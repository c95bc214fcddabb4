"""What bench/overlap plays, its table, and the bars that its figures are held to."""
import json
import pathlib
import subprocess

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


class Runner:
    def __init__(self, troupe, folder, predictor):
        self._troupe, self._folder, self._predictor = troupe, folder, predictor

    def run(self, *arguments):
        done = subprocess.run([self._troupe, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"troupe {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def traces(self, model, text):
        """A text as it is, token by token, and one that the model writes."""
        path, read, written = ROOT / f"models/{model}-q8_0.gguf", self._folder / "read", self._folder / "written"
        self.run("eval", path, "--text", text, "--trace", read, "--trace-scores", "all")
        self.run("run", path, "--prompt", "The", "-n", 1900, "--temperature", 1, "--seed", 1, "--ignore-eos",
                 "--speculate", "off", "--trace", written, "--trace-scores", "all")
        return {"read": read, "written": written}

    def play_all(self, text):
        cells = []
        for model in MODELS:
            for kind, trace in self.traces(model, text).items():
                for times in LAYER_TIMES:
                    cells += self.play(model, kind, trace, times)
        return cells

    def play(self, model, kind, trace, times):
        speed = EXPERT_BYTES / (times * (LAYER_US + TOP_K * EXPERT_US) * 1e-6)
        results = json.loads(self.run(
            "replay", trace, "--pass", 1, "--policy", "echo", "--budget", ",".join(map(str, BUDGETS)),
            "--link", f"{speed / 1024:.0f}KiB/0us", "--expert-bytes", EXPERT_BYTES, "--expert-us", EXPERT_US,
            "--layer-us", LAYER_US, "--predict", f"none,{self._predictor},{FORESEEN}", "--json", "-"))[0]["results"]
        by = {(round(100 * r["share"]), r["predictor"]): r for r in results}
        return [cell(model, kind, times, budget, by[budget, "none"], by[budget, self._predictor],
                     by[budget, FORESEEN]) for budget in BUDGETS]


def seconds(result):
    return result["stall_s_per_token"] + result["compute_s_per_token"]


def cell(model, kind, times, budget, none, ahead, foreseen):
    gap = seconds(none) - seconds(foreseen)
    return {"model": model, "text": kind, "layer_times": times, "budget": budget,
            "compute_ms": 1e3 * none["compute_s_per_token"],
            "stall_ms": {"none": 1e3 * none["stall_s_per_token"], "ahead": 1e3 * ahead["stall_s_per_token"],
                         "foreseen": 1e3 * foreseen["stall_s_per_token"]},
            "time": seconds(ahead) / seconds(none), "bytes": ahead["loads"] / max(1, none["loads"]),
            "closed": (seconds(none) - seconds(ahead)) / gap if gap > 0 else 1.0}


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
    lines = ["| model | text | layer times a load | in memory | computing ms | stall ms: none | ahead | foreseen | time | bytes | closed |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for one in cells:
        stall = one["stall_ms"]
        lines.append(f"| {one['model']} | {one['text']} | {one['layer_times']:g} | {one['budget']} % | "
                     f"{one['compute_ms']:.2f} | {stall['none']:.2f} | {stall['ahead']:.2f} | {stall['foreseen']:.2f} | "
                     f"{one['time']:.3f} | {one['bytes']:.2f} | {100 * one['closed']:.0f} % |")
    return "\n".join(lines)


def figures_line(cells, missed):
    closed = sorted(one["closed"] for one in cells)
    return (f"overlap: {len(cells)} cells; time {min(one['time'] for one in cells):.2f} to "
            f"{max(one['time'] for one in cells):.3f} of nothing read ahead, bytes at most "
            f"{max(one['bytes'] for one in cells):.2f}; of the gap to what is foreseen {100 * closed[0]:.0f} to "
            f"{100 * closed[-1]:.0f} % closed, median {100 * closed[len(closed) // 2]:.0f}; bars missed: {len(missed)}")
