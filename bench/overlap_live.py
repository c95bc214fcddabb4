"""What `bench/overlap --live` runs: models whose experts are cached in part, behind media of several speeds
(overlap_media.py); what reads ahead takes turns. Its table, and the bars that its figures are held to.
"""
import contextlib
import dataclasses
import pathlib
import statistics

import disk_speed
import measured_run
import overlap_media

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINED = ROOT / "models/small-qwen2moe-q8_0.gguf"
FACTOR = 128  # of the trained experts' width: 6.7 MB each
BUDGETS = (25, 50, 75)  # % of the experts in memory
MEDIA = ("disk", "0.5x", "1x", "2x", "4x")  # the disk as it is, and layer times that loading an expert takes
QUICK_BUDGETS, QUICK_MEDIA = (50,), ("disk", "2x")
MOST_TIME, MOST_BYTES = 1 / 0.99, 1.15  # over nothing read ahead
# Of the time that computing or the medium takes alone, by %; nothing foretells random weights' routing well.
OF_TRAINED = {25: 1.15, 50: 1.25, 75: 1.25}
OF_RANDOM = {25: 1.25, 50: 1.35, 75: 1.5}


@dataclasses.dataclass(frozen=True)
class Model:
    file: str
    made: tuple      # by `troupe synth`
    tokens: int      # of an answer
    most_over_bound: dict


MODELS = {
    "trained": Model(f"small-wide{FACTOR}.gguf", ("--widen", TRAINED, "--factor", FACTOR), 160, OF_TRAINED),
    "small": Model("small-q8_0.gguf", ("--shape", "small", "--type", "Q8_0"), 64, OF_RANDOM),
    "qwen": Model("qwen1.5-moe-a2.7b-q4_0.gguf", ("--shape", "qwen1.5-moe-a2.7b", "--type", "Q4_0"), 64, OF_RANDOM),
}


class Live:
    """One model."""
    def __init__(self, troupe, folder, name, ahead, rounds, memory_folder=pathlib.Path("/dev/shm")):
        self._troupe = measured_run.Troupe(troupe, folder, "overlap")
        self._ahead, self._rounds, self._memory_folder = ahead, rounds, memory_folder
        self._name, self._of = name, MODELS[name]
        self._model = folder / self._of.file
        self._container = self._model.with_suffix(".experts")
        if not self._container.exists():
            measured_run.run([str(troupe), "synth", str(self._model), *map(str, self._of.made)])
            measured_run.run([str(troupe), "pack", str(self._model), "-o", str(self._container)])
        inspected = self._troupe.record("inspect", self._model)
        expert_bytes = [layer["expert_bytes"] for layer in inspected["layer_bytes"] if layer["expert_bytes"] > 0]
        self._experts = len(expert_bytes) * inspected["experts"]
        self._expert_bytes = sum(expert_bytes) // self._experts
        self._layers = len(expert_bytes)

    @property
    def disturbed(self):
        return self._troupe.disturbed

    def measure_all(self, media, budgets):
        cells = []
        whole = self._run([], "none", seed=100)  # every expert in memory
        layer_s = whole["decode"]["pass_s"] / whole["decode_steps"] / self._layers
        disk = disk_speed.sequential_bytes_per_s(self._container, 1 << 30)
        for name in media:
            medium = overlap_media.medium(name, self._expert_bytes, layer_s, disk, self._copied_speed)
            with self._container_for(medium) as container:
                for budget in budgets:
                    cells.append(self.measure(medium, container, budget))
                    self._troupe.say(", ".join([self._name, name, f"{budget} %"] + [
                        f"{way} {ms:.2f} ms" for way, ms in cells[-1]["ms"].items()]))
        return cells

    def _copied_speed(self):
        with overlap_media.held_in_memory(self._container, self._memory_folder) as copy:
            return overlap_media.copied_speed(copy)

    def _container_for(self, medium):
        if medium.held:
            return overlap_media.held_in_memory(self._container, self._memory_folder)
        return contextlib.nullcontext(self._container)

    def measure(self, medium, container, budget):
        """Each round's answer is another text, the same for all."""
        limited = ["--experts", container, "--slots", self._experts * budget // 100]
        limited += ["--link", medium.link] if medium.link else []
        runs = {predictor: [] for predictor in ("none", *self._ahead)}
        for number in range(self._rounds):
            for predictor in runs:
                runs[predictor].append(self._run(limited, predictor, seed=100 + number))
        if answers_differ(runs):
            raise measured_run.RunFailed(f"{self._name}, {medium.name}, {budget} %: the answers differ")
        return cell(self._name, medium, budget, runs)

    def _run(self, limited, predictor, seed):
        # What calibration may have left beside the model is not read: every answer begins with empty tables.
        return self._troupe.record(
            "run", self._model, "--predict", predictor, "--profile", "none", "--score-tables", "none", "--prompt", "The",
            "-n", self._of.tokens, "--temperature", 1, "--seed", seed, "--ignore-eos", "--speculate", "off", *limited)


def answers_differ(runs):
    """Of any round, among the ways to read ahead."""
    return any(len({tuple(run["token_ids"]) for run in of_round}) != 1 for of_round in zip(*runs.values()))


def a_token(run, key):
    decode = run["decode"]
    return (decode["time"][key] if key in decode["time"] else decode[key]) / run["decode_steps"]


def cell(model, medium, budget, runs):
    """Medians over rounds; of computing what it took while the disk was read, too."""
    times = {name: statistics.median(1e3 * a_token(run, "pass_s") for run in each) for name, each in runs.items()}
    loaded = {name: statistics.median(a_token(run, "bytes_read") for run in each) for name, each in runs.items()}
    computing = {name: statistics.median(1e3 * (a_token(run, "computing_s") + a_token(run, "overlapped_s")) for run in each)
                 for name, each in runs.items()}
    return {"model": model, "medium": medium.name + (", held in memory" if medium.held else ""),
            "layer_times": medium.layer_times, "budget": budget, "ms": times, "computing_ms": computing,
            "needed_ms": 1e3 * loaded["none"] / medium.bytes_per_s,
            "bytes": {name: value / max(1, loaded["none"]) for name, value in loaded.items()},
            "recall_in_time": {name: in_time(each) for name, each in runs.items()}}


def in_time(runs):
    sums = [run["decode"]["foresight"] for run in runs]
    needed = sum(one["needed"] for one in sums)
    return sum(one["in_time"] for one in sums) / needed if needed else 0.0


def over_bound(one, name):
    return one["ms"][name] / max(one["computing_ms"][name], one["needed_ms"])


def most_over_bound(one):
    return MODELS[one["model"]].most_over_bound[one["budget"]]


def ways(one):
    return [name for name in one["ms"] if name != "none"]


def missed_bars(cells):
    missed = []
    for one in cells:
        for name in ways(one):
            where = f"{one['model']}, {one['medium']}, {one['budget']} %, {name}"
            time = one["ms"][name] / one["ms"]["none"]
            if time > MOST_TIME:
                missed.append(f"{where}: {time:.3f} of the time of nothing read ahead, at most {MOST_TIME:.3f}")
            if one["bytes"][name] > MOST_BYTES:
                missed.append(f"{where}: {one['bytes'][name]:.2f} of its bytes, at most {MOST_BYTES}")
            if over_bound(one, name) > most_over_bound(one):
                missed.append(f"{where}: {over_bound(one, name):.2f} of what computing or the medium takes alone, at most "
                              f"{most_over_bound(one)}")
    return missed


def bar_rows(cells):
    """Of the report's table of bars: for each way to read ahead the bar, what was found, and in how many cells it held."""
    rows = []
    for name in ways(cells[0]):
        for bar, figure, most in (
                (f"`{name}`: time over that of nothing read ahead, at most {MOST_TIME:.3f}",
                 lambda one, name=name: one["ms"][name] / one["ms"]["none"], lambda one: MOST_TIME),
                (f"`{name}`: its bytes, at most {MOST_BYTES}", lambda one, name=name: one["bytes"][name], lambda one: MOST_BYTES),
                (f"`{name}`: time over its bound, at most " + "; ".join(
                    ", ".join(f"{most} at {budget} %" for budget, most in bars.items()) + of
                    for of, bars in (("", OF_TRAINED), (" of random weights", OF_RANDOM))),
                 lambda one, name=name: over_bound(one, name), most_over_bound)):
            figures = [figure(one) for one in cells]
            held = sum(found <= most(one) for found, one in zip(figures, cells))
            rows.append(f"| {bar} | {min(figures):.2f} to {max(figures):.2f} | held in {held} of {len(cells)} cells |")
    return rows


def table(cells):
    lines = ["| model | medium | layer times a load | in memory | read ahead by | ms a token | over nothing | over its bound | computing ms | needed ms | bytes | known in time |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for one in cells:
        for name in one["ms"]:
            lines.append(f"| {one['model']} | {one['medium']} | {one['layer_times']:.2g} | {one['budget']} % | {name} | {one['ms'][name]:.2f} | "
                         f"{one['ms'][name] / one['ms']['none']:.3f} | {over_bound(one, name):.2f} | "
                         f"{one['computing_ms'][name]:.2f} | {one['needed_ms']:.2f} | {one['bytes'][name]:.2f} | "
                         f"{100 * one['recall_in_time'][name]:.0f} % |")
    return "\n".join(lines)


def figures_line(cells, missed, disturbed):
    by_way = "; ".join(
        f"{name} {min(one['ms'][name] / one['ms']['none'] for one in cells):.2f} to "
        f"{max(one['ms'][name] / one['ms']['none'] for one in cells):.2f}" for name in ways(cells[0]))
    return (f"overlap: live, {len(cells)} cells; of the time of nothing read ahead: {by_way}; bars missed: {len(missed)}; "
            f"runs that others disturbed: {disturbed}")
