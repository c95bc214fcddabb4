"""Records the goldens: finds, for each case, a seed and a prompt on which two right engines agree.

Random weights give near ties: of tokens, and of experts. Where the two largest logits are closer
than rounding can move them, the choice proves nothing, and it decides all that follows. So a case
takes the first seed, and of its prompts (a fixed sequence) the first, whose greedy continuation by
llama.cpp has no near tie: neither by its margins, nor by the test of running llama.cpp on disturbed
copies of the model, which have to give the same tokens and pass the very bounds that troupe is held
to. What troupe answers has no say.
"""
import pathlib
import random
import tempfile
import zlib

import conformance_cases
import conformance_compare
import conformance_goldens
import disturb
import troupe_cli

# Of a near tie of experts every second copy should take the other side: 8 overlook one in 256.
COPIES = 8
# As many different tokens make sure that the path does not end in a short loop at once.
DISTINCT_TOKENS = 24
# Different prompts soon run into the same few sequences of tokens; so it is not many prompts that
# are tried, but many seeds.
_PROMPTS, _SEEDS = 200, 200
# A copy disturbed this many times as much as rounding may must miss the bounds, or they are empty.
_TOO_MUCH = 8


class NotFound(Exception):
    """No prompt will do, or the bounds say nothing: the cases need other models."""


def _prompts(seed):
    chance = random.Random(seed)
    ids = range(3, conformance_cases.VOCABULARY)  # without unknown, begin and end
    return [chance.choices(ids, k=conformance_cases.PROMPT_TOKENS) for _ in range(_PROMPTS)]


def _usable_steps(oracle, case, model, copies, prompt, tokens):
    """Steps at which every copy predicts nearly what the model does; None if a copy is too far."""
    ids = prompt + tokens
    rows = oracle.teacher(model, ids)
    usable = set(range(len(tokens)))
    for copy in copies:
        close = conformance_compare.closeness(rows, oracle.teacher(copy, ids), case.noise)
        if close.complaint() is not None:
            return None
        near = close.within_noise
        usable &= {step for step in usable if near[len(prompt) - 1 + step]}
    return sorted(usable)


def _spread(steps, count):
    return [steps[i * (len(steps) - 1) // (count - 1)] for i in range(count)]


def _record_seed(case, seed, troupe, oracle, folder):
    """The golden with this seed, or None if it has no prompt that will do."""
    # Names of their own: the oracle keeps files mapped.
    model = folder / f"{case.shape}-{case.type}-{seed}.gguf"
    troupe.synthesize(model, case.shape, case.type, seed)
    copies = [model.with_suffix(f".copy{i}") for i in range(COPIES)]
    for i, copy in enumerate(copies):
        disturb.write_copy(model, copy, case.rounding, i)
    prompts = _prompts(seed)
    while prompts:
        found = oracle.search(model, copies, prompts, conformance_cases.STEPS, case.margin,
                              DISTINCT_TOKENS)
        if found is None:
            return None
        prompt, prompts = prompts[found], prompts[found + 1:]
        tokens, margins, rows = oracle.greedy(model, prompt, conformance_cases.STEPS)
        usable = _usable_steps(oracle, case, model, copies, prompt, tokens)
        if not usable or len(usable) < conformance_goldens.TOP_STEPS:
            continue
        _require_sharp_bounds(case, oracle, model, prompt + tokens)
        top = {str(step): conformance_goldens.likeliest(rows[step])
               for step in _spread(usable, conformance_goldens.TOP_STEPS)}
        return {"shape": case.shape, "type": case.type, "seed": seed,
                "crc32": zlib.crc32(model.read_bytes()), "prompt": prompt, "tokens": tokens,
                "least_margin": round(min(margins), 5), "top": top}
    return None


def record_case(case, troupe, oracle, folder):
    for seed in range(1, _SEEDS + 1):
        with tempfile.TemporaryDirectory(dir=folder) as models:
            golden = _record_seed(case, seed, troupe, oracle, pathlib.Path(models))
        if golden is not None:
            return golden
    raise NotFound(f"{case.name}: none of {_PROMPTS} prompts for any of {_SEEDS} seeds is free of "
                   "near ties")


def _require_sharp_bounds(case, oracle, model, ids):
    wrong = model.with_suffix(".wrong")
    disturb.write_copy(model, wrong, _TOO_MUCH * case.rounding, 0)
    close = conformance_compare.closeness(oracle.teacher(model, ids), oracle.teacher(wrong, ids),
                                          case.noise)
    if close.complaint() is None:
        raise NotFound(f"{case.name}: a model disturbed {_TOO_MUCH} times as much as rounding may "
                       f"passes for the same: median distance {close.median:.4f}, noise "
                       f"{case.noise:.4f}")


def record_text(oracle):
    """The embedded model's view of the text: how likely llama.cpp finds each token."""
    model = conformance_goldens.TEXT_MODEL
    text = conformance_goldens.TEXT.read_text(encoding="utf-8")
    ids = [conformance_goldens.BEGIN] + oracle.tokenize(model, text)
    ids = ids[:conformance_goldens.TEXT_TOKENS]
    log_probabilities = []
    rows = oracle.teacher(model, ids)
    for row, token in zip(rows, ids[1:]):
        log_p = troupe_cli.log_softmax(row)
        log_probabilities.append(round(log_p[token], 4))
    return {"ids": ids, "log_probabilities": log_probabilities}
