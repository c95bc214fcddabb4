#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/container: headers and indices of small experts containers.

Independent of the engine's own writer; checksums are left to the fuzz target. Run it in this folder
after changing it; the files are committed so that fuzzing needs no Python.
"""
import pathlib
import struct

PAGE = 4096
Q8_0, Q2_K, Q4_K = 8, 10, 12


def up(n):
    return n + -n % PAGE


def container(experts, precisions, version=1, excess=0) -> bytes:
    """precisions: lists of (layer, types, bytes of an expert)."""
    layers = len(precisions[0])
    at = up(64 + len(precisions) * layers * (32 + 8 * experts))
    index = b""
    for precision in precisions:
        for layer, types, size in precision:
            index += struct.pack("<IIIIQQ", layer, *types, size, at)
            index += struct.pack(f"<{experts}Q", *range(experts))
            at += experts * up(size)
    return struct.pack("<8sIIQQIIIIQQ", b"TRPEXPRT", version, 1, 17, 23, experts, len(precisions),
                       layers, 0, at + excess, 0) + index


SEEDS = {
    "one": container(1, [[(0, [Q8_0] * 3, 100)]]),
    "layers": container(3, [[(n, [Q4_K, Q4_K, Q8_0], 10000 + n) for n in range(1, 5)]]),
    "two_precisions": container(2, [[(0, [Q8_0] * 3, 9000), (2, [Q8_0] * 3, 4096)],
                                    [(0, [Q2_K] * 3, 4097), (2, [Q2_K] * 3, 1)]]),
    "newer": container(1, [[(0, [Q8_0] * 3, 100)]], version=2),
    "added_to": container(1, [[(0, [Q8_0] * 3, 100)]], excess=1),
    "huge": container(8, [[(0, [Q8_0] * 3, 1 << 40)]]),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "corpus/container"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
