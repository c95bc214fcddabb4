"""Makes docs/reports/placement.md and its plots of what bench/placement measured.

Every figure in the text comes from the measurements; placement_claims.py has the sentences that say what follows from them,
placement_text.py the rest of the words, placement_names.py the paper's figures.
"""
import placement_claims
import placement_runs
import placement_svg
from placement_names import MAIN, MIGRATION_NAMES, NAMES, PAPER, PAPER_SERVINGS, SERVING_NAMES, TITLES, change
from placement_runs import local_ratio
from placement_text import TEXT


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def comparison_table(scenario, runs):
    rows = []
    for method, run in runs.items():
        paper = PAPER.get(scenario, {}).get(method)
        rows.append([NAMES[method], *(f"{s:.2f}" for s in run["servers_s"]),
                     f"**{run['latency_s']:.2f}**", f"{run['p95_s']:.1f}",
                     f"{100 * run['local_ratio']:.1f} %",
                     change(run["latency_s"], runs["eplb"]["latency_s"]),
                     " / ".join(f"{s:.2f}" for s in paper) if paper else "-",
                     change(paper[3], PAPER[scenario]["eplb"][3]) if paper else "-"])
    return table(["method", "server 1", "server 2", "server 3", "mean", "p95", "local", "to EPLB",
                  "paper: servers / mean", "paper: to EPLB"], rows)


def held_out_table(figures):
    """Latencies and local shares of the same prompts, placed by others and by themselves."""
    rows = [[NAMES[m], f"{run['latency_s']:.2f}", f"{seen['latency_s']:.2f}", change(run["latency_s"], seen["latency_s"]),
             f"{100 * run['local_ratio']:.1f} %", f"{100 * seen['local_ratio']:.1f} %"]
            for (m, run), seen in zip(figures["comparison"][MAIN].items(), figures["in_sample"].values())]
    return table(["method", "placed by others: mean, s", "by what is served", "others to that", "local", "by what is served"], rows)


def costs_table(figures):
    """Methods by the costs that are assumed of a GPU and by those measured on this engine."""
    def to_eplb(runs, method):
        return [f"{runs[method]['latency_s']:.2f}", change(runs[method]["latency_s"], runs["eplb"]["latency_s"])]
    gpu, engine, dearer = figures["comparison"][MAIN], figures["cpu"], figures["cpu_dearer_calls"]
    return table(["method", "assumed GPU, fp16, a prompt every 10 s: mean, s", "to EPLB",
                  "this engine's processors, Q4_0, every 60 s: mean, s", "to EPLB", "p95, s", "local",
                  "the same, dearer calls: mean, s", "to EPLB"],
                 [[NAMES[m], *to_eplb(gpu, m), *to_eplb(engine, m), f"{engine[m]['p95_s']:.1f}",
                   f"{100 * engine[m]['local_ratio']:.1f} %", *to_eplb(dearer, m)] for m in gpu])


def gaps_table(gaps, stating):
    return table(["method", "remote calls/s (Eq. 2)", "above the optimum", "stated: at most", "with tasks rotated, which stated it",
                  "at most there", "local", "estimated pass (our objective)"],
                 [[NAMES[m], f"{g['remote_calls']:.0f}", f"{g['gap_percent']:+.2f} %",
                   f"{placement_runs.STATED_GAPS[m]:g} %", f"{stating[m]['gap_percent']:+.2f} %",
                   f"{placement_runs.STATING_GAPS[m]:g} %", f"{100 * g['local_ratio']:.1f} %",
                   f"{1e3 * g['estimate_s']:.0f} ms"] for m, g in gaps.items()])


def placing_table(placing):
    return table(["method", "4 x 26 x 64", "256 x 58 x 256"],
                 [[NAMES[m], f"{placing['4x26x64'][m]:.2f} ms", f"{placing['256x58x256'][m]:.0f} ms"]
                  for m in placing["4x26x64"]])


def speed_table(figures):
    runs = dict(figures["speed"])
    for method, run in figures.get("largest", {}).items():
        runs[f"10,000 GPUs, {NAMES[method]}"] = run
    return table(["scenario", "prompts", "placed in", "events", "simulated in", "events/s",
                  "most in flight", "peak memory"],
                 [[name, f"{run['prompts']:,}", f"{run['placing_wall_s']:.2f} s",
                   f"{run['events'] / 1e6:.1f} M", f"{run['wall_s']:.1f} s",
                   f"{run['events_per_s'] / 1e6:.2f} M", f"{run['most_in_flight']:,}",
                   f"{run['peak_rss_bytes'] / 2**20:.0f} MiB"] for name, run in runs.items()])


def tables(figures):
    """The text that bench/placement prints."""
    parts = []
    for scenario, runs in figures["comparison"].items():
        parts += [TITLES[scenario], comparison_table(scenario, runs), ""]
    parts += [held_out_table(figures), "", costs_table(figures), ""]
    return "\n".join(parts + [gaps_table(figures["gaps"], figures["stating_gaps"]), "", placing_table(figures["placing"]), "",
                              speed_table(figures)])


def figures_line(figures, missed):
    runs = figures["comparison"][MAIN]
    large = figures["placing"]["256x58x256"]
    cpu, dearer = figures["cpu"], figures["cpu_dearer_calls"]
    return (f"placement: dancemoe/eplb {runs['dancemoe']['latency_s'] / runs['eplb']['latency_s']:.3f}"
            f" (measured costs {cpu['dancemoe']['latency_s'] / cpu['eplb']['latency_s']:.3f}, with dearer calls "
            f"{dearer['dancemoe']['latency_s'] / dearer['eplb']['latency_s']:.3f})"
            f" latency/dancemoe {runs['latency']['latency_s'] / runs['dancemoe']['latency_s']:.3f}"
            f" dancemoe_gap_percent {figures['gaps']['dancemoe']['gap_percent']:.2f}"
            f" slowest_4x26x64_ms {max(figures['placing']['4x26x64'].values()):.1f}"
            f" slowest_256x58x256_ms {max(large.values()):.0f}"
            f" events_per_s {min(s['events_per_s'] for s in figures['speed'].values()):.3g}"
            f" missed {len(missed)}")


def timeline_plot(timeline):
    """Means over 5 minutes: a minute has too few prompts, and migrations begin between two means."""
    series = {}
    for method, run in timeline.items():
        points, samples = [], run["timeline"]
        for first in range(0, len(samples) - 4, 5):
            ratios = [s["local_ratio"] for s in samples[first:first + 5] if "local_ratio" in s]
            if ratios:
                points.append((samples[first]["from_s"] / 60 + 2.5, sum(ratios) / len(ratios)))
        series[NAMES[method]] = points
    return placement_svg.lines("Local computation over time (Fig. 6)", "minutes", "local ratio",
                               series, 0, [(5, "first migration")])


def timeline_table(timeline):
    rows = []
    for method, run in timeline.items():
        end = run["simulated_s"]
        adopted = sum(m["adopted"] for m in run["migrations"])
        rows.append([NAMES[method], f"{100 * local_ratio(run, 0, 300):.1f} %",
                     f"{100 * local_ratio(run, 300, 600):.1f} %",
                     f"{100 * local_ratio(run, end - 600, end):.1f} %", str(adopted)])
    return table(["method", "minutes 0 to 5", "5 to 10", "last 10", "migrations"], rows)


def migration_plots(migration):
    ratio, latency = {}, {}
    for name, run in migration.items():
        ratio[name], latency[name] = [], []
        samples = run["timeline"]
        for first in range(0, len(samples) - 4, 5):
            part = samples[first:first + 5]
            middle = part[0]["from_s"] / 60 + 2.5
            ratios = [s["local_ratio"] for s in part if "local_ratio" in s]
            answered = sum(s["answered"] for s in part)
            if ratios:
                ratio[name].append((middle, sum(ratios) / len(ratios)))
            if answered:
                seconds = sum(s["latency_mean_s"] * s["answered"] for s in part if s["answered"])
                latency[name].append((middle, seconds / answered))
    marks = [(placement_runs.TASKS_CHANGE_S / 60, "tasks change")]
    return (placement_svg.lines("Local computation (Fig. 7a)", "minutes", "local ratio", ratio, 0,
                                marks),
            placement_svg.lines("Latency (Fig. 7b)", "minutes", "mean latency, s", latency, 0, marks))


def write_plots(folder, figures):
    def save(name, text):
        (folder / name).write_text(text, encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    runs = figures["comparison"][MAIN]
    save("latency.svg", placement_svg.bars(
        "Mean latency by server, DeepSeek-V2-Lite (Table II)", "seconds",
        ["server 1", "server 2", "server 3", "mean"],
        {NAMES[m]: [*r["servers_s"], r["latency_s"]] for m, r in runs.items()}))
    save("local-ratio.svg", timeline_plot(figures["timeline"]))
    ratio, latency = migration_plots(figures["migration"])
    save("migration-ratio.svg", ratio)
    save("migration-latency.svg", latency)
    save("scaling.svg", placement_svg.bars(
        "More GPUs (Fig. 8a), Poisson 8 s", "mean latency, s",
        [f"{gpus} GPUs" for gpus in figures["scaling"][8]["dancemoe"]],
        {NAMES[m]: [r["latency_s"] for r in runs.values()]
         for m, runs in figures["scaling"][8].items()}))
    save("bandwidth.svg", placement_svg.lines(
        "Bandwidth (Fig. 8b), Poisson 60 s", "Mbps out of each server", "mean latency, s",
        {f"{gpus}: {NAMES[method].split(' (')[0]}": [(mbps, run["latency_s"])
                                                      for mbps, run in runs.items()]
         for gpus, methods in figures["bandwidth"].items() for method, runs in methods.items()}))


def migration_text(migration):
    adopted = [m for m in migration["with"]["migrations"] if m["adopted"]]
    rows = [[f"{m['at_s'] / 60:.0f}", str(m["loads"]), f"{m['cost_now_s']:.1f}",
             f"{m['cost_after_s']:.1f}", f"{m['migration_s']:.2f}",
             f"{m['fetching_s']:.1f}", f"{m['loading_s']:.2f}", f"{m['finished_s'] - m['at_s']:.2f}"] for m in adopted]
    return table(["minute", "experts loaded", "C(P), s", "C(P'), s", "T_mig, s", "on links, s", "into devices, s", "took, s"], rows)


def migration_costs_table(migration):
    without = migration["without"]["latency"]["mean_s"]
    return table(["how, and in the plots", "mean, s", "to none", "migrations"],
                 [[f"{MIGRATION_NAMES[name]} (`{name}`)", f"{run['latency']['mean_s']:.2f}", change(run["latency"]["mean_s"], without),
                   str(sum(m["adopted"] for m in run["migrations"]))] for name, run in migration.items()])


def scaling_table(scaling):
    rows = []
    for interval, methods in scaling.items():
        for method, runs in methods.items():
            gpus = list(runs)
            rows.append([f"{interval} s", NAMES[method],
                         *(f"{runs[g]['latency_s']:.2f}" for g in gpus),
                         change(runs[gpus[-1]]["latency_s"], runs[gpus[0]]["latency_s"])])
    return table(["Poisson", "method", *(f"{g} GPUs" for g in gpus), "4 to 256"], rows)


def bandwidth_table(bandwidth):
    rows = []
    for gpus, methods in bandwidth.items():
        for method, runs in methods.items():
            mbps = list(runs)
            rows.append([str(gpus), NAMES[method], *(f"{runs[m]['latency_s']:.2f}" for m in mbps),
                         change(runs[mbps[-1]]["latency_s"], runs[mbps[0]]["latency_s"])])
    return table(["GPUs", "method", *(f"{m} Mbps" for m in mbps), "100 to 1000"], rows)


def servings_table(servings):
    rows = []
    for scenario, speeds in servings.items():
        model = "Mixtral-8x7B" if "mixtral" in scenario else "DeepSeek-V2-Lite"
        for gbps, runs in speeds.items():
            for name, run in runs.items():
                paper = PAPER_SERVINGS.get(name) if model[0] == "M" and gbps == 0.5 else None
                rows.append([model, f"{gbps:g} Gbps", SERVING_NAMES[name],
                             *(f"{s:.2f}" for s in run["servers_s"]), f"**{run['latency_s']:.2f}**",
                             " / ".join(f"{s:.2f}" for s in paper) if paper else "-"])
    return table(["model", "link", "how", "server 1", "server 2", "server 3", "mean", "paper"], rows)


def seeds_text(runs):
    def listed(method, other):
        return ", ".join(f"{100 * share:+.1f} %" for share in placement_runs.by_seed(runs, method, other))
    return (f"Seed by seed: DanceMoE to EPLB {listed('dancemoe', 'eplb')}; the latency search to "
            f"DanceMoE {listed('latency', 'dancemoe')}.")


def plain_table(runs):
    return table(["method", "mean, s", "p95, s", "local", "to EPLB"],
                 [[NAMES[m], f"{r['latency_s']:.2f}", f"{r['p95_s']:.1f}",
                   f"{100 * r['local_ratio']:.1f} %",
                   change(r["latency_s"], runs["eplb"]["latency_s"])] for m, r in runs.items()])


def write(path, figures):
    write_plots(path.parent / "placement", figures)
    runs = figures["comparison"][MAIN]
    with_, without = (figures["migration"][n]["latency"]["mean_s"] for n in ("with", "without"))
    values = {
        "comparisons": "\n\n".join(
            f"**{TITLES[s]}** (`{s}`)\n\n{comparison_table(s, r)}\n\n{seeds_text(r)}"
            for s, r in figures["comparison"].items()),
        "dance_eplb": change(runs["dancemoe"]["latency_s"], runs["eplb"]["latency_s"]),
        "ours_dance": change(runs["latency"]["latency_s"], runs["dancemoe"]["latency_s"]),
        "dance_gap": f"{figures['gaps']['dancemoe']['gap_percent']:.2f}",
        "gap_margin": f"{placement_runs.GAP_MARGIN:g}",
        "servings": servings_table(figures["servings"]),
        "gaps": gaps_table(figures["gaps"], figures["stating_gaps"]), "placing": placing_table(figures["placing"]),
        "speed": speed_table(figures), "migrations": migration_text(figures["migration"]),
        "timeline": timeline_table(figures["timeline"]),
        "with": f"{with_:.2f}", "without": f"{without:.2f}",
        "migration_change": change(with_, without),
        "scaling": scaling_table(figures["scaling"]),
        "bandwidth": bandwidth_table(figures["bandwidth"]),
        "recorded": plain_table(figures["recorded"]), "costs": costs_table(figures),
        "held_out": held_out_table(figures), "migration_costs": migration_costs_table(figures["migration"]),
        **placement_claims.all_of(figures)}
    path.write_text(TEXT.format(**values), encoding="utf-8")
