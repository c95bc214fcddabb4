#!/usr/bin/env python3
"""Reads a routing trace (docs/formats/trace.md) with numpy and the `zstd` program.

usage: read_trace.py TRACE    prints how often each layer's experts were chosen
"""
import json
import pathlib
import subprocess
import sys

import numpy as np

CHUNK = np.dtype([("magic", "S8"), ("packed", "<u4"), ("raw", "<u4"), ("first_token", "<u8"), ("tokens", "<u4"),
                  ("segments", "<u4"), ("domain_bytes", "<u4"), ("zero", "<u4"), ("checksums", "<u8", 2)])


def blocks(path):
    """Yields the header, then (tokens, ids, scores) a chunk; ids[layer, token, k]. Stops at damage."""
    data = pathlib.Path(path).read_bytes()
    header = json.loads(data[24:24 + (at := int.from_bytes(data[12:16], "little"))])
    yield header
    at, layers, k = at + 24, len(header["moe_layers"]), header["top_k"]
    while at + CHUNK.itemsize <= len(data) and (chunk := np.frombuffer(data, CHUNK, 1, at)[0])["magic"] == b"TRPCHUNK":
        packed = data[at + CHUNK.itemsize:(at := at + CHUNK.itemsize + int(chunk["packed"]))]
        raw = subprocess.run(["zstd", "-dcq"], input=packed, stdout=subprocess.PIPE, check=True).stdout
        count, ids_at = layers * int(chunk["tokens"]) * k, 16 * int(chunk["segments"]) + int(chunk["domain_bytes"])
        ids = np.frombuffer(raw, "u1" if header["experts"] <= 256 else "<u2", count, ids_at)
        scores = None if header["scores"] == "none" else np.frombuffer(
            raw, "<f2" if header["score_type"] == "f16" else "<f4", count, ids_at + ids.nbytes)
        yield int(chunk["tokens"]), ids.reshape(layers, -1, k), scores if scores is None else scores.reshape(layers, -1, k)


if __name__ == "__main__":
    header, *chunks = blocks(sys.argv[1])
    for layer, index in zip(header["moe_layers"], range(len(header["moe_layers"]))):
        counts = sum(np.bincount(ids[index].ravel(), minlength=header["experts"]) for _, ids, _ in chunks)
        print(f"layer {layer}: expert {counts.argmax()} most often, by {counts.max() / counts.sum():.1%}", *counts)
