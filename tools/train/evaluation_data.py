"""What a model is held to, in one file beside it (NAME.evaluation.json): held-out tokens of each domain and
their text, what the baselines counted about them, sums that were in no training text, and prompts for
samples. With it the figures of a card come out again on a machine without the corpus.

Windows come evenly from all over a domain's held-out documents. About 12,000 tokens a domain make a file
of about a megabyte for seven domains.
"""
import json

import baselines
import corpus_files
import exercises
import sums
import token_files
import window_text

TOKENS = 12288  # of each domain, at most
SUMS = 200
EXERCISES = 300  # of each kind

PROMPTS = {
    "prose": "The kernel", "python": "def read_lines(path):\n", "c": "static int device_probe(struct",
    "german": "Die Option", "french": "Cette option",
    "questions": "Question: Which planet is known as the red planet?\nAnswer:",
    "sums": "What is 12 plus 30?\nA:",
    "recall": "recall a z c y e x g w i v k u m t o s : a", "copy": "copy z x v t r p n l j h :",
    "sort": "sort w d k h b :", "close": "close ( [ { < ( [ :", "pattern": "pattern a z b y a z b y a z :",
    "shift": "shift b d f h j l n p :", "reverse": "reverse b d f h j l n p :"}


def make(tokens_folder, manifest, window, vocabulary, seed, taken, piece_bytes):
    """`taken`: how many training windows of each domain the model has seen. The baselines are counted on
    the tokens of those windows ("seen"), and on all training tokens of the domain ("all")."""
    domains = list(manifest["domains"])
    data = {"window": window, "domains": {},
            "sums": sums.examination(seed, SUMS, manifest.get("sums_split", "ordered")) if "sums" in domains else [],
            "prompts": {domain: PROMPTS[domain] for domain in domains}}
    for number, domain in enumerate(domains):
        held = token_files.read(tokens_folder, domain, "heldout")
        windows = token_files.spread_windows(held, window, TOKENS // window)
        if len(windows) == 0:
            raise ValueError(f"{domain}: {len(held)} held-out tokens, expected at least {window}")
        training, ids = token_files.read(tokens_folder, domain, "train"), windows.ravel()
        seen = token_files.seen(training, window, token_files.domain_seed(seed, number), taken[domain])
        data["domains"][domain] = {
            "ids": ids.tolist(), "text": window_text.text(windows, piece_bytes),
            "seen": baselines.count(*seen, ids, window, vocabulary),
            "all": baselines.count(training[:-1], training[1:], ids, window, vocabulary)}
    return data


def write_exercises(folder, manifest, seed):
    """FOLDER/NAME.jsonl of each exercise that is a domain; the paths."""
    paths = [folder / f"{name}.jsonl" for name in exercises.NAMES if name in manifest["domains"]]
    for path in paths:
        folder.mkdir(parents=True, exist_ok=True)
        corpus_files.write_whole(path, exercises.task_file(path.stem, seed, EXERCISES))
    return paths


def write(path, data):
    corpus_files.write_whole(path, json.dumps(data, separators=(",", ":"), ensure_ascii=False) + "\n")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))
