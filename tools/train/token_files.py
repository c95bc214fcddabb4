"""Token files: DOMAIN.train.u16 and DOMAIN.heldout.u16 (little-endian, documents between BOS and EOS),
and the windows that training takes from them.

Which windows come at which step depends on the seed and the number of windows taken before, and on
nothing else: a training that goes on from a checkpoint sees what it would have seen.
"""
import pathlib

import numpy as np

# Shares of the windows of a step; domains that are not there leave their share to the others.
WEIGHTS = {"prose": 0.24, "python": 0.18, "c": 0.14, "german": 0.14, "french": 0.13, "questions": 0.10,
           "sums": 0.07}


def write(folder, domain, part, documents):
    """Returns the number of tokens."""
    count = 0
    with open(pathlib.Path(folder) / f"{domain}.{part}.u16", "wb") as file:
        for ids in documents:
            file.write(np.asarray(ids, "<u2").tobytes())
            count += len(ids)
    return count


def read(folder, domain, part):
    return np.fromfile(pathlib.Path(folder) / f"{domain}.{part}.u16", "<u2")


class Windows:
    """All windows of one domain's training tokens, each once a round, in an order drawn anew each round."""

    def __init__(self, tokens, length, seed):
        self.tokens, self.length, self.seed, self._round = tokens, length, seed, None
        if len(tokens) < 2 * length + 2:
            raise ValueError(f"{len(tokens)} tokens are too few for windows of {length}")
        self.per_round = (len(tokens) - length - 1) // length

    def window(self, number):
        turn, place = divmod(number, self.per_round)
        if self._round is None or self._round[0] != turn:
            rng = np.random.default_rng([self.seed, turn])
            self._round = turn, int(rng.integers(self.length)), rng.permutation(self.per_round)
        _, shift, order = self._round
        begin = shift + int(order[place]) * self.length
        return self.tokens[begin:begin + self.length + 1].astype(np.int64)


def domain_seed(seed, number):
    """Of the windows of the domain with this number."""
    return seed * 100 + number


def seen(tokens, length, seed, taken):
    """(contexts, targets) of the `taken` windows that came first, or of all tokens when a round is over:
    what a training has seen of a domain, each token once."""
    windows = Windows(tokens, length, seed)
    if taken >= windows.per_round:
        return tokens[:-1], tokens[1:]
    rows = np.array([windows.window(number) for number in range(taken)]).reshape(taken, length + 1)
    return rows[:, :-1], rows[:, 1:]


class Mixture:
    """Batches of windows from all domains; `taken` (a count a domain) is its whole state."""

    def __init__(self, tokens, context, batch, seed, shares=None):
        """`shares`: of the windows, by domain; others share as WEIGHTS says."""
        self.domains = list(tokens)
        self.batch, self.seed = batch, seed
        self.windows = {domain: Windows(ids, context, domain_seed(seed, number))
                        for number, (domain, ids) in enumerate(tokens.items())}
        self.taken = dict.fromkeys(self.domains, 0)
        weights = np.array([(shares or WEIGHTS).get(domain, 0.1) for domain in self.domains])
        self._weights = weights / weights.sum()

    def next(self, step):
        """[batch][context + 1]"""
        rng = np.random.default_rng([self.seed, 7, step])
        chosen = rng.choice(len(self.domains), self.batch, p=self._weights)
        rows = []
        for number in chosen:
            domain = self.domains[number]
            rows.append(self.windows[domain].window(self.taken[domain]))
            self.taken[domain] += 1
        return np.stack(rows)


def held_out_windows(tokens, context, most):
    """[windows][context + 1], from the beginning, at most `most`."""
    count = min(most, (len(tokens) - 1) // context)
    return np.stack([tokens[i * context:(i + 1) * context + 1].astype(np.int64) for i in range(count)])


def spread_windows(tokens, length, most):
    """[windows][length], at most `most`, evenly from the first token to the last."""
    count = min(most, len(tokens) // length)
    begins = [i * (len(tokens) - length) // max(1, count - 1) for i in range(count)]
    return np.array([tokens[begin:begin + length] for begin in begins]).reshape(count, length)
