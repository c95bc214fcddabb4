"""The model card: facts as NAME.card.json, and NAME.md made of nothing but them."""
import json
import pathlib

import corpus_files
import sources

EXERCISES = "exercises"  # the folder beside a card, with the task files of exercises


def facts(name, saved, preset, manifest, files):
    """What is known when the training has ended; evaluate adds `files`, `evaluation`, `samples` and
    `compared`. `files`: identities of what an export wrote (f16, evaluation_file, exercise_files)."""
    run, shape, network = saved["run"], preset.shape, saved["run"]["network"]
    weights = sum(tensor.numel() for tensor in network.values())
    routed = sum(tensor.numel() for key, tensor in network.items() if ".experts." in key and "router" not in key)
    log, asked = saved["log"], saved["asked"]
    return {
        "name": name, "shape": asked["preset"]["shape"], "weights": weights,
        "weights_a_token": weights - routed + routed * shape.top_k // shape.experts,
        "training": {"finished": bool(log.get("final")), "budget": asked["budget"], "machine": log.get("machine"),
                     "tokens": run["tokens"], "steps": run["step"], "minutes": run["seconds"] / 60,
                     "windows": run["taken"], "context": preset.context, "batch": preset.batch,
                     "matrix_rate": preset.matrix_rate, "rate": preset.rate, "balance": preset.balance,
                     "seed": asked["seed"], "held_out_loss": log.get("final", {})},
        "data": {"corpus": asked["corpus"], "vocabulary_sha256": manifest["vocabulary_sha256"],
                 "domains": manifest["domains"], "sums_split": manifest.get("sums_split", "ordered"), "sources": {
                     # As sources.py names it now: a licence that is named better needs no new corpus.
                     source: {**found, "licence": sources.licence(source) or found["licence"]}
                     for source, found in manifest["sources"].items()}},
        **files, "files": {}, "evaluation": {}, "samples": {}, "compared": {}}


def keep_measured(card, before):
    """What an earlier card of the same weights says of other files stays as long as it is true of these;
    returns lines that say what goes."""
    kept, gone = [], []
    for key, on in (("files", ("f16",)), ("evaluation", ("f16", "evaluation_file", "exercise_files")),
                    ("samples", ("f16", "evaluation_file")), ("compared", ("f16", "evaluation_file"))):
        same = all((before.get(each) or {}) == (card.get(each) or {}) for each in on)
        (kept if same else gone).append(key)
        if same:
            card[key] = before.get(key, card[key])
    return [f"{key} of the card before: dropped, they are of other weights or other texts"
            for key in gone if before.get(key)]


def paths(folder, name):
    return pathlib.Path(folder) / f"{name}.card.json", pathlib.Path(folder) / f"{name}.md"


def read(folder, name):
    return json.loads(paths(folder, name)[0].read_text(encoding="utf-8"))


def write(folder, name, card):
    facts_path, page_path = paths(folder, name)
    corpus_files.write_whole(facts_path, json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    corpus_files.write_whole(page_path, page(card))


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| --- " * len(head) + "|",
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def machine(found):
    """One sentence."""
    if not found:
        return "On which machine was not recorded."
    if isinstance(found, str):
        return f"{found.rstrip('.')}."
    if found["device"] == "cpu":
        return (f"No GPU was used: {found['threads']} threads on a machine of {found['cores']} processor cores, torch "
                f"{found['torch']}; minutes are processor time divided by the threads.")
    return f"On one {found['device']}, torch {found['torch']}; minutes are time on the clock."


def _training(training, exercises):
    unfinished = "" if training["finished"] else " **The training is not finished**: these are the weights of its last checkpoint."
    return (f"Trained from scratch for {training['minutes']:.1f} minutes on {training['tokens'] / 1e6:.2f} million tokens in "
            f"windows of {training['context']}, {training['batch']} a step, {training['steps']} steps, seed "
            f"{training['seed']}. {machine(training['machine'])}{unfinished} It writes in the manner of its texts; "
            + ("it is here for its answers to exercises, which can be lost." if exercises else
               "it is here for its routing, not for its answers."))


def _data(card):
    domains, training = card["data"]["domains"], card["training"]
    rows, losses = [], training["held_out_loss"]
    for domain, parts in domains.items():
        seen = training["windows"][domain] * training["context"]
        rows.append((domain, f"{parts['train']['tokens'] / 1e6:.2f} M", f"{seen / 1e6:.2f} M",
                     parts["heldout"]["tokens"], f"{losses[domain]:.3f}" if domain in losses else "not measured"))
    return table(("domain", "training tokens", "seen in training", "held-out tokens", "held-out loss, nats a token"), rows)


def _sources(card):
    rows = [(f"`{name}`", source.get("version", source.get("origin", "")), source["licence"])
            for name, source in card["data"]["sources"].items()]
    return table(("source", "version or origin", "licence"), rows)


def _not_measurable(card):
    tasks = [sources.EVALUATION_SPLITS[name] for name in card["data"]["sources"] if name in sources.EVALUATION_SPLITS]
    if not tasks:
        return []
    return [f"Do not measure these tasks with this model, which was trained on their public evaluation files: "
            f"{', '.join(tasks)}."]


def _evaluation(file, figures):
    keys = ("perplexity", "bigram", "unigram", "bigram of all", "unigram of all", "bits_per_byte")
    rows = [(domain, *(f"{each[key]:.2f}" for key in keys), f"{each['counted_tokens']['seen'] / 1e6:.2f} M",
             f"{each['counted_tokens']['all'] / 1e6:.2f} M") for domain, each in figures["domains"].items()]
    perplexities = f"### {file}\n\n" + table(
        ("domain", "perplexity", "bigram, tokens seen", "unigram, tokens seen", "bigram, all tokens", "unigram, all tokens",
         "bits a byte", "tokens seen", "all tokens"), rows)
    return "\n\n".join([perplexities, *_sums(figures), *_exercises(figures)])


def _exercises(figures):
    if not figures.get("exercises"):
        return []
    rows = [(name, each["items"], f"{100 * each['chance']:.1f} %", f"{100 * each['right'] / each['items']:.1f} %",
             "{:.1f} to {:.1f} %".format(*(100 * limit for limit in each["interval"])))
            for name, each in figures["exercises"].items()]
    return ["Bits a byte are of text, in which blank lines stand where training had tokens between exercises; they say "
            "something of the prose alone.",
            "Exercises that were in no training text (`exercises/*.jsonl`), right if every token of the answer is the likeliest "
            "where it stands. By chance: symbols that can be in the answer, without another thought.",
            table(("exercise", "items", "right by chance", "right", "95 % interval"), rows)]


def _sums(figures):
    if not figures["sums"]:
        return []
    by_operation = ", ".join(f"{word} {right} of {asked}" for word, (right, asked) in figures["sums_by_operation"].items())
    return [(f"Sums answered right: {figures['sums_right']} of {figures['sums']} ({by_operation}), none of which was in "
        f"a training text in either order. One and the same answer to all would be right {figures['sums_by_one_answer']} times.")]


def _compared(card):
    parts = []
    for other, each in card["compared"].items():
        ours = card["evaluation"][each["with"]]["domains"]
        rows = [(domain, f"{ours[domain]['bits_per_byte']:.3f}", f"{bits:.3f}")
                for domain, bits in each["bits_per_byte"].items()]
        parts += [f"### Against {other}", f"Bits a byte on the same held-out texts, less is better. `{other}` "
                  f"(SHA-256 `{each['sha256']}`): {each['remark']}",
                  table(("domain", each["with"], other), rows)]
    return parts


def page(card):
    shape = card["shape"]
    sums = ""
    if "sums" in card["data"]["domains"]:
        sums = "; the sums are generated" + (
            ", and b plus a may have been in a training text where a plus b is in a held-out one, though not where it is "
            "asked below" if card["data"]["sums_split"] == "ordered" else "")
    exercises = "; the exercises are generated, and one in 50 is held out, by what it is about" if card.get("exercise_files") else ""
    parts = [
        f"# {card['name']}",
        f"Architecture qwen2moe: {shape['layers']} layers of width {shape['width']}, {shape['heads']} heads on "
        f"{shape['kv_heads']} key heads, {shape['experts']} experts of width {shape['expert_width']} of which a token "
        f"uses {shape['top_k']}, a gated shared expert of width {shape['shared_width']}, {shape['vocabulary']} "
        f"SentencePiece pieces. {card['weights'] / 1e6:.1f} million weights, {card['weights_a_token'] / 1e6:.1f} "
        f"million used by a token.",
        _training(card["training"], card.get("exercise_files")),
        "## Data", _data(card),
        "Documents were split before anything was learned from them; no run of 13 words of a held-out text is in a "
        f"training text{sums}{exercises}.",
        _sources(card), *_not_measurable(card),
        "The texts are under these licences, and so are the held-out ones, which "
        f"`{card['name']}.evaluation.json` has as tokens and as text; the weights are this project's.",
    ]
    if card["files"]:
        parts += ["## Files", table(("file", "bytes", "SHA-256"), [
            (f"`{file}`", each["bytes"], f"`{each['sha256']}`") for file, each in (
                *card["files"].items(), (f"{card['name']}.evaluation.json", card["evaluation_file"]),
                *((f"{EXERCISES}/{file}", each) for file, each in card.get("exercise_files", {}).items()))])]
    if card["evaluation"]:
        parts += ["## Held-out text and exercises" if card.get("exercise_files") else "## Held-out text and sums",
                  "`tools/train/evaluate` prints these figures. Bigram and unigram were told the domain, which the model "
                  "was not; \"tokens seen\" are those of the domain that the model saw in training, \"all tokens\" all "
                  "that there are. The bars are held against those of the tokens seen.",
                  *(_evaluation(file, figures) for file, figures in card["evaluation"].items()), *_compared(card)]
    if card["samples"]:
        parts += ["## Samples", f"Greedy, by `{card['samples']['file']}`.",
                  *(f"```\n{text.replace('```', '` ` `')}\n```" for text in card["samples"]["texts"].values())]
    return "\n\n".join(parts) + "\n"
