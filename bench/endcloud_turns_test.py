#!/usr/bin/env python3
"""How bench/endcloud --part turns shares arrivals among bursts, and what it says of means that are made up here."""
import random
import unittest

import endcloud_turns


class Turns(unittest.TestCase):
    def test_ABurstEndsWhereNothingComesForAWhile(self):
        found = endcloud_turns.bursts([1.0, 1.25, 1.75, 3.0, 5.0, 5.5], idle=0.6)
        self.assertEqual(found, [[0, 0.25, 0.75], [0], [0, 0.5]])
        self.assertEqual(endcloud_turns.bursts([]), [])

    def test_EndsAreAskedInTurnAcrossBursts(self):
        self.assertEqual(endcloud_turns.turned(["a", "b", "c"], 4), ["b", "c", "a"])

    def test_WhatIsSlowerByATenthIsToldBesideSlowMinutesOfTheMachine(self):
        draw = random.Random(2)
        pairs = []
        for _ in range(200):
            slow = draw.choice([1.0, 1.4])
            pairs.append([(slow * draw.uniform(0.29, 0.31), 1.1 * slow * draw.uniform(0.29, 0.31)) for _ in range(draw.randint(1, 3))])
        ratio, low, high = endcloud_turns.ratio_of_means(pairs)
        self.assertAlmostEqual(ratio, 1.1, delta=0.01)
        self.assertLess(1.08, low)
        self.assertLess(high, 1.12)
        self.assertLess(low, ratio)
        self.assertLess(ratio, high)

    def test_TwoThatAreTheSameDoNotDiffer(self):
        self.assertEqual(endcloud_turns.ratio_of_means([[(0.3, 0.3)], [(0.5, 0.5), (0.2, 0.2)]]), (1, 1, 1))


if __name__ == "__main__":
    unittest.main()
