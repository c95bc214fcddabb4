"""Writes GGUF version 3 (docs/formats/gguf.md), a piece of a tensor at a time: the file may be larger than
memory. It gets its name when it is complete.
"""
import array
import os
import pathlib
import struct
import sys

from refused import Refused

ALIGNMENT = 32
TYPES = {"F32": 0, "F16": 1, "BF16": 30}
_UINT8, _UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 0, 4, 5, 6, 7, 8, 9


def _text(value):
    try:
        data = value.encode()
    except UnicodeEncodeError as error:  # JSON can name halves of characters
        raise Refused(f"{value[:80]!r} is no text: {error.reason}") from None
    return struct.pack("<Q", len(data)) + data


def _value(value):
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, bytes):
        return struct.pack("<IIQ", _ARRAY, _UINT8, len(value)) + value
    if isinstance(value, array.array):
        kind = {"f": _FLOAT32, "i": _INT32}[value.typecode]
        little = value if sys.byteorder == "little" else array.array(value.typecode, value)
        if little is not value:
            little.byteswap()
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + little.tobytes()
    if value and all(isinstance(each, bool) for each in value):
        return struct.pack("<IIQ", _ARRAY, _BOOL, len(value)) + bytes(value)
    return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_text, value))


def write(path, metadata, tensors):
    """`metadata`: key to bool, int, float, str, bytes, array, or list of str or bool. `tensors`: [(name, type, shape with the
    slowest dimension first, size in bytes, function that gives the bytes in pieces)]."""
    head, offset = b"", 0
    for name, type_, shape, size, _ in tensors:
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), TYPES[type_], offset)
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(
        _text(key) + _value(value) for key, value in metadata.items()) + head
    part = pathlib.Path(f"{path}.part")
    try:
        with open(part, "wb") as file:
            file.write(head + bytes(-len(head) % ALIGNMENT))
            for name, _, _, size, pieces in tensors:
                written = sum(file.write(piece) for piece in pieces())
                if written != size:
                    raise Refused(f"{path}: tensor '{name}' has {written} bytes, declared {size}")
                file.write(bytes(-size % ALIGNMENT))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
