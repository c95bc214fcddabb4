"""The sentences of docs/reports/placement.md that say what follows from its figures: each is made of them, so that none
can outlive a run that says otherwise."""
from placement_names import MAIN, NAMES, PAPER, PAPER_SERVINGS, change
from placement_runs import LARGE_PLACING_MS, METHODS, OTHERS, TASKS_CHANGE_S, local_ratio

BASELINES = METHODS[:4]  # of the paper


def percent(share):
    return f"{100 * share:.0f} %"


def listed(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def change_of(runs, method, other):
    return change(runs[method]["latency_s"], runs[other]["latency_s"])


def served(figures):
    """How long the prompts are that users ask, and how many there are."""
    tokens = listed(f"{one['tokens']:.0f}" for one in figures["served"].values())
    prompts = listed(str(one["prompts"]) for one in figures["served"].values())
    return f"{prompts} prompts of {tokens} tokens in the mean"


def elsewhere(figures):
    """DanceMoE's gain where it is not the headline's."""
    runs = figures["comparison"]
    gains = [change_of(runs[name], "dancemoe", "eplb") for name in OTHERS]
    return (f"Its change against EPLB elsewhere on this page: {gains[0]} with the tasks rotated, {gains[1]} and {gains[2]} with Mixtral-8x7B, "
            f"{change_of(figures['cpu'], 'dancemoe', 'eplb')} with this engine's own costs, {change_of(figures['recorded'], 'dancemoe', 'eplb')} "
            "with recorded requests.")


def placing_load(figures):
    """What the machine did beside, and the bars that placing missed."""
    load = figures["placing_load"]
    missed = [f"{NAMES[m]} with {ms / 1e3:.1f} s" for m, ms in figures["placing"]["256x58x256"].items() if ms > LARGE_PLACING_MS]
    bar = f"the bar of {LARGE_PLACING_MS / 1e3:g} s for the larger problem is missed by {listed(missed)}" if missed else \
        f"all are within the bar of {LARGE_PLACING_MS / 1e3:g} s for the larger problem"
    return (f"Processor time; {load['average']:.1f} processes on average wanted the machine's {load['processors']} processors meanwhile, "
            f"which makes it longer, and also what the simulator's table says. In this run {bar}.")


def magnitude(figures):
    shares = [figures["comparison"][MAIN][m]["latency_s"] / figures_of[3] for m, figures_of in PAPER[MAIN].items()]
    return f"In the first table the means are {percent(min(shares))} to {percent(max(shares))} of the paper's."


def mixtral(figures):
    names = ("testbed-mixtral.json", "testbed-mixtral-rotated.json")
    ours = listed(change_of(figures["comparison"][name], "dancemoe", "eplb") for name in names)
    papers = listed(change(PAPER[name]["dancemoe"][3], PAPER[name]["eplb"][3]) for name in names)
    first, paper = figures["comparison"][names[0]], PAPER[names[0]]
    here = listed(percent(first[m]["latency_s"] / first["uniform"]["latency_s"]) for m in ("smartmoe", "eplb"))
    there = listed(percent(paper[m][3] / paper["uniform"][3]) for m in ("smartmoe", "eplb"))
    return (f"DanceMoE's latency is {ours} against EPLB's in the two tables (the paper: {papers}): 8 experts, of which a token takes 2 "
            f"evenly, leave little choice. SmartMoE and EPLB take {there} of Uniform's time in the paper's BigBench, and {here} here. "
            "With every expert's load nearly even, neither has anything to balance that would explain the paper's.")


def held_out(figures):
    runs, seen = figures["comparison"][MAIN], figures["in_sample"]
    eplb, dancemoe, latency = (change(runs[m]["latency_s"], seen[m]["latency_s"]) for m in ("eplb", "dancemoe", "latency"))
    return (f"Against what it would be had the placement known the prompts, EPLB's mean is {eplb}, DanceMoE's {dancemoe} and the "
            f"latency search's {latency}.")


def servings(figures):
    def to_alone(model, gbps, name):
        return change_of(figures["servings"][model][gbps], name, "alone")
    mixtral_, deepseek = "testbed-mixtral.json", MAIN
    paper = {name: change(PAPER_SERVINGS[name][3], PAPER_SERVINGS["alone"][3]) for name in ("naive", "redirected")}
    return (f"Against each server alone, naive collaboration's mean is {to_alone(mixtral_, 0.5, 'naive')} with Mixtral-8x7B at 0.5 Gbps "
            f"(the paper: {paper['naive']}) and {to_alone(mixtral_, 10, 'naive')} at 10; with DeepSeek-V2-Lite "
            f"{to_alone(deepseek, 0.5, 'naive')} and {to_alone(deepseek, 10, 'naive')}, and DanceMoE's {to_alone(deepseek, 0.5, 'dancemoe')} "
            f"and {to_alone(deepseek, 10, 'dancemoe')}. Redirecting changes the mean of lone servers by {to_alone(mixtral_, 0.5, 'redirected')} "
            f"(the paper: {paper['redirected']}) and {to_alone(deepseek, 0.5, 'redirected')}.")


def link_or_host(figures):
    """A long prompt's answers over the link, and its experts from the host: of testbed-deepseek.json and its costs."""
    longest = max(one["tokens"] for one in figures["served"].values())
    remote = 1 - figures["comparison"][MAIN]["uniform"]["local_ratio"]
    sent = longest * 6 * remote * 4096
    return (f"The answers to a prompt of {longest:.0f} tokens are {sent / 1e6:.0f} MB a layer where Uniform's share of calls is remote: "
            f"{sent / 62.5e6:.2f} s of 500 Mbps. All 64 experts of the layer come from the host in {64 * 17301504 / 12e9:.2f} s.")


def fewest_calls(figures):
    runs, gaps = figures["comparison"][MAIN], figures["gaps"]
    return (f"The latency search has {gaps['latency']['gap_percent']:+.2f} % remote calls against the optimum, and its latency in "
            f"Table II is {change_of(runs, 'latency', 'optimum')} against it.")


def timeline(figures):
    """Fig. 6: where the local ratios begin and end."""
    runs = figures["timeline"]
    begin = {m: 100 * local_ratio(run, 0, 300) for m, run in runs.items()}
    end = {m: 100 * local_ratio(run, run["simulated_s"] - 600, run["simulated_s"]) for m, run in runs.items()}
    above = [m for m in BASELINES if end[m] >= end["dancemoe"]]
    place = "above the paper's four baselines" if not above else f"not above {listed(NAMES[m] for m in above)}"

    def way(method):
        return f"from {begin[method]:.1f} to {end[method]:.1f} %"
    return (f"Here DanceMoE's goes {way('dancemoe')} and ends {place}. The optimum of Eq. 2, which the paper does not have, goes "
            f"{way('optimum')}. EPLB follows the load of all users together and goes {way('eplb')}; SmartMoE places every expert once, "
            f"wherever its users are, and goes {way('smartmoe')}.")


def migrations(figures):
    """Fig. 7: when experts move, and what Eq. 4 takes for worth it."""
    moves = [m for m in figures["migration"]["with"]["migrations"] if m["adopted"]]
    if not moves:
        return "Here no migration is adopted (the paper: three)."
    after = sum(m["at_s"] >= TASKS_CHANGE_S for m in moves)
    least = min(moves, key=lambda m: m["cost_now_s"] - m["cost_after_s"])
    longer = sum(m["fetching_s"] > m["cost_now_s"] - m["cost_after_s"] for m in moves)
    return (f"The paper has three migrations, and follows the change in more than one, because the first sees old and new calls "
            f"mixed; here {len(moves)} are adopted, {after} of them after the change. T_mig knows of loading at 12 GB/s alone: the "
            f"least saving that Eq. 4 adopts is {least['cost_now_s'] - least['cost_after_s']:.1f} s at a T_mig of "
            f"{least['migration_s']:.2f} s, and {longer} of the {len(moves)} took longer on the links than Eq. 4 says they save.")


def staying(figures):
    runs = {name: run["latency"]["mean_s"] for name, run in figures["migration"].items()}
    return (f"placed for the users' first tasks instead, what stays has {runs['without, first tasks']:.2f} s, against which migrating is "
            f"{change(runs['with'], runs['without, first tasks'])}")


def scaling(figures):
    runs = figures["scaling"]
    gpus = list(next(iter(runs.values()))["latency"])
    few, many = gpus[0], gpus[-1]

    def growth(interval, method):
        return change(runs[interval][method][many]["latency_s"], runs[interval][method][few]["latency_s"])
    cells = [(interval, n) for interval in runs for n in gpus]
    slower = [cell for cell in cells
              if runs[cell[0]]["latency"][cell[1]]["latency_s"] > min(run[cell[1]]["latency_s"] for run in runs[cell[0]].values())]
    first = (f"in all {len(cells)} cells" if not slower else f"in {len(cells) - len(slower)} of {len(cells)} cells (not with " +
             listed(f"{n} GPUs at {interval} s" for interval, n in slower) + ")")
    peaks = {method: runs[min(runs)][method][many]["link_peak"] for method in runs[min(runs)]}
    return (f"At 15 s the optimum changes by {growth(15, 'optimum')} here and the latency search by {growth(15, 'latency')}; at 8 s by "
            f"{growth(8, 'optimum')} and {growth(8, 'latency')}; DanceMoE by {growth(15, 'dancemoe')} and {growth(8, 'dancemoe')}. "
            "Each server brings its own users and its own link, so a server's own calls stay the same, and more servers only add a choice "
            "of hosts. The paper does not say whether its users grow with the GPUs.\n\n"
            "Servers of one task hold the same experts under DanceMoE, and Algorithm 2 leaves the experts that none of them uses to the "
            f"few servers that gave way first. With {many} GPUs at {min(runs)} s the busiest server sends {peaks['dancemoe']:.1f} times what "
            f"one sends on average (under the optimum, which knows nothing of links, {peaks['optimum']:.1f} times; under the latency "
            f"search, which sees the queues, {peaks['latency']:.1f}). The latency search is the fastest of the three {first}.")


def bandwidth(figures):
    runs = figures["bandwidth"]
    few, many = min(runs), max(runs)

    def gain(gpus, method):
        mbps = list(runs[gpus][method])
        return change(runs[gpus][method][mbps[-1]]["latency_s"], runs[gpus][method][mbps[0]]["latency_s"])
    slowest = min(runs[many]["dancemoe"])
    dance, ours = (runs[many][method][slowest] for method in ("dancemoe", "latency"))
    return (f"The paper reports more than 55 % less from 100 to 1000 Mbps with 4 GPUs, and 35 % with 256. Here it is "
            f"{gain(few, 'latency')} and {gain(many, 'latency')} with the latency search, {gain(few, 'dancemoe')} and "
            f"{gain(many, 'dancemoe')} with DanceMoE; of a time that is all link, and without queues, it would be -90 %. "
            "Every server keeps a link of its own however many there are. With "
            f"{many} GPUs at {slowest} Mbps DanceMoE takes {dance['latency_s'] / ours['latency_s']:.2f} times as long as the latency "
            f"search; its busiest server sends {dance['link_peak']:.1f} times what one sends on average, the search's {ours['link_peak']:.1f} times.")


def dearer_calls(figures):
    cheap, dearer = figures["cpu"], figures["cpu_dearer_calls"]
    more = [dearer[m]["latency_s"] / cheap[m]["latency_s"] - 1 for m in METHODS]
    return (f"with both the means are {100 * min(more):+.0f} to {100 * max(more):+.0f} %, DanceMoE is {change_of(dearer, 'dancemoe', 'eplb')} "
            f"against EPLB (without them {change_of(cheap, 'dancemoe', 'eplb')}), and the latency search "
            f"{change_of(dearer, 'latency', 'dancemoe')} against DanceMoE ({change_of(cheap, 'latency', 'dancemoe')})")


def largest(figures):
    return listed(f"{NAMES[m]}'s busiest server sends {run['link_peak']:.0f} times what one sends on average"
                  for m, run in figures["largest"].items())


def all_of(figures):
    return {f"says_{claim.__name__}": claim(figures) for claim in (
        served, elsewhere, placing_load, magnitude, mixtral, held_out, servings, link_or_host, fewest_calls, timeline, migrations, staying, scaling,
        bandwidth, dearer_calls, largest)}
