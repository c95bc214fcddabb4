#!/usr/bin/env python3
"""What a shell sees of `troupe trace`, and examples/read_trace.py on what it writes.

usage: trace_command_test.py TROUPE [unittest arguments]
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data/routing"
EXAMPLE = ROOT / "examples/read_trace.py"
TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments):
    return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


def read_trace(path):
    """The header, then of all chunks together segments, ids, scores and all scores."""
    spec = importlib.util.spec_from_file_location("read_trace", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    header, *chunks = module.read_trace(path)
    segments, *arrays = zip(*chunks)
    return header, np.concatenate(segments), *(np.concatenate(parts, axis=1) for parts in arrays)


class TraceCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.law = self.convert("law")

    def convert(self, task, *options):
        out = self.folder / f"{task}.trace"
        self.expect_ok("convert", DATA / f"{task}.meta.json", "-o", out, *options)
        return out

    def expect_ok(self, *arguments):
        done = troupe("trace", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def expect_failure(self, words, *arguments, code=1):
        done = troupe("trace", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(words, done.stderr)

    def info(self, path):
        """What it says, and by its exit code as well whether the trace is whole."""
        done = troupe("trace", "info", path, "--json", "-")
        facts = json.loads(done.stdout)[0]
        self.assertEqual(done.returncode, 0 if facts["whole"] else 1, done.stderr)
        return facts

    def test_the_example_reads_what_was_recorded(self):
        meta = json.loads((DATA / "law.meta.json").read_text())
        raw = subprocess.run(["zstd", "-dcq", DATA / meta["ids"]["file"]], stdout=subprocess.PIPE,
                             check=True).stdout
        header, _, ids, scores, _ = read_trace(self.law)
        self.assertEqual(header["top_k"], meta["top_k"])
        np.testing.assert_array_equal(ids, np.frombuffer(raw, "u1").reshape(meta["ids"]["shape"]))
        self.assertEqual(scores.size, 0)
        done = subprocess.run([sys.executable, "-B", EXAMPLE, self.law], capture_output=True, text=True,
                              check=True)
        self.assertEqual(len(done.stdout.splitlines()), len(header["moe_layers"]))

    def test_the_example_agrees_with_the_command_about_every_trace_and_takes_ten_lines(self):
        body = EXAMPLE.read_text().split('"""\n    data')[1].split("\n\n")[0]
        self.assertEqual(len(body.splitlines()), 10)
        with_all_scores = self.folder / "all.trace"
        run = troupe("run", ROOT / "models/tiny-qwen2moe-q8_0.gguf", "--prompt", "The kernel", "-n", 8, "--threads", 1,
                     "--trace", with_all_scores, "--trace-scores", "all")
        self.assertEqual(run.returncode, 0, run.stderr)
        for path in (self.law, DATA / "deepseek-v2-lite.trace", DATA / "gpt-oss-20b.trace", with_all_scores):
            header, segments, ids, scores, all_scores = read_trace(path)
            facts = self.info(path)
            self.assertEqual(header, facts["header"])
            layers, tokens = len(header["moe_layers"]), facts["tokens"]
            self.assertEqual(ids.shape, (layers, tokens, header["top_k"]))
            self.assertEqual(segments["tokens"].sum(), tokens)
            self.assertEqual(segments["tokens"][segments["phase"] == 1].sum(), facts["decode_tokens"])
            self.assertEqual(np.count_nonzero(segments["joins"] == 0), facts["passes"])
            self.assertEqual(len(np.unique(segments["sequence"])), facts["sequences"])
            self.assertEqual(scores.shape, ids.shape if header["scores"] != "none" else (layers, tokens, 0))
            if header.get("all_scores"):
                np.testing.assert_array_equal(np.take_along_axis(all_scores, ids.astype(int), axis=2), scores)
            else:
                self.assertEqual(all_scores.size, 0)
            stats = json.loads(self.expect_ok("stats", path, "--json", "-"))
            for layer, chosen in zip(stats["layers"], ids):
                self.assertEqual(layer["uses"], np.bincount(chosen.ravel(), minlength=header["experts"]).tolist())
        self.assertGreater(all_scores.size, 0)

    def test_the_example_goes_on_after_damage_and_ends_where_a_file_is_cut(self):
        whole = self.folder / "whole.trace"
        self.expect_ok("merge", self.law, self.convert("intent"), "-o", whole)
        data = whole.read_bytes()
        second = data.index(b"TRPCHUNK", data.index(b"TRPCHUNK") + 1)
        hurt = self.folder / "hurt.trace"
        for bad in (data[:second + 70] + b"?" * 20 + data[second + 90:], data[:second + 300], data[:second + 20]):
            hurt.write_bytes(bad)
            self.assertEqual(read_trace(hurt)[2].shape[1], self.info(hurt)["tokens"])

    def test_scores_come_along_in_either_type(self):
        sample = DATA / "deepseek-v2-lite.trace"
        _, _, ids, scores, _ = read_trace(sample)
        self.assertEqual(scores.shape, ids.shape)
        self.assertTrue((scores > 0).all() and (scores < 1).all())
        half = self.folder / "half.trace"
        self.expect_ok("convert", sample, "-o", half, "--scores", "f16")
        _, _, same_ids, halves, _ = read_trace(half)
        np.testing.assert_array_equal(ids, same_ids)
        np.testing.assert_array_equal(halves, scores.astype("f2"))
        self.expect_ok("convert", sample, "-o", half, "--scores", "none")
        self.assertEqual(read_trace(half)[3].size, 0)

    def test_cut_and_merge_keep_what_they_say(self):
        part, intent = self.folder / "part.trace", self.convert("intent")
        self.expect_ok("cut", intent, "-o", part, "--layers", "1-2", "--tokens", 20, "--sequences", "0,1")
        facts = self.info(part)
        self.assertEqual((facts["tokens"], facts["sequences"], facts["header"]["moe_layers"]), (40, 2, [1, 2]))
        both = self.folder / "both.trace"
        self.expect_ok("merge", self.law, intent, "-o", both)
        tokens = self.info(self.law)["tokens"]
        facts = self.info(both)
        self.assertEqual(facts["tokens_by_domain"], {"intent": self.info(intent)["tokens"], "law": tokens})
        np.testing.assert_array_equal(read_trace(both)[2][:, :tokens], read_trace(self.law)[2])

    def test_traces_of_different_models_are_not_merged(self):
        out = self.folder / "both.trace"
        self.expect_failure("gpt-oss-20b.trace: ", "merge", self.law, DATA / "gpt-oss-20b.trace", "-o", out)
        self.assertFalse(out.exists())

    def test_damage_is_counted_and_mended(self):
        whole = self.folder / "whole.trace"
        self.expect_ok("merge", self.law, self.convert("intent"), "-o", whole)
        data = bytearray(whole.read_bytes())
        second = data.index(b"TRPCHUNK", data.index(b"TRPCHUNK") + 1)
        data[second + 100] ^= 1
        hurt = self.folder / "hurt.trace"
        hurt.write_bytes(data)
        damage = self.info(hurt)["damage"]
        self.assertEqual((damage["places"], damage["tokens"]),
                         (1, self.info(whole)["tokens"] - self.info(hurt)["tokens"]))
        self.assertGreater(damage["tokens"], 0)
        done = troupe("trace", "info", hurt)
        self.assertIn("1 damaged place", done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"^troupe: {hurt}: damaged: 1 damaged place: [^\n]*\n$")
        mended = self.folder / "mended.trace"
        done = troupe("trace", "convert", hurt, "-o", mended)
        self.assertIn("warning", done.stderr)
        self.assertEqual(self.info(mended)["damage"]["places"], 0)
        self.assertEqual(self.info(mended)["tokens"], self.info(hurt)["tokens"])

    def test_what_is_no_trace_is_one_line(self):
        self.expect_failure("README.md: no routing trace", "info", DATA / "README.md")
        self.expect_failure("--layers: '1-'", "cut", self.law, "-o", self.folder / "x", "--layers", "1-")
        self.expect_failure("layer 99", "cut", self.law, "-o", self.folder / "x", "--layers", "99")
        self.expect_failure("no token", "cut", self.law, "-o", self.folder / "x", "--domain", "art")
        self.expect_failure("subcommand", code=2)
        self.expect_failure(".html", "stats", self.law, "--plot", self.folder / "x", code=2)
        self.expect_failure("5 is after 2", "cut", self.law, "-o", self.folder / "x", "--sequences", "5,2", code=2)
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
