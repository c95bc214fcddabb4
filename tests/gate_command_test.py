#!/usr/bin/env python3
"""What a shell sees of the group gate: `troupe calibrate --groups` learns it, says what it costs and
saves, and leaves it beside the model; `--gate groups` chooses experts by it and counts that.

usage: gate_command_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TEXT = ROOT / "tests/data/prose/mixed.txt"
LAYERS, EXPERTS, TOP_K = 8, 32, 4
TROUPE = None  # the binary, set at the end of this file


def troupe(model, command, *arguments, code=0):
    """One thread: tests run beside each other."""
    done = subprocess.run([TROUPE, command, model, *map(str, arguments), "--threads", "1"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


class GroupGateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = cls.folder / "m.gguf"
        shutil.copyfile(TINY, cls.model)
        done = troupe(cls.model, "calibrate", "--text", TEXT, "--tokens", 400, "--groups", 4,
                      "--groups-tokens", 600, "--groups-scored", 128,
                      "--json", cls.folder / "calibrated.json")
        cls.table = done.stdout
        cls.learned = json.loads((cls.folder / "calibrated.json").read_text())["groups"]

    def refused(self, model, *arguments, code=1):
        message = troupe(model, *arguments, code=code).stderr
        if code == 1:
            self.assertEqual(len(message.splitlines()), 1, message)
        return message

    def run_record(self, *arguments):
        return json.loads(troupe(self.model, "run", "--prompt", "The kernel", "-n", 24,
                                 "--temperature", 0, "--json", "-", *arguments).stdout)

    def test_calibration_says_what_a_gate_finds_costs_and_saves(self):
        self.assertEqual(self.learned["file"], str(self.folder / "m.groups.json"))
        self.assertEqual(self.learned["groups"], 4)
        self.assertEqual(len(self.learned["found"]), 4)
        found = [of["joint"] for of in self.learned["found"]]
        self.assertEqual(found, sorted(found))
        self.assertAlmostEqual(found[3], 1)
        # By chance it would be a quarter, a half, three quarters.
        self.assertGreater(found[0], 0.25)
        self.assertLess(self.learned["divergence"], self.learned["divergence_of_nothing"])
        measured = self.learned["measured"]
        self.assertIn(self.learned["looked"], [of["looked"] for of in measured])
        losses = [of["mean_kl"] for of in measured]
        self.assertEqual(losses, sorted(losses, reverse=True))
        for of in measured:
            self.assertGreater(of["mean_kl"], 0)
            self.assertGreater(of["exact_gate_s_per_token"], 0)
            self.assertGreater(of["gate_s_per_token"], 0)
            rows = 4 + of["looked"] * EXPERTS / 4
            self.assertAlmostEqual(of["rows_multiplied"] / of["decisions"], rows)
            self.assertAlmostEqual(of["rows_of_router"] / of["decisions"], EXPERTS)
        self.assertIn("with the best groups", self.table)
        self.assertIn("gate us a token", self.table)

    def test_a_context_of_fewer_tokens_than_a_window_is_enough(self):
        short = self.folder / "short.gguf"
        subprocess.run([TROUPE, "synth", short, "--shape", "tiny-qwen3moe", "--type", "Q8_0", "--context", "96"], check=True, capture_output=True)
        record = json.loads(troupe(short, "calibrate", "--text", TEXT, "--tokens", 300, "--groups", 2, "--groups-tokens", 300,
                                   "--groups-scored", 128, "--measure-quality", "--quality-tokens", 128, "--shares", 50,
                                   "--chain", "smoe:alpha=0.3", "--json", "-").stdout)
        self.assertGreater(len(record["groups"]["measured"]), 0)
        self.assertEqual(len(record["quality"]["shares"]), 1)
        self.assertIn("a window of 97 tokens, expected 2 to the context's 96", self.refused(
            short, "calibrate", "--text", TEXT, "--tokens", 300, "--measure-quality", "--quality-tokens", 128,
            "--shares", 50, "--quality-window", 97))

    def test_experts_are_chosen_by_groups_where_asked_and_it_is_counted(self):
        exact = self.run_record()
        self.assertEqual(exact["gate"], "exact")
        self.assertEqual((exact["grouped"], exact["gate_decisions"]), (0, 0))
        lossy = self.run_record("--gate", "groups:looked=1")
        self.assertEqual(lossy["gate"], "groups:looked=1")
        self.assertNotEqual(lossy["token_ids"], exact["token_ids"])
        self.assertEqual(lossy["grouped"], lossy["expert_uses"])
        self.assertEqual(lossy["gate_decisions"] * TOP_K, lossy["expert_uses"])
        self.assertLess(lossy["gate_rows_multiplied"], lossy["gate_rows_of_router"])
        self.assertEqual(self.run_record("--gate", "exact")["token_ids"], exact["token_ids"])

    def test_answers_by_groups_do_not_depend_on_memory_threads_or_chunks(self):
        alone = self.run_record("--gate", "groups:looked=2")["token_ids"]
        for options in (["--slots", LAYERS * EXPERTS // 4], ["--chunk", 1],
                        ["--slots", 40, "--predict", "lookahead"]):
            with self.subTest(options=options):
                self.assertEqual(self.run_record("--gate", "groups:looked=2", *options)["token_ids"],
                                 alone)

    def test_the_last_line_and_the_plan_say_that_answers_are_not_exact(self):
        done = troupe(self.model, "run", "--prompt", "a", "-n", 4, "--gate", "groups", "--explain")
        self.assertIn("not exact: a group gate looks into", done.stderr)
        self.assertIn("expert uses", done.stderr)
        self.assertIn("as many rows as the routers have", done.stderr)
        plan = troupe(self.model, "plan", "--gate", "groups:looked=3").stdout
        self.assertIn("looks into 3 of 4 groups", plan)

    def test_bad_input_is_one_clear_line(self):
        run = ["run", "--prompt", "a", "-n", 1]
        self.assertIn("looks into 9 of 4 groups, 1 to 3 expected",
                      self.refused(self.model, *run, "--gate", "groups:looked=9"))
        other = self.folder / "other.gguf"
        shutil.copyfile(TINY, other)
        message = self.refused(other, *run, "--gate", "groups")
        self.assertIn("other.groups.json: no such file", message)
        self.assertIn(f"`troupe calibrate {other} --text FILE --groups K`", message)
        self.assertIn("groups, or", self.refused(self.model, *run, "--gate", "teams", code=2)
                      .replace("exact, or groups", "groups, or"))
        calibrate = ["calibrate", "--text", TEXT, "--tokens", 100, "--groups"]
        self.assertIn("33 groups of 32 experts, 2 to 32 expected",
                      self.refused(self.model, *calibrate, 33))
        self.refused(self.model, *calibrate, 0, code=2)
        self.assertIn("learned from exact runs", " ".join(
            self.refused(self.model, *calibrate, 4, "--gate", "groups", code=2).split()))


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
