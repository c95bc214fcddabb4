"""Splits documents into training and held-out texts that share nothing.

Documents are held out whole, chosen by a hash of their name. What a held-out document shares with many
others (a licence, say) is taken out of the held-out document; what training documents then still share
with held-out ones is taken out of them. Documents that are the same but for spaces are kept once.
"""
import collections
import hashlib
import re

import numpy as np

import shingles

# Shared by more training documents than this: boilerplate, which is not worth holding out.
_MANY = 3
# At least this number of documents is held out.
_FEWEST = 8
# Less text than this is not worth keeping when a document has been cut.
_LEAST = 200


def _fraction(seed, name):
    return int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "big") / 2 ** 64


def without_copies(documents):
    seen, kept = set(), []
    for name, text in documents:
        key = hashlib.blake2b("".join(text.split()).encode(), digest_size=16).digest()
        if key not in seen:
            seen.add(key)
            kept.append((name, text))
    return kept


def _cut(text, forbidden):
    """The text without the paragraphs that have a forbidden shingle begin or end in them."""
    while True:
        numbers, begins, ends = shingles.spans(text)
        hits = np.flatnonzero(shingles.are_in(numbers, forbidden))
        if len(hits) == 0:
            return text
        breaks = [0] + [m.end() for m in re.finditer(r"\n\s*\n", text)] + [len(text)]
        bad = np.zeros(len(breaks) - 1, bool)
        for hit in hits:
            first = np.searchsorted(breaks, begins[hit], side="right") - 1
            last = np.searchsorted(breaks, ends[hit] - 1, side="right") - 1
            bad[first:last + 1] = True
        text = "".join(text[breaks[i]:breaks[i + 1]] for i in np.flatnonzero(~bad)).strip()


def _long_enough(documents, before):
    return [(name, text) for name, text in documents
            if len(text) >= _LEAST or len(text) == before[name]]


def split(documents, seed, characters):
    """(training, held out); held out are about `characters`, in whole documents.

    `documents`: [(name, text)], names unique."""
    documents = sorted(without_copies(documents), key=lambda each: _fraction(seed, each[0]))
    before = {name: len(text) for name, text in documents}
    held, kept, total = [], [], 0
    for name, text in documents:
        # One long document would be all that is held out.
        if total < characters and len(text) <= characters / _FEWEST:
            held.append((name, text))
            total += len(text)
        else:
            kept.append((name, text))
    documents = kept

    held_numbers = np.unique(np.concatenate([shingles.of_text(t) for _, t in held] or [[]])).astype(np.uint64)
    sharers = collections.Counter()
    touched = set()
    for name, text in documents:
        numbers = np.unique(shingles.of_text(text))
        common = numbers[shingles.are_in(numbers, held_numbers)]
        if len(common):
            touched.add(name)
            sharers.update(common.tolist())
    boilerplate = np.array(sorted(n for n, count in sharers.items() if count > _MANY), np.uint64)
    held = _long_enough([(name, _cut(text, boilerplate)) for name, text in held], before)
    return _without(documents, held, touched, before), held


def _without(documents, held, touched, before):
    numbers = np.unique(np.concatenate([shingles.of_text(t) for _, t in held] or [[]])).astype(np.uint64)
    return _long_enough([(name, _cut(text, numbers) if name in touched else text)
                         for name, text in documents], before)


def remove_shared(documents, held):
    """Training documents of one domain without what the held-out ones of another have."""
    before = {name: len(text) for name, text in documents}
    return _without(documents, held, set(before), before)
