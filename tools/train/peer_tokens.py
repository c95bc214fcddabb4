"""Greedy tokens of troupe against those of a live llama.cpp (bench/oracle.py) on the sample prompts.

A near tie may go either way with rounding. How near follows from the weights' type: `margin` in
tests/conformance_cases.py, in standard deviations of the logits. Where troupe takes a token that llama.cpp
holds so near its own, it goes on from llama.cpp's; any other difference is a fault, and so are too few
steps with a clear choice: they would prove nothing.
"""
import pathlib
import shutil
import sys

import numpy as np

import held_to

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]
import conformance_cases  # noqa: E402

STEPS = 32
CLEAR_STEPS = STEPS // 2  # of a prompt, at least


class NoPeer(Exception):
    """One line: why there is no llama.cpp here."""


def live():
    """The oracle module."""
    if shutil.which("node") is None:
        raise NoPeer("no node found, which runs llama.cpp here")
    import llamacpp
    import measured_run
    import oracle
    try:
        llamacpp.set_up()
    except measured_run.RunFailed as failure:
        raise NoPeer(str(failure)) from None
    return oracle


def near_tie(types):
    """The margin below which a choice is no clear one, for a file with tensors of these types."""
    unknown = sorted(set(types) - set(conformance_cases.TYPES))
    if unknown:
        raise held_to.EvaluationFailed(f"tensors of type {', '.join(unknown)}: no bound is known for their rounding")
    return max(conformance_cases.Case("tiny-qwen2moe", each).margin for each in types)


def lag(row, token):
    """How far a token's logit is behind the largest, in standard deviations of the row."""
    row = np.asarray(row, np.float64)
    return float((row.max() - row[token]) / row.std())


def agreement(theirs, margins, lag_of, ours_after, tie):
    """(steps with a clear choice, at which both chose the same; complaint or None).

    `lag_of(step, token)`: how far llama.cpp has a token behind its own; `ours_after(step)`: troupe's greedy
    tokens after the prompt and the first `step` of llama.cpp's tokens."""
    step = clear = 0
    while step < len(theirs):
        ours = ours_after(step)
        if len(ours) != len(theirs) - step:
            return clear, f"{len(ours)} tokens from step {step} on, expected {len(theirs) - step}"
        for token in ours:
            behind = 0.0 if token == theirs[step] else lag_of(step, token)
            if behind >= tie:
                return clear, (f"token {step} is {token}, llama.cpp's {theirs[step]}, which leads by {behind:.3f}; a near "
                               f"tie is below {tie:.3f}")
            clear += token == theirs[step] and margins[step] >= tie
            step += 1
            if token != theirs[step - 1]:
                break
    if clear < min(CLEAR_STEPS, len(theirs)):
        return clear, f"a clear choice at {clear} of {len(theirs)} steps, expected {min(CLEAR_STEPS, len(theirs))}"
    return clear, None


def _one(peer, binary, model, prompt, tie):
    first = held_to.generate(binary, model, STEPS, "--prompt", prompt, "--ignore-eos")
    ids = first["prompt_ids"]
    tokens, margins, rows = peer.greedy(model.resolve(), ids, STEPS)

    def ours_after(step):
        if step == 0:
            return first["token_ids"]
        return held_to.generate(binary, model, STEPS - step, "--prompt-ids",
                                ",".join(map(str, ids + tokens[:step])), "--ignore-eos")["token_ids"]
    clear, complaint = agreement(tokens, margins, lambda step, token: lag(rows[step], token), ours_after, tie)
    if ids[1:] != peer.tokenize(model.resolve(), prompt):
        complaint = "llama.cpp makes other tokens of the prompt"
    return clear, complaint


def compare(binary, model, prompts, folder):
    """(one line, complaints); raises NoPeer."""
    oracle = live()
    tie = near_tie(held_to.troupe(binary, "inspect", model, "--json", "-")["types"])
    peer, wrong, clear = oracle.Oracle(folder), [], 0
    try:
        for domain, prompt in prompts.items():
            steps, complaint = _one(peer, binary, model, prompt, tie)
            wrong += [f"{domain}: {complaint}"] if complaint else []
            clear += steps
    except oracle.OracleFailed as failure:
        wrong.append(str(failure))
    finally:
        peer.close()
    return (f"the same greedy token at {clear} of {len(prompts) * STEPS} steps, the rest near ties (below {tie:.3f}) "
            f"or faults ({len(wrong)})"), wrong
