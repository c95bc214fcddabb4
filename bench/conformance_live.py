"""Holds one case's troupe against the llama.cpp that runs now, and both against the golden."""
import dataclasses
import pathlib
import tempfile
import zlib

import conformance_cases
import conformance_compare
import conformance_goldens
import troupe_cli


@dataclasses.dataclass
class Outcome:
    name: str
    decode: float  # median distance of a row of logits to llama.cpp's, decoding token by token
    prefill: float  # the same, tokens read in one go
    noise: float  # the distance that rounding explains
    complaints: list


def check_case(golden, troupe, oracle, folder):
    case = conformance_goldens.case_of(golden)
    prompt, ids = golden["prompt"], golden["prompt"] + golden["tokens"]
    complaints = []
    with tempfile.TemporaryDirectory(dir=folder) as models:
        models = pathlib.Path(models)
        model = models / "model.gguf"
        troupe.synthesize(model, case.shape, case.type, golden["seed"])
        if zlib.crc32(model.read_bytes()) != golden["crc32"]:
            complaints.append("the synthesized file is another than the golden's")

        tokens, _, references = oracle.greedy(model, prompt, conformance_cases.STEPS)
        complaints += [f"llama.cpp and its golden: {c}" for c in
                       conformance_goldens.token_complaints(golden, tokens)]
        record, rows = troupe.generate(model, prompt, conformance_cases.STEPS, models)
        complaints += conformance_goldens.token_complaints(golden, record["token_ids"])
        decode = conformance_compare.closeness(references, rows, case.noise)
        # The logits after the last of `ids` are nobody's prediction.
        prefill = conformance_compare.closeness(oracle.teacher(model, ids)[:-1],
                                                troupe.evaluate(model, ids, models), case.noise)
    complaints += [f"{phase}: {close.complaint()}" for phase, close in
                   (("decode", decode), ("prefill", prefill)) if close.complaint()]
    return Outcome(case.name, decode.median, prefill.median, case.noise, complaints)


def check_text(golden, troupe, oracle, folder):
    """The embedded model on the text: tokens, each one's probability, and whole distributions."""
    model = conformance_goldens.TEXT_MODEL
    ids = golden["ids"]
    text = conformance_goldens.TEXT.read_text(encoding="utf-8")
    complaints = []
    if ([conformance_goldens.BEGIN] + oracle.tokenize(model, text))[:len(ids)] != ids:
        complaints.append("llama.cpp makes other tokens of the text than the golden has")
    rows = troupe.evaluate(model, ids, folder)
    complaints += conformance_goldens.text_complaints(golden, rows)
    close = conformance_compare.closeness(oracle.teacher(model, ids)[:-1], rows,
                                          conformance_goldens.TEXT_CASE.noise)
    if close.complaint():
        complaints.append(close.complaint())
    return Outcome("text, embedded model", close.median, close.median,
                   conformance_goldens.TEXT_CASE.noise, complaints)
