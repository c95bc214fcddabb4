"""The card of a head that guesses: facts as NAME.head.json, and NAME.head.md made of nothing but them."""
import json

import card
import corpus_files
import sources


def paths(folder, name):
    """(part, facts, page)"""
    return folder / f"{name}.head.gguf", folder / f"{name}.head.json", folder / f"{name}.head.md"


def facts(name, saved, manifest, part, weights):
    """What is known when the training has ended; evaluate_head adds `evaluation`. `part`: the file's identity."""
    run, asked = saved["run"], saved["asked"]
    texts = manifest["asked"]
    return {
        "name": name, "model": {"file": texts["model"], "sha256": texts["sha256"]}, "part": part, "weights": weights,
        "preset": asked["preset"], "held_out": manifest["held_out"],
        "training": {"finished": bool(saved["log"].get("final")), "budget": asked["budget"], "seed": asked["seed"],
                     "machine": saved["log"].get("machine"), "tokens": run["tokens"], "steps": run["step"],
                     "minutes": run["seconds"] / 60, "windows": run["taken"], "guessed": saved["log"].get("final", {})},
        "data": {"domains": manifest["domains"], "texts": texts["texts"], "sources": {
            source: {**found, "licence": sources.licence(source) or found["licence"]}
            for source, found in manifest["sources"].items()}},
        "evaluation": []}


def read(folder, name):
    return json.loads(paths(folder, name)[1].read_text(encoding="utf-8"))


def write(folder, name, found):
    _, facts_path, page_path = paths(folder, name)
    corpus_files.write_whole(facts_path, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    corpus_files.write_whole(page_path, page(found))


def _guessed(shares):
    return ", ".join(f"{domain} {100 * share:.1f} %" for domain, share in shares.items())


def page(found):
    training, preset = found["training"], found["preset"]
    unfinished = "" if training["finished"] else " **The training is not finished**: these are the weights of its last checkpoint."
    rows = [(domain, f"{parts['train'] / 1e6:.2f} M", f"{training['windows'].get(domain, 0) * preset['context'] / 1e6:.2f} M",
             parts.get("heldout", "")) for domain, parts in found["data"]["domains"].items()]
    parts = [
        f"# A head that guesses for {found['name']}",
        f"For `{found['model']['file']}` alone (SHA-256 `{found['model']['sha256']}`): one layer with a dense block of width "
        f"{preset['dense_width']} and an output of {preset['tokens']} tokens, {found['weights'] / 1e6:.2f} million weights. "
        "[What it is](../../docs/formats/head.md), [how it is used](../../docs/design/speculation.md#a-head-for-the-small-model). "
        f"`{found['name']}.head.gguf` has {found['part']['bytes']} bytes, SHA-256 `{found['part']['sha256']}`.",
        "    tools/train/join_head models/" + found["model"]["file"] + f" models/heads/{found['name']}.head.gguf m.gguf\n"
        "    build/release/tools/troupe/troupe run m.gguf --speculate heads -p \"The kernel\"",
        f"Trained for {training['minutes']:.1f} minutes on {training['tokens'] / 1e6:.2f} million tokens in windows of "
        f"{preset['context']}, {preset['batch']} a step, {training['steps']} steps, seed {training['seed']}; the model stayed as "
        f"it is. {card.machine(training['machine'])}{unfinished}",
        "## Data",
        card.table(("domain", "training tokens", "seen in training", "held-out tokens"), rows),
        "`greedy` and `drawn` is what the model itself has written behind pieces of the others, at temperature 0 and 0.8. "
        "No run of 13 words of the model's evaluation texts is in a training text; the held-out tokens are of those, and the "
        "model's answers behind pieces of them.",
    ]
    if training["guessed"]:
        parts.append("Share of the held-out tokens at which the head's likeliest token is the model's, in torch and with the "
                     f"text as it is: {_guessed(training['guessed'])}.")
    if found["data"]["sources"]:
        parts.append(card.table(("source", "version or origin", "licence"), [
            (f"`{name}`", source.get("version", source.get("origin", "")), source["licence"])
            for name, source in found["data"]["sources"].items()]))
    if found["data"]["texts"]:
        parts.append(f"Texts: {', '.join(found['data']['texts'])}.")
    if found["evaluation"]:
        parts += ["## Guesses on held-out prose",
                  "`tools/train/evaluate_head` prints these: answers of 128 tokens behind 32 pieces of held-out prose, each token "
                  "guessed by the engine as it would in a run. Costs are in passes of one token, and differ between machines.",
                  card.table(("temperature", "guesses at a time", "right, by how far ahead", "tokens a check", "having a draft",
                              "checking it", "speed if every token were guessed"),
                             [(each["temperature"], each["length"], right(each), f"{each['tokens_per_check']:.2f}",
                               f"{each['draft_cost']:.2f}", f"{each['check_cost']:.2f}", f"{each['speedup']:.2f}")
                              for each in found["evaluation"]])]
    return "\n\n".join(parts) + "\n"


def right(each):
    """'71.2 %, 48.0 %'"""
    return ", ".join(f"{100 * right / max(tried, 1):.1f} %" for right, tried in zip(each["right"], each["tried"]))
