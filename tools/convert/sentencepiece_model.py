"""Reads `spiece.model`, the file of a SentencePiece tokenizer: a protocol buffer, of which a few fields
are wanted. sentencepiece_model.proto of google/sentencepiece has their numbers.
"""
import dataclasses
import math
import struct

from refused import Refused

_PIECES, _NORMALIZER, _TRAINER = 1, 3, 2
_UNIGRAM = 1
_KINDS = range(1, 7)  # of pieces


@dataclasses.dataclass
class Model:
    pieces: list = dataclasses.field(default_factory=list)  # (text, score, type: 1 normal, 2 unknown, 3 control, ...)
    is_unigram: bool = True
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True


def _fields(data):
    """(number, value) of each field of a message: a whole number, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise ValueError(f"byte {at}: no number")
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"byte {at}: a field of kind {kind}")
        size = varint() if kind == 2 else 8 if kind == 1 else 4
        if size > len(data) - at:
            raise ValueError(f"byte {at}: {size} bytes run past the end")
        yield tag >> 3, bytes(data[at:at + size])
        at += size


def _piece(data):
    text, score, kind = "", 0.0, 1
    for number, value in _fields(data):
        if number == 1:
            text = value.decode()
        elif number == 2:
            (score,) = struct.unpack("<f", value)
        elif number == 3:
            kind = value
    if kind not in _KINDS:
        raise ValueError(f"piece {text!r} has type {kind!r}, expected {_KINDS[0]} to {_KINDS[-1]}")
    if not math.isfinite(score):
        raise ValueError(f"piece {text!r} has score {score}")
    return text, score, kind


def read(path):
    try:
        return _parse(path.read_bytes())
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    except (ValueError, AttributeError, TypeError, struct.error) as error:  # of UTF-8, and of kinds of fields, too
        raise Refused(f"{path}: no SentencePiece model: {error}") from None


def _parse(data):
    model = Model()
    for number, value in _fields(data):
        if number == _PIECES:
            model.pieces.append(_piece(value))
        elif number == _TRAINER:
            model.is_unigram = dict(_fields(value)).get(3, _UNIGRAM) == _UNIGRAM
        elif number == _NORMALIZER:
            rules = dict(_fields(value))
            model.charsmap = rules.get(2, b"")
            flags = rules.get(3, 1), rules.get(4, 1)
            if not isinstance(model.charsmap, bytes) or not all(isinstance(flag, int) for flag in flags):
                raise ValueError("the normalizer has fields of other kinds")
            model.add_dummy_prefix, model.remove_extra_whitespaces = map(bool, flags)
    return model
