"""Writes GGUF version 3 (docs/formats/gguf.md) with tensors of floats or Q8_0, one after the other: a model's float32
and float16 copies never lie in memory together.
"""
import os
import pathlib
import struct

import numpy as np

ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
Q8_0 = "Q8_0"  # in place of a dtype; rows are multiples of 32
_TENSOR_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float16): 1, Q8_0: 8}
_BLOCK = np.dtype([("scale", "<f2"), ("codes", "i1", 32)])


def _text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def stored(value):
    """A value of a key, with its type."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, np.ndarray):
        kind = _FLOAT32 if value.dtype.kind == "f" else _INT32
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + value.astype("<f4" if kind == _FLOAT32 else "<i4").tobytes()
    return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_text, value))


def _is_q8_0(dtype):
    return isinstance(dtype, str) and dtype == Q8_0  # numpy would try to make a dtype of the string


def _size(dtype, count):
    """What `count` numbers take, in bytes."""
    return count // 32 * _BLOCK.itemsize if _is_q8_0(dtype) else count * np.dtype(dtype).itemsize


def _padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def to_q8_0(values):
    """The blocks of an array whose rows are multiples of 32."""
    rows = np.asarray(values, np.float32).reshape(-1, 32)
    scale = np.abs(rows).max(1, keepdims=True) / 127
    codes = np.rint(np.divide(rows, scale, out=np.zeros_like(rows), where=scale > 0))
    blocks = np.empty(len(rows), _BLOCK)
    blocks["scale"], blocks["codes"] = scale[:, 0], codes
    return blocks


def from_q8_0(data):
    """The numbers of blocks, in a row."""
    blocks = np.frombuffer(data, _BLOCK)
    return (blocks["scale"].astype(np.float32)[:, None] * blocks["codes"]).ravel()


def begin(entries, tensors):
    """What stands before the data. `entries`: [(key, value as it is stored)]; `tensors`: [(name, shape with the slowest
    dimension first, number of the type, offset)]."""
    table = b"".join(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)
                     for name, shape, kind, offset in tensors)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(
        _text(key) + value for key, value in entries) + table
    return head + bytes(-len(head) % ALIGNMENT)


def write_whole(path, pieces):
    """The file appears under its name when all of it is there."""
    part = pathlib.Path(f"{path}.part")
    with open(part, "wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write(path, metadata, tensors):
    """`metadata`: key to bool, int, float, str, list of str or array. `tensors`: [(name, dtype, shape
    with the slowest dimension first, function that gives the values)]."""
    table, offset = [], 0
    for name, dtype, shape, _ in tensors:
        if _is_q8_0(dtype) and shape[-1] % 32:
            raise ValueError(f"tensor {name}: rows of {shape[-1]} numbers, expected multiples of 32 for {Q8_0}")
        kind = _TENSOR_TYPES[dtype if _is_q8_0(dtype) else np.dtype(dtype)]
        table.append((name, shape, kind, offset))
        offset += _padded(_size(dtype, int(np.prod(shape))))

    def pieces():
        yield begin([(key, stored(value)) for key, value in metadata.items()], table)
        for name, dtype, shape, values in tensors:
            array = np.ascontiguousarray(values(), np.float32 if _is_q8_0(dtype) else dtype)
            if array.shape != tuple(shape):
                raise ValueError(f"tensor {name}: shape {array.shape}, declared {tuple(shape)}")
            data = (to_q8_0(array) if _is_q8_0(dtype) else array).tobytes()
            yield data + bytes(-len(data) % ALIGNMENT)
    write_whole(path, pieces())
