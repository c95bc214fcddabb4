"""bench/fate's pair of precisions: a model whose rows fit both types, packed once, and what low copies lose."""
import json
import pathlib

import measured_run
import overlap_live

# Both made from the small trained model, whose rows are 256 long and more: those of 128 would not be K-quants.
HIGH, LOW, MOST_LOSS_PERCENT = "Q4_K", "Q2_K", 1
FEWEST_SLOTS = 2  # where quality is measured: whatever may be answered by a low copy is


def check_no_fallbacks(record):
    """Raises where a matrix of either copy is in another type than its copy is called by."""
    count, high = record["matrices_in_fallback_types"], record["high_matrices_in_fallback_types"]
    if count > 0:
        raise measured_run.RunFailed(
            f"{record['output']}: {count} matrices fit neither {HIGH} nor {LOW} ({high} of the high copy, {count - high} of the "
            "low one) and are in other types: figures of it would be another pair's; rows of 256 and more expected")


def packed(troupe, binary, folder):
    """The high copy's model, the container with both, and what `pack` said of them."""
    model = folder / f"small-wide{overlap_live.FACTOR}.gguf"
    high = model.with_name(f"{model.stem}-{HIGH.lower()}.gguf")
    container, said = high.with_suffix(".experts"), high.with_suffix(".pack.json")
    if not model.exists():
        troupe.say(f"making {model.name}")
        measured_run.run([str(binary), "synth", str(model), "--widen", str(overlap_live.TRAINED),
                          "--factor", str(overlap_live.FACTOR)])
    made_of = model.stat().st_mtime
    if not all(path.exists() and path.stat().st_mtime > made_of for path in (high, container, said)):
        troupe.say("packing two precisions, each rounded with the least error: about a quarter of an hour, once")
        record = troupe.record("pack", model, "--high", HIGH, "--low", LOW, "-o", container)
        said.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    record = json.loads(pathlib.Path(said).read_text(encoding="utf-8"))
    check_no_fallbacks(record)
    return high, container, record


def in_halves(text):
    """Cut at the end of the paragraph in the middle: what is before it tells little of what comes behind."""
    cut = text.find("\n\n", len(text) // 2)
    if cut < 0:
        raise measured_run.RunFailed("the text has no paragraph that ends in its second half")
    return text[:cut + 2], text[cut + 2:]


def low_share(troupe, folder, text, packed):
    """The share whose loss is allowed on the first half of the text, its loss on the second, and that of all in low copies."""
    halves = [folder / f"fate-text-{i}.txt" for i in (1, 2)]
    for half, part in zip(halves, in_halves(text.read_text(encoding="utf-8"))):
        half.write_text(part, encoding="utf-8")
    common = ["--experts", packed.container, "--slots", FEWEST_SLOTS, "--profile", "none", "--predict", "none"]
    found = troupe.record("eval", packed.model, "--text", halves[0], *common, "--find-low-share", MOST_LOSS_PERCENT)
    logits = folder / "fate-exact.logits"
    troupe.record("eval", packed.model, "--text", halves[1], *common, "--logits", logits)

    def loss(share):
        low = troupe.record("eval", packed.model, "--text", halves[1], *common, "--reference", logits,
                            "--low-copy", f"prefill={share}")
        return {"ratio": low["perplexity_ratio"], "mean_kl": low["mean_kl"], "interval": low["perplexity_ratio_interval"]}

    losses = loss(found["low_share"]), loss(1)
    logits.unlink()
    return found["low_share"], *losses
