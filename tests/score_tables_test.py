#!/usr/bin/env python3
"""What `troupe calibrate` learns of misses is what `--predict scores` begins with: more of the first tokens' misses are
known, answers stay as they are, and a file that is damaged or of another model is told of in one line.

usage: score_tables_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"
SLOTS = 8 * 32 // 2
TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments):
    return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)


class ScoreTables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.model = cls.folder / "m.gguf"  # calibration leaves files beside it
        shutil.copyfile(MODELS / "tiny-qwen2moe-q8_0.gguf", cls.model)
        cls.text = cls.folder / "text"
        cls.text.write_text((ROOT / "tests/data/prose/mixed.txt").read_text(encoding="utf-8")[:16000], encoding="utf-8")
        cls.calibrated = troupe("calibrate", cls.model, "--text", cls.text, "--threads", 1, "--json",
                                cls.folder / "learned.json")
        cls.tables = cls.model.with_suffix(".scores")

    def run_model(self, *more, tokens=24):
        done = troupe("run", self.model, "--prompt", "The kernel", "-n", tokens, "--temperature", 0, "--threads", 1,
                      "--ignore-eos", "--speculate", "off", "--slots", SLOTS, "--predict", "scores", *more,
                      "--json", "-")
        return done, json.loads(done.stdout) if done.returncode == 0 else None

    def test_calibration_tells_of_the_file_and_run_of_what_it_began_with(self):
        self.assertEqual(self.calibrated.returncode, 0, self.calibrated.stderr)
        self.assertIn(f"left in {self.tables}", self.calibrated.stdout)
        learned = json.loads((self.folder / "learned.json").read_text(encoding="utf-8"))
        self.assertEqual(learned["scores"], str(self.tables))
        self.assertEqual(learned["scores_tokens"], learned["tokens"])
        _, with_them = self.run_model()
        _, without = self.run_model("--score-tables", "none")
        # The first token shows which layers have experts.
        self.assertEqual(with_them["score_tokens_known"], learned["tokens"] - 1)
        self.assertGreater(with_them["score_tokens_learned"], with_them["score_tokens_known"] + 8)
        self.assertEqual(without["score_tokens_known"], 0)
        self.assertGreater(without["score_tokens_learned"], 8)
        self.assertEqual(with_them["token_ids"], without["token_ids"])

    def test_none_leaves_the_tables_out_and_the_rest_as_it_is(self):
        folder = self.folder / "without"
        folder.mkdir()
        model = folder / "m.gguf"
        model.symlink_to(self.model)
        record = folder / "learned.json"
        done = troupe("calibrate", model, "--text", self.text, "--threads", 1, "--scores-output", "none", "--json", record)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("--predict scores", done.stdout)
        self.assertNotIn("scores", json.loads(record.read_text(encoding="utf-8")))
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         ["learned.json", "m.buddies.json", "m.gguf", "m.profile.json"])
        for name in ("m.buddies.json", "m.profile.json"):
            self.assertEqual((folder / name).read_bytes(), (self.folder / name).read_bytes(), name)

    def test_more_of_the_first_tokens_misses_are_known(self):
        # By replay, whose clock is of its own: the same figures on every machine.
        trace = self.folder / "t.trace"
        done = troupe("run", self.model, "--prompt", "The kernel of the system", "-n", 48, "--temperature", 1,
                      "--seed", 3, "--ignore-eos", "--speculate", "off", "--threads", 1, "--trace", trace,
                      "--trace-scores", "all")
        self.assertEqual(done.returncode, 0, done.stderr)

        def played(*more):
            done = troupe("replay", trace, "--policy", "echo", "--budget", 50, "--predict", "scores", "--link",
                          "2600MB/100us", "--expert-bytes", 6684672, "--expert-us", 200, "--layer-us", 360, *more,
                          "--json", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)[0]["results"][0]["prefetch"]

        without, with_them = played(), played("--score-tables", self.tables)
        self.assertEqual(without["score_tokens_known"], 0)
        self.assertGreater(with_them["score_tokens_known"], 1000)
        for ahead in range(3):
            before, now = (prefetch["chances"]["same_token"][ahead]["at_60"] for prefetch in (without, with_them))
            self.assertGreater(now, before + 0.05, f"{ahead + 1} layers ahead")

    def recorded(self, folder, scores):
        """A copy of the model in a folder of its own, and a run of it."""
        folder.mkdir()
        model, trace = folder / "m.gguf", folder / "t.trace"
        model.symlink_to(self.model)
        done = troupe("run", model, "--prompt", "The kernel of the system", "-n", 200, "--temperature", 1, "--seed", 3,
                      "--ignore-eos", "--speculate", "off", "--threads", 1, "--trace", trace, "--trace-scores", scores)
        self.assertEqual(done.returncode, 0, done.stderr)
        return model, trace

    def test_a_recorded_run_with_all_scores_teaches_them_as_well(self):
        model, trace = self.recorded(self.folder / "by-trace", "all")
        done = troupe("calibrate", model, "--trace", trace, "--json", model.with_name("learned.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        tables = model.with_suffix(".scores")
        self.assertIn(f"left in {tables}", done.stdout)
        learned = json.loads(model.with_name("learned.json").read_text(encoding="utf-8"))
        self.assertEqual((learned["scores"], learned["scores_tokens"]), (str(tables), learned["tokens"]))
        _, without = self.run_model("--score-tables", "none")
        _, with_them = self.run_model("--score-tables", tables)
        self.assertEqual(with_them["score_tokens_known"], learned["tokens"] - 1)
        self.assertEqual(with_them["token_ids"], without["token_ids"])
        # What a text taught says more, and stays.
        before = self.tables.read_bytes()
        elsewhere = ("-o", model.with_name("p"), "--buddies-output", model.with_name("b"))
        done = troupe("calibrate", self.model, "--trace", trace, *elsewhere)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.tables}: was learned from a text", done.stderr)
        done = troupe("calibrate", self.model, "--trace", trace, *elsewhere, "--scores-output", "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.tables.read_bytes(), before)

    def test_a_recorded_run_without_them_says_so_in_a_line(self):
        model, trace = self.recorded(self.folder / "chosen", "chosen")
        done = troupe("calibrate", model, "--trace", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, f"note: {trace}: does not have the scores of all experts (--trace-scores all "
                         "records them), so no tables for --predict scores are learned\n")
        self.assertFalse(model.with_suffix(".scores").exists())
        self.assertTrue(model.with_suffix(".profile.json").exists())
        done = troupe("calibrate", model, "--trace", trace, "--scores-output", model.with_name("s"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("as --scores-output takes", done.stderr)
        done = troupe("calibrate", model, "--trace", trace, "--scores-output", "none")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_file_beside_the_model_that_is_damaged_is_left_alone_and_a_named_one_refused(self):
        whole = self.tables.read_bytes()
        damaged = bytearray(whole)
        damaged[len(damaged) // 2] ^= 1
        named = self.folder / "damaged"
        named.write_bytes(damaged)
        self.tables.write_bytes(damaged)
        try:
            done, record = self.run_model()
        finally:
            self.tables.write_bytes(whole)
        warnings = [line for line in done.stderr.splitlines() if "m.scores" in line]
        self.assertEqual(len(warnings), 1, done.stderr)
        self.assertRegex(warnings[0], "^warning: not used: .*m.scores: its bytes are not those that were written")
        self.assertEqual(record["score_tokens_known"], 0)
        done, _ = self.run_model("--score-tables", named)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("its bytes are not those that were written", done.stderr)

    def test_tables_of_another_model_and_those_that_nothing_reads_are_refused(self):
        other = self.folder / "other.gguf"
        shutil.copyfile(MODELS / "small-qwen2moe-q8_0.gguf", other)
        done = troupe("run", other, "--prompt", "a", "-n", 1, "--slots", SLOTS, "--predict", "scores",
                      "--score-tables", self.tables)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("made for another model", done.stderr)
        done = troupe("run", self.model, "--prompt", "a", "-n", 1, "--score-tables", self.tables)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--predict scores alone", done.stderr)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
