"""bench/replay's tables, its last line, and docs/reports/replay.md."""
import replay_runs
from replay_runs import by_policy


def best_simple(table, share):
    return max((p for p in table if p != "optimum"), key=lambda p: table[p][share]["hit_rate"])


def hit_table(hits, sharing, name):
    played = hits[sharing][name]
    table = by_policy(played)
    shares = sorted(next(iter(table.values())))
    floor = f", a layer keeps {played['floor']} % of an even share (chosen on the other traces)" if "floor" in played else ""
    lines = [f"{name}: {played['model']}, {played['tokens']} tokens one by one, {played['layers']} layers, "
             f"{played['top_k']} of {played['experts']} experts a token{floor}", "",
             "| hits, % | " + " | ".join(f"{s:g} % in memory" for s in shares) + " |",
             "| --- |" + " --- |" * len(shares)]
    for policy, results in table.items():
        cells = []
        for share in shares:
            text = f"{100 * results[share]['hit_rate']:.1f}"
            cells.append(f"**{text}**" if policy == best_simple(table, share) else text)
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    lines.append("| best to optimum | " + " | ".join(
        f"{100 * table[best_simple(table, s)][s]['below_optimum']:.1f}" for s in shares) + " |")
    lines.append("| closed | " + " | ".join(_percent(replay_runs.closed_share(hits, name, sharing, s)) for s in shares) + " |")
    return "\n".join(lines)


def _percent(share):
    return "" if share is None else f"{100 * share:.0f} %"


def headline_table(figures):
    """One row for each trace and way to share slots; the bar holds in each of the sizes."""
    lines = ["| share of the gap that the default policy closes | paper | " +
             " | ".join(f"ours, {share} % in memory" for share in replay_runs.CLOSED_AT) +
             " | bar | baselines and their settings | tuned, and where | command |",
             "| --- | --- |" + " --- |" * len(replay_runs.CLOSED_AT) + " --- | --- | --- | --- |"]
    for sharing, slots in replay_runs.SHARINGS.items():
        for name, played in figures["hits"][sharing].items():
            cells = []
            for share in replay_runs.CLOSED_AT:
                closed = replay_runs.closed_share(figures["hits"], name, sharing, share)
                is_missed = closed is not None and closed < replay_runs.LEAST_CLOSED
                cells.append(_percent(closed) + (" (missed)" if is_missed else ""))
            lines.append(f"| {name}, {slots} | none: `{replay_runs.DEFAULT_POLICY}` is this project's | " + " | ".join(cells) +
                         f" | {_percent(replay_runs.LEAST_CLOSED)} | the better of LRU and LFU (no parameters) with the same slots, shared in "
                         f"whichever way suits them best, and the offline optimum of this row's sharing | {_tuned(played)} | `troupe replay {name}.trace --pass 1 {_shares(played, sharing)}` |")
    return "\n".join(lines)


def _tuned(played):
    by_hand = "its parameters, by hand, looking at these traces (held out below)"
    return f"{by_hand}; the floor, on the other traces" if "floor" in played else by_hand


def _shares(played, sharing):
    return f"--cache-share global --floor {played['floor']}" if "floor" in played else f"--cache-share {sharing}"


def held_out_table(figures):
    """What is closed with the constants that suit the other model best, beside what is with the policy's own."""
    held_out = figures["held_out"]
    lines = ["| closed | chosen on the other model (`--echo`) | " + " | ".join(f"{share} % in memory" for share in replay_runs.CLOSED_AT) + " |",
             "| --- | --- |" + " --- |" * len(replay_runs.CLOSED_AT)]
    for sharing, traces in held_out["hit_rates"].items():
        for name in traces:
            cells = []
            for share in replay_runs.CLOSED_AT:
                closed = replay_runs.held_out_closed(figures, name, sharing, share)
                is_missed = closed is not None and closed < replay_runs.LEAST_CLOSED
                own = _percent(replay_runs.closed_share(figures["hits"], name, sharing, share))
                cells.append(f"{_percent(closed)}{' (missed)' if is_missed else ''}; its own {own}")
            lines.append(f"| {name}, {replay_runs.SHARINGS[sharing]} | {held_out['settings'][name]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ahead_table(figures):
    lines = ["| LRU, half in memory | predictor | experts predicted, % | stall a token, ms | loads a token |",
             "| --- | --- | --- | --- | --- |"]
    for name, predictors in figures.items():
        for predictor, r in predictors.items():
            asked = r["prefetch"]["asked"]
            told = f"{100 * r['prefetch']['guessed'] / asked:.0f}" if asked else ""
            lines.append(f"| {name} | {predictor} | {told} | {1e3 * r['stall_s_per_token']:.1f} | "
                         f"{r['loads_per_token']:.1f} |")
    return "\n".join(lines)


def live_table(runs):
    exact = sum((r["hits"], r["misses"]) == (r["live_hits"], r["live_misses"]) for r in runs)
    return (f"{exact} of {len(runs)} live runs (policies, sizes and shares of the cache) hit and missed exactly what "
            "the replay of their trace did.")


def tables(figures):
    parts = [headline_table(figures)]
    for sharing, slots in replay_runs.SHARINGS.items():
        parts += [f"{slots}; {hit_table(figures['hits'], sharing, name)}" for name in figures["hits"][sharing]]
    if "reading_ahead" in figures:
        parts.append(ahead_table(figures["reading_ahead"]))
    if "held_out" in figures:
        parts.append(held_out_table(figures))
    parts.append(live_table(figures["live"]))
    return "\n\n".join(parts) + "\n"


def figures_line(figures, missed):
    memory = figures["memory"]
    gaps, closed = [], []
    for sharing, traces in figures["hits"].items():
        closed += [replay_runs.closed_share(figures["hits"], name, sharing, share)
                   for name in traces for share in replay_runs.CLOSED_AT]
    least = _percent(min((share for share in closed if share is not None), default=None))
    for name, played in figures["hits"]["layer"].items():
        table = by_policy(played)
        share = min(next(iter(table.values())), key=lambda s: abs(s - 50))
        best = best_simple(table, share)
        gaps.append(f"{name} {best} {100 * table[best][share]['hit_rate']:.1f} % "
                    f"(-{100 * table[best][share]['below_optimum']:.1f})")
    return (f"replay: half in memory: {', '.join(gaps)}; {replay_runs.DEFAULT_POLICY} closes at least {least} of the gap (bar "
            f"{_percent(replay_runs.LEAST_CLOSED)}); slowest LRU "
            f"{min(figures['speed'].values()) / 1e6:.1f} M uses/s; memory {memory['once_peak'] / 2**20:.0f} MiB, "
            f"{memory['longer_peak'] / 2**20:.0f} MiB at {memory['times']}x; live = replay in "
            f"{len(figures['live'])} runs; bars missed: {len(missed)}")


def write(path, figures, runner):
    plots = path.parent / path.stem
    plots.mkdir(parents=True, exist_ok=True)
    pictures = []
    for name in figures["hits"]["layer"]:
        runner.commands.run("replay", runner.trace(name), "--pass", 1, "--plot", plots / f"hits-{name}.svg")
        pictures.append(f"![Hits over the size of the cache, {name}]({path.stem}/hits-{name}.svg)")
    memory = figures["memory"]
    by_layer, pooled, floored = ("\n\n".join(hit_table(figures["hits"], sharing, name) for name in figures["hits"][sharing])
                                 for sharing in replay_runs.SHARINGS)
    missed = "\n".join(f"- {line}" for line in replay_runs.missed_bars(figures)) or "None."
    path.write_text(f"""# Caches on recorded routing

Written by `bench/replay --report docs/reports/replay.md`; `troupe replay TRACE --pass 1` reproduces any row. The traces are
published recordings (bench/README.md). DeepSeek-V2-Lite's are prompts; here every token is a pass of its own, as in decode.
The policies are the engine's own objects, called in the engine's order: a token's
experts are in memory together while its layer runs. "best to optimum" is the distance in points from the best policy that does not know the future
(bold) to the offline optimum, which knows the future (src/expert/cache/pass_optimum.h). "closed" is the part of the gap from the better of LRU and LFU to the optimum that the default policy,
`{replay_runs.DEFAULT_POLICY}`, closes. LRU and LFU have the same slots, shared in whichever way suits them best: by layer, in one pool, or with a floor, whatever the row's own is. So a policy may
close less than nothing of it.

## Headlines

`bench/replay --check --report docs/reports/replay.md --data DIR` makes all rows; the last column makes one.

{headline_table(figures)}

## Constants that were chosen on another model

The constants of `{replay_runs.DEFAULT_POLICY}` were chosen looking at these traces. Here they are chosen anew for each model on the other's recordings alone, one after the other out of three values each
(bench/replay_echo.py), by the hits with a share for each layer. The bar is the same.

{held_out_table(figures)}

## Bars that are missed

{missed}

## Which policy wins, each layer with an equal share of the cache

{by_layer}

## And with one pool for all layers

{pooled}

## And with one pool in which each layer has a floor

What a layer holds no more than, others do not take (`--floor`, in percent of an even share). Replays alone have it. The optimum is that of the pool, and so a bound.

{floored}

{chr(10).join(pictures)}

## What it means for defaults

{conclusions(figures)}

## Prefetching by routes alone

A drive of 3 GiB/s with 80 us latency, 250 us an expert, 900 us a layer without its experts; the governor is on. `oracle` knows the next layer alone, under the same governor: a bound for
predictors of one layer ([overlap.md](overlap.md) has deeper ones). `oracle:unlimited` knows all that comes, governed by nothing: a bound for any predictor with this cache and link. Predictors that use gates are missing, because these recordings do not hold their
scores.

{ahead_table(figures["reading_ahead"])}

## How it was checked

- {live_table(figures["live"])}
- On small cases the optimum was compared with everything that a cache may hold after each layer (`expert_cache_tests`, `replay_tests`), on passes of
  many tokens, too. In the tables above no policy beats it.
- One LRU cache on one core plays {min(figures["speed"].values()) / 1e6:.1f} to {max(figures["speed"].values()) / 1e6:.1f} million expert uses a second.
- Peak memory of a replay of all policies: {memory["once_peak"] / 2**20:.0f} MiB for {memory["bytes"] / 2**20:.0f} MiB of trace,
  {memory["longer_peak"] / 2**20:.0f} MiB for {memory["longer_bytes"] / 2**20:.0f} MiB. A trace of 9.8 GiB was tried by hand, not by this bench ([trace.md](../formats/trace.md#how-large-it-may-be)).
""", encoding="utf-8")


def conclusions(figures):
    """Sentences that follow from the figures, and change with them."""
    wins, gaps, arc = {}, [], []
    for played in figures["hits"]["layer"].values():
        table = by_policy(played)
        for share in next(iter(table.values())):
            best = best_simple(table, share)
            wins[best] = wins.get(best, 0) + 1
            gaps.append(100 * table[best][share]["below_optimum"])
            if "arc" in table:
                arc.append(100 * (table["arc"][share]["hit_rate"] - table["lru"][share]["hit_rate"]))
    won = ", ".join(f"{policy} in {count}" for policy, count in sorted(wins.items(), key=lambda w: -w[1]))
    everywhere = " No single policy is best everywhere." if len(wins) > 1 else ""
    text = (f"- Of {sum(wins.values())} combinations of trace and size, each layer with its share, the best is {won}.{everywhere}\n"
            f"- The optimum is {min(gaps):.1f} to {max(gaps):.1f} points above the best of them: a better policy can gain no more.\n")
    if arc:
        text += (f"- ARC's hit rate is {min(arc):+.1f} to {max(arc):+.1f} points from LRU's. Its ghost entries say little where a layer has only a few "
                 "dozen experts, so it is not the default.\n")
    return text
