"""What bench/serve makes of its figures: a table for each part, and the bars that were missed. Pure."""

MOST_GAP, OF_LIMIT, OVER_PEER = 3, 0.85, {"in memory": 1.5, "50 %": 8}
MOST_AGAIN, MOST_IDLE, MOST_GROWTH, LEAST_BESIDE = 0.1, 32 * 1024, 0.01, 0.8
MOST_OF_LARGE = 0.1
MOST_GROWN_BYTES = 512 * 1024  # by malformed requests: the whole server holds 13 MiB


def _load_table(figures):
    lines = [f"{'':<12} {'tokens/s':>9} {'limit':>7} {'with KV':>8} {'engine':>7} {'in passes':>10} {'answers':>8} "
             f"{'gap ms':>7} {'p99':>7} {'first ms':>9} {'p99':>8} {'lost':>5}"]
    for name, row in figures.items():
        lines.append(f"{name:<12} {row['tokens_per_s']:>9.1f} {row['limit_tokens_per_s']:>7.1f} "
                     f"{row['limit_with_kv_tokens_per_s']:>8.1f} {row['engine_tokens_per_s']:>7.1f} {row['in_passes']:>10.1%} {row['sequences_a_pass']:>8.1f} "
                     f"{row['gap_median_ms']:>7.1f} {row['gap_p99_ms']:>7.1f} {row['first_median_ms']:>9.0f} "
                     f"{row['first_p99_ms']:>8.0f} {row['lost']:>5}")
        if peer := row.get("peer"):
            lines.append(f"{'  llama.cpp':<12} {peer['tokens_per_s']:>9.1f} {'':>44} {peer['gap_median_ms']:>7.1f} "
                         f"{peer['gap_p99_ms']:>7.1f}   {row['over_peer']:.1f} times that; "
                         f"{peer['name']}")
            whole = {key: row[key] for key in ("generated", "read", "seconds")}
            own, until = (whole, "to the end") if peer["finished"] else (row["in_the_first"], "cut there, both compared")
            lines += [f"    {who}: {some['generated']:.0f} tokens and {some['read']:.0f} of prompts in "
                      f"{some['seconds']:.0f} s, {until}" for who, some in (("Troupe", own), ("llama.cpp", peer))]
        if row.get("budget_bytes"):
            lines.append(f"  in {row['budget_bytes'] / 2**20:.0f} MiB, peak {row['peak_bytes'] / 2**20:.0f} MiB")
    return "\n".join(lines)


def _prefix_table(figures):
    return (f"first token after a prompt of 2000 tokens: {figures['first_ms']:.0f} ms; again "
            f"{', '.join(f'{ms:.1f}' for ms in figures['again_ms'])} ms, {figures['ratio']:.3f} of that; "
            f"cached {', '.join(map(str, figures['cached_tokens']))} tokens")


def _idle_table(figures):
    return "\n".join(f"{row['connections']} silent streams, {kind}: {row['bytes_each'] / 1024:.1f} KiB each"
                     for kind, row in figures.items())


def _slow_table(figures):
    return "\n".join(f"{name:<30} {row['answers']:>5} answers, median {row['median_ms']:.0f} ms, "
                     f"longest {row['longest_ms']:.0f} ms, lost {row['lost']}" +
                     (f"; slow bodies let go of: {row['let_go']:.0f}" if row["let_go"] else "")
                     for name, row in figures.items())


def _large_table(figures):
    return (f"a small request: {figures['alone_ms']:.1f} ms alone; while large ones are read, {figures['large_ms']:.0f} ms "
            f"each: median {figures['beside_ms']:.1f} ms, longest {figures['longest_ms']:.1f} ms of {figures['asked']}")


def _malformed_table(figures):
    lines = [f"{figures['requests']} malformed requests: {figures['wrong_count']} answered otherwise than by a 4xx "
             f"that names the field; memory {_growth(figures['held_early_bytes'], figures['held_late_bytes'])}"]
    return "\n".join(lines + [f"  {line}" for line in figures["wrong"]])


def _day_table(figures):
    lines = [f"{figures['minutes']} minutes, {sum(figures['requests'].values())} requests, "
             f"{figures['tokens']:.0f} tokens; memory {_growth(figures['early_bytes'], figures['late_bytes'])}; peak "
             f"{figures['peak_bytes'] / 2**20:.1f} of {figures['budget_bytes'] / 2**20:.1f} MiB, "
             f"killed {figures['kills']}, exit code {figures['exit_code']}",
             "  MiB every five minutes: " + " ".join(f"{held / 2**20:.1f}" for held in figures["bytes_by_minute"][::5])]
    return "\n".join(lines + [f"  {line}" for line in figures["wrong"]])


def _growth(early, late):
    return f"{early / 2**20:.2f} MiB early, {late / 2**20:.2f} MiB late ({late / early - 1:+.2%})"


def table(part, figures):
    return {"load": _load_table, "prefix": _prefix_table, "idle": _idle_table, "slow": _slow_table,
            "large": _large_table, "malformed": _malformed_table, "day": _day_table}[part](figures)


def _missed_load(figures):
    for name, row in figures.items():
        if row["lost"]:
            yield f"{row['lost']} answers lost, {name}"
        if row["gap_p99_ms"] > MOST_GAP * row["gap_median_ms"]:
            yield f"p99 between tokens is {row['gap_p99_ms'] / row['gap_median_ms']:.1f} medians ({MOST_GAP}), {name}"
        if (share := row["tokens_per_s"] / row["limit_tokens_per_s"]) < OF_LIMIT:
            yield f"{share:.2f} of the batch's own limit ({OF_LIMIT}), {name}"
        if row.get("peer"):
            if row["over_peer"] < OVER_PEER[name]:
                yield f"{row['over_peer']:.2f} times llama.cpp ({OVER_PEER[name]}), {name}"
        if row.get("kills"):
            yield f"killed for memory, {name}"


def _missed_prefix(figures):
    if min(figures["cached_tokens"][1:]) < 2000:
        yield f"{figures['cached_tokens'][1:]} tokens were cached (2000)"
    if figures["ratio"] > MOST_AGAIN:
        yield f"the second takes {figures['ratio']:.3f} of the first's time ({MOST_AGAIN})"


def _missed_idle(figures):
    for kind, row in figures.items():
        if row["waiting"] < row["connections"]:
            yield f"only {row['waiting']:.0f} of {row['connections']} streams wait, {kind}"
        if kind == "plain" and row["bytes_each"] > MOST_IDLE:  # what TLS adds is its library's
            yield f"{row['bytes_each'] / 1024:.1f} KiB each ({MOST_IDLE // 1024}), {kind}"


def _missed_slow(figures):
    for name, row in figures.items():
        if row["lost"]:
            yield f"{row['lost']} answers lost {name}"
    # Endless ones are answered too, until they are let go: that takes the model's time.
    for name in ("beside slow writers", "beside announced bodies", "beside dripping bodies", "beside slow readers",
                 "beside those of whole answers"):
        share = figures[name]["answers"] / figures["alone"]["answers"]
        if share < LEAST_BESIDE:
            yield f"{share:.2f} of the answers {name} ({LEAST_BESIDE})"


def _missed_large(figures):
    if (share := figures["beside_ms"] / figures["large_ms"]) > MOST_OF_LARGE:
        yield f"a small request takes {share:.2f} of a large one's time ({MOST_OF_LARGE})"


def _missed_malformed(figures):
    if figures["wrong_count"]:
        yield f"{figures['wrong_count']} were answered otherwise"
    if figures["held_late_bytes"] > figures["held_early_bytes"] + MOST_GROWN_BYTES:
        yield "memory grows"
    if not figures["answers_after"]:
        yield "no answer afterwards"


def _missed_day(figures):
    if figures["wrong"]:
        yield f"{len(figures['wrong'])} wrong answers"
    if figures["late_bytes"] > (1 + MOST_GROWTH) * figures["early_bytes"]:
        yield f"memory {_growth(figures['early_bytes'], figures['late_bytes'])}"
    if figures["kills"] or figures["exit_code"]:
        yield f"killed {figures['kills']} times, exit code {figures['exit_code']}"


def missed(part, figures):
    """Bars that were not reached, a line each."""
    lines = {"load": _missed_load, "prefix": _missed_prefix, "idle": _missed_idle, "slow": _missed_slow,
             "large": _missed_large, "malformed": _missed_malformed, "day": _missed_day}[part](figures)
    return [f"{part}: {line}" for line in lines]


def not_held(part, figures):
    """Bars that nothing could be held to, a line each."""
    if part != "load":
        return []
    return [f"{part}: not compared with llama.cpp, {name}" for name, row in figures.items()
            if name in OVER_PEER and not row.get("peer")]
