"""What `bench/overlap --live` runs: the trained model with wide experts, cached in part, behind this machine's disk and
slower links; what reads ahead takes turns. Its table, and the bars that its figures are held to.
"""
import pathlib
import statistics

import disk_speed
import measured_run

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINED = ROOT / "models/small-qwen2moe-q8_0.gguf"
FACTOR = 128  # of the experts' width: 6.7 MB each
EXPERTS = 8 * 32
BUDGETS = (25, 50, 75)  # % of the experts in memory
MEDIA = ("disk", "1000MB/100us", "400MB/100us")  # the disk as it is, and slower ones
TOKENS = 160
MOST_TIME, MOST_BYTES = 1 / 0.99, 1.15             # over nothing read ahead
MOST_OVER_BOUND = {25: 1.15, 50: 1.25, 75: 1.25}   # of the time that computing or the medium takes alone


class Live:
    def __init__(self, troupe, folder, ahead, media, rounds):
        self._troupe = measured_run.Troupe(troupe, folder, "overlap")
        self._ahead, self._media, self._rounds = ahead, media, rounds
        self._model, self._container = folder / f"small-wide{FACTOR}.gguf", folder / f"small-wide{FACTOR}.experts"
        if not self._container.exists():
            measured_run.run([str(troupe), "synth", str(self._model), "--widen", str(TRAINED), "--factor", str(FACTOR)])
            measured_run.run([str(troupe), "pack", str(self._model), "-o", str(self._container)])
        self.disk_bytes_per_s = disk_speed.sequential_bytes_per_s(self._container, 1 << 30)

    @property
    def disturbed(self):
        return self._troupe.disturbed

    def measure_all(self):
        cells = []
        for medium in self._media:
            for budget in BUDGETS:
                cells.append(self.measure(medium, budget))
                self._troupe.say(", ".join([medium, f"{budget} %"] + [
                    f"{name} {ms:.2f} ms" for name, ms in cells[-1]["ms"].items()]))
        return cells

    def measure(self, medium, budget):
        """Each round's answer is another text, the same for all."""
        runs = {predictor: [] for predictor in ("none", *self._ahead)}
        for number in range(self._rounds):
            for predictor in runs:
                runs[predictor].append(self._run(medium, budget, predictor, seed=100 + number))
        if len({tuple(run["token_ids"]) for each in runs.values() for run in each[:1]}) != 1:
            raise measured_run.RunFailed(f"{medium}, {budget} %: the answers differ")
        return cell(medium, budget, speed_of(medium, self.disk_bytes_per_s), runs)

    def _run(self, medium, budget, predictor, seed):
        options = [] if medium == "disk" else ["--link", medium]
        return self._troupe.record(
            "run", self._model, "--experts", self._container, "--slots", EXPERTS * budget // 100, "--predict", predictor,
            "--prompt", "The", "-n", TOKENS, "--temperature", 1, "--seed", seed, "--ignore-eos", "--speculate", "off",
            *options)


def speed_of(medium, disk):
    """Bytes a second: a link is no faster than the disk behind it."""
    return disk if medium == "disk" else min(disk, float(medium.split("MB", 1)[0]) * 1e6)


def a_token(run, key):
    decode = run["decode"]
    return (decode["time"][key] if key in decode["time"] else decode[key]) / run["decode_steps"]


def cell(medium, budget, speed, runs):
    """Medians over rounds; of computing what it took while the disk was read, too."""
    times = {name: statistics.median(1e3 * a_token(run, "pass_s") for run in each) for name, each in runs.items()}
    loaded = {name: statistics.median(a_token(run, "bytes_read") for run in each) for name, each in runs.items()}
    computing = {name: statistics.median(1e3 * (a_token(run, "computing_s") + a_token(run, "overlapped_s")) for run in each)
                 for name, each in runs.items()}
    return {"medium": medium, "budget": budget, "ms": times, "computing_ms": computing,
            "needed_ms": 1e3 * loaded["none"] / speed,
            "bytes": {name: value / max(1, loaded["none"]) for name, value in loaded.items()},
            "recall_in_time": {name: in_time(each) for name, each in runs.items()}}


def in_time(runs):
    sums = [run["decode"]["foresight"] for run in runs]
    needed = sum(one["needed"] for one in sums)
    return sum(one["in_time"] for one in sums) / needed if needed else 0.0


def over_bound(one, name):
    return one["ms"][name] / max(one["computing_ms"][name], one["needed_ms"])


def ways(one):
    return [name for name in one["ms"] if name != "none"]


def missed_bars(cells):
    missed = []
    for one in cells:
        for name in ways(one):
            where = f"{one['medium']}, {one['budget']} %, {name}"
            time = one["ms"][name] / one["ms"]["none"]
            if time > MOST_TIME:
                missed.append(f"{where}: {time:.3f} of the time of nothing read ahead, at most {MOST_TIME:.3f}")
            if one["bytes"][name] > MOST_BYTES:
                missed.append(f"{where}: {one['bytes'][name]:.2f} of its bytes, at most {MOST_BYTES}")
            if over_bound(one, name) > MOST_OVER_BOUND[one["budget"]]:
                missed.append(f"{where}: {over_bound(one, name):.2f} of what computing or the medium takes alone, at most "
                              f"{MOST_OVER_BOUND[one['budget']]}")
    return missed


def bar_rows(cells):
    """Of the report's table of bars: for each way to read ahead the bar, what was found, and in how many cells it held."""
    rows = []
    for name in ways(cells[0]):
        for bar, figure, most in (
                (f"`{name}`: time over that of nothing read ahead, at most {MOST_TIME:.3f}",
                 lambda one, name=name: one["ms"][name] / one["ms"]["none"], lambda one: MOST_TIME),
                (f"`{name}`: its bytes, at most {MOST_BYTES}", lambda one, name=name: one["bytes"][name], lambda one: MOST_BYTES),
                (f"`{name}`: time over its bound, at most " + ", ".join(f"{most} at {budget} %" for budget, most in MOST_OVER_BOUND.items()),
                 lambda one, name=name: over_bound(one, name), lambda one: MOST_OVER_BOUND[one["budget"]])):
            figures = [figure(one) for one in cells]
            held = sum(found <= most(one) for found, one in zip(figures, cells))
            rows.append(f"| {bar} | {min(figures):.2f} to {max(figures):.2f} | held in {held} of {len(cells)} cells |")
    return rows


def table(cells):
    lines = ["| medium | in memory | read ahead by | ms a token | over nothing | over its bound | computing ms | needed ms | bytes | known in time |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for one in cells:
        for name in one["ms"]:
            lines.append(f"| {one['medium']} | {one['budget']} % | {name} | {one['ms'][name]:.2f} | "
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
