#!/usr/bin/env python3
"""The comparator that judges conformance: what it must let pass, and what it must not."""
import math
import random
import sys
import unittest

import conformance_cases
import conformance_compare
import conformance_goldens
import troupe_cli

CASE = conformance_cases.Case("tiny-llama", "Q4_K")
ROWS, VOCABULARY, DEVIATION = 64, 512, 3.0


def logits(chance):
    return [chance.gauss(0, DEVIATION) for _ in range(VOCABULARY)]


def disturbed(chance, row, relative_error):
    return [x + chance.gauss(0, relative_error * DEVIATION) for x in row]


class Closeness(unittest.TestCase):
    def setUp(self):
        self.chance = random.Random(1)
        self.references = [logits(self.chance) for _ in range(ROWS)]

    def complaint(self, rows):
        return conformance_compare.closeness(self.references, rows, CASE.noise).complaint()

    def noisy(self, noises):
        return [disturbed(self.chance, row, noises * CASE.noise) for row in self.references]

    def test_DistanceIsTheRelativeErrorOfALogit(self):
        distances = [conformance_compare.distance(row, disturbed(self.chance, row, 0.01))
                     for row in self.references]
        self.assertAlmostEqual(sum(distances) / ROWS, 0.01, delta=0.002)

    def test_ConstantsAddedToLogitsChangeNothing(self):
        row = self.references[0]
        moved = [x + 5 for x in row]
        self.assertAlmostEqual(conformance_compare.distance(row, moved), 0, delta=1e-6)

    def test_EqualRowsPass(self):
        self.assertIsNone(self.complaint(self.references))

    def test_ExpectedNoisePasses(self):
        self.assertIsNone(self.complaint(self.noisy(1)))

    def test_FiveTimesTheNoiseFails(self):
        self.assertIn("further than", self.complaint(self.noisy(5)))

    def test_AFewRowsOfOtherExpertsPass(self):
        rows = self.noisy(1)
        rows[3:6] = [disturbed(self.chance, row, 0.2) for row in self.references[3:6]]
        self.assertIsNone(self.complaint(rows))

    def test_ManyRowsOfOtherExpertsFail(self):
        rows = self.noisy(1)
        rows[:8] = [disturbed(self.chance, row, 0.2) for row in self.references[:8]]
        self.assertIn("8 of 64 rows", self.complaint(rows))

    def test_OneUnrelatedRowFails(self):
        rows = self.noisy(1)
        rows[7] = logits(self.chance)
        self.assertIn("a row is", self.complaint(rows))

    def test_ANanFails(self):
        rows = self.noisy(1)
        rows[7][3] = math.nan
        self.assertIn("NaN", self.complaint(rows))

    def test_AMissingRowIsNotOverlooked(self):
        with self.assertRaises(ValueError):
            self.complaint(self.references[:-1])


class Goldens(unittest.TestCase):
    def setUp(self):
        self.chance = random.Random(2)
        self.rows = [logits(self.chance) for _ in range(ROWS)]
        self.golden = {"tokens": list(range(ROWS)),
                       "top": {"5": conformance_goldens.likeliest(self.rows[5])}}

    def complaints_about(self, row):
        return conformance_goldens.probability_complaints(CASE, self.golden,
                                                          self.rows[:5] + [row] + self.rows[6:])

    def test_TheRecordedRowPasses(self):
        self.assertEqual(self.complaints_about(self.rows[5]), [])

    def test_ExpectedNoisePasses(self):
        row = disturbed(self.chance, self.rows[5], CASE.noise)
        self.assertEqual(self.complaints_about(row), [])

    def test_OneWrongLikelyTokenFails(self):
        row = list(self.rows[5])
        row[self.golden["top"]["5"][3][0]] -= 8 * CASE.noise * DEVIATION
        self.assertEqual(len(self.complaints_about(row)), 1)

    def test_AnotherTokenFailsAndTheStepIsNamed(self):
        tokens = list(range(ROWS))
        tokens[9] = 400
        complaint, = conformance_goldens.token_complaints(self.golden, tokens)
        self.assertIn("token 9 differs", complaint)

    def test_TooFewTokensFail(self):
        complaint, = conformance_goldens.token_complaints(self.golden, list(range(ROWS - 1)))
        self.assertIn("63 tokens, 64 expected", complaint)

    def text_complaints(self, off, relative_error=0.0):
        """Of rows each of whose true token is `off` nats less likely than the golden says."""
        tokens = [self.chance.randrange(VOCABULARY) for _ in self.rows]
        wanted = [troupe_cli.log_softmax(row)[token] + off for row, token in zip(self.rows, tokens)]
        rows = [disturbed(self.chance, row, relative_error) for row in self.rows]
        return conformance_goldens.text_complaints(
            {"ids": [1, *tokens], "log_probabilities": wanted}, rows)

    def test_ATextWithinTheNoisePasses(self):
        noise = conformance_goldens.TEXT_CASE.noise
        self.assertEqual(self.text_complaints(off=0.0, relative_error=noise), [])

    def test_ATextThatIsLessLikelyThroughoutFails(self):
        self.assertIn("mean log-probability", " ".join(self.text_complaints(off=0.05)))

    def test_ATextOfScatteredProbabilitiesFails(self):
        self.assertIn("tokens are more than", " ".join(self.text_complaints(0.0, 0.3)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
