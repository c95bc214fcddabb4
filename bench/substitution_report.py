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
    """The fastest ways with the alpha that was chosen on the other half of the text, whose loss is within the bar on this."""
    part = figures["batches"][batch]
    allowed = {name: row for name, row in part["systems"].items()
               if (name == part["chosen"] or name.startswith(("CE+CR", "echo"))) and loss(row) <= MOST_LOSS}
    if not allowed:
        return None
    return max(allowed, key=lambda name: allowed[name]["tokens_per_s"])


def buddies_win(part, buddies):
    """Against every control at the same gates; one that does not come to their rate must lose more all the same."""
    kl = part["systems"][buddies]["mean_kl"]
    return all(kl < rival["mean_kl"] for rival in part["rivals"][buddies].values())


def missed_by_buddies(part):
    """Of the ones that were chosen on the other half of the text. Bars on what they save hold where they win; where they do
    not, `balanced` leaves them out for that."""
    rows, name = part["systems"], part["chosen_buddies"]
    exact = best_exact(rows)
    if not buddies_win(part, name):
        return []
    missed, row = [], rows[name]
    speed, read = (row[key] / exact[key] for key in ("tokens_per_s", "MiB_per_token"))
    if speed < BUDDY_SPEED:
        missed.append(f"{name}: {speed:.2f}x the tokens/s of exact, at least {BUDDY_SPEED:g}")
    if read > BUDDY_BYTES:
        missed.append(f"{name}: {read:.2f} of the bytes of exact, at most {BUDDY_BYTES:g}")
    return missed


def rivals_text(part, name):
    """Buddies and every control behind their gates, at the rate of the buddies."""
    row = part["systems"][name]
    ((_, gates),) = row["gates"].items()
    closed = ", ".join(f"{gate} {gates[gate]}" for gate in ("tau_closed", "gamma_closed", "beta_closed", "rho_closed"))
    lines = [f"{name}{', chosen on the other half of the text' if name == part['chosen_buddies'] else ''}; {closed}",
             f"  {'':<26} slots a token      KL  perplexity  chain",
             f"  {'buddies':<26} {row['replaced_there']:13.3f} {row['mean_kl']:7.4f} {100 * (row['perplexity_ratio'] - 1):+9.2f} %"]
    for rival, found in part["rivals"].get(name, {}).items():
        short = "" if found["matched"] else " (does not come to that rate)"
        lines.append(f"  {rival:<26} {found['rate']:13.3f} {found['mean_kl']:7.4f} {100 * (found['perplexity_ratio'] - 1):+9.2f} %  "
                     f"{found['chain']}{short}")
    return "\n".join(lines)


def tables(figures):
    lines = [f"half of {figures['experts']} experts in memory; perplexity and KL are of half a text that nothing was calibrated or chosen on"]
    for batch, part in figures["batches"].items():
        rows = part["systems"]
        lines += ["", f"batch {batch}; 'A' is {part['chosen']}, which lost {100 * part['chosen_loss_there']:.2f} % on the half it was chosen on",
                  f"{'':<28} tokens/s  time saved  perplexity                  KL    hits  MiB/token  replaced"]
        for name, row in rows.items():
            low, high = row["perplexity_ratio_interval"]
            span = "" if low is None else f"({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
            lines.append(f"{name:<28} {row['tokens_per_s']:8.2f} {100 * time_saved(rows, row):9.1f} % "
                         f"{100 * (row['perplexity_ratio'] - 1):+6.2f} % {span:<18} {row['mean_kl']:7.4f} {100 * row['hit_rate']:6.1f}% "
                         f"{row['MiB_per_token']:9.2f} {row['replaced']:9.2f}")
        lines += [rivals_text(part, name) for name in part["rivals"]]
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
        missed += [f"batch {batch}: {line}" for line in missed_by_buddies(part)]
        missed += [f"batch {batch}: {name}: {rival} replaces {found['rate']:.3f} slots a token and they {rows[name]['replaced_there']:.3f}: "
                   "not compared at the same rate" for name, found_by in part["rivals"].items()
                   for rival, found in found_by.items() if not found["matched"]]
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
        exact, name = best_exact(rows), part["chosen_buddies"]
        parts.append(f"batch {batch} {name} {'beat' if buddies_win(part, name) else 'do not beat'} {len(part['rivals'][name])} controls at "
                     f"the same gates and rate, {rows[name]['tokens_per_s'] / exact['tokens_per_s']:.2f}x exact, "
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
