"""What GGUF version 3 (docs/formats/gguf.md) has before the data of its tensors, and how a file gets its name when it
is complete. For the writers of tools/convert and of tools/train.
"""
import array
import os
import pathlib
import struct
import sys

ALIGNMENT = 32
_UINT8, _UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 0, 4, 5, 6, 7, 8, 9


def _text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _array(kind, count, data):
    return struct.pack("<IIQ", _ARRAY, kind, count) + data


def stored(value):
    """A value of a key, with its type: bool, int, float, str, bytes, array, or list of str or bool."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, bytes):
        return _array(_UINT8, len(value), value)
    if isinstance(value, array.array):
        little = array.array(value.typecode, value)
        if sys.byteorder == "big":
            little.byteswap()
        return _array({"f": _FLOAT32, "i": _INT32}[value.typecode], len(value), little.tobytes())
    if value and all(isinstance(each, bool) for each in value):
        return _array(_BOOL, len(value), bytes(value))
    return _array(_STRING, len(value), b"".join(map(_text, value)))


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def begin(entries, tensors):
    """What stands before the data. `entries`: [(key, value as it is stored)]; `tensors`: [(name, shape with the slowest
    dimension first, number of the type, offset)]."""
    table = b"".join(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)
                     for name, shape, kind, offset in tensors)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(
        _text(key) + value for key, value in entries) + table
    return head + bytes(-len(head) % ALIGNMENT)


def write_whole(path, pieces):
    """The file appears under its name when all of it is there; nothing stays of one that failed."""
    part = pathlib.Path(f"{path}.part")
    try:
        with open(part, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
