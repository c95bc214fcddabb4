"""What a model is held to, in one file beside it (NAME.evaluation.json): held-out tokens of each domain,
what the baselines counted about them, sums that were in no training text, and prompts for samples. With
it the figures of a card come out again on a machine without the corpus.
"""
import json

import baselines
import corpus_files
import sums
import token_files

TOKENS = 4096  # of each domain
SUMS = 200

PROMPTS = {
    "prose": "The kernel ", "python": "def read_lines(path):\n", "c": "static int device_probe(struct ",
    "german": "Die Option ", "french": "Cette option ",
    "questions": "Question: Which planet is known as the red planet?\nAnswer:",
    "sums": "What is 12 plus 30?\nA:"}


def make(tokens_folder, domains, window, vocabulary, seed):
    data = {"window": window, "domains": {}, "sums": sums.examination(seed, SUMS),
            "prompts": {domain: PROMPTS[domain] for domain in domains}}
    for domain in domains:
        held = token_files.read(tokens_folder, domain, "heldout")
        ids = held[:min(TOKENS, len(held)) // window * window]
        if len(ids) == 0:
            raise ValueError(f"{domain}: {len(held)} held-out tokens, expected at least {window}")
        training = token_files.read(tokens_folder, domain, "train")
        data["domains"][domain] = {"ids": ids.tolist(),
                                   "counts": baselines.count(training, ids, window, vocabulary)}
    return data


def write(path, data):
    corpus_files.write_whole(path, json.dumps(data, separators=(",", ":")) + "\n")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))
