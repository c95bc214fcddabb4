#!/usr/bin/env python3
"""Reads a routing trace (docs/formats/trace.md) with a function of 12 lines, and numpy as the only package.

Chunks are packed with zstd, for which Python has no module: the library that `troupe` runs with, too, unpacks them.

usage: read_trace.py TRACE    prints which expert each layer used most, and how often it used each
"""
import ctypes
import json
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("this needs NumPy: apt-get install python3-numpy, then /usr/bin/python3 examples/read_trace.py TRACE")

SEGMENT = np.dtype([("sequence", "u4"), ("position", "u4"), ("tokens", "u4"), ("domain", "u2"), ("phase", "u1"),
                    ("joins", "u1")])
SCORE = {"f32": np.dtype("f4"), "f16": np.dtype("f2")}
unpack = ctypes.CDLL("libzstd.so.1").ZSTD_decompress
unpack.argtypes, unpack.restype = [ctypes.c_void_p, ctypes.c_size_t] * 2, ctypes.c_size_t


def read_trace(path):
    """Yields the header; then of each chunk its segments, and ids, scores and all scores as [layer, token, …]."""
    data, at = np.memmap(path, "u1", "r"), 24
    yield (header := json.loads(data[at:(at := at + int(data[12:16].view("u4")[0]))].tobytes()))
    ids, scores, place = np.dtype(["u1", "u2"][header["experts"] > 256]), SCORE[header.get("score_type", "f32")], header.get("sequences", 1) > 1
    while at + 56 <= data.size and data[at:at + 8].tobytes() == b"TRPCHUNK":
        packed, size, _, _, tokens, segments, names = data[at + 8:at + 36].view("u4").tolist()
        raw, chunk, at = np.empty(size, "u1"), data[at + 56:at + 56 + packed], at + 56 + packed
        if tokens and unpack(raw.ctypes.data, size, chunk.ctypes.data, chunk.size) == size:  # or else it is damaged, or the end
            shape, count = (len(header["moe_layers"]), tokens, -1), len(header["moe_layers"]) * tokens * header["top_k"]
            parts = np.split(raw, np.cumsum([16 * segments, names + 2 * place * segments, count * ids.itemsize, count * scores.itemsize]))
            yield parts[0].view(SEGMENT), *(p.view(t).reshape(shape) for p, t in zip(parts[2:], (ids, scores, scores)))


if __name__ == "__main__":
    header, *chunks = read_trace(sys.argv[1])
    for index, layer in enumerate(header["moe_layers"]):
        counts = sum(np.bincount(ids[index].ravel(), minlength=header["experts"]) for _, ids, *_ in chunks)
        print(f"layer {layer}: expert {counts.argmax()} most often, by {counts.max() / counts.sum():.1%}:", *counts)
