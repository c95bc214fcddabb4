"""Greedy tokens of troupe against those of a live llama.cpp (bench/oracle.py) on the sample prompts.

A near tie may go either way with rounding: tokens count as the same up to the first step at which
llama.cpp's own margin is below what rounding moves (a hundredth of a row's standard deviation), and a case
that ends so before a quarter of its steps counts as a failure: it would prove nothing.
"""
import pathlib
import shutil
import sys

import held_to

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

STEPS = 32
NEAR_TIE = 0.01


def _live():
    """(oracle module, None), or (None, why there is no llama.cpp here)."""
    if shutil.which("node") is None:
        return None, "skipped: no node found, which runs llama.cpp here"
    import llamacpp
    import measured_run
    import oracle
    try:
        llamacpp.set_up()
    except measured_run.RunFailed as failure:
        return None, f"skipped: {failure}"
    return oracle, None


def agreement(ours, theirs, margins):
    """None if they agree as far as there is a clear choice, else what is wrong."""
    for step, (a, b, margin) in enumerate(zip(ours, theirs, margins)):
        if a != b:
            if margin >= NEAR_TIE:
                return f"token {step} is {a}, llama.cpp's {b} (by a margin of {margin:.3f})"
            return None if step >= STEPS // 4 else f"a near tie at step {step} decides what follows"
    return None if len(ours) == len(theirs) else f"{len(ours)} tokens, llama.cpp's {len(theirs)}"


def compare(binary, model, prompts, folder):
    """(one line, complaints)"""
    oracle, why_not = _live()
    if oracle is None:
        return why_not, []
    peer, wrong, same = oracle.Oracle(folder), [], 0
    try:
        for domain, prompt in prompts.items():
            record = held_to.generate(binary, model, prompt, STEPS, "--ignore-eos")
            tokens, margins, _ = peer.greedy(model.resolve(), record["prompt_ids"], STEPS)
            if record["prompt_ids"][1:] != peer.tokenize(model.resolve(), prompt):
                wrong.append(f"{domain}: llama.cpp makes other tokens of the prompt")
            complaint = agreement(record["token_ids"], tokens, margins)
            wrong += [f"{domain}: {complaint}"] if complaint else []
            same += record["token_ids"] == tokens
    except oracle.OracleFailed as failure:
        wrong.append(str(failure))
    finally:
        peer.close()
    return f"the same {STEPS} greedy tokens for {same} of {len(prompts)} prompts", wrong
