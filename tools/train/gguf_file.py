"""Writes GGUF version 3 (docs/formats/gguf.md) with tensors of floats or Q8_0, one after the other: a model's float32
and float16 copies never lie in memory together.
"""
import array
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "convert"))
import gguf_head  # noqa: E402
from gguf_head import ALIGNMENT, begin, padded, write_whole  # noqa: E402

Q8_0 = "Q8_0"  # in place of a dtype; rows are multiples of 32
_TENSOR_TYPES = {np.dtype(np.float32): 0, np.dtype(np.float16): 1, Q8_0: 8}
_BLOCK = np.dtype([("scale", "<f2"), ("codes", "i1", 32)])


def stored(value):
    """A value of a key, with its type: also of numbers in numpy's arrays."""
    if isinstance(value, np.ndarray):
        kind = "f" if value.dtype.kind == "f" else "i"
        value = array.array(kind, value.astype(f"={kind}4").tobytes())
    return gguf_head.stored(value)


def _is_q8_0(dtype):
    return isinstance(dtype, str) and dtype == Q8_0  # numpy would try to make a dtype of the string


def _size(dtype, count):
    """What `count` numbers take, in bytes."""
    return count // 32 * _BLOCK.itemsize if _is_q8_0(dtype) else count * np.dtype(dtype).itemsize


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


def write(path, metadata, tensors):
    """`metadata`: key to bool, int, float, str, list of str or array. `tensors`: [(name, dtype, shape
    with the slowest dimension first, function that gives the values)]."""
    table, offset = [], 0
    for name, dtype, shape, _ in tensors:
        if _is_q8_0(dtype) and shape[-1] % 32:
            raise ValueError(f"tensor {name}: rows of {shape[-1]} numbers, expected multiples of 32 for {Q8_0}")
        kind = _TENSOR_TYPES[dtype if _is_q8_0(dtype) else np.dtype(dtype)]
        table.append((name, shape, kind, offset))
        offset += padded(_size(dtype, int(np.prod(shape))))

    def pieces():
        yield begin([(key, stored(value)) for key, value in metadata.items()], table)
        for name, dtype, shape, values in tensors:
            numbers = np.ascontiguousarray(values(), np.float32 if _is_q8_0(dtype) else dtype)
            if numbers.shape != tuple(shape):
                raise ValueError(f"tensor {name}: shape {numbers.shape}, declared {tuple(shape)}")
            data = (to_q8_0(numbers) if _is_q8_0(dtype) else numbers).tobytes()
            yield data + bytes(-len(data) % ALIGNMENT)
    write_whole(path, pieces())
