"""What bench/speculation makes of its answers: the ratio of speeds with drafts and without, a round each,
tables and bars. A bar is missed when the whole interval of the ratio's median lies below it.
"""
import statistics

import heart_figures

LEAST_COPY = {100: 1.8, 50: 1.6}  # by the percent of experts in memory
LEAST_PROSE = 0.98
LEAST_ADVERSARY = 0.98
LEAST_RESIDENT = {50: 1.15}  # the others as prose
LEAST_HEADS = 1.15  # at temperature 0; drawn tokens are guessed less often, and must cost no more than prose


def ratio(cell):
    return heart_figures.interval_of_median(
        [on["tokens_per_s"] / off["tokens_per_s"] for off, on in zip(cell["off"], cell["on"], strict=True)])


def bar(cell):
    if cell["part"] == "peer":
        return None  # a figure, and no bar
    if cell["part"] == "copy":
        return LEAST_COPY.get(cell["share"])
    if cell["part"] == "heads":
        return LEAST_HEADS if cell["text"] == "temperature 0" else LEAST_PROSE
    if cell["part"] == "resident":
        return LEAST_RESIDENT.get(cell["share"], LEAST_PROSE)
    return LEAST_PROSE if cell["part"] == "prose" else LEAST_ADVERSARY


def _median(cell, side, name):
    return statistics.median(answer[name] for answer in cell[side])


def _row(cell):
    drafted, tokens = _median(cell, "on", "drafted"), _median(cell, "on", "tokens")
    right = _median(cell, "on", "accepted") / drafted if drafted else 0
    read = [_median(cell, side, "bytes_read") / tokens / 2**20 for side in ("off", "on")]
    found = ratio(cell)
    return (f"  {cell['text']:<16} {cell['drafter']:<8} {cell['share']:4d} % {_median(cell, 'off', 'tokens_per_s'):8.1f} "
            f"{_median(cell, 'on', 'tokens_per_s'):8.1f} {found.middle:6.2f} [{found.low:.2f}, {found.high:.2f}] "
            f"{drafted / tokens:8.2f} {100 * right:6.0f} % {read[0]:8.1f} {read[1]:8.1f}{_draft_reads(cell)}")


def _draft_reads(cell):
    begun, used = cell.get("draft_reads", (0, 0))
    return f"   drafts began {begun} reads, {100 * used / begun:.0f} % of use" if begun else ""


def table(part, cells):
    head = (f"\n{part}\n  text             drafts   memory  off t/s   on t/s  ratio               drafted/t  right "
            "  MiB/t off      on")
    return "\n".join([head, *map(_row, cells)])


def missed_bars(cells):
    return [f"{cell['part']} {cell['text']} {cell['drafter']} at {cell['share']} %: {ratio(cell).middle:.2f} "
            f"[{ratio(cell).low:.2f}, {ratio(cell).high:.2f}], expected {bar(cell)}"
            for cell in cells if bar(cell) is not None and ratio(cell).high < bar(cell)]


def line(cells, missed):
    parts = []
    for part in dict.fromkeys(cell["part"] for cell in cells):
        ratios = [ratio(cell).middle for cell in cells if cell["part"] == part]
        parts.append(f"{part} {min(ratios):.2f} to {max(ratios):.2f}")
    return f"speculation: {'; '.join(parts)}; bars missed: {len(missed)}"
