#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/gguf: small GGUF files that between them use every field.

Independent of the engine's own writer. Run it in this folder after changing it; the files are
committed so that fuzzing needs no Python.
"""
import pathlib
import struct

U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", 5: "i", F32: "f", BOOL: "?", 10: "Q", 11: "q",
           12: "d"}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def payload(kind: int, value) -> bytes:
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        element, values = value
        return struct.pack("<IQ", element, len(values)) + b"".join(
            payload(element, v) for v in values)
    return struct.pack("<" + SCALARS[kind], value)


def gguf(keys, tensors, version=3, alignment=32) -> bytes:
    """keys: (name, kind, value); tensors: (name, dims, type number, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, value in keys:
        head += text(name) + struct.pack("<I", kind) + payload(kind, value)
    data = b""
    for name, dims, number, size in tensors:
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, len(data))
        data += bytes(size) + bytes(-size % alignment)
    return head + bytes(-len(head) % alignment) + data


SEEDS = {
    "empty": gguf([], []),
    "scalars": gguf([(f"k{kind}", kind, 1) for kind in SCALARS] + [("s", STRING, "llama")], []),
    "arrays": gguf([(f"a{kind}", ARRAY, (kind, [0, 1])) for kind in SCALARS]
                   + [("words", ARRAY, (STRING, ["<s>", "", "expert"]))], []),
    "nested": gguf([("n", ARRAY, (ARRAY, [(U32, [1, 2]), (ARRAY, [(STRING, ["x"])])]))], []),
    "tensors": gguf([("general.architecture", STRING, "qwen2moe")],
                    [("scalar", [], 0, 4), ("norm.weight", [3], 0, 12),
                     ("ffn_up_exps.weight", [32, 2, 2, 1], 8, 136)]),
    "aligned_v2": gguf([("general.alignment", U32, 64)], [("a", [2], 1, 4), ("b", [2], 30, 4)],
                       version=2, alignment=64),
    "split": gguf([("split.no", 2, 0), ("split.count", 2, 2), ("split.tensors.count", 5, 1)],
                  [("t", [256], 12, 144)]),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "corpus" / "gguf"
    folder.mkdir(parents=True, exist_ok=True)
    for seed, contents in SEEDS.items():
        (folder / seed).write_bytes(contents)
