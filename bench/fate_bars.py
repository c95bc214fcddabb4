"""What bench/fate's figures are held to: each bar with the paper's figure, ours, whose settings it is taken against, and,
where it is missed, the reason as far as the figures have it.
"""
import dataclasses
import statistics

import fate_systems
from fate_systems import (AS_USED, DEMAND, FILLED, NOTHING, NO_CACHE, OURS, PAIRS, PATHS, PATHS_FILLED, PATHS_PAIRS, PROFILED,
                          WRONG)

GUESSED, HITS = 0.97, 0.99
DECODE_DEMAND, DECODE_PATHS, PREFILL_DEMAND, PREFILL_PATHS = 4.0, 2.2, 4.5, 1.9
PREFILL_FILLED = 2.2  # with half of the experts on both sides, each link's median over its prompts
PAYS = 1.02  # times the speed with no layer kept, and more in every round: what says that keeping one pays
NEVER_BELOW, STORM = 0.98, 0.95  # of the speed of the same cache with nothing read ahead
PAIRS_LOSS = 0.01
CHOSEN = "other text, other seed, each link and budget"
COMMAND = "bench/fate --check"
TIER_COMMAND = "bench/fate --tier --check"


@dataclasses.dataclass
class Bar:
    what: str
    paper: str
    value: float
    bar: float
    baseline: str  # and its settings
    chosen: str    # what was, and on what
    reason: str = ""
    unit: str = "x"
    at_least: bool = True
    command: str = COMMAND
    digits: int = 2
    beside: str = ""  # shown with the figure, and held to nothing

    @property
    def is_missed(self):
        return self.value < self.bar if self.at_least else self.value > self.bar

    def shown(self, value):
        return f"{100 * value:.1f} %" if self.unit == "%" else f"{value:.{self.digits}f}x"

    def ours(self):
        return self.shown(self.value) + (f", {self.beside}" if self.beside else "")

    def missed(self):
        bound = "at least" if self.at_least else "at most"
        reasons = "; ".join(part for part in (self.beside, self.reason) if part)
        return f"{self.what}: {self.shown(self.value)}, {bound} {self.shown(self.bar)}; {reasons}"


@dataclasses.dataclass
class Cell:
    """The systems behind one link, with one budget or prompt."""
    where: str
    systems: dict


def is_held(figures, link):
    return figures["links"][link]["held"]


def decode_cells(figures, held=None):
    return [Cell(f"{link}, {budget} % in memory", systems) for link, budgets in figures["decode"].items()
            for budget, systems in budgets.items() if held is None or is_held(figures, link) == held]


def pair_cells(figures):
    pack = figures["pairs"]["pack"]
    return [Cell(f"{pack['high_type']} with {pack['low_type']}, a prompt of {length}", systems)
            for length, systems in figures["pairs"]["prefill"].items()]


def prompt_cells(figures, held=None):
    """With the pairs' model, which lies on this disk; its systems are those that read its high copies alone, too."""
    cells = [Cell(f"{link}, a prompt of {length}", systems) for link, lengths in figures["prefill"].items()
             for length, systems in lengths.items() if held is None or is_held(figures, link) == held]
    return cells + (pair_cells(figures) if "pairs" in figures and not held else [])


def _speed(figure):
    return figure["tokens_per_s"]


def _over(cell, name, against):
    return _speed(cell.systems[name]) / _speed(cell.systems[against])


def _token_ms(figure):
    return figure.get("time_ms", 1e3 / _speed(figure))


def ratio_bar(what, paper, bar, cells, names, against, command):
    """The best of all cells, as the paper gives it, and their median beside it: of one system in all of them, that of
    `names` whose median is the best. Both sides begin alike and are equally exact."""
    everywhere = [name for name in names if all(name in cell.systems for cell in cells)]
    medians = {name: statistics.median(_over(cell, name, against) for cell in cells) for name in everywhere}
    name = max(medians, key=medians.get)
    best = max(cells, key=lambda cell: _over(cell, name, against))
    mine, its = best.systems[name], best.systems[against]
    facts = [f"the best of {len(cells)} cells is {best.where}: {name} ({mine['settings']})"]
    if "hit_rate" in mine:
        facts.append(f"hits {100 * mine['hit_rate']:.1f} %, {100 * mine['late']:.1f} % on their way when needed")
    never = _token_ms(its) / max(1e-9, _token_ms(mine) - mine["stall_ms"])
    facts.append(f"waiting for nothing, it would be {never:.2f}x")
    return Bar(what, paper, _over(best, name, against), bar, f"{against} ({its['settings']})",
               "nothing" if against == NO_CACHE else CHOSEN, ", ".join(facts), command=command,
               beside=f"the median of all cells {medians[name]:.2f}x")


def filled_bars(figures):
    """A cache that begins with what is used most, against loading on demand with as many slots that begin empty, link by
    link; beside it what filling alone does not explain."""
    bars = []
    for link, lengths in figures["prefill"].items():
        cells = [Cell(f"{length} tokens", systems) for length, systems in lengths.items()]
        ratios = [_over(cell, FILLED, DEMAND) for cell in cells]
        paths = statistics.median(_over(cell, FILLED, PATHS_FILLED) for cell in cells)
        reason = ", ".join(f"{cell.where}: {ratio:.2f}x, {cell.systems[FILLED]['MiB']:.0f} MiB read against "
                           f"{cell.systems[DEMAND]['MiB']:.0f}" for cell, ratio in zip(cells, ratios))
        bars.append(Bar(f"prefill from a filled cache over loading on demand with the same slots, {link}", "-",
                        statistics.median(ratios), PREFILL_FILLED, f"{DEMAND} ({cells[0].systems[DEMAND]['settings']})",
                        f"the profile, and the baseline's settings: {CHOSEN}",
                        f"filled before the request, whose time does not have it; {reason}",
                        beside=f"{paths:.2f}x activation paths from a filled cache",
                        command=TIER_COMMAND if is_held(figures, link) else COMMAND))
    return bars


def guessed_bar(figures, held, command):
    cells = decode_cells(figures, held)
    runs = [cell.systems[PROFILED] for cell in cells]
    mean = statistics.mean(run.get("guessed", 0.0) for run in runs)
    first = statistics.mean(run.get("first_layer_asks", 0.0) for run in runs)
    reason = (f"all asks count: {100 * first:.1f} % are of the first layer, of which {PROFILED} guesses nothing; "
              f"of the others {100 * mean / max(1e-9, 1 - first):.1f} % were guessed")
    return Bar("experts guessed before they are asked for", "97.15 %", mean, GUESSED, "none",
               "the profile: other text", reason, "%", command=command)


def hits_bars(figures):
    """The paper's 99.08 % is with all of four layers of 24 in memory: with 17 % of the experts, fewer than in any cell here."""
    bars = []
    for link, budgets in figures["decode"].items():
        if not is_held(figures, link):
            continue
        for budget, systems in budgets.items():
            name = max((name for name in OURS if name in systems), key=lambda name: systems[name]["hit_rate"])
            best = systems[name]
            missing = 1 - best["hit_rate"] - best["late"]
            wanted, layer_times = figures["links"][link]["wanted"], figures["links"][link]["layer_times"]
            reason = (f"{name} ({best['settings']}) has the most; {100 * best['late']:.1f} % were on their way, "
                      f"{100 * missing:.1f} % not begun")
            if layer_times > 1.001 * wanted:
                reason += f"; an expert takes {layer_times:.2f} layer times in place of {wanted:g}, as processors copy it"
            bars.append(Bar(f"hits, {link}, {budget} % in memory", "99.08 %", best["hit_rate"], HITS, "none", CHOSEN, reason, "%",
                            command=TIER_COMMAND))
    return bars


def _ratios(figure):
    return figure["over_nothing"]


def below_bars(figures):
    """In every cell by itself: reading ahead against the same cache with nothing read ahead."""
    bars = []
    cells = [(cell, AS_USED) for cell in prompt_cells(figures)]
    cells += [(cell, (*AS_USED, WRONG)) for cell in decode_cells(figures)]
    for cell, names in cells:
        nothing = cell.systems[NOTHING]
        for name in names:
            if name not in cell.systems:
                continue
            figure = cell.systems[name]
            ratios = _ratios(figure)
            facts = [f"{min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} rounds"]
            if "hit_rate" in figure:
                facts += [f"hits {100 * figure['hit_rate']:.1f} % against {100 * nothing['hit_rate']:.1f} %",
                          f"late {100 * figure['late']:.1f} %",
                          f"{figure['MiB_per_token']:.1f} MiB a token against {nothing['MiB_per_token']:.1f}"]
            else:
                facts.append(f"{figure['MiB']:.0f} MiB read against {nothing['MiB']:.0f}")
            bars.append(Bar(f"{cell.where}: {name} against nothing read ahead", "-", statistics.median(ratios),
                            STORM if name == WRONG else NEVER_BELOW, f"{NOTHING} ({nothing['settings']})", "nothing",
                            ", ".join(facts), digits=3))
    return bars


def loss_text(loss):
    low, high = loss["interval"]
    span = "" if low is None else f" ({100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"
    return f"{100 * (loss['ratio'] - 1):+.2f} %{span}"


def pairs_bar(pairs):
    loss = pairs["loss"]
    return Bar("loss of perplexity by the pair of precisions", "at most 1 %", loss["ratio"] - 1, PAIRS_LOSS,
               f"the {pairs['pack']['high_type']} copies alone", "the share: on the first half of the text, which is not the one reported",
               f"{100 * pairs['share']:.1f} % of a layer's work in low copies: {loss_text(loss)}; all of it: {loss_text(pairs['all_low'])}",
               "%", at_least=False)


@dataclasses.dataclass
class Keeping:
    """A cell with the first layer's experts kept, over the same without."""
    where: str
    without: dict
    kept: dict

    @property
    def ratios(self):
        return [mine / its for mine, its in zip(self.kept["speeds"], self.without["speeds"])]

    @property
    def pays(self):
        return min(self.ratios) > 1 and statistics.median(self.ratios) >= PAYS


def keeping_cells(figures):
    none, one = fate_systems.KEEPING
    return [Keeping(f"{link}, {budget} % in memory", systems[none], systems[one])
            for link, budgets in figures["keeping"].items() for budget, systems in budgets.items()]


def headline_bars(figures):
    """Those with a figure of the paper's, first of this machine's disk and slower links, then of what is held in memory."""
    bars = []
    for held in (False, True):
        cells, prompts = decode_cells(figures, held), prompt_cells(figures, held)
        if not cells:
            continue
        command = TIER_COMMAND if held else COMMAND
        group = [guessed_bar(figures, held, command),
                 ratio_bar("decode over loading on demand without a cache", "4.1x", DECODE_DEMAND, cells, OURS, NO_CACHE, command),
                 ratio_bar("decode over activation paths", "2.2x", DECODE_PATHS, cells, OURS, PATHS, command),
                 ratio_bar("prefill over loading on demand without a cache", "4.5x", PREFILL_DEMAND, prompts, OURS, NO_CACHE, command),
                 ratio_bar("prefill over activation paths", "1.9x", PREFILL_PATHS, prompts, OURS, PATHS, command)]
        if "pairs" in figures and not held:
            group.append(ratio_bar("prefill over activation paths, both with the same share of low copies", "1.9x", PREFILL_PATHS,
                                   pair_cells(figures), (PAIRS,), PATHS_PAIRS, command))
        for bar in group:
            bar.what = f"{'held in memory' if held else 'disk'}: {bar.what}"
        bars += group
    bars += filled_bars(figures)
    bars += hits_bars(figures)
    if "pairs" in figures:
        bars.append(pairs_bar(figures["pairs"]))
    return bars


def differing(figures):
    return figures["prompts_differing"] + sum(
        figure["differing"] for cell in decode_cells(figures) for figure in cell.systems.values())


def missed_bars(figures):
    missed = [bar.missed() for bar in headline_bars(figures) + below_bars(figures) if bar.is_missed]
    if differing(figures):
        missed.append(f"{differing(figures)} runs gave other tokens than one in memory")
    return missed
