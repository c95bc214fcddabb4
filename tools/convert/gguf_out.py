"""Writes GGUF version 3 (docs/formats/gguf.md) of tensors whose bytes are there already: in parts, one
after the other, so that a model never lies in memory as a whole.
"""
import array
import math
import os
import struct

ALIGNMENT = 32
_UINT8, _UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 0, 4, 5, 6, 7, 8, 9
# Type in safetensors to its number in GGUF and the bytes of an element.
TYPES = {"F32": (0, 4), "F16": (1, 2), "BF16": (30, 2)}


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value):
    if isinstance(value, bool):  # before int, which it also is
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    if isinstance(value, bytes):
        return struct.pack("<IIQ", _ARRAY, _UINT8, len(value)) + value
    if isinstance(value, array.array):
        kind = {"i": _INT32, "f": _FLOAT32}[value.typecode]
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + value.tobytes()
    if value and all(isinstance(each, bool) for each in value):
        return struct.pack("<IIQ", _ARRAY, _BOOL, len(value)) + bytes(value)
    return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_string, value))


def write(path, metadata, tensors):
    """`metadata`: key to bool, int, float, str, bytes, list of str or bool, or array. `tensors`: name to
    (type as safetensors writes it, shape with the slowest dimension first, parts of its bytes)."""
    head, offset = b"", 0
    for name, (dtype, shape, _) in tensors.items():
        number, element = TYPES[dtype]
        head += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), number, offset)
        offset += -(-math.prod(shape) * element // ALIGNMENT) * ALIGNMENT
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)) + b"".join(
        _string(key) + _value(value) for key, value in metadata.items()) + head
    unfinished = f"{path}.part"
    with open(unfinished, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for name, (dtype, shape, parts) in tensors.items():
            written = sum(file.write(part) for part in parts)
            wanted = math.prod(shape) * TYPES[dtype][1]
            if written != wanted:
                raise ValueError(f"tensor {name}: {written} bytes, {wanted} expected of shape {shape}")
            file.write(bytes(-written % ALIGNMENT))
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
