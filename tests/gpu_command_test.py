#!/usr/bin/env python3
"""Commands with a card beside the processor, on whatever device the machine has: the same answers, the counters that
prove that the card gave some of them, and one line where it cannot be used.

usage: gpu_command_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import serve_test
from serve_test import Server

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TROUPE = None  # the binary, set at the end of this file
VRAM = ("--vram", "64MiB")
# A card copies and answers beside the processor, which may be done before it has begun: a longer answer gives it time.
LENGTHS = (200, 800, 1900)


class GpuCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keeps = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.keeps.cleanup)
        # PoCL keeps what it has compiled, and there may be no home.
        cls.variables = {**os.environ, "XDG_CACHE_HOME": cls.keeps.name, "POCL_CACHE_DIR": cls.keeps.name + "/pocl"}
        cls.device = None
        cards = json.loads(cls.call("probe", "--json", "-").stdout)
        for card in cards["cards"]:
            done = cls.call("run", TINY, "--prompt", "a", "-n", 1, "--gpu", card["name"], *VRAM)
            cls.why = done.stderr
            if done.returncode == 0:
                cls.device = card["name"]
                return
        cls.why = f"no device computes: {cls.why if cards['cards'] else cards['cards_why']}"
        if "TROUPE_EXPECT_GPU" in os.environ:
            raise AssertionError(cls.why)

    @classmethod
    def call(cls, *arguments, variables=None):
        return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env=variables or cls.variables)

    def needs_device(self):
        if self.device is None:
            self.skipTest(self.why + "; pocl-opencl-icd has one")

    def answer(self, *arguments, length=LENGTHS[0]):
        done = self.call("run", TINY, "--prompt", "The kernel", "-n", length, "--temperature", 0, "--threads", 1,
                         "--ignore-eos", "--json", "-", "--quiet", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_record_tells_what_a_card_answered_and_the_answer_is_the_processors(self):
        self.needs_device()
        plain = self.answer("--gpu", "none", length=LENGTHS[-1])
        self.assertEqual([plain[key] for key in ("card", "card_slots", "card_vram_bytes", "card_hits", "card_rows",
                                                 "card_copies", "card_failures")], [None, 0, 0, 0, 0, 0, 0])
        for memory in ((), ("--slots", 40)):
            for length in LENGTHS:
                told = self.answer("--gpu", self.device, *VRAM, *memory, length=length)
                self.assertEqual(told["token_ids"], plain["token_ids"][:length])
                if told["card_rows"] > 0:
                    break
            self.assertEqual(told["card"], self.device)
            for counter in ("card_slots", "card_vram_bytes", "card_hits", "card_rows", "card_copies"):
                self.assertGreater(told[counter], 0, counter)
            self.assertLessEqual(told["card_vram_bytes"], 64 << 20)
            self.assertEqual(told["card_failures"], 0)

    def test_probe_lists_a_card_of_cuda_first_and_once(self):
        if os.environ.get("TROUPE_TEST_GPU") != "cuda":
            self.skipTest("gpu_command_on_fake_cuda_test has one")
        cards = json.loads(self.call("probe", "--json", "-").stdout)["cards"]
        self.assertEqual((cards[0]["name"], cards[0]["platform"], cards[0]["driver"], cards[0]["same_bytes"]),
                         (self.device, "NVIDIA CUDA", "CUDA 13.0", True))
        self.assertEqual([card["name"] for card in cards].count(self.device), 1)

    def test_the_vendors_name_takes_a_card_of_cuda(self):
        if os.environ.get("TROUPE_TEST_GPU") != "cuda":
            self.skipTest("gpu_command_on_fake_cuda_test has one")
        self.assertEqual(self.answer("--gpu", "nvidia", *VRAM)["card"], self.device)

    def test_explains_what_the_card_holds(self):
        self.needs_device()
        for length in LENGTHS:
            said = self.call("run", TINY, "--prompt", "The kernel", "-n", length, "--ignore-eos", "--gpu", self.device, *VRAM,
                             "--explain").stderr
            if "\n[card: " in said:
                break
        name = re.escape(self.device)
        self.assertRegex(said, rf"card          {name} holds \d+ of \d+ experts in .* of the 64\.0 MiB it may take\n")
        self.assertRegex(said, rf"\ncard: {name} holds \d+ experts, of slots for \d+; \d+ made room for others\n")
        self.assertRegex(said, r"\n\[card: answered \d+ rows of experts, \d+ experts copied into it\]\n")

    def test_a_server_tells_it_in_its_metrics(self):
        self.needs_device()
        with Server("--gpu", self.device, *VRAM, env=self.variables) as server:
            for length in LENGTHS:
                server.ask("/v1/completions", {"prompt": "The kernel", "max_tokens": length, "ignore_eos": True})
                if server.metric("troupe_card_rows_total") > 0:
                    break
            self.check_live(server)
            for series in ("troupe_card_rows_total", "troupe_card_copies_total", "troupe_card_vram_bytes", 'troupe_card_slots{state="held"}',
                           'troupe_tier_expert_asks_total{tier="card"}', 'troupe_experts{which="in_card"}'):
                self.assertGreater(server.metric(series), 0, series)
            self.assertEqual(server.metric("troupe_card_failures_total"), 0)

    def check_live(self, server):
        """The card in the events of the live page: what /metrics tells of it."""
        with server.open("/live") as response:
            for line in response:
                if line.startswith(b"data: ") and b'"card"' in line:
                    break
        card = json.loads(line.removeprefix(b"data: "))["card"]
        self.assertEqual((card["name"], card["failed"]), (self.device, False))
        held, free = (server.metric(f'troupe_card_slots{{state="{state}"}}') for state in ("held", "free"))
        self.assertEqual((card["held"], card["slots"], card["bytes"]), (held, held + free, server.metric("troupe_card_vram_bytes")))
        for name, series in (("rows", "troupe_card_rows_total"), ("copies", "troupe_card_copies_total"),
                             ("hits", 'troupe_tier_expert_asks_total{tier="card"}')):
            self.assertEqual(card[name], server.metric(series))

    def test_a_budget_that_holds_no_two_experts_is_refused_with_what_is_needed(self):
        self.needs_device()
        done = self.call("run", TINY, "--prompt", "a", "--gpu", self.device, "--vram", "100KiB")
        self.assertEqual(done.returncode, 1)
        self.assertIn("hold no two experts; expected at least", done.stderr)

    def test_a_driver_that_computes_on_the_processor_is_taken_by_name_alone(self):
        self.needs_device()
        found = json.loads(self.call("probe", "--json", "-").stdout)["cards"]
        if not all(card["is_processor"] for card in found):
            self.skipTest("a card is here")
        self.assertIsNone(self.answer()["card"])
        self.assertIsNone(self.answer("--gpu", "auto", *VRAM)["card"])

    def test_a_device_that_nobody_has_is_one_line(self):
        done = self.call("run", TINY, "--prompt", "a", "--gpu", "voodoo")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^troupe: --gpu voodoo: .*\n$")

    def test_without_a_driver_a_name_is_one_line_and_auto_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libOpenCL.so.1").write_text("found first, and no library")
            variables = {**self.variables, "LD_LIBRARY_PATH": folder}
            named = self.call("run", TINY, "--prompt", "a", "--gpu", "pocl", *VRAM, variables=variables)
            self.assertEqual(named.returncode, 1)
            self.assertIn("--gpu pocl: no OpenCL: ", named.stderr)
            auto = self.call("run", TINY, "--prompt", "a", "-n", 1, "--gpu", "auto", variables=variables)
            self.assertEqual(auto.returncode, 0, auto.stderr)

    def test_a_driver_that_hangs_is_not_waited_for_forever_and_does_not_keep_the_program_from_ending(self):
        if "TROUPE_HANGING_DRIVER" not in os.environ:
            self.skipTest("ctest says where the driver is")
        commands = [("list", ("run", TINY, "--prompt", "a", "--gpu", "pocl", *VRAM)),
                    ("load", ("run", TINY, "--prompt", "a", "--gpu", "pocl", *VRAM)), ("load", ("probe", "--gpu", "auto"))]
        started = [subprocess.Popen([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True,
                                    env={**self.variables, "LD_LIBRARY_PATH": os.environ["TROUPE_HANGING_DRIVER"],
                                         "TROUPE_HANGS_WHERE": where}) for where, arguments in commands]
        said = [process.communicate(timeout=300) for process in started]
        why = "which devices there are: its driver hangs, for 20.0 s so far\n"
        for _, line in said[:2]:
            self.assertEqual(line, "troupe: --gpu pocl: " + why)
        self.assertIn("cards     none: " + why, said[2][0])
        self.assertEqual([process.returncode for process in started], [1, 1, 0])

    def test_a_budget_of_a_card_without_a_card_is_one_line(self):
        done = self.call("run", TINY, "--prompt", "a", *VRAM)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "troupe: --vram 64.0 MiB: no card is asked for (--gpu auto takes the largest one)\n")

    def test_answers_that_may_lose_quality_have_no_card(self):
        done = self.call("run", TINY, "--prompt", "a", "--slots", 40, "--substitute", "drop", "--gpu", "pocl", *VRAM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a card without use: missing experts may be answered by others", done.stderr)


if __name__ == "__main__":
    TROUPE = serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
