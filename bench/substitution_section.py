"""What bench/substitution's figures say, as the section of docs/reports/substitution.md between two marks. Every sentence
follows from the figures, so that a run that finds otherwise says otherwise.
"""
import textwrap

import substitution_report
from substitution_report import FASTER, GATED_BUDDIES, apart, best_exact, buddies_win, missed_bars, papers_table, tables, time_saved
from substitution_runs import PAPERS_ALPHA, loss

BEGIN, END = "<!-- bench/substitution --report: begin -->", "<!-- bench/substitution --report: end -->"
WORDS = {1: "token by token", 3: "three tokens at a time"}


def _batches(figures):
    return {int(batch): part for batch, part in figures["batches"].items()}


def _each(figures, say):
    return "; ".join(f"{WORDS[batch]} {say(batch, part)}" for batch, part in _batches(figures).items())


def _router(figures):
    def chosen(batch, part):
        rows, row = part["systems"], part["systems"][part["chosen"]]
        return (f"{100 * time_saved(rows, row):.1f} % (bar {100 * FASTER[batch]:g}) at alpha {part['chosen'].split()[1]}, for a loss of at most "
                f"{100 * loss(row):.2f} %")

    def papers(batch, part):
        saved = time_saved(part["systems"], part["systems"][f"smoe {PAPERS_ALPHA:g}"])
        return f"{100 * saved:.1f} %, {'above' if saved >= FASTER[batch] else 'below'} the bar of {100 * FASTER[batch]:g}"

    return [f"SMoE's router with the alpha chosen saves, over the fastest exact way, {_each(figures, chosen)}.",
            f"At the paper's alpha of {PAPERS_ALPHA:g} it saves {_each(figures, papers)}."]


def _bias(figures):
    def beside(_, part):
        rows = part["systems"]
        ours = rows[part["chosen"]]
        name = min((name for name in rows if name.startswith("bias ")), key=lambda name: abs(rows[name]["mean_kl"] - ours["mean_kl"]))
        return (f"{name} saves {100 * time_saved(rows, rows[name]):.1f} % at a KL of {rows[name]['mean_kl']:.4f}, the router "
                f"{100 * time_saved(rows, ours):.1f} % at {ours['mean_kl']:.4f}")
    return [f"The bias for residents whose KL is nearest to the router's: {_each(figures, beside)}."]


def _against(part):
    """How buddies with all gates do against each control at their rate."""
    verdicts = {"beat": [], "lose to": [], "cannot be told from": []}
    for rival in part["rivals"][GATED_BUDDIES]:
        _, least, most = apart(part, GATED_BUDDIES, rival)
        verdicts["beat" if most < 0 else "lose to" if least > 0 else "cannot be told from"].append(rival.replace(",", ""))
    return "; ".join(f"they {verdict} {', '.join(rivals)}" for verdict, rivals in verdicts.items() if rivals)


def _buddies(figures):
    def bytes_and_speed(_, part):
        rows = part["systems"]
        row, exact, router = rows[GATED_BUDDIES], best_exact(rows), rows[part["chosen"]]
        return (f"{row['tokens_per_s'] / exact['tokens_per_s']:.2f} times the tokens/s of exact and {100 * row['MiB_per_token'] / exact['MiB_per_token']:.0f} % "
                f"of its bytes at a KL of {row['mean_kl']:.4f} (the router: {router['tokens_per_s'] / exact['tokens_per_s']:.2f} times, "
                f"{100 * router['MiB_per_token'] / exact['MiB_per_token']:.0f} %, {router['mean_kl']:.4f})")

    parts = list(_batches(figures).values())
    verdict = ("Buddies beat every control." if all(buddies_win(part, GATED_BUDDIES) for part in parts)
               else "Where buddies do not beat every control, bars on what they save are not held.")
    return [*(f"Buddies behind all gates, against controls behind the same gates and at the same rate of replacing, {WORDS[batch]}: {_against(part)}."
              for batch, part in _batches(figures).items()),
            verdict,
            f"Buddies behind all gates give {_each(figures, bytes_and_speed)}."]


def _parts(figures):
    error = ", ".join(f"{100 * error:+.0f} % for {chain}" for chain, error in substitution_report.replay_error(figures).items())
    return [f"Balance is a replay, whose speeds without a second lane are off the engine's by {error}: what it says of a second lane is no nearer "
            "than that."]


def section(figures, pictures=None):
    """`pictures`: the folder with the plots, as the report's links name it."""
    missed = missed_bars(figures)
    lines = [f"Measured with `bench/substitution --check` on {figures['processors']} processors and a disk of "
             f"{figures['disk_bytes_per_s'] / 1e9:.1f} GB/s; {figures['disturbed']} runs were disturbed. "
             + ("Every bar holds." if not missed else "Bars that are missed:"), ""]
    lines += [*(f"- {line}" for line in missed), ""] if missed else []
    lines += [papers_table(figures), ""]
    lines += [f"- {line}" for say in (_router, _bias, _buddies, _parts) for line in say(figures)] + [""]
    if pictures:
        lines += [f"![{what}, {WORDS[batch]}]({pictures}/{name}-{batch}.svg)" for batch in _batches(figures)
                  for name, what in (("time", "time saved over alpha"), ("loss", "perplexity lost at most over alpha"))] + [""]
    without_papers = tables(figures).removesuffix(papers_table(figures)).rstrip("\n")
    return "\n".join(line.rstrip() for line in [*lines, *textwrap.indent(without_papers, "    ").splitlines()])


def put_into(text, new):
    """The report with the section in place of what stands between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"no '{BEGIN}' with '{END}' behind it")
    return f"{before}{BEGIN}\n\n{new}\n\n{END}{after}"
