"""Tables, plots and bars of bench/substitution's figures."""
import placement_svg
import substitution_runs
from substitution_runs import MOST_LOSS, loss

FASTER = {1: 0.24, 3: 0.35}  # less time a token than the fastest exact way, by batch
CACHED, MOST_DECIDING = 0.60, 0.01
BUDDY_SPEED, BUDDY_BYTES = 1.10, 0.80


def best_exact(rows):
    return min((rows[name] for name in substitution_runs.EXACT), key=lambda row: 1 / row["tokens_per_s"])


def time_saved(rows, row):
    return 1 - best_exact(rows)["tokens_per_s"] / row["tokens_per_s"]


def paid(figures, batch):
    """The fastest of SMoE's settings whose loss is within the bar."""
    rows = figures["batches"][batch]["systems"]
    allowed = {name: row for name, row in rows.items()
               if (name.startswith(("smoe ", "CE+CR", "echo"))) and loss(row) <= MOST_LOSS}
    if not allowed:
        return None
    return max(allowed, key=lambda name: allowed[name]["tokens_per_s"])


def rival_kl(rows, name, rate):
    """The KL of a control at that rate of replacement: on the line through none and its measured points."""
    points = sorted((row["replaced_there"], row["mean_kl"]) for key, row in rows.items() if key.startswith(name + ", rho"))
    before = (0.0, 0.0)
    for point in points:
        if rate <= point[0] or point == points[-1]:
            width = point[0] - before[0]
            return before[1] + (point[1] - before[1]) * (rate - before[0]) / width if width > 0 else point[1]
        before = point
    return None


def rivals(rows, buddies):
    return {name: rival_kl(rows, name, rows[buddies]["replaced_there"]) for name in substitution_runs.CONTROLS}


def buddies_win(rows, buddies):
    return all(rows[buddies]["mean_kl"] < kl for kl in rivals(rows, buddies).values())


def best_buddies(rows):
    """The fastest that win; where none does, those whose KL is least beside the best of their rivals."""
    def beside(name):
        least = min(rivals(rows, name).values())
        return rows[name]["mean_kl"] / least if least > 0 else float("inf")

    variants = [name for name in substitution_runs.BUDDIES if name in rows]
    winners = [name for name in variants if buddies_win(rows, name)]
    return max(winners, key=lambda name: rows[name]["tokens_per_s"]) if winners else min(variants, key=beside)


def missed_by_buddies(rows):
    """Bars on what they save hold where they win; where they do not, `balanced` leaves them out for that."""
    name, exact = best_buddies(rows), best_exact(rows)
    if not buddies_win(rows, name):
        return []
    missed, row = [], rows[name]
    speed, read = (row[key] / exact[key] for key in ("tokens_per_s", "MiB_per_token"))
    if speed < BUDDY_SPEED:
        missed.append(f"{name}: {speed:.2f}x the tokens/s of exact, at least {BUDDY_SPEED:g}")
    if read > BUDDY_BYTES:
        missed.append(f"{name}: {read:.2f} of the bytes of exact, at most {BUDDY_BYTES:g}")
    return missed


def buddies_text(rows, name):
    row = rows[name]
    ((_, gates),) = row["gates"].items()
    kls = ", ".join(f"{rival} {kl:.4f}" for rival, kl in rivals(rows, name).items())
    closed = ", ".join(f"{gate} {gates[gate]}" for gate in ("tau_closed", "gamma_closed", "beta_closed", "rho_closed"))
    return (f"{name}: {row['replaced_there']:.2f} slots a token replaced at a KL of {row['mean_kl']:.4f}; at the same rate: "
            f"{kls}; {closed}")


def tables(figures):
    lines = [f"half of {figures['experts']} experts in memory; perplexity and KL are of a text that nothing was calibrated on"]
    for batch, part in figures["batches"].items():
        rows = part["systems"]
        lines += ["", f"batch {batch}; 'A' is {part['chosen']}",
                  f"{'':<28} tokens/s  time saved  perplexity                  KL    hits  MiB/token  replaced"]
        for name, row in rows.items():
            low, high = row["perplexity_ratio_interval"]
            span = "" if low is None else f"({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
            lines.append(f"{name:<28} {row['tokens_per_s']:8.2f} {100 * time_saved(rows, row):9.1f} % "
                         f"{100 * (row['perplexity_ratio'] - 1):+6.2f} % {span:<18} {row['mean_kl']:7.4f} {100 * row['hit_rate']:6.1f}% "
                         f"{row['MiB_per_token']:9.2f} {row['replaced']:9.2f}")
        lines += [buddies_text(rows, name) for name in substitution_runs.BUDDIES]
        lines.append("uses served from cache with 'A', nothing read ahead: " + ", ".join(
            f"{100 * rate:.1f} % with {budget} % of the experts" for budget, rate in part["cached"].items()))
    lines += ["", "balance (BA): tokens/s of a replay with a second lane that answers experts itself"]
    for lane, chains in figures["balance"].items():
        lines.append(f"{'second lane ' + lane:<36} " + ", ".join(f"{chain} {speed:.1f}" for chain, speed in chains.items()))
    return "\n".join(lines)


def missed_bars(figures):
    missed = []
    for batch, part in figures["batches"].items():
        rows, name = part["systems"], paid(figures, batch)
        missed += [f"batch {batch}: {line}" for line in missed_by_buddies(rows)]
        missed += [f"batch {batch}: {100 * rate:.1f} % served from cache with {budget} % of the experts, at least "
                   f"{100 * CACHED:g}" for budget, rate in part["cached"].items() if rate < CACHED]
        if name is None:
            missed.append(f"batch {batch}: no setting within {100 * MOST_LOSS:g} % of perplexity")
            continue
        saved = time_saved(rows, rows[name])
        if saved < FASTER[int(batch)]:
            missed.append(f"batch {batch}: {name} saves {100 * saved:.1f} % of the time, at least {100 * FASTER[int(batch)]:g}")
        if rows[name]["hit_rate"] < CACHED:
            missed.append(f"batch {batch}: {100 * rows[name]['hit_rate']:.1f} % served from cache, at least {100 * CACHED:g}")
        deciding = max(row["deciding"] for row in rows.values())
        if deciding > MOST_DECIDING:
            missed.append(f"batch {batch}: deciding took {100 * deciding:.2f} % of the time, at most {100 * MOST_DECIDING:g}")
    return missed


def buddies_line(figures):
    """That they win is no bar: `balanced` leaves them out where they do not."""
    parts = []
    for batch, part in figures["batches"].items():
        rows = part["systems"]
        exact, name = best_exact(rows), best_buddies(rows)
        parts.append(f"batch {batch} {name} {'beat' if buddies_win(rows, name) else 'do not beat'} random and zero fill at "
                     f"the same rate, {rows[name]['tokens_per_s'] / exact['tokens_per_s']:.2f}x exact, "
                     f"{rows[name]['MiB_per_token'] / exact['MiB_per_token']:.2f} of its bytes")
    return "; ".join(parts)


def figures_line(figures, missed):
    parts = []
    for batch, part in figures["batches"].items():
        rows, name = part["systems"], paid(figures, batch)
        if name is None:
            continue
        row = rows[name]
        parts.append(f"batch {batch} {name} saves {100 * time_saved(rows, row):.1f} % of the time for a loss of {100 * loss(row):.2f} % of "
                     f"perplexity, {100 * row['hit_rate']:.1f} % from cache, deciding {100 * row['deciding']:.2f} %")
    return (f"substitution: {'; '.join(parts)}; {buddies_line(figures)}; disturbed {figures['disturbed']}, "
            f"bars missed: {len(missed)}")


def draw(figures, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for batch, part in figures["batches"].items():
        rows = part["systems"]
        series = {"smoe, alpha": [(float(name.split()[1]), 100 * time_saved(rows, row))
                                  for name, row in rows.items() if name.startswith("smoe ")]}
        (folder / f"time-{batch}.svg").write_text(placement_svg.lines(
            f"Time saved against the fastest exact way, batch {batch}", "alpha", "%", series), encoding="utf-8")
        series = {"smoe, alpha": [(float(name.split()[1]), 100 * loss(row))
                                  for name, row in rows.items() if name.startswith("smoe ")]}
        (folder / f"loss-{batch}.svg").write_text(placement_svg.lines(
            f"Perplexity lost, batch {batch}", "alpha", "%", series), encoding="utf-8")
