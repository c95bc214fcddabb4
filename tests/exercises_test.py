#!/usr/bin/env python3
"""The model that answers exercises: its answers are far from chance, exact ones do not depend on what is in memory, and a
mechanism that is not exact can lose them.

usage: exercises_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/exercises-qwen2moe-q8_0.gguf"
TASKS = sorted((ROOT / "models/exercises").glob("*.jsonl"))
ITEMS = 24  # of each
FEW = ("--slots", 24, "--predict", "none")  # a fourth of the experts
TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments):
    done = subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"troupe {' '.join(map(str, arguments))}: {done.stderr}")
    return json.loads(done.stdout) if "--json" in arguments else None


def answered(*flags, model=MODEL):
    return troupe("eval", model, "--tasks", *TASKS, "--items", ITEMS, "--threads", 1, *flags, "--json", "-")


def right(record):
    return [[answer["right"] for answer in task["answers"]] for task in record["tasks"]]


class Exercises(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exact = answered()

    def test_its_answers_are_far_from_chance(self):
        far = []
        for path, task in zip(TASKS, self.exact["tasks"]):
            chances = [json.loads(line)["chance"] for line in path.read_text(encoding="utf-8").splitlines()]
            if task["accuracy"] >= 0.8 and task["accuracy_interval"][0] > 2 * sum(chances) / len(chances):
                far.append(task["task"])
        self.assertGreaterEqual(len(far), 4, [(task["task"], task["accuracy"]) for task in self.exact["tasks"]])

    def test_exact_answers_are_the_same_whatever_is_in_memory(self):
        few = answered(*FEW, "--together", 1)
        self.assertGreater(few["expert_misses"], 0)
        self.assertEqual(right(few), right(self.exact))

    def test_answers_are_lost_where_all_missing_experts_are_left_out(self):
        record = answered(*FEW, "--substitute", "drop")
        self.assertGreater(record["dropped"], 0)
        self.assertLess(record["all"]["accuracy"], self.exact["all"]["accuracy"] - 0.3)

    def test_few_are_lost_where_like_experts_answer_for_those_of_low_score(self):
        record = answered(*FEW, "--substitute", "smoe:alpha=0.1")
        self.assertGreater(record["substituted"], 0)
        self.assertGreater(record["all"]["accuracy"], self.exact["all"]["accuracy"] - 0.05)

    def test_few_are_lost_by_copies_of_fewer_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            shutil.copy(MODEL, model)
            troupe("pack", model, "--low", "Q4_0")
            record = answered(*FEW, "--low-copy", "decode", model=model)
        self.assertGreater(record["low_assignments"], 0)
        self.assertGreater(record["all"]["accuracy"], self.exact["all"]["accuracy"] - 0.1)

    def test_what_it_says_is_what_it_finds_likeliest(self):
        task = next(i for i, path in enumerate(TASKS) if path.stem == "copy")
        lines = TASKS[task].read_text(encoding="utf-8").splitlines()
        for i, answer in list(enumerate(self.exact["tasks"][task]["answers"]))[:6]:
            line = json.loads(lines[answer["line"] - 1])
            count = len(line["continuation"].split())
            said = troupe("run", MODEL, "--prompt", line["context"], "-n", count, "--temperature", 0, "--threads", 1, "--json", "-")
            self.assertEqual(said["text"].split() == line["continuation"].split(), answer["right"], (i, said["text"], line))


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
