"""Measures a model file with the troupe binary, and says what does not hold.

The bars: every domain's perplexity at most three quarters of a bigram's that was told the domain and counted
on the very tokens that the model has seen of it, and half of such a unigram's; figures as the card has them
(sums among them, beside what always giving the most frequent answer would bring, and answers to exercises), to a hundredth (kernels may differ between machines in the last bits, and a greedy answer with them); the
file's hash exactly the card's.
"""
import collections
import json
import math
import subprocess

import baselines
import shipped_files
import sums

OF_BIGRAM, OF_UNIGRAM = 0.75, 0.5
LIKE_CARD = 0.01
SAMPLE_TOKENS = 60


class EvaluationFailed(Exception):
    """One line: which command, and what it said."""


def troupe(binary, *arguments):
    done = subprocess.run([str(binary), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["nothing"]
        raise EvaluationFailed(f"troupe {arguments[0]} {arguments[1]}: exit code {done.returncode}, {said[-1]}")
    return json.loads(done.stdout)


def generate(binary, model, count, *prompt):
    """`prompt`: --prompt TEXT or --prompt-ids IDS, and more options."""
    # One thread gives the same tokens, and sooner where they are few and the model is small.
    return troupe(binary, "run", model, *prompt, "-n", count, "--temperature", 0, "--threads", 1, "--json", "-")


def bits_per_byte(binary, model, data, folder):
    """By domain, on the held-out windows' text as the model's own tokenizer cuts it."""
    figures = {}
    for domain, each in data["domains"].items():
        path, content = folder / "held-out.txt", each["text"].encode()
        path.write_bytes(content)
        record = troupe(binary, "eval", model, "--text", path, "--window", data["window"], "--json", "-")
        figures[domain] = record["nll"] * record["tokens"] / math.log(2) / len(content)
    return figures


def counted(each, window):
    """The baselines' perplexities on a domain's tokens."""
    figures = {}
    for name, key in (("", "seen"), (" of all", "all")):
        for kind, predict in (("bigram", baselines.bigram), ("unigram", baselines.unigram)):
            figures[kind + name] = baselines.perplexity(predict(each[key], each["ids"], window))
    return figures


def answered(binary, model, files):
    """By exercise: how many of its questions, and how many were answered right."""
    if not files:
        return {}
    record = troupe(binary, "eval", model, "--tasks", *files, "--threads", 1, "--json", "-")
    found = {}
    for path, task in zip(files, record["tasks"]):
        chances = [json.loads(line)["chance"] for line in path.read_text(encoding="utf-8").splitlines()]
        found[path.stem] = {"items": task["items"], "right": task["right"], "interval": task["accuracy_interval"],
                            "chance": sum(chances) / len(chances)}
    return found


def measure(binary, model, data, folder, exercise_files=()):
    figures, bits = {"domains": {}}, bits_per_byte(binary, model, data, folder)
    for domain, each in data["domains"].items():
        ids = folder / "held-out.ids"
        ids.write_text(",".join(map(str, each["ids"])))
        record = troupe(binary, "eval", model, "--ids-file", ids, "--window", data["window"], "--json", "-")
        expected = len(baselines.scored(len(each["ids"]), data["window"]))
        if record["tokens"] != expected:
            raise EvaluationFailed(f"troupe eval {model}: {record['tokens']} tokens scored, the baselines {expected}")
        figures["domains"][domain] = {
            "perplexity": record["perplexity"], "tokens": record["tokens"], "bits_per_byte": bits[domain],
            "counted_tokens": {key: each[key]["total"] for key in ("seen", "all")},
            **counted(each, data["window"])}
    figures["exercises"] = answered(binary, model, exercise_files)
    by_operation = {}
    for question, right in data["sums"]:
        said = generate(binary, model, 8, "--prompt", question)["text"]
        tally = by_operation.setdefault(sums.operation(question), [0, 0])
        tally[0] += said.split("\n")[0].strip() == right
        tally[1] += 1
    figures["sums_by_operation"] = by_operation
    figures["sums_by_one_answer"] = max(collections.Counter(right for _, right in data["sums"]).values(), default=0)
    figures["sums_right"], figures["sums"] = (sum(each[i] for each in by_operation.values()) for i in range(2))
    return figures


def samples(binary, model, data):
    return {domain: prompt + generate(binary, model, SAMPLE_TOKENS, "--prompt", prompt)["text"]
            for domain, prompt in data["prompts"].items()}


def complaints(model, figures, facts):
    return _below_bars(model, figures) + _unlike_card(model, figures, facts)


def _below_bars(model, figures):
    wrong = []
    for domain, each in figures["domains"].items():
        for name, bar in (("bigram", OF_BIGRAM), ("unigram", OF_UNIGRAM)):
            if not each["perplexity"] <= bar * each[name]:
                wrong.append(f"{model.name}: {domain}: perplexity {each['perplexity']:.2f}, expected at most {bar} of "
                             f"the {name}'s {each[name]:.2f}")
    return wrong


def _unlike_card(model, figures, facts):
    stated, wrong = facts["evaluation"].get(model.name), []
    if stated is None:
        return [f"{model.name}: its card has no figures of it; --record writes them"]
    found = shipped_files.identity(model)["sha256"]
    if facts["files"][model.name]["sha256"] != found:
        wrong.append(f"{model.name}: SHA-256 {found}, its card says {facts['files'][model.name]['sha256']}")
    for domain, each in figures["domains"].items():
        for key in ("perplexity", "bits_per_byte"):
            before = stated["domains"].get(domain, {}).get(key, math.nan)
            if not abs(each[key] - before) <= LIKE_CARD * before:
                wrong.append(f"{model.name}: {domain}: {key} {each[key]:.3f}, its card says {before:.3f}")
    if not abs(figures["sums_right"] - stated["sums_right"]) <= LIKE_CARD * figures["sums"]:
        wrong.append(f"{model.name}: {figures['sums_right']} sums right, its card says {stated['sums_right']}")
    for name, each in figures.get("exercises", {}).items():
        before = stated.get("exercises", {}).get(name, {}).get("right", math.nan)
        if not abs(each["right"] - before) <= LIKE_CARD * each["items"]:
            wrong.append(f"{model.name}: {name}: {each['right']} answers right, its card says {before}")
    return wrong
