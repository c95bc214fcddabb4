"""Sums in words, generated: texts to train on, and questions that were kept out of them.

Whether a sum is held out is decided by the sum itself (its numbers and its operation), so that no
held-out sum can be in a training text, whatever is generated. In the split "unordered" a plus b and b plus
a (and their products) go together; in "ordered", of corpora whose manifest names no split, each went
where its own words put it. Who learned one has half learned the other: the examination asks in either split
only sums of which neither order can be in a training text.
"""
import random
import zlib

_OPERATIONS = {"plus": lambda a, b: a + b, "minus": lambda a, b: a - b, "times": lambda a, b: a * b}
_A_TEXT = 16  # sums
SPLITS = ("ordered", "unordered")


def is_held_out(a, word, b, split="unordered"):
    if split == "unordered" and word != "minus":
        a, b = sorted((a, b))
    return zlib.crc32(f"{a} {word} {b}".encode()) % 50 == 0


def _is_asked(a, word, b, split):
    """Whether the sum is held out, and b with a, too, where that gives the same and could be drawn."""
    mirrored = word == "plus" or (word == "times" and max(a, b) < 10)
    return is_held_out(a, word, b, split) and (not mirrored or is_held_out(b, word, a, split))


def question(a, word, b):
    return f"What is {a} {word} {b}?\nA:"


def operation(asked):
    """Of a question that question() made."""
    return asked.split()[3]


def answer(a, word, b):
    return str(_OPERATIONS[word](a, b))


def _draw(rng, words):
    """One to three digits; of products the second factor has one."""
    digits = rng.choice((1, 1, 2, 2, 3))
    a, b, word = rng.randrange(10 ** digits), rng.randrange(10 ** digits), rng.choice(words)
    if word == "times" and digits > 1:
        b = rng.randrange(10)
    return a, word, b


def texts(seed, characters, held_out, split="unordered"):
    """Yields (name, text) until there are `characters` of text."""
    rng, made, number = random.Random(f"{seed} {held_out}"), 0, 0
    while made < characters:
        drawn = []
        while len(drawn) < _A_TEXT:
            each = _draw(rng, list(_OPERATIONS))
            if is_held_out(*each, split) == held_out:
                drawn.append(each)
        text = "\n\n".join(f"{question(*each)} {answer(*each)}" for each in drawn)
        yield f"sums#{number}", text
        made, number = made + len(text), number + 1


def examination(seed, count, split="unordered"):
    """Held-out sums, as many of each operation, no two the same, nor the same in the other order:
    (question, answer)."""
    rng, drawn = random.Random(f"{seed} examination"), {}
    for number, word in enumerate(_OPERATIONS):
        until = count * (number + 1) // len(_OPERATIONS)
        while len(drawn) < until:
            a, _, b = _draw(rng, [word])
            if _is_asked(a, word, b, split):
                key = (word, *(sorted((a, b)) if word != "minus" else (a, b)))
                drawn.setdefault(key, (question(a, word, b), answer(a, word, b)))
    return list(drawn.values())
