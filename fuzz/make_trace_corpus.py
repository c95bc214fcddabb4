#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/trace: small routing traces, whole and faulty.

Independent of the engine's own writer but for the `zstd` program; checksums are left to the fuzz
target. Run it in this folder after changing it; the files are committed so that fuzzing needs no
Python.
"""
import json
import pathlib
import struct
import subprocess

LAYERS, EXPERTS, TOP_K = 2, 8, 2


def header(**changes) -> bytes:
    text = json.dumps({"model": "m", "layers": 3, "moe_layers": [1, 2], "experts": EXPERTS,
                       "top_k": TOP_K, "scores": "softmax", "score_type": "f16",
                       "all_scores": False} | changes).encode()
    return struct.pack("<8sIIQ", b"TRPTRACE", 1, len(text), 0) + text


def chunk(first_token, segments, ids=None, scores=None, domains=b"law\0", width="<H",
          places=b"") -> bytes:
    """segments: (sequence, position, tokens, domain, phase, joins)."""
    tokens = sum(s[2] for s in segments)
    raw = b"".join(struct.pack("<IIIHBB", *s) for s in segments) + domains + places
    raw += bytes(ids if ids is not None else [i % EXPERTS for i in range(LAYERS * tokens * TOP_K)])
    raw += scores if scores is not None else struct.pack(width, 0x3800 if width == "<H" else 0) * (
        LAYERS * tokens * TOP_K)
    packed = subprocess.run(["zstd", "-cq"], input=raw, stdout=subprocess.PIPE, check=True).stdout
    return struct.pack("<8sIIQIIIIQQ", b"TRPCHUNK", len(packed), len(raw), first_token, tokens,
                       len(segments), len(domains), 0, 0, 0) + packed


ONE = [(0, 0, 3, 0, 0, 0)]
SEEDS = {
    "whole": header() + chunk(0, ONE) + chunk(3, [(0, 3, 1, 0, 1, 0), (0, 4, 1, 0, 1, 0)]),
    "joined": header() + chunk(0, ONE) + chunk(3, [(0, 3, 2, 0, 0, 1)]),
    "gap": header() + chunk(0, ONE) + b"damage" + chunk(9, ONE),
    "cut": header() + chunk(0, ONE) + chunk(3, ONE)[:-5],
    "out_of_range": header() + chunk(0, ONE, ids=[9] * 12),
    "not_finite": header() + chunk(0, ONE, scores=struct.pack("<H", 0x7c00) * 12),
    "no_scores": header(scores="none") + chunk(0, ONE, scores=b""),
    "floats": header(score_type="f32") + chunk(0, ONE, width="<I"),
    "many_experts": header(experts=300, scores="none") + chunk(0, ONE, ids=[0, 1] * 12, scores=b""),
    "places": header(sequences=3) + chunk(0, [(0, 0, 2, 0, 0, 0), (1, 0, 1, 0, 1, 1)],
                                          places=struct.pack("<HH", 2, 0)),
    "bad_domain": header() + chunk(0, [(0, 0, 3, 5, 0, 0)], domains=b"endless"),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "corpus/trace"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
