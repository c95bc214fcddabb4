"""Measures a model file with the troupe binary, and says what does not hold.

The bars: every domain's perplexity at most three quarters of a bigram's that was told the domain, and half
of a unigram's; figures as the card has them, to a hundredth (kernels may differ between machines in the
last bits, and a greedy answer with them); the file's hash exactly the card's.
"""
import hashlib
import json
import math
import subprocess

import baselines

OF_BIGRAM, OF_UNIGRAM = 0.75, 0.5
LIKE_CARD = 0.01
SAMPLE_TOKENS = 60


class EvaluationFailed(Exception):
    """One line: which command, and what it said."""


def _troupe(binary, *arguments):
    done = subprocess.run([str(binary), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["nothing"]
        raise EvaluationFailed(f"troupe {arguments[0]} {arguments[1]}: exit code {done.returncode}, {said[-1]}")
    return json.loads(done.stdout)


def generate(binary, model, prompt, count, *more):
    # One thread gives the same tokens, and sooner where they are few and the model is small.
    return _troupe(binary, "run", model, "--prompt", prompt, "-n", count, "--temperature", 0, "--threads", 1,
                   "--json", "-", *more)


def measure(binary, model, data, folder):
    figures = {"domains": {}}
    for domain, each in data["domains"].items():
        ids = folder / "held-out.ids"
        ids.write_text(",".join(map(str, each["ids"])))
        record = _troupe(binary, "eval", model, "--ids-file", ids, "--window", data["window"], "--json", "-")
        expected = len(baselines.scored(len(each["ids"]), data["window"]))
        if record["tokens"] != expected:
            raise EvaluationFailed(f"troupe eval {model}: {record['tokens']} tokens scored, the baselines {expected}")
        figures["domains"][domain] = {
            "perplexity": record["perplexity"], "tokens": record["tokens"],
            "bigram": baselines.perplexity(baselines.bigram(each["counts"])),
            "unigram": baselines.perplexity(baselines.unigram(each["counts"]))}
    answers = [generate(binary, model, question, 8)["text"] for question, _ in data["sums"]]
    figures["sums"] = len(answers)
    figures["sums_right"] = sum(answer.split("\n")[0].strip() == right
                                for answer, (_, right) in zip(answers, data["sums"]))
    return figures


def samples(binary, model, data):
    return {domain: prompt + generate(binary, model, prompt, SAMPLE_TOKENS)["text"]
            for domain, prompt in data["prompts"].items()}


def identity(model):
    content = model.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def complaints(model, figures, facts):
    wrong = []
    for domain, each in figures["domains"].items():
        for name, bar in (("bigram", OF_BIGRAM), ("unigram", OF_UNIGRAM)):
            if not each["perplexity"] <= bar * each[name]:
                wrong.append(f"{model.name}: {domain}: perplexity {each['perplexity']:.2f}, expected at most {bar} of "
                             f"the {name}'s {each[name]:.2f}")
    stated, found = facts["evaluation"].get(model.name), identity(model)["sha256"]
    if stated is None:
        return wrong + [f"{model.name}: its card has no figures of it; --record writes them"]
    if facts["files"][model.name]["sha256"] != found:
        wrong.append(f"{model.name}: SHA-256 {found}, its card says {facts['files'][model.name]['sha256']}")
    for domain, each in figures["domains"].items():
        before = stated["domains"].get(domain, {}).get("perplexity", math.nan)
        if not abs(each["perplexity"] - before) <= LIKE_CARD * before:
            wrong.append(f"{model.name}: {domain}: perplexity {each['perplexity']:.3f}, its card says {before:.3f}")
    if figures["sums_right"] < stated["sums_right"] - LIKE_CARD * figures["sums"]:
        wrong.append(f"{model.name}: {figures['sums_right']} sums right, its card says {stated['sums_right']}")
    return wrong
