#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/score_tables: files of score tables of a small model, whole and faulty.

Independent of the engine's own writer; checksums are left to the fuzz target. Run it in this folder
after changing it; the files are committed so that fuzzing needs no Python.
"""
import math
import pathlib
import struct

LAYERS, EXPERTS, TOP_K, REACH, SUMS = 3, 2, 1, 2, 48
WITH_EXPERTS = [1, 2]
MAPS = LAYERS * REACH
FEATURES = 5 * EXPERTS + SUMS + 1


def header(version=1, experts=EXPERTS, fingerprint=b"f" * 32, tokens=1000) -> bytes:
    return struct.pack("<8s8I32sQQ", b"TRSCORES", version, LAYERS, experts, TOP_K, len(WITH_EXPERTS), REACH, SUMS, 0,
                       fingerprint, tokens, 0)


def arrays(layers=None, weight=-0.5, moment=0.01, fit=1.0, fit_moment=1.0, share=0.5) -> bytes:
    """Each number of an array the same one, as no seed needs more."""
    fits = ([fit] * 6 + [fit_moment] * 6) * 2 * REACH
    floats = [weight] * (MAPS * FEATURES * EXPERTS) + [moment] * (MAPS * FEATURES) + fits + [share] * (LAYERS * EXPERTS)
    return struct.pack(f"<{len(WITH_EXPERTS)}I{len(floats)}f", *(layers or WITH_EXPERTS), *floats)


SEEDS = {
    "whole": header() + arrays(),
    "newer": header(version=2) + arrays(),
    "other_model": header(fingerprint=b"0" * 32) + arrays(),
    "other_shape": header(experts=3) + arrays(),
    "other_layers": header() + arrays(layers=[0, 2]),
    "cut": header() + arrays()[:-1],
    "header_alone": header(),
    "no_number": header() + arrays(weight=math.nan),
    "endless": header() + arrays(fit=math.inf),
    "large": header() + arrays(weight=9e14, fit=-9e14, moment=3e38, fit_moment=9e14),
    "small": header() + arrays(weight=1e-45, moment=1e-45, fit=1e-45, fit_moment=1e-45, share=0),
    "no_square": header() + arrays(moment=0),
    "negative_square": header() + arrays(fit_moment=-1),
    "more_than_all": header() + arrays(share=1.5),
    "tokens_beyond_counting": header(tokens=2**64 - 1) + arrays(),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "corpus/score_tables"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
