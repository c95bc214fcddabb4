"""Writes GGUF version 3 (docs/formats/gguf.md) with float tensors, one after the other: a model's float32
and float16 copies never lie in memory together.
"""
import os
import pathlib
import struct

import numpy as np

ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_TENSOR_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float16): 1}


def _text(value):
    data = value.encode()
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
    if isinstance(value, np.ndarray):
        kind = _FLOAT32 if value.dtype.kind == "f" else _INT32
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + value.astype("<f4" if kind == _FLOAT32 else "<i4").tobytes()
    return struct.pack("<IIQ", _ARRAY, _STRING, len(value)) + b"".join(map(_text, value))


def write(path, metadata, tensors):
    """`metadata`: key to bool, int, float, str, list of str or array. `tensors`: [(name, dtype, shape
    with the slowest dimension first, function that gives the values)]."""
    table, offset = [], 0
    for name, dtype, shape, _ in tensors:
        dtype = np.dtype(dtype)
        table.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape),
                                               _TENSOR_TYPES[dtype], offset))
        offset += -(-int(np.prod(shape)) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(
        _text(key) + _value(value) for key, value in metadata.items()) + b"".join(table)
    part = pathlib.Path(f"{path}.part")
    with open(part, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for name, dtype, shape, values in tensors:
            array = np.ascontiguousarray(values(), dtype)
            if array.shape != tuple(shape):
                raise ValueError(f"tensor {name}: shape {array.shape}, declared {tuple(shape)}")
            file.write(array.tobytes() + bytes(-array.nbytes % ALIGNMENT))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
