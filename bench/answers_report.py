"""What bench/answers says of its figures: shares of right answers, how they differ from exact's, and bars."""
import math

LEAST_RIGHT, LEAST_TASKS = 0.8, 4  # share of right answers, and exercises that have it: far from chance
# The largest share of right answers that each way may lose, by the lower end of the interval. Held from LEAST_ASKED questions
# on: with fewer, the interval is too wide to tell.
MOST_LOST = dict.fromkeys(("smoe, alpha 0.2", "smoe, alpha 0.4", "smoe, alpha 0.6", "bias 0.2", "low-bit", "low copies, p 0.25",
                           "low copies, p 0.5", "--quality balanced"), 0.02) | {"--quality fast": 0.05}
LEAST_ASKED = 500
CONTROL = "random, rho 4"  # surely loses answers with the least in memory: else the questions would show no loss
MOST_LOST_BY_ROWS = 0.005  # of all answers, against the cloud alone, where rows of cut prompts cross within a limit of loss
_Z = 1.959964


def wilson(right, of):
    share = right / of
    centre = (share + _Z * _Z / (2 * of)) / (1 + _Z * _Z / of)
    half = _Z / (1 + _Z * _Z / of) * math.sqrt(share * (1 - share) / of + _Z * _Z / (4 * of * of))
    return max(0.0, centre - half), min(1.0, centre + half)


def difference(exact, other):
    """(change, least, most) of the share of right answers to the same questions: Agresti and Min's, as `--against-exact`."""
    lost, won, of = sum(a and not b for a, b in zip(exact, other)), sum(b and not a for a, b in zip(exact, other)), len(exact)
    p, q = (lost + 0.5) / (of + 2), (won + 0.5) / (of + 2)
    half = _Z * math.sqrt(max(0.0, p + q - (q - p) ** 2) / (of + 2))
    return (won - lost) / of, max(-1.0, q - p - half), min(1.0, q - p + half)


def together(right):
    return [each for several in right.values() for each in several]


def _share(answers):
    return sum(answers) / len(answers)


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def _changed(row):
    uses = row.get("uses", 0)
    if not uses or row.get("grouped"):  # a group gate chooses every use, most of them as the router would, and does not count which
        return ""
    changed = sum(row.get(key, 0) for key in ("substituted", "dropped", "low_assignments"))
    return f"{100 * changed / uses:.1f} %"


def _row(name, row, exact):
    everything = together(row["right"])
    cells = [name, *(f"{100 * _share(answers):.1f}" for answers in row["right"].values())]
    least, most = wilson(sum(everything), len(everything))
    cells.append(f"{100 * _share(everything):.1f} ({100 * least:.1f} to {100 * most:.1f})")
    if row is exact:
        cells.append("")
    else:
        change, least, most = difference(together(exact["right"]), everything)
        cells.append(f"{100 * change:+.1f} ({100 * least:+.1f} to {100 * most:+.1f})")
    return _line([*cells, row.get("note") or _changed(row)])


TITLES = {"lossy": "answers that are given, % right", "loop": "answers that are generated, % right",
          "ends": "answers of an end whose prompts are cut, % right"}


def table(part, figures):
    """In the form of the reports."""
    lines = []
    for of, rows in figures["rows"].items():
        exact = next(iter(rows.values()))
        names = list(exact["right"])
        questions = sorted({len(answers) for answers in exact["right"].values()})
        where = f"{of} % of the experts in memory" if of.isdigit() else of
        lines += [f"{TITLES[part]}; {where}; {'-'.join(map(str, questions))} questions of each exercise",
                  "", _line(["way", *names, "all (95 % interval)", "change (95 % interval)", figures.get("last", "uses changed")]),
                  _line(["---"] * (len(names) + 4)),
                  _line(["chance", *(f"{100 * figures['chance'][name]:.1f}" for name in names), "", "", ""]),
                  *(_row(name, row, exact) for name, row in rows.items()), ""]
    return "\n".join(lines)


def _missed_by_lossy(where, rows):
    exact = together(next(iter(rows.values()))["right"])
    missed = []
    for name, row in rows.items():
        change, least, _ = difference(exact, together(row["right"]))
        if name in MOST_LOST and len(exact) >= LEAST_ASKED and least < -MOST_LOST[name]:
            missed.append(f"{where}: {name}: {100 * change:+.1f} points of right answers, and maybe {100 * least:+.1f}, expected at "
                          f"least {-100 * MOST_LOST[name]:g}")
        if name.startswith("--quality") and "buddies" in row.get("chain", ""):
            missed.append(f"{where}: {name} answers by {row['chain']}, which it is to leave out")
    return missed


def _missed_by_control(of_shares):
    """The questions themselves are held to showing a loss."""
    least = min(of_shares, key=float)
    rows = of_shares[least]
    if CONTROL not in rows:
        return []
    _, _, most = difference(together(next(iter(rows.values()))["right"]), together(rows[CONTROL]["right"]))
    return [] if most < 0 else [f"lossy, {least}: {CONTROL} may lose nothing: these questions show no loss"]


def missed_bars(figures):
    missed = _missed_by_control(figures["lossy"]["rows"]) if "lossy" in figures else []
    for part in ("lossy", "loop"):
        for of, rows in figures.get(part, {}).get("rows", {}).items():
            right = next(iter(rows.values()))["right"]
            good = [name for name, answers in right.items() if _share(answers) >= LEAST_RIGHT]
            if len(good) < LEAST_TASKS:
                missed.append(f"{part}, {of}: {len(good)} exercises are answered rightly {100 * LEAST_RIGHT:.0f} times of 100 "
                              f"or more, expected {LEAST_TASKS}")
            missed += _missed_by_lossy(f"{part}, {of}", rows)
    for of, rows in figures.get("ends", {}).get("rows", {}).items():
        cloud = next(iter(rows.values()))
        for name, row in rows.items():
            change, _, _ = difference(together(cloud["right"]), together(row["right"]))
            if row.get("exact") and row["right"] != cloud["right"]:
                missed.append(f"ends, {of}: {name}: other answers than the cloud alone, though exact")
            elif row.get("held") and change < -MOST_LOST_BY_ROWS:
                missed.append(f"ends, {of}: {name}: {100 * change:+.2f} points of right answers, expected at least "
                              f"{-100 * MOST_LOST_BY_ROWS:g}")
    return missed


def figures_line(figures, missed):
    parts = []
    for part, of in figures.items():
        for where, rows in of["rows"].items():
            everything = together(next(iter(rows.values()))["right"])
            held = [difference(everything, together(row["right"]))[0] for name, row in rows.items() if name in MOST_LOST]
            lost = f", {len(held)} ways held lose {-100 * min(held):.1f} points at most" if held else ""
            parts.append(f"{part}, {where}: exact {100 * _share(everything):.1f} % of {len(everything)} right{lost}")
    return f"answers: {'; '.join(parts)}; bars missed: {len(missed)}"
