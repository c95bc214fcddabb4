#!/usr/bin/env python3
"""tools/train/interpreter.py: what OpenBLAS is told of the processor.

usage: train_interpreter_test.py [unittest arguments]
"""
import os
import pathlib
import subprocess
import sys
import unittest

TRAIN = pathlib.Path(__file__).resolve().parent.parent / "tools/train"
sys.path.insert(0, str(TRAIN))
import interpreter  # noqa: E402

AVX2 = "fpu sse2 ssse3 fma avx avx2"


def cpuinfo(flags):
    return f"processor\t: 0\nmodel name\t: one\nflags\t\t: {flags}\nbugs\t\t:\n\nprocessor\t: 1\nflags\t\t: {flags}\n"


class WhatOpenblasIsTold(unittest.TestCase):
    def test_TheLastKindThatHasNoInstructionBeyondTheProcessors(self):
        self.assertEqual(interpreter.core_type(cpuinfo(AVX2)), "Haswell")
        self.assertEqual(interpreter.core_type(cpuinfo(f"{AVX2} avx512f")), "Haswell")
        self.assertEqual(interpreter.core_type(cpuinfo(f"{AVX2} avx512f avx512dq avx512bw avx512vl")), "SkylakeX")

    def test_NothingOfOneThatIsOlderOrNotX86(self):
        self.assertIsNone(interpreter.core_type(cpuinfo("fpu sse2 ssse3")))
        self.assertIsNone(interpreter.core_type("processor\t: 0\nFeatures\t: fp asimd\n"))
        self.assertIsNone(interpreter.core_type(""))

    def test_WhatSomebodyHasSetStays(self):
        code = "import interpreter, os; interpreter.ensure(); print(os.environ['OPENBLAS_CORETYPE'])"
        said = subprocess.run([sys.executable, "-B", "-c", code], cwd=TRAIN, text=True, check=True, capture_output=True,
                              env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem"})
        self.assertEqual(said.stdout, "Nehalem\n")


if __name__ == "__main__":
    unittest.main()
