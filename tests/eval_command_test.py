#!/usr/bin/env python3
"""What a shell sees of `troupe eval`'s laboratory: tasks, closed loops, heads that guess, sweeps.

usage: eval_command_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
PROSE = ROOT / "tests/data/prose/mixed.txt"
TROUPE = None  # the binary, set at the end of this file

# Sentences as the model has learned them, and others.
TASKS = [
    {"query": "You can", "choices": ["be used", "green the at"], "gold": 0},
    {"query": "Question: What is in the kernel?", "choices": ["The device driver", "The of of"], "gold": 0},
    {"context_options": ["You can", "Of the kernel the"], "continuation": "be used", "gold": 0},
    {"question": "What runs?", "options": "A. the system\nB. zebra zebra", "answer": "A. the system"},
    {"context": "You can", "continuation": "be used"},
    {"context": "You can", "continuation": "be green"},
]


def troupe(*arguments):
    return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


class EvalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tasks = self.folder / "tasks.jsonl"
        self.tasks.write_text("".join(json.dumps(task) + "\n" for task in TASKS))

    def ok(self, *arguments):
        done = troupe("eval", MODEL, "--threads", 1, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def record(self, *arguments):
        return json.loads(self.ok(*arguments, "--json", "-"))

    def fails(self, code, words, *arguments):
        done = troupe("eval", MODEL, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class Reference(EvalTest):
    def test_blocks_of_a_comparison_are_what_its_mean_is_of(self):
        logits = self.folder / "exact.logits"
        text = ("--text", PROSE, "--tokens", 300, "--window", 100)
        self.ok(*text, "--logits", logits)
        found = self.record(*text, "--reference", logits, "--slots", 64, "--predict", "none", "--substitute", "drop")
        blocks = found["kl_blocks"]
        self.assertEqual((len(blocks), sum(tokens for tokens, _ in blocks)), (found["blocks"], found["tokens"]))
        self.assertGreater(found["mean_kl"], 0)
        self.assertAlmostEqual(sum(tokens * kl for tokens, kl in blocks) / found["tokens"], found["mean_kl"])
        same = self.record(*text, "--reference", logits)
        self.assertEqual({kl for _, kl in same["kl_blocks"]}, {0})


class Tasks(EvalTest):
    def test_counts_what_is_right_with_an_interval(self):
        record = self.record("--tasks", self.tasks)
        task = record["tasks"][0]
        self.assertEqual(task["items"], 6)
        self.assertEqual([answer["line"] for answer in task["answers"]], [1, 2, 3, 4, 5, 6])
        right = [answer["right"] for answer in task["answers"]]
        self.assertEqual(task["right"], sum(right))
        self.assertEqual(right[4:], [True, False])
        for answer in task["answers"][:4]:  # the first option is the right one in all of them
            scores = answer["log_likelihoods"]
            self.assertEqual(answer["right"], scores[0] >= max(scores))
        least, most = task["accuracy_interval"]
        self.assertTrue(0 <= least < task["accuracy"] < most <= 1)
        self.assertEqual(record["all"]["right"], task["right"])
        self.assertIn("tasks.jsonl", self.ok("--tasks", self.tasks))

    def test_files_are_summed_and_may_be_thinned(self):
        second = self.folder / "more.jsonl"
        second.write_text(self.tasks.read_text())
        record = self.record("--tasks", self.tasks, second, "--items", 3)
        self.assertEqual([task["items"] for task in record["tasks"]], [3, 3])
        self.assertEqual([answer["line"] for answer in record["tasks"][0]["answers"]], [1, 3, 5])
        self.assertEqual(record["all"]["items"], 6)
        self.assertEqual(record["all"]["right"], sum(task["right"] for task in record["tasks"]))

    def test_pairs_with_exact_answers(self):
        closed = self.record("--tasks", self.tasks, "--slots", 40, "--substitute", "drop:rho=0", "--against-exact")
        task = closed["tasks"][0]
        self.assertEqual(task["answers"], task["exact"]["answers"])
        self.assertEqual((task["accuracy_change"], closed["dropped"]), (0, 0))
        least, most = task["accuracy_change_interval"]
        self.assertTrue(least < 0 < most)  # six questions prove little
        opened = self.record("--tasks", self.tasks, "--slots", 40, "--substitute", "drop", "--against-exact")
        self.assertGreater(opened["dropped"], 0)
        self.assertEqual(opened["tasks"][0]["exact"], task["exact"])
        self.assertNotEqual(opened["tasks"][0]["answers"], task["answers"])

    def test_what_exact_answers_took_is_not_among_what_the_chain_took(self):
        flags = ("--tasks", self.tasks, self.tasks, "--slots", 40, "--predict", "none", "--substitute", "drop:rho=0")
        alone, beside = self.record(*flags), self.record(*flags, "--against-exact")
        self.assertGreater(sum(alone["layer_asks"]), 0)
        self.assertEqual(alone["layer_asks"], beside["layer_asks"])
        self.assertEqual(beside["expert_hits"] + beside["expert_misses"], sum(beside["layer_asks"]))
        self.assertGreater(beside["use_hits"], 0)

    def test_says_what_is_wrong_where(self):
        self.tasks.write_text(json.dumps(TASKS[0]) + "\n" + json.dumps({"question": "Why?", "answer": ["x"]}) + "\n")
        self.fails(1, [f"{self.tasks}, line 2: found the fields question, answer", "expected query"],
                   "--tasks", self.tasks)
        self.fails(2, ["--tasks takes no --text"], "--tasks", self.tasks, "--text", PROSE)
        self.tasks.write_text(json.dumps(TASKS[0]) + "\n")
        self.fails(1, ["every expert is in memory"], "--tasks", self.tasks, "--against-exact")


class ClosedLoop(EvalTest):
    LOOP = ("--text", PROSE, "--tokens", 2000, "--closed-loop", 12, "--prompts", 3, "--prompt-tokens", 16,
            "--slots", 40)

    def test_with_closed_gates_nothing_differs(self):
        record = self.record(*self.LOOP, "--substitute", "drop:rho=0")
        self.assertEqual((record["unchanged"], record["same_tokens"], record["nll_change"]), (3, 1, 0))

    def test_tells_where_answers_part(self):
        record = self.record(*self.LOOP, "--substitute", "drop")
        self.assertGreater(record["dropped"], 0)
        self.assertLess(record["same_tokens"], 1)
        for answer in record["answers"]:
            exact, lossy = answer["exact_ids"], answer["token_ids"]
            self.assertEqual((len(exact), len(lossy)), (12, 12))
            self.assertEqual(answer["same"], sum(a == b for a, b in zip(exact, lossy)))
            self.assertEqual(exact[:answer["first_change"]], lossy[:answer["first_change"]])
        self.assertIn("first change", self.ok(*self.LOOP, "--substitute", "drop"))

    def test_an_exact_engine_has_nothing_to_compare(self):
        self.fails(1, ["nothing allows an answer that is not exact"], *self.LOOP)


class HeadDrafts(EvalTest):
    def test_counts_the_guesses_of_a_head_and_what_they_take(self):
        model, ids = self.folder / "head.gguf", self.folder / "text.ids"
        self.assertEqual(troupe("synth", model, "--shape", "tiny-qwen2moe-head", "--type", "Q8_0").returncode, 0)
        ids.write_text(",".join(str(5 + 37 * i % 500) for i in range(2048)))
        asked = ("eval", model, "--ids-file", ids, "--head-draft", 2, "--threads", 1)
        done = troupe(*asked, "--draft-temperature", 0.8, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        record = json.loads(done.stdout)
        self.assertEqual((record["length"], record["temperature"], record["tokens"]), (2, 0.8, 32 * 128))
        tried, right = record["tried"], record["right"]
        self.assertEqual(tried[0], 32 * 127)  # nothing is known behind the last token
        self.assertLessEqual(right[1], tried[1])
        self.assertLessEqual(tried[1], right[0])
        self.assertLess(right[0], tried[0])
        self.assertGreater(record["check_cost"], 1)
        self.assertGreater(record["draft_cost"], 0)
        self.assertIn("tokens a check", troupe(*asked).stdout)

    def test_needs_a_head_and_a_text_that_is_long_enough(self):
        self.fails(1, ["this file has none"], "--text", PROSE, "--head-draft", 1)
        self.fails(2, ["requires --head-draft"], "--text", PROSE, "--draft-temperature", 0.5)


class Sweep(EvalTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "sweep"
        self.sweep = ("--text", PROSE, "--tokens", 192, "--window", 32, "--predict", "none", "--resident", "50,25",
                      "--sweep", "drop,smoe:alpha=0.2,smoe:alpha=0.6", "-o", self.out)

    def test_draws_curves_of_all_points(self):
        table = self.ok(*self.sweep)
        for line, size in zip(table.splitlines(), (50, 25)):
            self.assertRegex(line, rf"^with {size} % of the experts in memory \S+ loses .* % of what exact answers read")
        self.assertEqual(len(table.splitlines()), 2 + 1 + 8)
        points = json.loads((self.out / "sweep.json").read_text())["points"]
        self.assertEqual([point["resident"] for point in points], 4 * [0.5] + 4 * [0.25])
        exact, drop = points[0], points[1]
        self.assertEqual((exact["chain"], exact["mean_kl"]["mean"]), ("exact", 0))
        self.assertEqual((drop["bytes_per_token"], drop["mean_kl"]["mean"] > 0), (0, True))
        page = (self.out / "sweep.html").read_text()
        self.assertEqual(page.count("<svg"), 2 * 2 * 3)  # for a desk and for a phone
        self.assertNotIn("http", page.replace("http://www.w3.org/", ""))
        for svg in page.split("<svg")[1:]:
            ElementTree.fromstring("<svg" + svg.split("</svg>")[0] + "</svg>")
        self.assertEqual(page.count(">smoe<"), 2 * 2 * 3)  # a line through its settings

    def test_goes_on_after_it_was_cut(self):
        self.ok(*self.sweep)
        path = self.out / "points.jsonl"
        whole = json.loads((self.out / "sweep.json").read_text())["points"]
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
        (self.out / "sweep.json").unlink()
        self.ok(*self.sweep)
        again = path.read_bytes().splitlines(keepends=True)
        self.assertEqual((again[:4], len(again)), (lines[:4], len(lines)))
        def lasting(points):
            return [{key: value for key, value in point.items() if not key.endswith(("_s", "s_per_token"))
                     or key == "bytes_per_token"} for point in points]
        self.assertEqual(lasting(json.loads((self.out / "sweep.json").read_text())["points"]), lasting(whole))

    def test_refuses_the_points_of_another_model_and_text(self):
        self.ok(*self.sweep)
        other = self.folder / "other.gguf"
        other.write_bytes(MODEL.read_bytes())
        self.assertEqual(troupe("quantize", MODEL, other, "Q4_0").returncode, 0)
        before = (self.out / "points.jsonl").read_bytes()
        done = troupe("eval", other, *self.sweep)
        self.assertEqual(done.returncode, 1)
        self.assertIn("points.jsonl, line 1: model", done.stderr)
        self.fails(1, ["points.jsonl, line 1: text_tokens 192, expected 160"], *(160 if x == 192 else x for x in self.sweep))
        self.assertEqual((self.out / "points.jsonl").read_bytes(), before)

    def test_tells_usage_from_failure(self):
        text = ("--text", PROSE)
        self.fails(2, ["-o DIR"], *text, "--sweep", "drop")
        self.fails(2, ["--resident"], *text, "--sweep", "drop", "-o", self.out, "--slots", 40)
        self.fails(2, ["one of --tasks, --closed-loop"], *text, "--sweep", "drop", "--closed-loop", 3)
        self.fails(1, ["no-such-link"], *text, "--sweep", "no-such-link", "-o", self.out)
        self.fails(2, ["--score-tables t: read with --predict scores alone"], *text, "--sweep", "drop", "-o", self.out,
                   "--score-tables", "t")
        self.fails(2, ["--logits"], *text, "--sweep", "drop", "-o", self.out, "--logits", self.folder / "l")

    def test_an_option_of_another_mode_is_not_overlooked(self):
        for mode, options in (("--tasks", (["--items", 3], ["--against-exact"])),
                              ("--closed-loop", (["--prompts", 3], ["--prompt-tokens", 16])),
                              ("--sweep", (["-o", self.out], ["--resident", 50], ["--settle", 32]))):
            for option in options:
                self.fails(2, [f"requires {mode}"], "--text", PROSE, *option)
        for option in (["--shares", 25], ["--quality-tokens", 64], ["--quality-window", 32], ["--most-loss", 1],
                       ["--chain", "drop"], ["--quality-output", self.folder / "q"]):
            done = troupe("calibrate", MODEL, "--text", PROSE, *option)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn("requires --measure-quality", done.stderr)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
