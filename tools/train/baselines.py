"""How well counting predicts: unigrams, and bigrams with absolute discounting, both told the domain (they
are counted on its training tokens alone, which the model is not told).

Only the counts that the evaluation's tokens ask for are kept, one a token or pair that occurs in them, so
that a file of some hundred kilobytes gives the figures again without the corpus.
"""
import math

import numpy as np

_DISCOUNT = 0.75


def scored(count, window):
    """The places of the tokens that `troupe eval --window` scores: all but the first of each window."""
    places = np.arange(count)
    return places[places % window != 0]


def _asked(ids, window, vocabulary):
    """Before, wanted, and both as one number, of each scored token."""
    ids = np.asarray(ids, np.int64)
    places = scored(len(ids), window)
    before, wanted = ids[places - 1], ids[places]
    return before, wanted, before * vocabulary + wanted


def count(contexts, targets, ids, window, vocabulary):
    """What unigram() and bigram() need to predict the scored ones of `ids`, counted on `targets`, each of
    which came after its context."""
    contexts, targets = (np.asarray(each).astype(np.int64).ravel() for each in (contexts, targets))
    before, wanted, both = map(np.unique, _asked(ids, window, vocabulary))
    single = np.bincount(targets, minlength=vocabulary)
    pairs, times = np.unique(contexts * vocabulary + targets, return_counts=True)
    followers = np.bincount(pairs // vocabulary, minlength=vocabulary)
    as_context = np.bincount(contexts, minlength=vocabulary)
    pairs, times = np.append(pairs, -1), np.append(times, 0)  # the last is what no pair is
    at = np.minimum(np.searchsorted(pairs[:-1], both), len(pairs) - 1)
    return {"total": len(targets), "vocabulary": vocabulary, "single": single[wanted].tolist(),
            "pair": np.where(pairs[at] == both, times[at], 0).tolist(),
            "context": as_context[before].tolist(), "followers": followers[before].tolist()}


def unigram(counts, ids, window):
    """Probabilities of the scored tokens, with one added to each token's count."""
    _, wanted = np.unique(_asked(ids, window, counts["vocabulary"])[1], return_inverse=True)
    return (np.array(counts["single"])[wanted] + 1) / (counts["total"] + counts["vocabulary"])


def bigram(counts, ids, window):
    before, _, both = _asked(ids, window, counts["vocabulary"])
    before, both = (np.unique(each, return_inverse=True)[1] for each in (before, both))
    times = np.array(counts["context"])[before]
    context = np.maximum(times, 1)
    direct = np.maximum(np.array(counts["pair"])[both] - _DISCOUNT, 0) / context
    left = np.where(times > 0, _DISCOUNT * np.array(counts["followers"])[before] / context, 1.0)
    return direct + left * unigram(counts, ids, window)


def perplexity(probabilities):
    return math.exp(-np.log(probabilities).mean())
