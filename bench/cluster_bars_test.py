#!/usr/bin/env python3
"""Which bars bench/cluster --part placement tells, of means that are made up here."""
import contextlib
import io
import unittest

import cluster_placement


class Bench:
    def __init__(self):
        self.bars = {}

    def bar(self, what, found, most):
        self.bars[what] = found <= most


class Bars(unittest.TestCase):
    def told(self, **means):
        bench, said = Bench(), io.StringIO()
        with contextlib.redirect_stdout(said):
            cluster_placement.tell_bars(bench, {name.replace("_", " "): value for name, value in means.items()})
        return bench.bars, said.getvalue()

    def test_OfEachWayThatRan(self):
        bars, said = self.told(eplb=1.0, dancemoe=0.6, optimum=0.5, uniform=0.5, offloading_alone=2.0, redirecting=1.5, all_in_memory=0.25)
        self.assertEqual(bars, {"DanceMoE's mean over EPLB's": True, "DanceMoE's mean over uniform's": False,
                                "DanceMoE's mean over offloading alone's": True, "DanceMoE's mean over redirecting's": True})
        self.assertIn("all in each node's memory over EPLB's: 0.25\n", said)
        self.assertIn("fewest calls of peers over EPLB's: 0.5\n", said)

    def test_OfTwoPlacersAlone(self):
        self.assertEqual(self.told(eplb=1.0, dancemoe=0.9, all_in_memory=0.5)[0], {"DanceMoE's mean over EPLB's": False})

    def test_TheSearchOfLatencyMayBeatIt(self):
        self.assertEqual(self.told(dancemoe=1.0, latency=0.9, all_in_memory=0.5)[0], {})

    def test_WithoutWhatTheyCompareThereAreNone(self):
        for means in ({"eplb": 1.0}, {"dancemoe": 1.0}, {"offloading_alone": 1.0, "redirecting": 2.0}):
            self.assertEqual(self.told(**means, all_in_memory=0.5)[0], {})


if __name__ == "__main__":
    unittest.main()
