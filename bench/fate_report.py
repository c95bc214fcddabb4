"""bench/fate's figures as docs/reports/fate.md shows them: tables in Markdown, plots, and a last line."""
import statistics

import fate_bars
import placement_svg
from fate_systems import NOTHING, NO_CACHE, PATHS, WRONG

PLACES = ("attention input", "gate input", "next attention input")


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def headlines(figures):
    rows = []
    for bar in fate_bars.headline_bars(figures):
        rows.append([bar.what, bar.paper, bar.ours() + (" (missed)" if bar.is_missed else ""), bar.shown(bar.bar),
                     bar.baseline, bar.chosen, f"`{bar.command}`"])
    return table(["measure", "paper", "ours", "bar", "baseline and its settings", "tuned, and where", "command"], rows)


def below(figures):
    """Every cell by itself, the slowest first."""
    bars = sorted(fate_bars.below_bars(figures), key=lambda bar: bar.value / bar.bar)
    missed = sum(bar.is_missed for bar in bars)
    rows = [[bar.what, f"{bar.value:.3f}{' (missed)' if bar.is_missed else ''}", f"{bar.bar}", bar.reason] for bar in bars]
    return (f"{missed} of {len(bars)} cells are below their bar.\n\n" +
            table(["cell", "speed over nothing read ahead", "bar", "figures"], rows))


def _percent(quality):
    return f"{100 * quality['expected']:.1f}, {100 * quality['guessed']:.1f}"


def calibration(figures):
    rows = [[str(layer["layer"]), _percent(layer["gate input"]), *(_percent(quality) for quality in layer["corrected"])]
            for layer in figures["calibration"]["layers"]]
    means = figures["calibration"]["means"]
    rows.append(["mean", _percent(means["gate input"]), *(_percent(means[f"corrected {i}"]) for i in (1, 2, 3))])
    places = ", ".join(f"{place} {_percent(means[place])} (similarity {means[place]['similarity']:.3f})" for place in PLACES)
    return (table(["layer", "gate, one before", *(f"corrected, {i} ahead" for i in (1, 2, 3))], rows) +
            f"\n\nMeans by the place whose input is used: {places}. Layers of which nothing can be forecast are not in the means.")


def _over(figure, other):
    return f"{figure['tokens_per_s'] / other['tokens_per_s']:.2f}"


def decode(systems):
    rows = []
    for name, f in systems.items():
        guessed = f"{100 * f['guessed']:.1f}" if "guessed" in f else ""
        rows.append([name, f["settings"], f"{f['tokens_per_s']:.2f}", _over(f, systems[NO_CACHE]), _over(f, systems[PATHS]),
                     _over(f, systems[NOTHING]), f"{100 * f['hit_rate']:.1f}", f"{100 * f['late']:.1f}",
                     f"{f['MiB_per_token']:.1f}", guessed])
    return table(["system", "settings", "tokens/s", "x no cache", "x paths", "x nothing ahead", "hits, %", "late, %",
                  "MiB/token", "guessed, %"], rows)


def ablation(systems, what="predictor", first="none"):
    rows = []
    for name, f in systems.items():
        guessed = f"{100 * f['guessed']:.1f}" if "guessed" in f else ""
        rows.append([name, f"{f['tokens_per_s']:.2f}", _over(f, systems[first]), f"{100 * f['hit_rate']:.1f}",
                     f"{100 * f['late']:.1f}", f"{f['MiB_per_token']:.1f}", guessed, f"{f['gates_ms']:.1f}"])
    return table([what, "tokens/s", f"x {first}", "hits, %", "late, %", "MiB/token", "guessed, %", "gates, ms"], rows)


def keeping(figures):
    """Whether a shallow layer's experts are worth their slots, and what follows for the defaults."""
    cells = fate_bars.keeping_cells(figures)
    rows = []
    for cell in cells:
        its, mine = cell.without, cell.kept
        rows.append([cell.where, f"{its['tokens_per_s']:.2f}", f"{mine['tokens_per_s']:.2f}",
                     f"{statistics.median(cell.ratios):.3f} ({min(cell.ratios):.3f} to {max(cell.ratios):.3f})",
                     f"{100 * its['hit_rate']:.1f}, {100 * mine['hit_rate']:.1f}",
                     f"{its['MiB_per_token']:.1f}, {mine['MiB_per_token']:.1f}"])
    pays = [cell.where for cell in cells if cell.pays]
    decision = (f"**Decision.** Keeping a layer pays in {len(pays)} of {len(cells)} cells (at least {100 * fate_bars.PAYS - 100:.0f} % faster, "
                "and faster in every round)")
    if pays:
        decision += f": {'; '.join(pays)}. The defaults without a profile keep none there, and lose that."
    else:
        decision += ", so the defaults keep none; `--shallow` stays for models and links on which somebody measures otherwise."
    kept = ", ".join(f"{count} at {100 * share:g} %" for share, count in figures["profile_keeps"])
    decision += f" The profile, which counts misses of a cache like the engine's, keeps {kept}."
    return (table(["cell", "shallow 0, tokens/s", "shallow 1", "ratio (rounds)", "hits, %", "MiB/token"], rows) + "\n\n" + decision)


def prompts(lengths):
    first = next(iter(lengths.values()))
    rows = [[name, first[name]["settings"]] + [cell for row in lengths.values()
                                               for cell in (f"{row[name]['tokens_per_s']:.1f}", f"{row[name]['MiB']:.0f}")]
            for name in first]
    return table(["system", "settings", *(cell for length in lengths for cell in (f"{length}: tokens/s", "MiB read"))], rows)


def layer_hits(systems):
    names = list(systems)
    rows = zip(*(systems[name]["layer_hits"] for name in names))
    return table(["hits by layer, %", *names], [[str(layer), *(f"{100 * share:.1f}" for share in row)]
                                                for layer, row in enumerate(rows)])


def pairs(measured):
    pack = measured["pack"]
    loss, everything = (fate_bars.loss_text(measured[key]) for key in ("loss", "all_low"))
    return (f"{pack['high_type']} with {pack['low_type']}, both rounded with the least error; {pack['matrices_in_fallback_types']} "
            f"matrices in other types. A low copy has {pack['low_expert_bytes'] / pack['expert_bytes']:.2f} of a high one's bytes. "
            f"Chosen on the first half of the text: {100 * measured['share']:.1f} % of each layer's work in low copies. On the second half "
            f"that costs {loss} of perplexity, and everything in low copies {everything} (another model, by "
            "[precision.md](../design/precision.md): 1.81 %). Of a down row 64 weights are not zero; a model whose rows are full may lose "
            "more.\n\n" + prompts(measured["prefill"]))


def _machine(figures):
    lines = [f"- All in memory {figures['in_memory']:.1f} tokens/s; a layer takes {figures['layer_ms']:.2f} ms, an expert has "
             f"{figures['expert_bytes'] / 1e6:.2f} MB, {figures['layers']} layers have {figures['experts']} in all."]
    if "disk_bytes_per_s" in figures:
        times = figures["expert_bytes"] / figures["disk_bytes_per_s"] / figures["layer_ms"] * 1e3
        lines.append(f"- This disk reads {figures['disk_bytes_per_s'] / 1e9:.2f} GB/s: an expert takes {times:.1f} layer times.")
        lines += [f"- Not measured on the disk, which is too slow for it: {times:g} layer times an expert."
                  for times in figures["too_fast_for_the_disk"]]
    copied = figures.get("copied_bytes_per_s")
    if copied:
        taken = ", ".join(f"{link['layer_times']:.2f} (wanted {link['wanted']:g})" for link in figures["links"].values() if link["held"])
        lines.append(f"- Memory is copied at {copied / 1e9:.2f} GB/s; an expert that is held there takes {taken} layer times.")
    lines.append(f"- Systems: the median of {figures['system_rounds']} rounds in turn, each system as many; tables of one cache or one "
                 f"predictor: of {figures['rounds']}. Runs that others disturbed: {figures['disturbed']} of {figures['runs']}.")
    return "\n".join(lines)


def tables(figures):
    parts = ["## Headlines", headlines(figures), "## Machine", _machine(figures),
             "## Reading ahead against the same cache without", below(figures),
             "## How well layers are predicted", calibration(figures), "## Systems at their best",
             "Settings: chosen on another text with another seed, for each link and budget. Guesses of activation paths end where a "
             "gate's do, at the top-k and what exceeds the 75th percentile."]
    for link, budgets in figures["decode"].items():
        for budget, systems in budgets.items():
            parts += [f"**Decode, {budget} % of the experts in memory, {link}**", decode(systems)]
    link = next(iter(figures["decode"]))
    parts += [f"By layer, 50 %, {link}:", layer_hits(figures["decode"][link][50])]
    parts += ["Prompts begin with an empty cache, but in the rows `filled` with what the profile says is used most (`--fill on`): read "
              "before the request, whose time does not have it."]
    for link, lengths in figures["prefill"].items():
        parts += [f"**Prompts, half of the experts in memory, {link}**", prompts(lengths)]
    parts += ["## Same cache", "Predictors alone differ: `--cache echo --shallow 0`, the same slots, the same profile. \"Gates\" is the time of "
              "choosing experts in the whole run, prompt and answer, which has what forecasts cost: what is above the row `none` is the "
              "predictor's. `smoe` is SMoE's look-ahead: the next gate on the stream with the answers of the shared expert and of experts in "
              "memory, behind the next layer's attention."]
    for link, budgets in figures["same_cache"].items():
        for budget, systems in budgets.items():
            parts += [f"**{budget} % of the experts in memory, {link}**", ablation(systems)]
    parts += ["## Keeping a shallow layer", "The first layer's experts kept, or none, and nothing else differs: `lookahead`, `--cache echo`.",
              keeping(figures)]
    if "same_predictor" in figures:
        parts += ["## Same predictor", "Caches alone differ: `lookahead`, half of the experts in memory, this disk.",
                  ablation(figures["same_predictor"], "cache", next(iter(figures["same_predictor"])))]
    if "pairs" in figures:
        parts += ["## A pair of precisions", pairs(figures["pairs"])]
    return "\n\n".join(parts)


def missed_list(missed):
    return "\n\n".join(["## Bars that are missed", "\n".join(f"- {line}" for line in missed) or "None."])


def figures_line(figures, missed):
    shown = "; ".join(f"{bar.what} {bar.shown(bar.value)} (bar {bar.shown(bar.bar)})" for bar in fate_bars.headline_bars(figures))
    cells = fate_bars.below_bars(figures)
    least = min(bar.value for bar in cells if bar.bar == fate_bars.NEVER_BELOW)
    return (f"fate: {shown}; against nothing read ahead at least {least:.3f} (bar {fate_bars.NEVER_BELOW}, {len(cells)} cells); "
            f"disturbed {figures['disturbed']} of {figures['runs']} runs; bars missed: {len(missed)}")


def _drawn(figures):
    """A line takes more than one budget."""
    return [(link, budgets) for link, budgets in figures["decode"].items() if len(budgets) > 1]


def pictures(figures, folder):
    """What `draw` has drawn, as a report beside that folder shows it."""
    lines = [f"![Decode, {link}]({folder}/fate-decode-{i}.svg)" for i, (link, _) in enumerate(_drawn(figures))]
    return "\n".join([*lines, f"![Prediction by layer]({folder}/fate-prediction.svg)"])


def draw(figures, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for i, (link, budgets) in enumerate(_drawn(figures)):
        names = [name for name in next(iter(budgets.values())) if name != WRONG]
        series = {name: [(budget, budgets[budget][name]["tokens_per_s"]) for budget in budgets]
                  for name in names}
        (folder / f"fate-decode-{i}.svg").write_text(placement_svg.lines(
            f"Decode, {link}", "% of the experts in memory", "tokens/s", series), encoding="utf-8")
    layers = figures["calibration"]["layers"]
    series = {"gate, one layer ahead": [(l["layer"], 100 * l["gate input"]["expected"])
                                        for l in layers if l["gate input"]["tokens"]]}
    for i in range(3):
        series[f"corrected, {i + 1} ahead"] = [(l["layer"], 100 * l["corrected"][i]["expected"])
                                               for l in layers if l["corrected"][i]["tokens"]]
    (folder / "fate-prediction.svg").write_text(placement_svg.lines(
        "Chosen experts among the top-k predicted", "layer", "%", series), encoding="utf-8")
