#!/usr/bin/env python3
"""Holds troupe to the answers that a real llama.cpp gave when the goldens were recorded.

usage: conformance_test.py TROUPE [unittest arguments]

Needs no llama.cpp: `bench/conformance` asks one live, for more than is recorded.
"""
import os
import pathlib
import sys
import tempfile
import unittest
import zlib

import conformance_cases
import conformance_goldens
import troupe_cli


class Conformance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.goldens = conformance_goldens.load()
        cls.troupe = troupe_cli.Troupe(BINARY)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def test_EveryArchitectureInEveryTypeIsRecorded(self):
        recorded = [conformance_goldens.case_of(golden) for golden in self.goldens["cases"]]
        self.assertEqual(recorded, conformance_cases.all_cases())

    def test_GreedyTokensAndProbabilitiesAreLlamaCpps(self):
        # A sanitizer sees in a third of them what it would see in all.
        for golden in self.goldens["cases"][::3 if "TROUPE_SANITIZED" in os.environ else 1]:
            case = conformance_goldens.case_of(golden)
            with self.subTest(case.name):
                model = self.folder / "model.gguf"
                self.troupe.synthesize(model, case.shape, case.type, golden["seed"])
                self.assertEqual(zlib.crc32(model.read_bytes()), golden["crc32"],
                                 "synth writes other bytes than when the golden was recorded: "
                                 "bench/conformance --record")
                record, rows = self.troupe.generate(model, golden["prompt"],
                                                    conformance_cases.STEPS, self.folder)
                self.assertEqual(
                    conformance_goldens.token_complaints(golden, record["token_ids"]), [])
                self.assertEqual(conformance_goldens.probability_complaints(case, golden, rows), [])

    def test_TheProbabilitiesOfATextAreLlamaCpps(self):
        golden = self.goldens["text"]
        rows = self.troupe.evaluate(conformance_goldens.TEXT_MODEL, golden["ids"], self.folder)
        self.assertEqual(conformance_goldens.text_complaints(golden, rows), [])


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
