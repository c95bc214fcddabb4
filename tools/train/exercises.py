"""Exercises that a small model can learn, generated: texts to train on, and questions that were kept out of them.

Each is one line, its symbols apart, so that each is one token: the name of the exercise, what is given, a colon,
and the answer, of which there is only one.

    recall b t k q w a : w a b t k q      the letter that follows each of the first, third and fifth, in another order
    copy k w b z : k w b z                the same letters again
    sort k w b z : b k w z                the same letters in the order of the alphabet
    close ( [ < > : ] )                   the brackets that are still open, the last one first
    pattern k w b k w b k : w b k w       the next four of a series that repeats itself
    shift k w b : l x c                   the letter after each letter
    reverse k w b z : z b w k             the same letters backwards

Whether one is held out is decided by what it is about (`about`, below) and not by its wording: of a held-out sort
no text has the same letters in another order. No held-out exercise is in a training text, whatever is generated.
"""
import dataclasses
import json
import math
import random
import string
import zlib

LETTERS = string.ascii_lowercase
_CLOSES = {"(": ")", "[": "]", "{": "}", "<": ">"}
_HELD_OUT = 50  # one in 50
_NEXT = 4  # symbols of a series that are asked for


@dataclasses.dataclass(frozen=True)
class Exercise:
    about: str  # decides whether it is held out
    given: str
    answer: str
    chance: float  # of an answer drawn from the symbols that can be in it, without another thought
    more: str = ""  # further answers that a training text has: much to learn in few tokens

    def line(self):
        return f"{self.given} {self.answer}{self.more}"


def _spaced(symbols):
    return " ".join(symbols)


def _recall(rng):
    count = rng.randint(3, 8)
    letters = rng.sample(LETTERS, 2 * count)
    pairs = [f"{key} {value}" for key, value in zip(letters[::2], letters[1::2])]
    asked = rng.sample(pairs, count)
    key, value = asked[0].split()
    return Exercise(_spaced(sorted(pairs)), f"recall {_spaced(pairs)} : {key}", value, 1 / count,
                    "".join(f" {pair}" for pair in asked[1:]))


def _copy(rng):
    letters = rng.sample(LETTERS, rng.randint(3, 10))
    return Exercise(_spaced(letters), f"copy {_spaced(letters)} :", _spaced(letters), 1 / math.factorial(len(letters)))


def _sort(rng):
    letters = rng.sample(LETTERS, rng.randint(3, 6))
    return Exercise(_spaced(sorted(letters)), f"sort {_spaced(letters)} :", _spaced(sorted(letters)),
                    1 / math.factorial(len(letters)))


def _close(rng):
    given, still_open, want = [], [], rng.randint(3, 12)
    while len(given) < want or not still_open:
        if still_open and (len(still_open) == 6 or rng.random() < 0.4):
            given.append(_CLOSES[still_open.pop()])
        else:
            still_open.append(rng.choice("([{<"))
            given.append(still_open[-1])
    answer = [_CLOSES[each] for each in reversed(still_open)]
    return Exercise(_spaced(given), f"close {_spaced(given)} :", _spaced(answer), 1 / len(_CLOSES) ** len(answer))


def _pattern(rng):
    unit = rng.sample(LETTERS, rng.randint(2, 6))
    shown = 2 * len(unit) + rng.randrange(len(unit))
    series = [unit[place % len(unit)] for place in range(shown + _NEXT)]
    about = min(_spaced(unit[turn:] + unit[:turn]) for turn in range(len(unit)))
    return Exercise(about, f"pattern {_spaced(series[:shown])} :", _spaced(series[shown:]), 1 / len(unit) ** _NEXT)


def _shift(rng):
    letters = rng.sample(LETTERS, rng.randint(3, 8))
    after = [LETTERS[(LETTERS.index(letter) + 1) % len(LETTERS)] for letter in letters]
    return Exercise(_spaced(letters), f"shift {_spaced(letters)} :", _spaced(after), 1 / len(LETTERS) ** len(letters))


def _reverse(rng):
    letters = rng.sample(LETTERS, rng.randint(3, 8))
    return Exercise(_spaced(letters), f"reverse {_spaced(letters)} :", _spaced(letters[::-1]), 1 / math.factorial(len(letters)))


_MAKERS = {"recall": _recall, "copy": _copy, "sort": _sort, "close": _close, "pattern": _pattern, "shift": _shift,
           "reverse": _reverse}
NAMES = tuple(_MAKERS)


def is_held_out(name, exercise):
    return zlib.crc32(f"{name} {exercise.about}".encode()) % _HELD_OUT == 0


def _draw(name, rng, held_out):
    while True:
        exercise = _MAKERS[name](rng)
        if is_held_out(name, exercise) == held_out:
            return exercise


def texts(name, seed, characters, held_out):
    """Yields (name, text), an exercise each, until there are `characters` of text."""
    rng, made, number = random.Random(f"{seed} {name} {held_out}"), 0, 0
    while made < characters:
        text = _draw(name, rng, held_out).line()
        yield f"{name}#{number}", text
        made, number = made + len(text), number + 1


def examination(name, seed, count):
    """Held-out exercises, no two about the same."""
    rng, drawn = random.Random(f"{seed} {name} examination"), {}
    while len(drawn) < count:
        exercise = _draw(name, rng, True)
        drawn.setdefault(exercise.about, exercise)
    return list(drawn.values())


def task_file(name, seed, count):
    """The examination in the layout of docs/formats/tasks.md, a line each."""
    return "".join(json.dumps({"context": each.given, "continuation": each.answer, "chance": each.chance}) + "\n"
                   for each in examination(name, seed, count))
