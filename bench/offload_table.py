"""bench/offload's text: a table for each model, and one line of the worst figures over all."""
import offload_figures as figures_of

_MIB = 1 << 20


def _row(cells):
    return "  ".join([f"{cells[0]:<32}"] + [f"{cell:>9}" for cell in cells[1:]])


_HEAD = _row(["", "tokens/s", "ratio", "hits", "MiB/token", "stall ms", "time/bound", "GB/s",
              "of disk", "peak/budget"])


def _troupe_row(model, budget, store):
    runs = budget.stores[store]
    return _row([f"troupe, {store}", f"{runs.decode_speed():.2f}",
                 "" if store == figures_of.LINK else f"{budget.decode_ratio(store):.1f}x",
                 f"{runs.hit_rate():.1%}",
                 f"{runs.bytes_per_token() / _MIB:.1f}", f"{1e3 * runs.stall_per_token():.1f}",
                 f"{model.bound_ratio(runs):.2f}", f"{runs.read_speed() / 1e9:.2f}",
                 f"{runs.disk_share():.0%}", f"{runs.peak_over_budget():.3f}"])


def _budget_lines(model, budget):
    disk = budget.held().disk
    lines = [f"{budget.share:.0%} of the experts: budget {budget.budget_bytes / _MIB:.0f} MiB, "
             f"memory cgroup of {budget.limit_bytes / _MIB:.0f} MiB, disk "
             f"{min(disk) / 1e9:.2f} to {max(disk) / 1e9:.2f} GB/s", _HEAD]
    lines += [_troupe_row(model, budget, store) for store in budget.stores]
    for name, runs in budget.peers.items():
        row = _row([f"llama.cpp {name}", f"{figures_of.median(runs.decode):.2f}"])
        lines.append(row + (f"  in {min(runs.tokens)} to {max(runs.tokens)} tokens" if runs.tokens else ""))
    if budget.has_prefill():
        speeds = [f"troupe {store} {runs.prefill_speed():.1f} ({budget.prefill_ratio(store):.1f}x, "
                  f"{runs.prefill_disk_share():.0%} of disk)"
                  for store, runs in budget.stores.items() if runs.prefills]
        speeds += [f"llama.cpp {name} {figures_of.median(runs.prefill):.1f}"
                   for name, runs in budget.peers.items()]
        lines.append("prefill tokens/s: " + ", ".join(speeds))
    return lines


def table(models):
    lines = []
    for model in models:
        lines += [
            f"{model.name}: file {model.file_bytes / 1e6:.0f} MB, experts of "
            f"{model.expert_bytes / 1e6:.2f} MB, {model.bytes_touched / 1e6:.0f} MB touched per "
            "token", model.routing,
            f"all in memory: {figures_of.median(model.unlimited):.1f} tokens/s, with --memory "
            f"{figures_of.median(model.roomy):.1f} ({model.in_memory_ratio():.3f}x)"]
        for budget in model.budgets:
            lines += _budget_lines(model, budget)
        if model.disturbed:
            lines.append(f"warning: disturbed runs: {model.disturbed} of {model.runs}; measure again on an "
                         "idle machine")
        lines.append("")
    lines += [f"missed: {missed}" for missed in figures_of.missed_bars(models)]
    return "\n".join(lines)


def figures(models):
    """The worst of each figure over all models and budgets, in one line."""
    f = figures_of
    held = [(model, budget) for model in models for budget in model.budgets]
    reading = [(m, runs) for m, b in held for _, runs in b.held_to_reading()]
    prefill = [b.prefill_ratio() for _, b in held if b.has_prefill()]
    peak = max(runs.peak_over_budget() for _, b in held for runs in b.stores.values())
    missed = len(f.missed_bars(models))
    return (f"offload: {len(models)} models, "
            f"decode {min(b.decode_ratio() for _, b in held):.1f}x (bar {f.DECODE_BAR:g}x), "
            f"prefill {min(prefill):.1f}x (bar {f.PREFILL_BAR:g}x), "
            f"{min(runs.disk_share() for _, runs in reading):.0%} of the disk "
            f"(bar {f.DISK_BAR:.0%}), "
            f"time {max(m.bound_ratio(runs) for m, runs in reading):.2f}x its bound "
            f"(bar {f.BOUND_BAR:g}x), "
            f"in memory {min(m.in_memory_ratio() for m in models):.3f}x "
            f"(bar {f.IN_MEMORY_BAR:g}x), "
            f"peak {peak:.3f} of the budget (bar {f.PEAK_BAR:g}), "
            + (f"bars missed: {missed}" if missed else "all bars held"))
