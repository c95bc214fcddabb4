#!/usr/bin/env python3
"""An end shares a memory cgroup with another program, which takes more than the end has left to others and gives it
back. The end gives experts back and takes them again, nobody is killed, and every answer is the one of before.

usage: end_memory_test.py TROUPE [unittest arguments]
Exits with 77 (skipped) and the reason where no memory cgroup can be made.
"""
import concurrent.futures
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import memory_cgroup
import serve_test
import troupe_cli
from serve_test import LONGEST, Server

MIB = 1 << 20
LIMIT = 320 * MIB
# 192 experts of 816 KiB in Q8_0.
SHAPE = {"model_type": "olmoe", "hidden_size": 512, "intermediate_size": 512,
         "max_position_embeddings": 4096, "norm_topk_prob": False, "num_attention_heads": 8,
         "num_experts": 32, "num_experts_per_tok": 4, "num_hidden_layers": 6,
         "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
         "tie_word_embeddings": False, "vocab_size": 2048}
NOBODY = "http://127.0.0.1:9"  # a cloud that is never there
PROMPTS = ["The kernel", "A driver of a device", "In the beginning of the text", "It is"]

# Takes a MiB for each line that it reads, and ends, which gives all back, with its input.
NEIGHBOUR = """
import sys
held = []
for _ in sys.stdin:
    held.append(bytearray(b"x") * (1 << 20))
    print(len(held), flush=True)
"""


class Neighbour:
    def __init__(self, group):
        self.process = subprocess.Popen(group.command([sys.executable, "-c", NEIGHBOUR]), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def take(self, mebibytes, a_second):
        for _ in range(mebibytes):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            if not self.process.stdout.readline():
                raise AssertionError(f"the other program was killed: {self.process.wait()}")
            time.sleep(1 / a_second)

    def go(self):
        self.process.stdin.close()
        self.process.wait(LONGEST)
        self.process.stdout.close()


class EndMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = troupe_cli.packed_model(serve_test.TROUPE, cls.folder / "model.gguf", SHAPE)

    @contextlib.contextmanager
    def end_and_neighbour(self, *args):
        with memory_cgroup.MemoryCgroup(LIMIT) as group:
            self.group = group
            with Server("--cloud", NOBODY, "--ctx", 512, "--most-experts", 90, "--place", "end", *args, model=self.model,
                        group=group) as self.end:
                self.neighbour = Neighbour(group)
                try:
                    yield
                finally:
                    self.neighbour.go()
            self.assertEqual(group.kills(), 0)

    def device(self, name):
        return self.end.metric(f"troupe_device_{name}")

    def answers(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda prompt: self.end.complete(prompt, 24), PROMPTS))

    def wait(self, what):
        give_up = time.monotonic() + LONGEST
        while not what():
            self.assertLess(time.monotonic(), give_up, "".join(self.end.said))
            time.sleep(0.05)

    def resident(self):
        status = pathlib.Path(f"/proc/{self.end.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) * 1024

    def test_an_end_gives_experts_back_to_who_needs_the_memory_and_takes_them_again(self):
        with self.end_and_neighbour("--explain"):
            expected = self.answers()
            planned, held = self.device("slots"), self.resident()
            self.assertEqual(self.device("slots_given_back_total"), 0)
            # More than the budget has left: without what the end gives back somebody would be killed.
            more = (LIMIT - held) // MIB + 20
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                taking = pool.submit(self.neighbour.take, more, 20)
                while not taking.done():
                    self.assertEqual(self.answers(), expected)
                taking.result()
            self.assertEqual(self.answers(), expected)
            fewer = self.device("slots")
            self.assertLess(fewer, planned)
            self.assertEqual(planned - fewer, self.device("slots_given_back_total"))
            self.assertGreater(self.device("returned_bytes_total"), 30 * MIB)
            self.assertLess(self.resident(), held - 30 * MIB)
            self.assertLessEqual(self.device("experts"), planned)
            self.assertTrue(any("memory is short" in line for line in self.end.said), self.end.said)
            print(f"{planned:.0f} experts, {fewer:.0f} beside a neighbour of {more} MiB; resident "
                  f"{held / MIB:.0f} and {self.resident() / MIB:.0f} MiB of {LIMIT / MIB:.0f}", file=sys.stderr)
            self.neighbour.go()
            self.neighbour = Neighbour(self.group)
            self.wait(lambda: self.device("slots") == planned)
            self.assertEqual(self.device("slots_taken_again_total"), planned - fewer)
            self.assertTrue(any("memory is there again" in line for line in self.end.said), self.end.said)
            self.assertEqual(self.answers(), expected)
            self.assertGreater(self.resident(), held - 30 * MIB)

    def test_a_budget_that_was_named_stays_while_there_is_memory(self):
        with self.end_and_neighbour("--memory", "220MiB"):
            expected = self.answers()
            planned = self.device("slots")
            self.neighbour.take((LIMIT - self.resident()) // MIB - 60, 100)
            time.sleep(2)  # some looks
            self.assertEqual(self.answers(), expected)
            self.assertEqual(self.device("slots"), planned)
            self.neighbour.take(50, 20)  # now it runs out
            self.wait(lambda: self.device("slots") < planned)
            self.assertEqual(self.answers(), expected)


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    try:
        with memory_cgroup.MemoryCgroup(LIMIT):
            pass
    except memory_cgroup.NotPermitted as refusal:
        print(f"skipped: {refusal}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
