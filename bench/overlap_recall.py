"""What a forecast knows of misses, and what knowing takes: the recall of misses at a precision, by layers ahead, on the
second half of a text whose first half it has learned from; and the time that predicting takes of a token. Tables, and the
bars that their figures are held to.
"""
import measured_run

PREDICTOR = "scores"          # the one whose chances a replay counts
PRECISIONS = (70, 60, 50)     # %
BAR_AHEAD, BAR_PRECISION, LEAST_RECALL = 3, 60, 0.70  # layers, %, share of the misses
MOST_PREDICTING = 0.02        # of a token's time
WASTE = 0.15                  # loads for nothing a miss, which the bar of bytes leaves
BUDGET = 50                   # % in memory
# A load takes so long that every distance is predicted, and that next to nothing is read ahead.
LAYER_TIMES = 4
# For the time that predicting takes, a load as on this disk, and rounds of which the fastest counts.
PREDICTING_LAYER_TIMES, ROUNDS = 2, 3


def know(commands, model, trace, half_path, costs):
    """Of a text's trace of several sequences. `costs(times)`: options of a replay in which a load takes so long."""
    sequences = sequences_of(commands, trace)
    half_path.unlink(missing_ok=True)
    commands.run("trace", "cut", trace, "-o", half_path, "--sequences", f"0,{(sequences + 1) // 2 - 1}")

    def play(path, times, budgets, predictors):
        return commands.json("replay", path, *costs(times), "--threads", 1, "--budget", budgets, "--predict", predictors)[0]

    whole, half = (play(path, LAYER_TIMES, BUDGET, PREDICTOR)["results"][0]["prefetch"]["chances"]
                   for path in (trace, half_path))
    played = play(trace, PREDICTING_LAYER_TIMES, BUDGET, PREDICTOR)
    result = played["results"][0]
    predicting = predicting_seconds(
        lambda budgets, predictors: commands.cpu_seconds(
            "replay", trace, *costs(PREDICTING_LAYER_TIMES), "--threads", 1, "--budget", budgets, "--predict", predictors))
    return {"model": model, "tokens": played["tokens"],
            "whole": by_layers(whole), "second_half": by_layers(since(whole, half)),
            "predicting_ms": 1e3 * predicting / played["tokens"],
            "computing_ms": 1e3 * result["compute_s_per_token"],
            "token_ms": 1e3 * (result["stall_s_per_token"] + result["compute_s_per_token"])}


def sequences_of(commands, trace):
    """As many as `troupe trace info` counts; a text of one window has no half."""
    sequences = commands.json("trace", "info", trace)[0]["sequences"]
    if sequences < 2:
        raise measured_run.RunFailed(f"{trace}: one window of text, expected two or more: the first half is learned from")
    return sequences


def predicting_seconds(cpu_seconds):
    """Two caches each time, and the same reading of the trace: one of them predicts, or both. Time of the processor, so that
    others on the machine add little."""
    one, both = (min(cpu_seconds(*arguments) for _ in range(ROUNDS))
                 for arguments in ((f"{BUDGET}", f"none,{PREDICTOR}"), (f"{BUDGET},{BUDGET + 1}", PREDICTOR)))
    return max(0.0, both - one)


def since(whole, half):
    """What was counted after the half: the same beginning was played, so no count of it can be larger."""
    left = {}
    for token, distances in whole.items():
        left[token] = []
        for all_of, first in zip(distances, half[token]):
            rest = {key: [a - b for a, b in zip(all_of[key], first[key])] for key in ("said", "asked")}
            if min(rest["said"] + rest["asked"]) < 0:
                raise measured_run.RunFailed("the half of a text was replayed otherwise than its whole")
            left[token].append(rest)
    return left


def recall_at(histogram, precision):
    """The largest share of the misses that a threshold finds of which at least `precision` % of what reaches it are misses."""
    said = asked = found = 0
    for in_bin, came in zip(reversed(histogram["said"]), reversed(histogram["asked"])):
        said, asked = said + in_bin, asked + came
        if 100 * asked >= precision * said:
            found = asked
    return found / asked if asked else 0.0


def known_within(histogram, waste):
    """The largest share of the misses that a threshold finds while it names at most `waste` others a miss."""
    misses = sum(histogram["asked"])
    said = asked = found = 0
    for in_bin, came in zip(reversed(histogram["said"]), reversed(histogram["asked"])):
        said, asked = said + in_bin, asked + came
        if said - asked <= waste * misses:
            found = asked
    return found / misses if misses else 0.0


def by_layers(chances):
    """[{layers, same_token: {misses, recall: {precision: share}}, next_token: …, known_within_waste}]: the last of both."""
    def of(histogram):
        return {"misses": sum(histogram["asked"]), "recall": {p: recall_at(histogram, p) for p in PRECISIONS}}

    def both(same, later):
        return {key: [a + b for a, b in zip(same[key], later[key])] for key in ("said", "asked")}

    return [{"layers": place + 1, "same_token": of(same), "next_token": of(later),
             "known_within_waste": known_within(both(same, later), WASTE)}
            for place, (same, later) in enumerate(zip(chances["same_token"], chances["next_token"]))]


def bar_recall(one):
    return next(distance for distance in one["second_half"] if distance["layers"] == BAR_AHEAD)["same_token"]["recall"][BAR_PRECISION]


def predicting_share(one):
    return one["predicting_ms"] / one["token_ms"]


def missed_bars(known):
    missed = []
    for one in known:
        if bar_recall(one) < LEAST_RECALL:
            missed.append(f"{one['model']}: {100 * bar_recall(one):.0f} % of misses known {BAR_AHEAD} layers ahead at a precision of "
                          f"{BAR_PRECISION} %, at least {100 * LEAST_RECALL:.0f}")
        if predicting_share(one) > MOST_PREDICTING:
            missed.append(f"{one['model']}: predicting takes {100 * predicting_share(one):.1f} % of a token's time, at most "
                          f"{100 * MOST_PREDICTING:.0f}")
    return missed


def table(known):
    lines = [f"| model | layers ahead | misses a token | recall of misses at a precision of {', '.join(map(str, PRECISIONS))} % "
             f"| past the token's end | from the text's beginning | of all misses, with {WASTE:g} loads for nothing a miss |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for one in known:
        for second, whole in zip(one["second_half"], one["whole"]):
            lines.append(f"| {one['model']} | {second['layers']} | {whole['same_token']['misses'] / one['tokens']:.2f} | "
                         f"{shown(second['same_token'])} | {shown(second['next_token'])} | {shown(whole['same_token'])} | "
                         f"{100 * second['known_within_waste']:.0f} % |")
    return "\n".join(lines)


def shown(of):
    return ", ".join(f"{100 * of['recall'][p]:.0f}" for p in PRECISIONS) + " %" if of["misses"] else ""


def predicting_table(known):
    lines = ["| model | predicting and learning, ms a token | a token, ms | share | of its computing alone |",
             "| --- | --- | --- | --- | --- |"]
    for one in known:
        lines.append(f"| {one['model']} | {one['predicting_ms']:.3f} | {one['token_ms']:.2f} | {100 * predicting_share(one):.1f} % | "
                     f"{100 * one['predicting_ms'] / one['computing_ms']:.1f} % |")
    return "\n".join(lines)


def bar_rows(known):
    """Of the report's table of bars: the bar, what was found, and for how many models it held."""
    if not known:
        return []
    recalls, shares = [bar_recall(one) for one in known], [predicting_share(one) for one in known]
    return [f"| recall of misses {BAR_AHEAD} layers ahead at a precision of {BAR_PRECISION} %, at least {100 * LEAST_RECALL:.0f} % | "
            f"{100 * min(recalls):.0f} to {100 * max(recalls):.0f} % | held for {sum(r >= LEAST_RECALL for r in recalls)} of "
            f"{len(known)} models |",
            f"| predicting, at most {100 * MOST_PREDICTING:.0f} % of a token's time | {100 * min(shares):.1f} to "
            f"{100 * max(shares):.1f} % | held for {sum(s <= MOST_PREDICTING for s in shares)} of {len(known)} models |"]
