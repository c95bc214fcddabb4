"""Sums in words, generated: texts to train on, and questions that were kept out of them.

Whether a sum is held out is decided by the sum itself (its numbers and its operation), so that no
held-out sum can be in a training text, whatever is generated.
"""
import random
import zlib

_OPERATIONS = {"plus": lambda a, b: a + b, "minus": lambda a, b: a - b, "times": lambda a, b: a * b}
_A_TEXT = 16  # sums


def is_held_out(a, word, b):
    return zlib.crc32(f"{a} {word} {b}".encode()) % 50 == 0


def question(a, word, b):
    return f"What is {a} {word} {b}?\nA:"


def answer(a, word, b):
    return str(_OPERATIONS[word](a, b))


def draw(rng, held_out):
    """One to three digits; of products the second factor has one."""
    while True:
        digits = rng.choice((1, 1, 2, 2, 3))
        a, b, word = rng.randrange(10 ** digits), rng.randrange(10 ** digits), rng.choice(list(_OPERATIONS))
        if word == "times" and digits > 1:
            b = rng.randrange(10)
        if is_held_out(a, word, b) == held_out:
            return a, word, b


def texts(seed, characters, held_out):
    """Yields (name, text) until there are so many characters."""
    rng, made, number = random.Random(f"{seed} {held_out}"), 0, 0
    while made < characters:
        drawn = [draw(rng, held_out) for _ in range(_A_TEXT)]
        text = "\n\n".join(f"{question(*each)} {answer(*each)}" for each in drawn)
        yield f"sums#{number}", text
        made, number = made + len(text), number + 1


def examination(seed, count):
    """Held-out sums, no two the same: (question, answer)."""
    rng, drawn = random.Random(f"{seed} examination"), {}
    while len(drawn) < count:
        each = draw(rng, held_out=True)
        drawn[each] = (question(*each), answer(*each))
    return list(drawn.values())
