"""What llama.cpp answered when the goldens were recorded, and whether troupe answers the same.

conformance_goldens.json holds, for each case of conformance_cases.py, the checksum of the model's
file, a prompt, llama.cpp's 64 greedy tokens and, at a few steps, its likeliest tokens with their
log-probabilities; and for a text under the embedded trained model the log-probability of each
token. `bench/conformance --record` writes the file, `--add` what it lacks.
"""
import json
import math
import pathlib

import conformance_cases
import conformance_compare
import troupe_cli

_TESTS = pathlib.Path(__file__).resolve().parent
PATH = _TESTS / "conformance_goldens.json"
ROOT = _TESTS.parent

TEXT_MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TEXT = _TESTS / "data/prose/mixed.txt"
TEXT_TOKENS = 512  # with BOS
TEXT_CASE = conformance_cases.Case("tiny-qwen2moe", "Q8_0")  # as what the model counts
BEGIN = 1

# Steps of which the likeliest tokens are kept, and how many of those.
TOP_STEPS, TOP_TOKENS = 4, 8


def load():
    return json.loads(PATH.read_text(encoding="utf-8"))


def save(goldens):
    """One case a line, so that a difference between two versions can be read."""
    cases = ",\n".join("  " + json.dumps(case, separators=(",", ":")) for case in goldens["cases"])
    rest = {key: value for key, value in goldens.items() if key != "cases"}
    fields = "".join(f'"{key}": {json.dumps(value, separators=(",", ":"))},\n'
                     for key, value in rest.items())
    PATH.write_text("{\n" + fields + '"cases": [\n' + cases + "\n]}\n", encoding="utf-8")


def likeliest(row):
    """The first tokens of a row, [id, log-probability] in falling order."""
    log_p = troupe_cli.log_softmax(row)
    best = sorted(range(len(log_p)), key=lambda token: -log_p[token])[:TOP_TOKENS]
    return [[token, round(log_p[token], 5)] for token in best]


def token_complaints(golden, tokens):
    """Nothing, or one line: where greedy decoding left llama.cpp's path."""
    wanted = golden["tokens"]
    if tokens == wanted:
        return []
    step = next((i for i, (a, b) in enumerate(zip(tokens, wanted)) if a != b), len(tokens))
    return [f"greedy token {step} differs: {tokens[step:step + 1]}, llama.cpp {wanted[step]} "
            f"({len(tokens)} tokens, {len(wanted)} expected)"]


def probability_complaints(case, golden, rows):
    """Log-probabilities of the likeliest tokens. Each is the difference of a logit and a mean over
    all, whose error is at most sqrt(2) times the noise; of the 3,000 that are recorded none should
    be more than 4 standard deviations away."""
    complaints = []
    for step, top in golden["top"].items():
        row = rows[int(step)]
        log_p, deviation = conformance_compare.log_softmax_and_deviation(row)
        bound = 4 * math.sqrt(2) * case.noise * deviation
        for token, wanted in top:
            if not abs(log_p[token] - wanted) <= bound:
                complaints.append(f"step {step}, token {token}: log-probability "
                                  f"{log_p[token]:.4f}, llama.cpp {wanted:.4f}, at most "
                                  f"{bound:.4f} apart expected")
    return complaints


def case_of(golden):
    return conformance_cases.Case(golden["shape"], golden["type"])


def text_complaints(golden, rows):
    """The probability of each token of the text, and of the text as a whole. The errors of the
    single tokens (probability_complaints) are independent, so that of their mean shrinks with the
    root of their number; 4 standard deviations of it are the bound."""
    differences, deviations = [], []
    true_tokens, recorded = golden["ids"][1:], golden["log_probabilities"]
    for row, token, wanted in zip(rows, true_tokens, recorded, strict=True):
        log_p, deviation = conformance_compare.log_softmax_and_deviation(row)
        differences.append(log_p[token] - wanted)
        deviations.append(deviation)
    count = len(differences)
    error = math.sqrt(2) * TEXT_CASE.noise * sum(deviations) / count
    complaints = []
    mean, mean_bound = sum(differences) / count, 4 * error / math.sqrt(count)
    if not abs(mean) <= mean_bound:
        complaints.append(f"mean log-probability is {mean:+.5f} from llama.cpp's, at most "
                          f"{mean_bound:.5f} expected")
    far = sum(not abs(difference) <= 4 * error for difference in differences)
    if far > conformance_compare.FAR_ROWS * count:
        complaints.append(f"{far} of {count} tokens are more than {4 * error:.4f} nats from "
                          f"llama.cpp's, at most {conformance_compare.FAR_ROWS:.0%} expected")
    return complaints
