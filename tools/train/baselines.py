"""How well counting predicts: unigrams, and bigrams with absolute discounting, both told the domain (they
are counted on its training tokens alone, which the model is not told).

Only the counts that the evaluation's tokens ask for are kept, so that a file of some hundred kilobytes
gives the figures again without the corpus.
"""
import math

import numpy as np

_DISCOUNT = 0.75


def scored(count, window):
    """The places of the tokens that `troupe eval --window` scores: all but the first of each window."""
    places = np.arange(count)
    return places[places % window != 0]


def count(training, ids, window, vocabulary):
    """What unigram() and bigram() need to predict the scored ones of `ids`, one number each a token."""
    training, ids = training.astype(np.int64), np.asarray(ids, np.int64)
    places = scored(len(ids), window)
    before, wanted = ids[places - 1], ids[places]
    single = np.bincount(training, minlength=vocabulary)
    pairs, times = np.unique(training[:-1] * vocabulary + training[1:], return_counts=True)
    followers = np.bincount(pairs // vocabulary, minlength=vocabulary)
    as_context = np.bincount(training[:-1], minlength=vocabulary)
    asked = before * vocabulary + wanted
    at = np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)
    return {"total": int(len(training)), "vocabulary": vocabulary, "single": single[wanted].tolist(),
            "pair": np.where(pairs[at] == asked, times[at], 0).tolist(),
            "context": as_context[before].tolist(), "followers": followers[before].tolist()}


def unigram(counts):
    """Probabilities, with one added to each token's count."""
    return (np.array(counts["single"]) + 1) / (counts["total"] + counts["vocabulary"])


def bigram(counts):
    context = np.maximum(np.array(counts["context"]), 1)
    seen = np.array(counts["context"]) > 0
    direct = np.maximum(np.array(counts["pair"]) - _DISCOUNT, 0) / context
    left = np.where(seen, _DISCOUNT * np.array(counts["followers"]) / context, 1.0)
    return direct + left * unigram(counts)


def perplexity(probabilities):
    return math.exp(-np.log(probabilities).mean())
