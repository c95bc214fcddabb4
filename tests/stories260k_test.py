#!/usr/bin/env python3
"""A trained model, published by others, speaks through troupe exactly as its authors printed it.

usage: stories260k_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import sys
import tempfile
import unittest

import llama2c_to_gguf
import troupe_cli

DATA = pathlib.Path(__file__).resolve().parent / "data/stories260K"

# The reference is float64 throughout; the weights here are float32, and so are the sums: the one
# coarse rounding is that of cached keys and values to float16, at most 2^-11 of their size, in each
# of 5 layers. What passes through a layer's attention is a part of the residual stream, so logits
# of at most 22 in size move by at most
LOGIT_BOUND = 5 * 22 * 2.0**-11  # 0.054; seen with llama.cpp, which rounds in the same way: 0.016

BOS = 1


class Stories260K(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = json.loads((DATA / "stories260K.greedy.json").read_text())
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        llama2c_to_gguf.convert(DATA / "stories260K.bin", DATA / "tok512.bin", path / "m.gguf")
        steps = len(cls.golden["tokens"]) - 1
        cls.record, cls.rows = troupe_cli.Troupe(BINARY).generate(path / "m.gguf", [BOS], steps,
                                                                  path)

    def test_GreedyTokensAreThePublishedOnes(self):
        self.assertEqual([BOS] + self.record["token_ids"], self.golden["tokens"])

    def test_TheTextIsThePublishedOne(self):
        # llama2.c drops the space that SentencePiece puts before a text's first word.
        self.assertEqual(self.record["text"].removeprefix(" "), self.golden["text"])

    def test_LogitsAfterBosAreTheReferences(self):
        for token, logit in enumerate(self.golden["logits_after_bos"]):
            self.assertAlmostEqual(self.rows[0][token], logit, delta=LOGIT_BOUND, msg=token)

    def test_TheFiveLargestLogitsOfEachStepAreTheReferences(self):
        self.assertEqual(len(self.rows), len(self.golden["top5_per_step"]))
        for step, top in enumerate(self.golden["top5_per_step"]):
            for token, logit in top:
                self.assertAlmostEqual(self.rows[step][token], logit, delta=LOGIT_BOUND,
                                       msg=f"token {token} at step {step}")


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
