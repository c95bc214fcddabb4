"""Tables, plots and bars of bench/fate's figures."""
import placement_svg

COVERED, DECODE_DEMAND, DECODE_PATHS = 0.97, 4.0, 2.2
PREFILL_DEMAND, PREFILL_PATHS, NEVER_BELOW, STORM = 4.5, 1.9, 0.98, 0.95
PAIRS_LOSS = 0.01
TIER_HITS, TIER_LAYER_TIMES = 0.99, 0.5  # of a medium that is held in memory
OURS = ("Fate", "troupe", "troupe, profile")
AS_USED = ("troupe", "troupe, profile")
WRONG = "troupe, wrong guesses"
DEMAND, CACHED, PATHS = "on demand, no cache", "on demand", "activation paths"
PLACES = ("attention input", "gate input", "next attention input")


def _percent(quality):
    return f"{100 * quality['expected']:5.1f} {100 * quality['guessed']:5.1f}"


def _calibration_table(figures):
    lines = ["prediction by layer, %: in the top-k, in the top-k or above the 75th percentile",
             f"{'layer':<6} {'gate, one before':>17} " +
             " ".join(f"{f'corrected, {i + 1}':>13}" for i in range(3))]
    for layer in figures["calibration"]["layers"]:
        lines.append(f"{layer['layer']:<6} {_percent(layer['gate input']):>17} " +
                     " ".join(f"{_percent(quality):>13}" for quality in layer["corrected"]))
    means = figures["calibration"]["means"]
    lines.append("mean   " + ", ".join(
        f"{place} {_percent(means[place])} (similarity {means[place]['similarity']:.3f})"
        for place in PLACES))
    lines.append("       " + ", ".join(
        f"corrected, {i} ahead {_percent(means[f'corrected {i}'])}" for i in (1, 2, 3)))
    return lines


def _layer_hits_table(systems):
    """Hits by layer, of the systems as columns."""
    names = list(systems)
    lines = ["hits by layer, %: " + ", ".join(f"({i + 1}) {name}" for i, name in enumerate(names)),
             "layer " + "".join(f"{f'({i + 1})':>8}" for i in range(len(names)))]
    rows = zip(*(systems[name]["layer_hits"] for name in names))
    lines += [f"{layer:<6}" + "".join(f"{100 * share:8.1f}" for share in row) for layer, row in enumerate(rows)]
    return lines


def _pairs_table(pairs):
    loss, (low, high) = pairs["loss"], pairs["loss"]["interval"]
    span = "" if low is None else f" ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
    lines = ["", f"prefill with a pair of precisions, tokens/s: {100 * pairs['share']:.0f} % of each layer's work in low "
             f"copies, which costs {100 * (loss['ratio'] - 1):+.2f} %{span} of perplexity on a text apart",
             f"{'':<24}" + "".join(f"{length:>9}" for length in pairs["prefill"])]
    for name in next(iter(pairs["prefill"].values())):
        lines.append(f"{name:<24}" + "".join(f"{row[name]:9.1f}" for row in pairs["prefill"].values()))
    return lines


def _decode_table(budget, link, systems):
    lines = ["", f"decode, {budget} % of the experts in memory, {link}",
             f"{'':<24} tokens/s  x demand  x paths    hits    late  MiB/token  guessed"]
    for name, f in systems.items():
        guessed = f"{100 * f['guessed']:6.1f} %" if "guessed" in f else "       -"
        lines.append(
            f"{name:<24} {f['tokens_per_s']:8.2f} "
            f"{f['tokens_per_s'] / systems[DEMAND]['tokens_per_s']:9.2f} "
            f"{f['tokens_per_s'] / systems[PATHS]['tokens_per_s']:8.2f} "
            f"{100 * f['hit_rate']:6.1f}% {100 * f['late']:6.1f}% {f['MiB_per_token']:10.1f} {guessed}")
    return lines


def _prefill_table(link, lengths):
    lines = ["", f"prefill, tokens/s, half of the experts in memory, {link}",
             f"{'':<24}" + "".join(f"{length:>9}" for length in lengths)]
    for name in next(iter(lengths.values())):
        lines.append(f"{name:<24}" + "".join(f"{row[name]:9.1f}" for row in lengths.values()))
    return lines


def tier_table(tier):
    link = f"a medium held in memory, {tier['layer_times']:.2f} layer times an expert"
    lines = [f"a copy from memory is {tier['bytes_per_s'] / 1e9:.2f} GB/s: an expert takes {tier['layer_times']:.2f} layer times"]
    for budget, systems in tier["decode"].items():
        lines += _decode_table(budget, link, systems)
    return "\n".join(lines + _prefill_table(link, tier["prefill"]))


def _best_over(cells, against, speed):
    """Of the ratios over cells the best, as the paper gives them."""
    return max(max(speed(systems[name]) for name in OURS) / speed(systems[against]) for systems in cells)


def tier_ratios(tier):
    decode, prefill = list(tier["decode"].values()), list(tier["prefill"].values())
    return {"decode over loading on demand": (_best_over(decode, DEMAND, lambda f: f["tokens_per_s"]), DECODE_DEMAND),
            "decode over activation paths": (_best_over(decode, PATHS, lambda f: f["tokens_per_s"]), DECODE_PATHS),
            "prefill over loading on demand": (_best_over(prefill, DEMAND, lambda f: f), PREFILL_DEMAND),
            "prefill over activation paths": (_best_over(prefill, PATHS, lambda f: f), PREFILL_PATHS)}


def tier_hits(systems):
    name = max(OURS, key=lambda name: systems[name]["hit_rate"])
    return name, systems[name]


def missed_tier_bars(tier):
    """With the reason, as far as the figures have it."""
    slow = ("" if tier["layer_times"] <= TIER_LAYER_TIMES + 1e-9 else
            f"; an expert takes {tier['layer_times']:.2f} layer times there in place of {TIER_LAYER_TIMES:g}, as processors "
            "copy it that compute meanwhile")
    missed = []
    for budget, systems in tier["decode"].items():
        name, best_of_all = tier_hits(systems)
        if best_of_all["hit_rate"] < TIER_HITS:
            missed.append(
                f"held in memory, {budget} %: {100 * best_of_all['hit_rate']:.1f} % hits ({name}), at least {100 * TIER_HITS:g}: "
                f"{100 * best_of_all['late']:.1f} % were on their way, the rest not begun{slow}")
    for what, (ratio, bar) in tier_ratios(tier).items():
        if ratio >= bar:
            continue
        bound = {"decode over loading on demand": DEMAND, "decode over activation paths": PATHS}.get(what)
        reason = "" if bound is None else f"; hiding all of what that one waits would give {_all_hidden(tier, bound):.2f}"
        missed.append(f"held in memory: {what} {ratio:.2f}, at least {bar}{reason}{slow}")
    return missed


def _all_hidden(tier, system):
    """How much faster a system would be that never waited, at best over budgets."""
    def ratio(figures):
        token_ms = 1e3 / figures["tokens_per_s"]
        return token_ms / max(1e-9, token_ms - figures["stall_ms"])
    return max(ratio(systems[system]) for systems in tier["decode"].values())


def tier_line(tier, missed):
    hits = ", ".join(f"{100 * tier_hits(systems)[1]['hit_rate']:.1f} % at {budget} %" for budget, systems in tier["decode"].items())
    ratios = ", ".join(f"{what} {ratio:.2f}x (bar {bar})" for what, (ratio, bar) in tier_ratios(tier).items())
    return (f"fate: held in memory, {tier['layer_times']:.2f} layer times an expert: hits {hits} (bar 99), {ratios}, "
            f"disturbed {tier['disturbed']}, bars missed: {len(missed)}")


def tables(figures):
    lines = [f"in memory {figures['in_memory']:.1f} tokens/s, a layer {figures['layer_ms']:.2f} ms, an "
             f"expert {figures['expert_bytes'] / 1e6:.2f} MB, this disk "
             f"{figures['disk_bytes_per_s'] / 1e9:.2f} GB/s: an expert takes "
             f"{figures['expert_bytes'] / figures['disk_bytes_per_s'] / figures['layer_ms'] * 1e3:.1f} "
             "layer times on it"]
    lines += [f"not measured: {times:g} layer times an expert, which this disk is too slow for"
              for times in figures["too_fast_for_the_disk"]] + [""]
    lines += _calibration_table(figures)
    for link, budgets in figures["decode"].items():
        for budget, systems in budgets.items():
            lines += _decode_table(budget, link, systems)
            if budget == 50:
                lines += [""] + _layer_hits_table(systems)
    for link, lengths in figures["prefill"].items():
        lines += _prefill_table(link, lengths)
    lines += ["", tier_table(figures["tier"])]
    lines += _pairs_table(figures["pairs"])
    lines += ["", "ablation, decode, half of the experts in memory, this disk"]
    for name, f in figures["ablation"].items():
        lines.append(f"{name:<30} {f['tokens_per_s']:8.2f} tokens/s {100 * f['hit_rate']:6.1f} % hits "
                     f"{f['MiB_per_token']:7.1f} MiB/token")
    return "\n".join(lines)


def best(figures):
    """The best ratios over links, budgets and lengths, and the worst against the same cache."""
    cells = [systems for budgets in figures["decode"].values() for systems in budgets.values()]
    prompts = [systems for lengths in figures["prefill"].values() for systems in lengths.values()]
    pairs = list(figures["pairs"]["prefill"].values())

    def over(systems, against, speed):
        ours = (*OURS, "troupe, pairs")
        return max(speed(systems[name]) for name in ours if name in systems) / speed(systems[against])

    def decoded(system):
        return system["tokens_per_s"]

    def prefilled(system):
        return system

    guessed = [systems["troupe, profile"]["guessed"] for systems in cells]
    return {
        "guessed": sum(guessed) / len(guessed),
        "decode_demand": max(over(systems, DEMAND, decoded) for systems in cells),
        "decode_paths": max(over(systems, PATHS, decoded) for systems in cells),
        "prefill_demand": max(over(systems, DEMAND, prefilled) for systems in prompts + pairs),
        "prefill_paths": max(over(systems, PATHS, prefilled) for systems in prompts + pairs),
        "never_below": min([decoded(systems[name]) / decoded(systems[CACHED])
                            for systems in cells for name in AS_USED] +
                           [systems[name] / systems[CACHED] for systems in prompts for name in AS_USED]),
        "storm": min(decoded(systems[WRONG]) / decoded(systems[CACHED]) for systems in cells),
        "differing": figures["prompts_differing"] +
                     sum(f["differing"] for systems in cells + list(figures["tier"]["decode"].values())
                         for f in systems.values())}


def missed_bars(figures):
    found = best(figures)
    bars = (("share of the experts predicted, with the percentile rule", "guessed", COVERED),
            ("decode over loading on demand", "decode_demand", DECODE_DEMAND),
            ("decode over activation paths", "decode_paths", DECODE_PATHS),
            ("prefill over loading on demand", "prefill_demand", PREFILL_DEMAND),
            ("prefill over activation paths", "prefill_paths", PREFILL_PATHS),
            ("slowest against demand with the same memory", "never_below", NEVER_BELOW),
            ("with wrong guesses against demand with the same memory", "storm", STORM))
    missed = [f"{what} {found[key]:.3f}, at least {bar}" for what, key, bar in bars
              if found[key] < bar]
    missed += missed_tier_bars(figures["tier"])
    lost = figures["pairs"]["loss"]["ratio"] - 1
    if lost > PAIRS_LOSS:
        missed.append(f"pairs of precisions lose {100 * lost:.2f} % of perplexity on a text apart, at most {100 * PAIRS_LOSS:g}")
    if found["differing"]:
        missed.append(f"{found['differing']} runs gave other tokens than one in memory")
    return missed


def figures_line(figures, missed):
    found = best(figures)
    return (f"fate: guessed {100 * found['guessed']:.1f} % (bar 97), decode {found['decode_demand']:.2f}x "
            f"on demand (bar 4), {found['decode_paths']:.2f}x paths (bar 2.2), prefill "
            f"{found['prefill_demand']:.2f}x (bar 4.5), {found['prefill_paths']:.2f}x (bar 1.9), never below "
            f"{found['never_below']:.3f} (bar 0.98), with wrong guesses {found['storm']:.3f} (bar 0.95), pairs lose {100 * (figures['pairs']['loss']['ratio'] - 1):.2f} % (bar 1), "
            f"disturbed {figures['disturbed']}, bars missed: "
            f"{len(missed)}")


def draw(figures, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for i, (link, budgets) in enumerate(figures["decode"].items()):
        names = next(iter(budgets.values()))
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
