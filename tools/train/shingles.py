"""Which text occurs in other texts: every run of 13 words is a shingle, known by a 64-bit number.

Used to split a corpus (split.py) and to prove the split (tests/train_corpus_test.py).
"""
import re
import zlib

import numpy as np

WORDS = 13
_WORD = re.compile(r"\w+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def of_words(words, length=WORDS):
    """One number for each run of `length` words; none if there are fewer."""
    if len(words) < length:
        return np.zeros(0, np.uint64)
    numbers = np.fromiter((zlib.crc32(word.encode()) for word in words), np.uint64, len(words))
    numbers = numbers * _FACTOR ^ (numbers << np.uint64(29))  # spread 32 bits over 64
    runs = len(words) - length + 1
    total = np.zeros(runs, np.uint64)
    for offset in range(length):
        total = total * _FACTOR + numbers[offset:offset + runs]
    return total


def of_text(text):
    return of_words(_WORD.findall(text))


def spans(text):
    """(shingle numbers, where each begins, where each ends) in characters."""
    found = [(m.group(), m.start(), m.end()) for m in _WORD.finditer(text)]
    numbers = of_words([word for word, _, _ in found])
    return numbers, [at for _, at, _ in found[:len(numbers)]], [end for _, _, end in found[WORDS - 1:]]


def are_in(numbers, sorted_set):
    """A mask; `sorted_set` from np.unique."""
    if len(sorted_set) == 0:
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(sorted_set, numbers), len(sorted_set) - 1)
    return sorted_set[at] == numbers
