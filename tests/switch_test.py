#!/usr/bin/env python3
"""Switch Transformers from their published form to an answer: what tools/convert/convert makes of random tiny
ones, troupe answers as tests/switch_network.py does, which is plain and slow.

usage: switch_test.py TROUPE [unittest arguments], with numpy
"""
import concurrent.futures
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.error

import numpy as np

import serve_test
import switch_network
import troupe_cli

# What SentencePiece itself makes of some texts: bench/record_unigram.
DATA = pathlib.Path(__file__).resolve().parent / "data/unigram"
CONVERTER = pathlib.Path(__file__).resolve().parent.parent / "tools/convert/convert"

# The oracle computes in double. Here weights are float32, and so are sums; the coarse rounding is that of cached
# keys and of cached values to halves, each at most 2^-11 of their size, in the 4 attentions of the encoder and the 8
# of the decoder, whose answers are about as long as the stream that they are added to. Logits are about 1 in size.
LOGIT_BOUND = 2 * 12 * 2.0**-11

ENCODER = [10, 9, 14, 3, 5, 20, 7, 21, 4, 6] * 4 + [1]  # ends with </s>
DECODER = [0, 30, 12, 77, 5]  # begins with <pad>
PROMPT = ENCODER + DECODER
STEPS = 24
SEED = 5


class Switch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.troupe = troupe_cli.Troupe(BINARY)
        cls.model, cls.network = cls.make("plain")

    @classmethod
    def make(cls, name, seed=SEED, parts=1, **changes):
        config = {**switch_network.CONFIG, **changes}
        tensors = switch_network.random_tensors(config, np.random.default_rng(seed))
        switch_network.write_folder(cls.folder / name, config, tensors, parts)
        path = cls.folder / f"{name}.gguf"
        cls.convert(cls.folder / name, path)
        return path, switch_network.Network(config, tensors)

    @staticmethod
    def convert(folder, path, expect=0):
        done = subprocess.run([sys.executable, "-B", CONVERTER, folder, path], capture_output=True, text=True, check=False)
        assert done.returncode == expect, done.stderr
        return done.stderr

    def bytes_of(self, *arguments):
        """Of the logits behind each token of an answer that is drawn, so that its tokens differ."""
        out = self.folder / "same.logits"
        self.troupe.run("run", self.model, "--prompt-ids", ",".join(map(str, PROMPT)), "-n", STEPS, "--temperature", 2,
                        "--seed", 5, "--ignore-eos", "--logits", out, *arguments)
        return out.read_bytes()

    def assert_matches(self, model, network):
        """Greedy tokens, and the logits of an answer that is drawn, whose tokens differ."""
        other = network.logits(network.encode([11] + ENCODER[1:]), DECODER)
        network.closest = math.inf
        encoded = network.encode(ENCODER)
        # A network that says the same whatever it reads would pass as well.
        self.assertGreater(np.abs(other - network.logits(encoded, DECODER)).max(), 10 * LOGIT_BOUND)
        for temperature in (0, 2):
            record, logits = self.folder / "run.json", self.folder / "run.logits"
            self.troupe.run("run", model, "--prompt-ids", ",".join(map(str, PROMPT)), "-n", STEPS, "--temperature",
                            temperature, "--seed", 5, "--ignore-eos", "--json", record, "--logits", logits)
            ids, rows = json.loads(record.read_text())["token_ids"], troupe_cli.LogitRows(logits)
            wanted = network.logits(encoded, DECODER + ids[:-1])[len(DECODER) - 1:]
            self.assertGreater(network.closest, 2 * LOGIT_BOUND, "a router near a tie: take another seed")
            self.assertEqual(len(rows), STEPS)
            for step, token in enumerate(ids):
                self.assertLess(np.abs(np.array(rows[step]) - wanted[step]).max(), LOGIT_BOUND, f"step {step}")
                if temperature == 0:  # the same choice wherever it is no near tie
                    self.assertGreater(wanted[step][token], wanted[step].max() - 2 * LOGIT_BOUND, f"step {step}")
            if temperature > 0:
                self.assertGreater(len(set(ids)), STEPS // 2)

    def refused(self, *arguments):
        with self.assertRaises(troupe_cli.TroupeFailed) as failed:
            self.troupe.run(*arguments)
        return str(failed.exception)

    def test_TokensAndLogitsAreThoseOfTheSlowNetwork(self):
        self.assert_matches(self.model, self.network)

    def test_AHeadOfItsOwnHasNoScale(self):
        model, network = self.make("untied", seed=2, tie_word_embeddings=False)
        self.assert_matches(model, network)

    def test_AnExpertOfTheEncoderTakesNoMoreTokensThanItsCapacity(self):
        model, network = self.make("crowded", seed=7, expert_capacity=5)
        self.assert_matches(model, network)
        self.assertGreater(network.dropped, 0)

    def test_EveryLayerMayHaveExpertsAndEncoderAndDecoderDifferentDepths(self):
        model, network = self.make("sparse", seed=86, num_layers=3, num_sparse_encoder_layers=3, num_decoder_layers=2,
                                   num_sparse_decoder_layers=1)
        self.assert_matches(model, network)

    def test_PartsWithAnIndexGiveTheSameFile(self):
        tensors = switch_network.random_tensors(switch_network.CONFIG, np.random.default_rng(SEED))
        folder = self.folder / "plain-in-parts"
        switch_network.write_folder(folder, switch_network.CONFIG, tensors, parts=3)
        self.convert(folder, self.folder / "parts.gguf")
        whole, parts = self.model.read_bytes(), (self.folder / "parts.gguf").read_bytes()
        self.assertEqual(whole[-200000:], parts[-200000:])  # what differs is the name, at the beginning

    def test_TheEmbeddingMayHaveAnyOfItsNames(self):
        tensors = switch_network.random_tensors(switch_network.CONFIG, np.random.default_rng(SEED))
        tensors["lm_head.weight"] = tensors.pop("shared.weight")
        tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = np.zeros((8, 4), np.float32)
        switch_network.write_folder(self.folder / "names" / "plain", switch_network.CONFIG, tensors)
        self.convert(self.folder / "names" / "plain", self.folder / "names.gguf")
        self.assertEqual((self.folder / "names.gguf").read_bytes(), self.model.read_bytes())

    def test_TheBytesDependOnNoThreadsBudgetOrInstructionSet(self):
        plain = self.bytes_of("--threads", 1)
        self.assertEqual(self.bytes_of("--threads", 3), plain)
        for slots in (2, 3):
            self.assertEqual(self.bytes_of("--threads", 2, "--slots", slots), plain)
        for kernels in ("scalar", "avx2", "neon"):
            if troupe_cli.kernels(BINARY, kernels) is None:
                continue
            os.environ["TROUPE_KERNELS"] = kernels
            try:
                self.assertEqual(self.bytes_of("--threads", 2), plain, kernels)
            finally:
                del os.environ["TROUPE_KERNELS"]

    def test_RequestsOfAServerGetTheTextsThatEachGetsAlone(self):
        prompts = ["the park", "walks in the park", "the <extra_id_0> park", "park the walks in in in", "in", "park in"]
        with serve_test.Server("--pooling", "mean", model=self.model) as server:
            def ask(i):
                return server.complete(prompts[i], seed=i, temperature=2)
            alone = [ask(i) for i in range(len(prompts))]
            with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
                self.assertEqual(list(pool.map(ask, range(len(prompts)))), alone)
            self.assertEqual(len(set(alone)), len(prompts))
            for path, body, says in (("/v1/completions", {"prompt": "the park " * 600, "max_tokens": 1}, "tokens"),
                                     ("/v1/embeddings", {"input": "the park"}, "encoder")):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.ask(path, body)
                self.assertIn(says, refused.exception.read().decode())
            for ids in ([3, 4, 5, 1], [0, 3, 4]):  # no token that the decoder begins with, or nothing before it
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.ask("/v1/completions", {"prompt": ids, "max_tokens": 1})
                self.assertEqual(refused.exception.code, 400)
                self.assertIn("the token 0 that the decoder begins with", refused.exception.read().decode())
            self.assertEqual(ask(0), alone[0])

    def test_ContainersAndQuantizedFilesRun(self):
        model, network = self.make("to-quantize", seed=16)
        q8 = self.folder / "q8.gguf"
        self.troupe.run("quantize", model, q8, "Q8_0")
        self.troupe.run("pack", q8)
        record, rows = self.troupe.generate(q8, PROMPT, 4, self.folder)
        ids = DECODER + record["token_ids"][:-1]
        wanted = network.logits(network.encode(ENCODER), ids)[len(DECODER) - 1:]
        self.assertGreater(network.closest, 0.05, "a router near a tie: take another seed")
        distance = max(np.abs(np.array(rows[i]) - wanted[i]).max() for i in range(4))
        self.assertLess(distance, 0.5 * wanted.std())

    def test_TextIsCutAsTheAuthorsPublishIt(self):
        def ids(text):
            return json.loads(self.troupe.run("tokenize", self.model, "--prompt", text, "--json", "-"))["ids"]
        pieces = ["<pad>", "</s>", "<unk>"] + switch_network.PIECES
        sentinel = 122  # <extra_id_0>: behind 23 pieces the hundredth
        self.assertEqual(ids("the <extra_id_0> walks in park"),
                         [pieces.index("\u2581the"), sentinel, pieces.index("\u2581walks"), pieces.index("\u2581in"),
                          pieces.index("\u2581park"), 1, 0])
        self.assertEqual(ids("  walking  xyz "), [pieces.index("\u2581"), pieces.index("walk"), pieces.index("ing"),
                                                  pieces.index("\u2581"), 2, 1, 0])

    def test_TextIsCutAsSentencePieceCutsIt(self):
        config = {**switch_network.CONFIG, "vocab_size": 640}
        folder = self.folder / "unigram"
        switch_network.write_folder(folder, config, switch_network.random_tensors(config, np.random.default_rng(6)))
        (folder / "spiece.model").write_bytes((DATA / "spiece.model").read_bytes())
        self.convert(folder, self.folder / "unigram.gguf")
        vectors = json.loads((DATA / "vectors.json").read_text())
        self.assertGreater(len(vectors), 20)
        for vector in vectors:
            said = self.troupe.run("tokenize", self.folder / "unigram.gguf", "--prompt", vector["text"], "--json", "-")
            self.assertEqual(json.loads(said)["ids"], vector["ids"] + [1, 0], repr(vector["text"]))

    def test_WhatDoesNotGoWithIt(self):
        ids = self.folder / "few.ids"
        ids.write_text("3,4,5,1,0,6")
        self.assertIn("encoder", self.refused("eval", self.model, "--ids-file", ids))
        self.assertIn("encoder", self.refused("run", self.model, "-p", "the park", "-n", 2, "--trace", self.folder / "t"))
        text = self.folder / "text.txt"
        text.write_text("the park walks in the park. " * 400)
        self.assertIn("encoder", self.refused("calibrate", self.model, "--text", text))
        said = self.refused("bench", self.model, "-p", 8, "-n", 2, "--prompt-length", 4, "-r", 1)
        self.assertIn("an encoder-decoder, which bench does not time", said)
        for mode in (("--closed-loop", 2), ("--resident-draft", 2)):
            said = self.refused("eval", self.model, "--text", text, *mode, "--slots", 6, "--substitute", "drop")
            self.assertIn("an encoder-decoder, which eval does not measure", said)
        self.assertIn("begins with", self.refused("run", self.model, "--prompt-ids", "3,4,5,1", "-n", 2))
        self.assertIn("begins with", self.refused("run", self.model, "--prompt-ids", "0,3,4", "-n", 2))

    def test_BadInputIsOneLine(self):
        def says(name, changes=(), drop=(), pieces=b""):
            config = {**switch_network.CONFIG, **dict(changes)}
            tensors = switch_network.random_tensors(switch_network.CONFIG, np.random.default_rng(SEED))
            for tensor in drop:
                del tensors[tensor]
            switch_network.write_folder(self.folder / name, config, tensors)
            with open(self.folder / name / "spiece.model", "ab") as model:
                model.write(pieces)
            said = self.convert(self.folder / name, self.folder / "bad.gguf", expect=1)
            self.assertEqual(said.count("\n"), 1)
            return said
        self.assertIn("'encoder.final_layer_norm.weight' is missing", says("less", drop=["encoder.final_layer_norm.weight"]))
        self.assertIn("shape", says("misshapen", {"d_ff": 100}))
        self.assertIn("is_gated_act", says("gated", {"is_gated_act": True}))
        self.assertIn("model_type", says("other", {"model_type": "t5"}))
        for number, value in enumerate((1e300, 10**400, math.inf)):
            self.assertIn("a number above 0", says(f"huge {number}", {"layer_norm_epsilon": value}))
        for number, (kind, because) in enumerate((
                (b"\x18\x00", "type 0"), (b"\x18\x07", "type 7"), (b"\x1a\x01\x01", "type b"), (b"\x10\x01", ""),
                (b"\x15" + struct.pack("<f", math.nan), "score nan"), (b"\x11" + bytes(8), ""), (b"\x08\x01", ""))):
            piece = b"\x0a\x01x" + kind
            said = says(f"piece {number}", pieces=bytes([1 << 3 | 2, len(piece)]) + piece)
            self.assertIn("no SentencePiece model", said)
            self.assertIn(because, said)
        for number, kind in enumerate((b"\x10\x01", b"\x1a\x01\x01")):  # the map as a number, a flag as text
            self.assertIn("fields of other kinds", says(f"rules {number}", pieces=bytes([3 << 3 | 2, len(kind)]) + kind))
        self.assertIn("tensor 'decoder.block.3", says("more", {"num_decoder_layers": 3,
                                                                         "num_sparse_decoder_layers": 1}))


if __name__ == "__main__":
    BINARY = serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
