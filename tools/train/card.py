"""The model card: facts as NAME.card.json, and NAME.md made of nothing but them."""
import json
import pathlib

import corpus_files


def facts(name, saved, preset, manifest):
    """What is known when the training has ended; evaluate adds `files`, `evaluation` and `samples`."""
    run, shape, network = saved["run"], preset.shape, saved["run"]["network"]
    weights = sum(tensor.numel() for tensor in network.values())
    routed = sum(tensor.numel() for key, tensor in network.items() if ".experts." in key and "router" not in key)
    return {
        "name": name, "shape": saved["asked"]["preset"]["shape"], "weights": weights,
        "weights_a_token": weights - routed + routed * shape.top_k // shape.experts,
        "training": {"tokens": run["tokens"], "steps": run["step"], "minutes": run["seconds"] / 60,
                     "windows": run["taken"], "context": preset.context, "batch": preset.batch,
                     "matrix_rate": preset.matrix_rate, "rate": preset.rate, "balance": preset.balance,
                     "seed": saved["asked"]["seed"], "held_out_loss": saved["log"].get("final", {})},
        "data": {"corpus": saved["asked"]["corpus"], "domains": manifest["domains"], "sources": manifest["sources"]},
        "files": {}, "evaluation": {}, "samples": {}}


def paths(folder, name):
    return pathlib.Path(folder) / f"{name}.card.json", pathlib.Path(folder) / f"{name}.md"


def read(folder, name):
    return json.loads(paths(folder, name)[0].read_text(encoding="utf-8"))


def write(folder, name, card):
    facts_path, page_path = paths(folder, name)
    corpus_files.write_whole(facts_path, json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    corpus_files.write_whole(page_path, page(card))


def _table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| --- " * len(head) + "|",
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def _data(card):
    domains, training = card["data"]["domains"], card["training"]
    rows = []
    for domain, parts in domains.items():
        seen = training["windows"][domain] * training["context"]
        rows.append((domain, f"{parts['train']['tokens'] / 1e6:.2f} M", f"{seen / 1e6:.2f} M",
                     parts["heldout"]["tokens"], f"{training['held_out_loss'].get(domain, float('nan')):.3f}"))
    return _table(("domain", "training tokens", "seen in training", "held-out tokens", "held-out loss, nats a token"), rows)


def _sources(card):
    rows = [(f"`{name}`", source.get("version", source.get("origin", "")), source["licence"])
            for name, source in card["data"]["sources"].items()]
    return _table(("source", "version or origin", "licence"), rows)


def _evaluation(file, figures):
    rows = [(domain, *(f"{each[key]:.2f}" for key in ("perplexity", "bigram", "unigram")))
            for domain, each in figures["domains"].items()]
    return (f"### {file}\n\n" + _table(("domain", "perplexity", "bigram, told the domain", "unigram"), rows) +
            f"\n\nSums answered right: {figures['sums_right']} of {figures['sums']}, none of which was in a "
            "training text.")


def page(card):
    shape, training = card["shape"], card["training"]
    sums = ("; the sums are generated" if "sums" in card["data"]["domains"] else "")
    parts = [
        f"# {card['name']}",
        f"Architecture qwen2moe: {shape['layers']} layers of width {shape['width']}, {shape['heads']} heads on "
        f"{shape['kv_heads']} key heads, {shape['experts']} experts of width {shape['expert_width']} of which a token "
        f"uses {shape['top_k']}, a gated shared expert of width {shape['shared_width']}, {shape['vocabulary']} "
        f"SentencePiece pieces. {card['weights'] / 1e6:.1f} million weights, {card['weights_a_token'] / 1e6:.1f} "
        f"million used by a token.",
        f"Trained from scratch for {training['minutes']:.1f} minutes on {training['tokens'] / 1e6:.2f} million tokens in "
        f"windows of {training['context']}, {training['batch']} a step, {training['steps']} steps, seed "
        f"{training['seed']}. It writes in the manner of its texts; it is here for its routing, not for its answers.",
        "## Data", _data(card),
        "Documents were split before anything was learned from them; no run of 13 words of a held-out text is in a "
        f"training text{sums}.",
        _sources(card),
        "The texts are under these licences; the weights are this project's.",
    ]
    if card["files"]:
        parts += ["## Files", _table(("file", "bytes", "SHA-256"), [
            (f"`{file}`", each["bytes"], f"`{each['sha256']}`") for file, each in card["files"].items()])]
    if card["evaluation"]:
        parts += ["## Held-out text and sums", "`tools/train/evaluate` prints these figures.",
                  *(_evaluation(file, figures) for file, figures in card["evaluation"].items())]
    if card["samples"]:
        parts += ["## Samples", f"Greedy, by `{card['samples']['file']}`.",
                  *(f"```\n{text.replace('```', '` ` `')}\n```" for text in card["samples"]["texts"].values())]
    return "\n\n".join(parts) + "\n"
