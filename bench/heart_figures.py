"""What bench/heart makes of its runs: ratios with their intervals, tables, bars.

The two binaries run in turn, and each round gives a ratio. What is shown is the median of these, with
a confidence interval: in nine of ten measurements it holds the true median (of fewer than five rounds
it is their span, and holds it less often). A bar is missed when the whole interval lies below it, and
cannot be told when the interval holds it and is wider than the bar is fine.
"""
import collections
import math
import statistics

MOST_COMPILE = 0.45       # of the older tree's CPU seconds
LEAST_CELL, LEAST_MEAN = 0.98, 1.00   # this binary's speed over the older one's
LEAST_OF_PROMPT = 0.95    # eight decodes, of a prompt read in chunks of eight
LEAST_OF_LIMIT = 0.8      # a pass of 2 to 32 tokens, of what memory and disk allow
MOST_GAP = 3.0            # of the median gap


Interval = collections.namedtuple("Interval", "middle low high")
CellRatio = collections.namedtuple("CellRatio", "model share phase ratio")


def _rounds(cell, phase):
    return [new / old for old, new in zip(cell[phase]["old"], cell[phase]["new"], strict=True)]


def interval_of_median(numbers):
    """Without the `cut` smallest and largest, as many as leave nine in ten such intervals around the
    median; of few numbers, from the smallest to the largest."""
    ordered = sorted(numbers)
    count, cut = len(ordered), 0
    outside = 2 / 2**count  # that all numbers lie on one side of the median
    while cut + 1 < count / 2:
        outside += 2 * math.comb(count, cut + 1) / 2**count
        if outside > 0.1:
            break
        cut += 1
    return Interval(statistics.median(ordered), ordered[cut], ordered[-1 - cut])


def speed_ratios(cells):
    return [CellRatio(cell["model"], cell["share"], phase, interval_of_median(_rounds(cell, phase)))
            for cell in cells for phase in ("decode", "prefill")]


def mean_ratio(cells):
    """The geometric mean over all cells and rounds, with two standard errors. Decode and prefill of a
    round come from one process, which a disturbance slows in both: they count as one."""
    logs = [[(math.log(decode) + math.log(prefill)) / 2
             for decode, prefill in zip(_rounds(cell, "decode"), _rounds(cell, "prefill"), strict=True)]
            for cell in cells]
    middle = statistics.fmean(statistics.fmean(of_cell) for of_cell in logs)
    variance = sum(statistics.variance(of_cell) / len(of_cell) if len(of_cell) > 1 else 0 for of_cell in logs)
    error = 2 * math.sqrt(variance) / len(logs)
    return Interval(math.exp(middle), math.exp(middle - error), math.exp(middle + error))


def of_limit(row):
    return row["tokens_per_s"] / row["limit_tokens_per_s"]


def of_both_limits(row):
    return row["tokens_per_s"] / min(row["limit_tokens_per_s"], row["processors_tokens_per_s"])


def of_prompt(row):
    return row["tokens_per_s"] / row["prompt_tokens_per_s"]


def gap_ratio(join):
    return join["longest_gap_s"] / join["median_gap_s"]


def _compile_table(figures):
    return (f"\ncompiling the program, CPU seconds, no cache\n"
            f"  older {figures['old_cpu_s']:8.1f}\n  this  {figures['new_cpu_s']:8.1f}   "
            f"{figures['new_cpu_s'] / figures['old_cpu_s']:.2f} of it\n")


def _speed_table(cells):
    lines = [f"\n{'model':24} {'experts':>10} {'phase':>8} {'older':>9} {'this':>9} {'ratio':>7} {'from':>6} {'to':>6}"]
    for cell in cells:
        for phase in ("decode", "prefill"):
            old, new = (statistics.median(cell[phase][which]) for which in ("old", "new"))
            ratio = interval_of_median(_rounds(cell, phase))
            lines.append(f"{cell['model']:24} {cell['share']:>10} {phase:>8} {old:9.1f} {new:9.1f} "
                         f"{ratio.middle:7.3f} {ratio.low:6.3f} {ratio.high:6.3f}")
    mean = mean_ratio(cells)
    lines.append(f"{'geometric mean':64} {mean.middle:7.3f} {mean.low:6.3f} {mean.high:6.3f}")
    lines.append(_verdict(cells))
    return "\n".join(lines) + "\n"


def _verdict(cells):
    """A cell that is not below its bar may be one that says nothing of it."""
    count, untold = 2 * len(cells), len(untold_cells(cells))
    below = sum(cell.ratio.high < LEAST_CELL for cell in speed_ratios(cells))
    mean = mean_ratio(cells)
    return (f"{untold} of {count} cells cannot be told from {LEAST_CELL} by these rounds; {count - untold - below} hold, {below} lie below. "
            f"The mean is {mean.middle:.3f} ({mean.low:.3f} to {mean.high:.3f}).")


def _together_table(rows):
    lines = [f"\n{'experts':>10} {'sequences':>9} {'tokens/s':>9} {'prompt in chunks of as many':>28} "
             f"{'experts':>8} {'of prompt':>10} {'limit':>9} {'of limit':>9} {'processors':>11} {'of both':>8}"]
    for row in rows:
        lines.append(f"{row['share']:>10} {row['sequences']:9} {row['tokens_per_s']:9.1f} "
                     f"{row['prompt_tokens_per_s']:28.1f} {row['experts_a_pass']:8.0f} "
                     f"{row['prompt_experts_a_pass']:10.0f} {row['limit_tokens_per_s']:9.1f} {of_limit(row):9.2f} "
                     f"{row['processors_tokens_per_s']:11.1f} {of_both_limits(row):8.2f}")
    return "\n".join(lines) + "\n"


def _join_table(join):
    return (f"\na prompt of {join['prompt_tokens']} tokens joins {join['sequences']} decodes: gap between their "
            f"tokens\n  median {1e3 * join['median_gap_s']:8.1f} ms\n  longest "
            f"{1e3 * join['longest_gap_s']:7.1f} ms   {gap_ratio(join):.2f} times; the prompt was read in "
            f"{join['prompt_seconds']:.2f} s, alone in {join['prompt_seconds_alone']:.2f} s\n")


def table(part, figures):
    return {"compile": _compile_table, "speed": _speed_table, "together": _together_table,
            "join": _join_table}[part](figures)


WIDEST = 0.05  # an interval that holds a bar and is wider tells nothing of it


def untold_cells(cells):
    return [cell for cell in speed_ratios(cells)
            if cell.ratio.low < LEAST_CELL <= cell.ratio.high and cell.ratio.high - cell.ratio.low > WIDEST]


def missed_bars(figures):
    missed = []

    def bar(holds, what):
        if not holds:
            missed.append(what)
    if "compile" in figures:
        ratio = figures["compile"]["new_cpu_s"] / figures["compile"]["old_cpu_s"]
        bar(ratio <= MOST_COMPILE, f"compiling takes {ratio:.2f} of the older tree's time, at most {MOST_COMPILE} allowed")
    if "speed" in figures:
        for cell in speed_ratios(figures["speed"]):
            bar(cell.ratio.high >= LEAST_CELL, f"{cell.model}, {cell.share}: {cell.phase} {cell.ratio.middle:.3f} of the older speed "
                f"(at most {cell.ratio.high:.3f}), at least {LEAST_CELL} expected")
        mean = mean_ratio(figures["speed"])
        bar(mean.high >= LEAST_MEAN, f"speed {mean.middle:.3f} of the older one in the geometric mean (at most {mean.high:.3f}), "
            f"at least {LEAST_MEAN} expected")
    for row in figures.get("together", []):
        if row["sequences"] == 8 and row["share"] == "in memory":
            bar(of_prompt(row) >= LEAST_OF_PROMPT, f"eight decodes run at {of_prompt(row):.2f} of a prompt in chunks of eight, "
                f"at least {LEAST_OF_PROMPT} expected")
        if row["sequences"] >= 2:
            bar(of_limit(row) >= LEAST_OF_LIMIT, f"{row['share']}: {row['sequences']} sequences at {of_limit(row):.2f} of their "
                f"limit, at least {LEAST_OF_LIMIT} expected")
    if "join" in figures:
        bar(gap_ratio(figures["join"]) <= MOST_GAP, f"the longest gap is {gap_ratio(figures['join']):.2f} times the median, "
            f"at most {MOST_GAP} allowed")
    return missed


def line(figures, missed):
    parts = []
    if "compile" in figures:
        parts.append(f"compile {figures['compile']['new_cpu_s'] / figures['compile']['old_cpu_s']:.2f}")
    if "speed" in figures:
        mean = mean_ratio(figures["speed"])
        least = min(cell.ratio.middle for cell in speed_ratios(figures["speed"]))
        parts.append(f"speed {mean.middle:.3f} ({mean.low:.3f} to {mean.high:.3f}; least {least:.3f}; "
                     f"{len(untold_cells(figures['speed']))} cells cannot be told)")
    for row in figures.get("together", []):
        if row["sequences"] == 8:
            parts.append(f"eight together {row['share']} {row['tokens_per_s']:.0f} tokens/s, {of_limit(row):.2f} of the limit")
    if "join" in figures:
        parts.append(f"longest gap {gap_ratio(figures['join']):.2f}x")
    return f"heart: {'; '.join(parts)}; disturbed runs {figures['disturbed']}; bars missed {len(missed)}"
