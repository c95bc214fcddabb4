#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/peer_message: one message of each kind and form.

Written from docs/formats/peer.md, independent of the engine's own encoder. Run it in this folder
after changing it; the files are committed so that fuzzing needs no Python.
"""
import pathlib
import struct


def text(value: str) -> bytes:
    return struct.pack("<H", len(value)) + value.encode()


VERSION = 4  # of the wire


def ask(form, width, rows, experts, data, answer_form=0) -> bytes:
    """experts: expert -> indices of its rows."""
    table = b"".join(struct.pack("<HH", e, len(indices)) for e, indices in experts.items())
    for indices in experts.values():
        table += struct.pack(f"<{len(indices)}H", *indices)
    return struct.pack("<BBHIQIHHB3x", 3, form, 3, 2000, 5, width, rows, len(experts), answer_form) + table + bytes(
        -len(table) % 4) + data


def answer(last, width, experts, data, form=0) -> bytes:
    table = b"".join(struct.pack("<HH", *expert) for expert in experts)
    return struct.pack("<BBHB3xIQIII", 4, last, len(experts), form, width, 5, 16, 256, 3) + table + data


def report(form, layers, experts, counts) -> bytes:
    return struct.pack("<BdQddddIIB", 13, 60.0, 1 << 30, 1e9, 0.5, 0.25, 0.125, layers, experts, form) + counts


GROUP = struct.pack("<f32b", 0.5, *range(1, 33))
LINK = struct.pack("<H", 1) + text("n2") + struct.pack("<dd", 0.5, 1024.0)
SEEDS = {
    "hello": struct.pack("<B8sHQQQQIIBIQ", 1, b"TRPPEERS", VERSION, 11, 12, 13, 14, 24, 60, 1, 2048, 7) +
             text("lab") + text("n1") + text("10.0.0.1:7001"),
    "hello_newer": struct.pack("<B8sH", 1, b"TRPPEERS", VERSION + 1) + b"anything",
    "refused": struct.pack("<BB", 2, 2) + text("no"),
    "ask_8_bit": ask(1, 64, 2, {9: [0, 1], 4: [1]}, GROUP * 4),
    "ask_floats": ask(0, 3, 1, {9: [0]}, struct.pack("<fff", 1, 2, 3)),
    "ask_for_bf16": ask(0, 3, 1, {9: [0]}, struct.pack("<fff", 1, 2, 3), answer_form=2),
    "answer": answer(0, 2, [(9, 1), (4, 1)], struct.pack("<ffff", 1, 2, 3, float("nan"))),
    "answer_8_bit": answer(1, 32, [(9, 1)], GROUP, form=1),
    "answer_bf16": answer(1, 3, [(9, 1), (4, 1)], struct.pack("<6H", 0x3F80, 0xC000, 0x7FC0, 0, 1, 0x4040), form=2),
    "answer_empty": answer(1, 2, [], b""),
    "ask_refused": struct.pack("<BBQ", 5, 2, 5) + text("gone"),
    "cancel": struct.pack("<BQ", 6, 5),
    "holdings": struct.pack("<BQQII", 7, 7, 2, 2, 5) + bytes([0x21, 0x02]),
    "accusation": struct.pack("<BQII", 15, 7, 3, 9),
    "ping": struct.pack("<BQ", 8, 1),
    "pong": struct.pack("<BQI", 9, 1, 4),
    "fetch": struct.pack("<BQIIQ", 10, 6, 3, 9, 4096),
    "piece": struct.pack("<BQIIQQQ", 11, 6, 3, 9, 4099, 4096, 99) + b"abc",
    "fetch_refused": struct.pack("<BBQ", 12, 1, 6) + text("later"),
    "report_dense": report(0, 1, 2, struct.pack("<II", 3, 4)) + LINK,
    "report_sparse": report(1, 1, 8, struct.pack("<III", 1, 6, 5)) + LINK,
    "plan_notice": struct.pack("<BQ", 14, 7) + b"{}",
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "corpus/peer_message"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
