#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/node_core: what a peer says to a node, as steps of fuzz_node_core.cc.

Written from docs/formats/peer.md. Run it in this folder after changing it; the files are committed so
that fuzzing needs no Python.
"""
import pathlib
import struct

from make_peer_message_corpus import VERSION, text

OPEN, CLOSE, TIME, CARRIED = 0, 1, 2, 3


def step(what, link=0) -> bytes:
    return bytes([what, link])


def frame(data, link=0) -> bytes:
    return bytes([5, link]) + struct.pack("<H", len(data)) + data


def hello(start, node, address) -> bytes:
    return struct.pack("<B8sHQQQQIIBIQ", 1, b"TRPPEERS", VERSION, start, 12, 13, 14, 2, 5, 1, 64, 0) + text("lab") + text(
        node) + text(address)


def pong(token) -> bytes:
    return struct.pack("<BQI", 9, token, 0)


LEADER = hello(11, "n1", "10.0.0.1:7001")
HOLDINGS = struct.pack("<BQQII", 7, 7, 2, 2, 5) + bytes([0x21, 0x02])
PLAN = struct.pack("<BQ", 14, 7) + (b'{"form":2,"model":"000000000000000c000000000000000d","nodes":['
                                    b'{"name":"n0","held":"gwA="},{"name":"n1","held":"CAI="}]}')
FOLLOWS = (step(OPEN) + frame(LEADER) + frame(pong(1)) + frame(HOLDINGS) + frame(PLAN) + step(CARRIED, 1) * 3 +
           frame(struct.pack("<BQ", 8, 1)))
SEEDS = {
    "follows": FOLLOWS,
    "two_links": FOLLOWS + step(OPEN, 1) + frame(LEADER, 1) + frame(pong(2), 1) + step(CLOSE) + step(TIME) * 3,
    "name_taken": step(OPEN) + frame(hello(11, "n0", "10.0.0.1:7001")),
    "refused": step(OPEN) + frame(struct.pack("<BB", 2, 2) + text("no")),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).resolve().parent / "corpus" / "node_core"
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)
