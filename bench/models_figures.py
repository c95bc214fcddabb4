"""What bench/models makes of its measurements: ratios, bars, and a section of
docs/reports/models.md for each model.

Pure: a speed_table.Comparison comes in for everything in memory, an offload_figures.Offload for
part of it, and text goes out.
"""
import dataclasses

import offload_figures
import speed_table

# In memory, times the best that llama.cpp can be made to do.
DECODE_BAR, PREFILL_BAR = 1.0, 2.0
SHARES = (0.25, 0.5, 0.75)  # of the experts in memory
MMAP_BAR, HELD_SHARES = 10.0, (0.25, 0.5)  # times llama.cpp's decode under the same limit
BOUND_BAR = offload_figures.BOUND_BAR
_MIB = 1 << 20


@dataclasses.dataclass
class Measured:
    """One model: what was measured of it."""
    family: object  # models_families.Family
    layers: int
    file_bytes: int
    memory: speed_table.Comparison | None = None
    limited: offload_figures.Offload | None = None

    def title(self):
        depth = "whole" if self.layers == self.family.whole else \
            f"{self.layers} of {self.family.whole} layers"
        return f"{self.family.name} ({self.family.mix}, {depth})"

    def disturbed(self):
        return (self.memory.disturbed_runs() if self.memory else 0) + \
            (self.limited.disturbed if self.limited else 0)

    def missed_bars(self):
        missed = []

        def hold(value, bar, held, what, unit="x"):
            if not held:
                missed.append(f"{self.family.name}: {what} {value:.2f}{unit}, bar {bar:g}{unit}")

        if self.memory:
            for phase, bar in (("decode", DECODE_BAR), ("prefill", PREFILL_BAR)):
                ratio = self.memory.ratio(phase)
                hold(ratio, bar, ratio >= bar, f"{phase} in memory")
        for budget in self.limited.budgets if self.limited else []:
            at = f"{budget.share:.0%} of the experts"
            ratio, bound = budget.decode_ratio(), self.limited.bound_ratio(budget.held())
            if budget.share in HELD_SHARES:
                hold(ratio, MMAP_BAR, ratio >= MMAP_BAR, f"decode with {at}")
            hold(bound, BOUND_BAR, bound <= BOUND_BAR, f"time over its bound with {at}", "")
        if self.limited and self.limited.differing:
            missed.append(f"{self.family.name}: {self.limited.differing} runs gave other tokens "
                          "than with everything in memory")
        return missed

    def as_dict(self):
        return {"model": self.family.name, "layers": self.layers, "file_bytes": self.file_bytes,
                "memory": self.memory.as_dict() if self.memory else None,
                "limited": self.limited.as_dict() if self.limited else None,
                "disturbed_runs": self.disturbed(), "missed_bars": self.missed_bars()}


def missed_bars(measured):
    return [missed for m in measured for missed in m.missed_bars()]


def _row(*cells):
    return "| " + " | ".join(cells) + " |"


def _memory_table(comparison):
    shipped = next((c for c in comparison.llamacpp if c.as_shipped), None)
    lines = [_row("in memory, tokens/s", "troupe", "llama.cpp, the best way", "its way", "ratio",
                  "bar", "llama.cpp as shipped", "ratio"), _row(*["---"] * 8)]
    for phase, bar in (("decode", DECODE_BAR), ("prefill", PREFILL_BAR)):
        best = comparison.best(phase)
        lines.append(_row(
            phase, f"{comparison.troupe.speed(phase):.1f}",
            f"{comparison.llamacpp[best].speed(phase):.1f}", best.name,
            f"{comparison.ratio(phase):.2f}", f"{bar:g}",
            f"{comparison.llamacpp[shipped].speed(phase):.1f}" if shipped else "",
            f"{comparison.ratio(phase, shipped):.2f}" if shipped else ""))
    share = comparison.bandwidth_share(comparison.troupe.speed("decode"))
    return lines + ["", f"A token reads {comparison.bytes_per_token / 1e6:.0f} MB; decode moves them "
                        f"at {share:.0%} of the speed at which the threads read memory, and takes "
                        f"{1 / share:.2f} of the time that this bounds it by."]


def _limits_table(limited):
    lines = [_row("experts in memory", "budget, MiB", "troupe, tokens/s", "llama.cpp, mmap", "ratio",
                  "bar", "hits", "MiB read a token", "time / bound"), _row(*["---"] * 9)]
    for budget in limited.budgets:
        runs = budget.held()
        lines.append(_row(
            f"{budget.share:.0%}", f"{budget.budget_bytes / _MIB:.0f}", f"{runs.decode_speed():.1f}",
            f"{budget.best_peer('decode'):.2f}", f"{budget.decode_ratio():.1f}",
            f"{MMAP_BAR:g}" if budget.share in HELD_SHARES else "", f"{runs.hit_rate():.1%}",
            f"{runs.bytes_per_token() / _MIB:.1f}", f"{limited.bound_ratio(runs):.2f}"))
    return lines


def section(measured):
    """Of one model, in Markdown."""
    lines = [f"### {measured.title()}", "", f"A file of {measured.file_bytes / 1e9:.1f} GB."]
    if measured.memory:
        lines += ["", *_memory_table(measured.memory)]
    if measured.limited:
        lines += ["", *_limits_table(measured.limited)]
    missed = measured.missed_bars()
    lines += ["", f"Bars missed: {len(missed)}." if missed else "All bars held."]
    lines += [f"- {line}" for line in missed]
    if measured.disturbed():
        lines += ["", f"Others disturbed {measured.disturbed()} of the runs."]
    return "\n".join(lines)


def _marks(name):
    return f"<!-- bench/models {name} -->\n", f"\n<!-- end of bench/models {name} -->"


def with_section(text, name, new):
    """The report with one model's section replaced; None where it has no place for it."""
    begin, end = _marks(name)
    first, last = text.find(begin), text.find(end)
    if first < 0 or last < first:
        return None
    return text[:first + len(begin)] + new + text[last:]


def figures(measured):
    """The worst of each figure over the models, in one line."""
    parts = []
    memory = [m.memory for m in measured if m.memory]
    if memory:
        parts += [f"decode {min(c.ratio('decode') for c in memory):.2f}x (bar {DECODE_BAR:g}x)",
                  f"prefill {min(c.ratio('prefill') for c in memory):.2f}x (bar {PREFILL_BAR:g}x)"]
    limited = [(m.limited, b) for m in measured if m.limited for b in m.limited.budgets]
    held = [b.decode_ratio() for _, b in limited if b.share in HELD_SHARES]
    if held:
        parts.append(f"{min(held):.1f}x llama.cpp's mmap (bar {MMAP_BAR:g}x)")
    if limited:
        worst = max(m.bound_ratio(b.held()) for m, b in limited)
        parts.append(f"time {worst:.2f}x its bound (bar {BOUND_BAR:g}x)")
    missed = len(missed_bars(measured))
    return (f"models: {len(measured)} models, " + ", ".join(parts) + ", "
            + (f"bars missed: {missed}" if missed else "all bars held"))
