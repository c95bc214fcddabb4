"""How far two engines' predictions lie apart, and whether that is within what rounding explains.

Where logits differ by independent errors of standard deviation s, the KL divergence of the two
softmaxes is about s^2 / 2: so the distance of two rows is sqrt(2 KL) over the standard deviation of
the reference's logits, and reads as the relative error of a logit.
"""
import math
import operator

import troupe_cli

# A row may lie this many times the expected noise away. KL is a weighted mean over few likely
# tokens and scatters; three times is a ninth in KL.
NOISES = 3.0
# Rows that may lie further: where two experts' scores are nearly equal the engines can choose
# differently, and rightly so. llama.cpp itself does, on 2 to 5 % of rows, when its activations are
# disturbed by as much as the rounding; that many above the expected number in a short run are 10 %.
FAR_ROWS = 0.1
# No row may lie further than this, whatever its experts are: unrelated logits are at distance 1.4.
FARTHEST = 0.7


def log_softmax_and_deviation(row):
    """Log-probabilities of a row of logits, and the standard deviation of the logits."""
    mean = sum(row) / len(row)
    square = sum(map(operator.mul, row, row)) / len(row)
    return troupe_cli.log_softmax(row), math.sqrt(max(0.0, square - mean * mean))


def distance(reference, row):
    """Between two rows of logits, in relative error of a logit; NaN if the row holds one."""
    log_p, deviation = log_softmax_and_deviation(reference)
    log_q = troupe_cli.log_softmax(row)
    p = map(math.exp, log_p)
    kl = sum(map(operator.mul, p, map(operator.sub, log_p, log_q)))
    return math.sqrt(2 * kl) / deviation if kl > 0 else kl  # below 0 by its own rounding alone


class Closeness:
    """The distances of many rows, held against the noise that a case allows."""

    def __init__(self, distances, noise):
        self.distances = list(distances)
        self._bound = NOISES * noise

    @property
    def median(self):
        return sorted(self.distances)[len(self.distances) // 2]

    @property
    def within_noise(self):
        """For each row, whether it is as near as rounding alone explains."""
        return [d <= self._bound for d in self.distances]

    def complaint(self):
        """None, or one line saying which bound is missed."""
        if any(math.isnan(d) for d in self.distances):
            return "a row holds a NaN"
        far = self.within_noise.count(False)
        if far > FAR_ROWS * len(self.distances):
            return (f"{far} of {len(self.distances)} rows are further than {self._bound:.4f} away, "
                    f"at most {FAR_ROWS:.0%} expected; median {self.median:.4f}")
        if max(self.distances) > FARTHEST:
            return f"a row is {max(self.distances):.3f} away, at most {FARTHEST} expected"
        return None


def closeness(references, rows, noise):
    return Closeness([distance(a, b) for a, b in zip(references, rows, strict=True)], noise)
