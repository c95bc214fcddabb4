"""Tables, plots and bars of bench/substitution's figures."""
import math

import paired_blocks
import placement_svg
import substitution_runs
from substitution_runs import GATED_BUDDIES, MOST_BYTES, MOST_LOSS, PAPERS_ALPHA, RESIDENT, loss

FASTER = {1: 0.24, 3: 0.35}  # less time a token than the fastest exact way, by batch
CACHED, MOST_DECIDING = 0.60, 0.01
BUDDY_SPEED = 1.10
GATES = ("tau_closed", "gamma_closed", "beta_closed", "rho_closed")
# What the papers print of their machines and models, means over settings; BuddyMoE's of 75 and of 37.5 % in memory.
PAPER = {"router": {1: "24 %", 3: "35 %"}, "CE": "8 %", "CR": "20 %", "Pre": "14 %", "BA": "34 %", "buddies": "1.07 and 1.10 times",
         "buddies' bytes": "about 80 %"}


def best_exact(rows):
    return min((rows[name] for name in substitution_runs.EXACT), key=lambda row: 1 / row["tokens_per_s"])


def time_saved(rows, row):
    return 1 - best_exact(rows)["tokens_per_s"] / row["tokens_per_s"]


def apart(part, buddies, rival):
    """(mean, least, most) of the KL of these buddies less that of a control, over the same blocks of text."""
    return paired_blocks.difference(part["systems"][buddies]["kl_blocks"], part["rivals"][buddies][rival]["kl_blocks"])


def buddies_win(part, buddies):
    """Against every control at the same gates, by all of the interval; one that does not come to their rate must lose more
    all the same."""
    return all(apart(part, buddies, rival)[2] < 0 for rival in part["rivals"][buddies])


def missed_by_buddies(part):
    """Of the ones that were chosen on other problems. Bars on what they save hold where they win; where they do not,
    `balanced` leaves them out for that."""
    rows = part["systems"]
    exact = best_exact(rows)
    if not buddies_win(part, GATED_BUDDIES):
        return []
    missed, row = [], rows[GATED_BUDDIES]
    speed, read = (row[key] / exact[key] for key in ("tokens_per_s", "MiB_per_token"))
    if speed < BUDDY_SPEED:
        missed.append(f"{GATED_BUDDIES}: {speed:.2f}x the tokens/s of exact, at least {BUDDY_SPEED:g}")
    if read > MOST_BYTES:
        missed.append(f"{GATED_BUDDIES}: {read:.2f} of the bytes of exact, at most {MOST_BYTES:g}")
    return missed


def rivals_text(part, name):
    """Buddies and every control behind their gates, at the rate of the buddies."""
    row = part["systems"][name]
    ((_, gates),) = row["gates"].items()
    closed = ", ".join(f"{gate} {gates[gate]}" for gate in GATES)
    chosen = ", chosen on other problems" if name == GATED_BUDDIES else ""
    lines = ["", f"{name}: {part['buddies'][name]}{chosen}; {closed}",
             f"  {'':<26} slots a token      KL  buddies' KL less this one's  perplexity  chain",
             f"  {'buddies':<26} {row['replaced_there']:13.3f} {row['mean_kl']:7.4f} {'':<27} {100 * (row['perplexity_ratio'] - 1):+9.2f} %"]
    for rival, found in part["rivals"].get(name, {}).items():
        mean, least, most = apart(part, name, rival)
        short = "" if found["matched"] else " (does not come to that rate)"
        lines.append(f"  {rival:<26} {found['rate']:13.3f} {found['mean_kl']:7.4f} {f'{mean:+.4f} ({least:+.4f} to {most:+.4f})':<27} "
                     f"{100 * (found['perplexity_ratio'] - 1):+9.2f} %  {found['chain']}{short}")
    return "\n".join(lines)


def budgets_text(part):
    lines = ["", f"{'% of the experts in memory':<28} " + "  ".join(f"{budget:>8}" for budget in part["budgets"])]
    for way, words in (("exact", "exact"), ("chosen", part["chosen"])):
        found = [budget for budget in part["budgets"].values()]
        lines.append(f"{words + ', from cache':<28} " + "  ".join(f"{100 * of['cached'][way]:6.1f} %" for of in found))
        speeds = [of["tokens_per_s"][way] for of in found]
        lines.append(f"{words + ', tokens/s':<28} " + "  ".join("        " if speed is None else f"{speed:8.2f}" for speed in speeds))
    return "\n".join(lines)


def row_text(rows, name):
    row = rows[name]
    low, high = row["perplexity_ratio_interval"]
    span = "" if low is None else f"({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
    most = loss(row)
    most = f"{100 * most:5.2f} %" if math.isfinite(most) else "unknown"
    return (f"{name:<28} {row['tokens_per_s']:8.2f} {100 * time_saved(rows, row):9.1f} % "
            f"{100 * (row['perplexity_ratio'] - 1):+6.2f} % {span:<18} {row['mean_kl']:7.4f}  {most:>8} {100 * row['hit_rate']:6.1f}% "
            f"{row['MiB_per_token']:9.2f} {row['replaced']:9.2f}")


def replay_error(figures):
    """{chain: tokens/s of the replay without a second lane over those of the same chain live, less one}."""
    rows = figures["batches"][next(iter(figures["batches"]))]["systems"]
    live = {"exact": rows["exact, nothing read ahead"]["tokens_per_s"]}
    return {chain: speed / live.get(chain, rows["echo, nothing ahead"]["tokens_per_s"]) - 1
            for chain, speed in figures["balance"]["none"].items()}


def balance_text(figures):
    lines = ["", "balance (BA): tokens/s of a replay with a second lane that answers experts itself"]
    for lane, chains in figures["balance"].items():
        lines.append(f"{'second lane ' + lane:<36} " + ", ".join(f"{chain} {speed:.1f}" for chain, speed in chains.items()))
    lines.append("the replay without one against the engine, nothing read ahead: "
                 + ", ".join(f"{chain} {100 * error:+.0f} %" for chain, error in replay_error(figures).items()))
    return "\n".join(lines)


def papers_rows(figures):
    """[(what, {batch: ours}, {batch: paper's})], as text."""
    parts = {int(batch): part for batch, part in figures["batches"].items()}

    def of_all(ours):
        return {batch: ours(part["systems"]) for batch, part in parts.items()}

    def less_time(name, than):
        return of_all(lambda rows: f"{100 * (1 - rows[than]['tokens_per_s'] / rows[name]['tokens_per_s']):.1f} %")

    def each(words):
        return dict.fromkeys(parts, words)

    exact_speed = of_all(lambda rows: f"{rows[GATED_BUDDIES]['tokens_per_s'] / best_exact(rows)['tokens_per_s']:.2f} times")
    exact_bytes = of_all(lambda rows: f"{100 * rows[GATED_BUDDIES]['MiB_per_token'] / best_exact(rows)['MiB_per_token']:.0f} %")
    rows = [(f"time saved over the fastest exact way, the paper's alpha of {PAPERS_ALPHA:g}",
             of_all(lambda rows: f"{100 * time_saved(rows, rows[f'smoe {PAPERS_ALPHA:g}']):.1f} %"), PAPER["router"]),
            ("the same, the alpha chosen", {batch: f"{100 * time_saved(part['systems'], part['systems'][part['chosen']]):.1f} %"
                                           for batch, part in parts.items()}, PAPER["router"]),
            ("eviction by score (CE) over LRU saves", less_time("CE", "base"), each(PAPER["CE"])),
            ("the router (CR) in addition", less_time("CE+CR", "CE"), each(PAPER["CR"])),
            ("prefetching by the paper's look-ahead (Pre) in addition", less_time("CE+CR+look-ahead", "CE+CR"), each(PAPER["Pre"])),
            ("prefetching top scores of the engine's forecasts instead", less_time("CE+CR+top scores", "CE+CR"), each("")),
            ("buddies with all gates: tokens/s over exact", exact_speed, each(PAPER["buddies"])),
            ("buddies with all gates: bytes, of exact's", exact_bytes, each(PAPER["buddies' bytes"]))]
    lanes = list(figures["balance"].values())
    chain = list(lanes[0])[-1]
    rows.insert(6, ("a second lane as fast as the link (BA), in a replay", {1: f"{100 * (1 - lanes[0][chain] / lanes[-1][chain]):.1f} %"},
                    each(PAPER["BA"])))
    return rows


def papers_table(figures):
    """In the form of the report."""
    batches = [int(batch) for batch in figures["batches"]]
    words = {1: "token by token", 3: "three tokens at a time"}
    head = [cell for batch in batches for cell in (words[batch], "paper")]
    lines = ["| | " + " | ".join(head) + " |", "| --- |" + " --- |" * len(head)]
    for what, ours, papers in papers_rows(figures):
        lines.append("| " + " | ".join([what, *(cell for batch in batches for cell in (ours.get(batch, ""), papers[batch]))]) + " |")
    return "\n".join(lines)


def tables(figures):
    lines = [f"{RESIDENT} % of {figures['experts']} experts in memory, the cache filled before; tokens/s, perplexity and KL are of problems on "
             "which nothing was calibrated or chosen"]
    for batch, part in figures["batches"].items():
        rows = part["systems"]
        lines += ["", f"batch {batch}; 'A' is {part['chosen']}, which lost at most {100 * part['chosen_loss_there']:.2f} % on the problems that "
                  "it was chosen on",
                  f"{'':<28} tokens/s  time saved  perplexity                  KL   at most    hits  MiB/token  replaced",
                  *(row_text(rows, name) for name in rows), budgets_text(part), *(rivals_text(part, name) for name in part["rivals"])]
    return "\n".join([*lines, balance_text(figures), "", papers_table(figures)])


def missed_by_cache(part):
    missed = []
    for budget, of in part["budgets"].items():
        exact, chosen = of["cached"]["exact"], of["cached"]["chosen"]
        if chosen < CACHED:
            missed.append(f"{100 * chosen:.1f} % served from cache with {budget} % of the experts, at least {100 * CACHED:g}")
        if chosen <= exact:
            missed.append(f"{100 * chosen:.1f} % served from cache with {budget} % of the experts, more than exact's {100 * exact:.1f} expected")
    return missed


def missed_bars(figures):
    missed = []
    for batch, part in figures["batches"].items():
        rows, name = part["systems"], part["chosen"]
        of_batch = [*missed_by_buddies(part), *missed_by_cache(part)]
        of_batch += [f"{buddies}: {rival} replaces {found['rate']:.3f} slots a token and they {rows[buddies]['replaced_there']:.3f}: "
                     "not compared at the same rate" for buddies, found_by in part["rivals"].items()
                     for rival, found in found_by.items() if not found["matched"]]
        most, saved = loss(rows[name]), time_saved(rows, rows[name])
        if most > MOST_LOSS:
            of_batch.append(f"{name} may lose {100 * most:.2f} % of perplexity, at most {100 * MOST_LOSS:g}")
        if saved < FASTER[int(batch)]:
            of_batch.append(f"{name} saves {100 * saved:.1f} % of the time, at least {100 * FASTER[int(batch)]:g}")
        if rows[name]["hit_rate"] <= best_exact(rows)["hit_rate"]:
            of_batch.append(f"{name}: {100 * rows[name]['hit_rate']:.1f} % served from cache, more than exact's "
                            f"{100 * best_exact(rows)['hit_rate']:.1f} expected")
        deciding = max(row["deciding"] for row in rows.values())
        if deciding > MOST_DECIDING:
            of_batch.append(f"deciding took {100 * deciding:.2f} % of the time, at most {100 * MOST_DECIDING:g}")
        missed += [f"batch {batch}: {line}" for line in of_batch]
    return missed


def buddies_line(figures):
    """That they win is no bar: `balanced` leaves them out where they do not."""
    parts = []
    for batch, part in figures["batches"].items():
        rows, name = part["systems"], GATED_BUDDIES
        exact = best_exact(rows)
        parts.append(f"batch {batch} {name} {'beat' if buddies_win(part, name) else 'do not beat'} {len(part['rivals'][name])} controls at "
                     f"the same gates and rate, {rows[name]['tokens_per_s'] / exact['tokens_per_s']:.2f}x exact, "
                     f"{rows[name]['MiB_per_token'] / exact['MiB_per_token']:.2f} of its bytes")
    return "; ".join(parts)


def figures_line(figures, missed):
    parts = []
    for batch, part in figures["batches"].items():
        rows, name = part["systems"], part["chosen"]
        row = rows[name]
        parts.append(f"batch {batch} {name} saves {100 * time_saved(rows, row):.1f} % of the time for a loss of at most {100 * loss(row):.2f} % of "
                     f"perplexity, {100 * row['hit_rate']:.1f} % from cache, deciding {100 * row['deciding']:.2f} %")
    return (f"substitution: {'; '.join(parts)}; {buddies_line(figures)}; disturbed {figures['disturbed']}, "
            f"bars missed: {len(missed)}")


def draw(figures, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for batch, part in figures["batches"].items():
        rows = part["systems"]
        by_alpha = {float(name.split()[1]): row for name, row in rows.items() if name.startswith("smoe ")}
        series = {"smoe, alpha": [(alpha, 100 * time_saved(rows, row)) for alpha, row in by_alpha.items()]}
        (folder / f"time-{batch}.svg").write_text(placement_svg.lines(
            f"Time saved against the fastest exact way, batch {batch}", "alpha", "%", series), encoding="utf-8")
        series = {"smoe, alpha": [(alpha, 100 * loss(row)) for alpha, row in by_alpha.items() if math.isfinite(loss(row))]}
        if series["smoe, alpha"]:
            (folder / f"loss-{batch}.svg").write_text(placement_svg.lines(
                f"Perplexity lost at most, batch {batch}", "alpha", "%", series), encoding="utf-8")
