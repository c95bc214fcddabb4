"""Copies of a GGUF whose activations are disturbed by about as much as rounding disturbs them.

Each weight of each norm is multiplied with 1 + a random number: what every block and the router and
the output read is then wrong by that much. llama.cpp run on such a copy shows how its own answers
depend on errors that another right engine may make as well.
"""
import array
import math
import random
import struct

_SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_F32_TENSOR = 0
_ALIGNMENT = 32


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def skip_value(self, type_):
        if type_ == _STRING:
            self.string()
        elif type_ == _ARRAY:
            element, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip_value(element)
        else:
            self.at += _SCALAR_BYTES[type_]


def _norms(data):
    """(offset, length) of each norm's float32 weights; the file is one of ours and trusted."""
    cursor = _Cursor(data)
    cursor.at = 8  # magic and version
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    for _ in range(keys):
        cursor.string()
        cursor.skip_value(cursor.number("I"))
    found = []
    for _ in range(tensors):
        name = cursor.string()
        dimensions = [cursor.number("Q") for _ in range(cursor.number("I"))]
        type_, offset = cursor.number("I"), cursor.number("Q")
        if name.endswith("norm.weight") and type_ == _F32_TENSOR:
            found.append((offset, math.prod(dimensions)))
    start = -(-cursor.at // _ALIGNMENT) * _ALIGNMENT
    return [(start + offset, length) for offset, length in found]


def write_copy(model, copy, relative_error, seed):
    data = bytearray(model.read_bytes())
    chance = random.Random(seed)
    norms = _norms(data)
    assert norms, f"{model}: no norm found to disturb"
    for offset, length in norms:
        weights = array.array("f", data[offset:offset + 4 * length])
        for i in range(length):
            weights[i] *= 1 + relative_error * chance.gauss(0, 1)
        data[offset:offset + 4 * length] = weights.tobytes()
    copy.write_bytes(data)
