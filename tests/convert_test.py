#!/usr/bin/env python3
"""tools/convert: a model in its authors' files becomes a GGUF that troupe computes the same logits of and cuts
the same texts by, and what is no such model is refused in one line.

usage: convert_test.py TROUPE [unittest arguments]
"""
import copy
import json
import math
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest

import troupe_cli
import xverse_model

CONVERT = pathlib.Path(__file__).resolve().parent.parent / "tools/convert/convert"
sys.path.insert(0, str(CONVERT.parent))
import gguf_stream  # noqa: E402
from refused import Refused  # noqa: E402

# The plain model computes in float64, troupe in float32 with weights that are exactly these; keys and values
# are cached as float16, off by at most 2^-12 of their size, and what they answer is a part of the stream.
# That is one rounding a layer, of at most 2^-12 of a logit's standard deviation; the largest of some thousand
# errors is less than 5 times the usual one.
ROUNDING = 5 * 2.0**-12
# A router's logits, whose deviation is about 2, are off by as much; where one leads by less, another expert
# might be chosen for no fault.
LEAST_LEAD = 4 * ROUNDING


class Conversion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.right = pathlib.Path(folder.name)
        cls.model = xverse_model.Model(7)
        for files in (1, 2):
            cls.model.write(cls.right / str(files), files)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.troupe = troupe_cli.Troupe(BINARY)

    def convert(self, code=0, source="model", out="m.gguf"):
        done = subprocess.run([sys.executable, CONVERT, self.path / source, self.path / out],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def converted(self, model, files=1):
        model.write(self.path / "model", files)
        self.convert()
        return self.path / "m.gguf"

    def expect_logits(self, model, path, ids):
        rows = self.troupe.evaluate(path, ids, self.path)
        expected = model.logits(ids)
        self.assertGreater(model.least_lead, LEAST_LEAD, "another seed is needed: experts are nearly tied")
        for row, of_model in zip(rows, expected):
            bound = model.layers * ROUNDING * statistics.pstdev(of_model)
            for token, logit in enumerate(of_model):
                self.assertLess(abs(row[token] - logit), bound, token)

    def test_LogitsAreThoseOfThePlainModel(self):
        random_ = random.Random(3)
        ids = [random_.randrange(4, 270) for _ in range(20)]
        for seed, key_heads, dtype in ((21, None, "BF16"), (23, 2, "F32")):
            with self.subTest(key_heads=key_heads):
                model = xverse_model.Model(seed, key_heads, dtype)
                self.expect_logits(model, self.converted(model), ids)

    def test_SeveralFilesMakeTheSameModelAsOne(self):
        model = xverse_model.Model(3, dtype="F16")
        whole = self.converted(model).read_bytes()
        (self.path / "model/model.safetensors").unlink()
        self.assertEqual(self.converted(model, files=3).read_bytes(), whole)

    def test_ItIsAFileLikeOthers(self):
        path = self.converted(self.model)
        said = self.troupe.run("inspect", path)
        for fact in ("granitemoe (model)", "8 of width 32, top 3 by softmax, weights normalised",
                     "shared expert width 64", "BF16"):
            self.assertIn(fact, said)
        self.troupe.run("quantize", path, self.path / "q.gguf", "Q8_0")
        record, _ = self.troupe.generate(self.path / "q.gguf", [5, 6], 4, self.path)
        self.assertEqual(len(record["token_ids"]), 4)

    def test_TextsAreCutAsThePublishedTokenizerCutsThem(self):
        path = self.converted(self.model)
        random_ = random.Random(7)
        characters = xverse_model.LETTERS + xverse_model.ALONE + "  abcdef\n\u00e9\u4e2d"
        texts = ["abc def", "gh gh 01 a.b", "cd ab\nabcdef"]
        texts += ["".join(random_.choice(characters) for _ in range(60)).strip(" ") for _ in range(20)]
        for text in texts:
            said = json.loads(self.troupe.run("tokenize", path, "--prompt", text, "--json", "-"))
            self.assertEqual(said["ids"], xverse_model.tokens_of(text), text)

    def test_WhatNoTextBecomesKeepsItsPlaceUnderAnotherName(self):
        path = self.converted(self.model)
        vocabulary = xverse_model.tokenizer()["model"]["vocab"]
        for token, becomes in (("01", False), ("h" + xverse_model.BLANK, False), ("abc", True), ("bc", True),
                               ("def", True), ("ghgh", True), ("bcde", True)):
            said = self.troupe.run("tokenize", path, "--ids", vocabulary[token])
            self.assertEqual(token in said, becomes, said)
            self.assertEqual("unused" in said, not becomes, said)

    def refused(self, because, spoil, files=1):
        shutil.rmtree(self.path / "model", ignore_errors=True)
        shutil.copytree(self.right / str(files), self.path / "model")
        spoil(self.path / "model")
        said = self.convert(code=1)
        self.assertIn(because, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(any(self.path.glob("m.gguf*")))

    def test_ConfigurationsOfOtherModelsAreRefused(self):
        for key, value, because in (("model_type", "llama", "model_type is 'llama', expected 'switch_transformers' or 'xverse'"),
                                    ("model_type", [], "model_type is []"), ("model_type", {"a": 1}, "model_type is {'a': 1}"),
                                    ("num_experts", None, "num_experts is None, expected a whole number"),
                                    ("moe_top_k", 0, "moe_top_k is 0"), ("hidden_act", "gelu", "hidden_act"),
                                    ("rope_scaling", {"type": "dynamic"}, "rope_scaling"),
                                    ("num_attention_heads", 3, "num_attention_heads is 3"),
                                    *(("rms_norm_eps", value, "a number above 0 that float32 has")
                                      for value in (math.nan, 1e300, 10**400, math.inf, 1e-300, 0, -1, True, [], "1")),
                                    ("eos_token_id", 1 << 20, "eos_token_id"),
                                    ("num_hidden_layers", 3, "'model.layers.2.input_layernorm.weight' is missing"),
                                    ("num_experts", 1 << 20, "'model.layers.0.mlp.router.weight' has shape")):
            with self.subTest(key=key, value=value):
                config = json.dumps(self.model.config | {key: value})
                self.refused(because, lambda folder: (folder / "config.json").write_text(config))

    def test_OtherTensorsAreRefused(self):
        name = "model.layers.1.mlp.experts.7.up_proj.weight"
        for because, tensors in ((f"tensor '{name}' is missing", {name: None}),
                                 (f"tensor '{name}' has shape [1, 2], expected [32, 128]", {name: [[1.0, 2.0]]}),
                                 ("'model.layers.0.self_attn.q_proj.bias' is none that such a model has",
                                  {"model.layers.0.self_attn.q_proj.bias": [0.0]})):
            with self.subTest(because):
                model = copy.copy(self.model)
                model.tensors = {key: value for key, value in (model.tensors | tensors).items() if value is not None}
                self.refused(because, model.write)

    def test_DamagedFilesAreRefused(self):
        def header(text, data=b""):
            return lambda folder: (folder / "model.safetensors").write_bytes(
                struct.pack("<Q", len(text)) + text.encode() + data)

        def cut(folder):
            path = folder / "model.safetensors"
            path.write_bytes(path.read_bytes()[:-1])

        def entry(**changes):
            right = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
            return header(json.dumps({"a": right | changes}), bytes(4))

        for because, spoil in (
                ("it ends at byte", cut), ("the header is no JSON", header("{")), ("no JSON object", header("[]")),
                ("5 bytes, no safetensors file", lambda folder: (folder / "model.safetensors").write_bytes(b"12345")),
                ("a header of", lambda folder: (folder / "model.safetensors").write_bytes(b"\xff" * 9)),
                ("type I8, expected F32", entry(dtype="I8")), ("type [], expected F32", entry(dtype=[])),
                ("shape [-1]", entry(shape=[-1])), ("at most 8 whole numbers", entry(shape=[1] * 9)),
                ("at most 8 whole numbers", entry(shape=[10**4000] * 2)), ("type {}, expected F32", entry(dtype={})),
                ("is no text", lambda folder: (folder / "tokenizer_config.json").write_text('{"chat_template": "\\ud800"}')),
                ("data_offsets [0]", entry(data_offsets=[0])), ("expected 8 for F32", entry(shape=[2])),
                ("dtype, shape and data_offsets", header('{"a": {}}')),
                ("No such file", lambda folder: (folder / "model.safetensors").unlink()),
                ("config.json: no JSON", lambda folder: (folder / "config.json").write_text("[" * 100000))):
            with self.subTest(because):
                self.refused(because, spoil)

    def test_ATensorOfAnotherSizeThanItSaidLeavesNoFile(self):
        with self.assertRaisesRegex(Refused, "m.gguf: tensor 'a' has 3 bytes, declared 4"):
            gguf_stream.write(self.path / "m.gguf", {}, [("a", "F32", (1,), 4, lambda: [b"12", b"3"])])
        self.assertEqual(list(self.path.iterdir()), [])

    def test_AnIndexThatNamesWhatIsNotThereIsRefused(self):
        def index(**weights):
            return lambda folder: (folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": weights}))

        for because, spoil in (("expected one of this folder", index(a="../config.json")),
                               ("expected one of this folder", index(a="\0")),
                               ("expected one of this folder", index(a="\ud800")),
                               ("no tensor 'a'", index(a="model-00001-of-00002.safetensors")),
                               ("no weight_map", index())):
            with self.subTest(because):
                self.refused(because, spoil, files=2)

    def test_OtherKindsOfTokenizersAreRefused(self):
        def spoilt(change):
            def spoil(folder):
                tokenizer = xverse_model.tokenizer()
                change(tokenizer)
                (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
            return spoil

        for because, change in (
                ("model.type is 'Unigram'", lambda t: t["model"].update(type="Unigram")),
                ("model.byte_fallback is False", lambda t: t["model"].update(byte_fallback=False)),
                ("byte 0x0A has no token", lambda t: t["model"]["vocab"].pop("<0x0A>")),
                ("the sequence of pre-tokenizers", lambda t: t["pre_tokenizer"]["pretokenizers"].pop()),
                ("Digits.individual_digits is False",
                 lambda t: t["pre_tokenizer"]["pretokenizers"][1].update(individual_digits=False)),
                ("expected less than vocab_size", lambda t: t["model"]["vocab"].update(zz=5000)),
                ("id 4 is of", lambda t: t["model"]["vocab"].update(zz=4)),
                ("merge 0 is 'a b c'", lambda t: t["model"].update(merges=["a b c"]))):
            with self.subTest(because):
                self.refused(because, spoilt(change))


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
