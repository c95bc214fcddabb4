#!/usr/bin/env python3
"""What a shell sees of `troupe plan`, `troupe probe` and `troupe device`: a plan that adds up and what is expected of
it, figures that are measured once and then remembered, a cache folder that may be missing or broken.

usage: plan_command_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TROUPE = None  # the binary, set at the end of this file


class PlanCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        # PoCL keeps what it has compiled, and there may be no home.
        self.variables = {"XDG_CACHE_HOME": str(self.cache), "POCL_CACHE_DIR": str(self.folder / "pocl")}

    def environment(self):
        return {**os.environ, **self.variables}

    def troupe(self, command, *arguments, code=0, text=""):
        """One thread: tests run beside each other."""
        threads = () if "--threads" in arguments else ("--threads", 1)
        done = subprocess.run([TROUPE, *map(str, (command, *arguments, *threads))],
                              input=text, capture_output=True, text=True, check=False,
                              env=self.environment())
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def record(self, *arguments):
        return json.loads(self.troupe(*arguments, "--json", "-").stdout)

    def saved(self):
        return sorted(self.cache.glob("troupe/cost-*.json"))


class Device(PlanCommandTest):
    def test_shows_what_the_machine_has_without_a_model(self):
        done = self.troupe("device")
        self.assertRegex(done.stdout, r"processors  [\d.]+ of \d+, [\d.]+ free now\nmemory      .* free \(.*\)\npower       ")
        self.assertNotIn("may run", done.stdout)
        self.assertIsNone(self.record("device")["model"])

    def test_says_how_many_experts_may_run_and_what_sets_the_limit(self):
        found = self.record("device", TINY)
        self.assertGreater(found["model"]["expert_s"], 0)
        self.assertEqual(found["capability"]["experts"], int(0.4 * found["model"]["experts"]))
        self.assertEqual(found["capability"]["limit"], "--most-experts")
        slow = self.record("device", TINY, "--token-ms", 0.001)
        self.assertEqual(slow["capability"]["limit"], "speed")
        self.assertLess(slow["capability"]["experts"], found["capability"]["experts"])
        everything = self.record("device", TINY, "--most-experts", 100)
        self.assertEqual(everything["capability"]["experts"], found["model"]["experts"])
        self.assertIn("by --most-experts", self.troupe("device", TINY).stdout)

    def test_what_is_wrong_is_one_clear_line(self):
        for arguments, said in ((("/nowhere.gguf",), "/nowhere.gguf"), (("--cloud", "ftp://x"), "ftp"),
                                (("--cloud", "http://127.0.0.1:9"), "127.0.0.1:9")):
            done = self.troupe("device", *arguments, code=1)
            self.assertIn(said, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


class Probe(PlanCommandTest):
    def test_measures_memory_without_a_model_and_says_what_a_disk_needs(self):
        done = self.troupe("probe")
        self.assertRegex(done.stdout, r"memory +\d+\.\d GB/s read by 1 threads, measured now")
        self.assertIn("disk      needs a MODEL", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_measures_at_first_use_and_remembers(self):
        first, second = self.record("probe", TINY), self.record("probe", TINY)
        self.assertTrue(first["memory"]["measured_now"] and first["disk"]["measured_now"])
        self.assertEqual(len(first["experts"]), 1)
        self.assertRegex(first["experts"][0]["shape"], r"^Q8_0 \d+x\d+, Q8_0 \d+x\d+, Q8_0 \d+x\d+$")
        for part in (second["memory"], second["disk"], *second["experts"]):
            self.assertFalse(part.pop("measured_now"))
        for part in (first["memory"], first["disk"], *first["experts"]):
            self.assertTrue(part.pop("measured_now"))
        del first["cards"], second["cards"]  # measured each time
        self.assertEqual(first, second)
        self.assertIn("measured before", self.troupe("probe", TINY).stdout)
        self.assertEqual([str(path) for path in self.saved()], [first["kept_in"]])

    def test_measures_the_card_that_it_is_told(self):
        found = self.record("probe")
        refused = []
        for name in dict.fromkeys(card["name"] for card in found["cards"]):
            told = self.record("probe", TINY, "--gpu", name)["cards"]
            card = next((card for card in told if card["name"] == name and card["speeds"]), None)
            if card:
                break
            refused += [card["why_not"] for card in told if card["name"] == name]
        else:
            why = f"no device computes: {refused or found['cards_why']}"
            if "TROUPE_EXPECT_GPU" in os.environ:
                self.fail(why)
            self.skipTest(why + "; pocl-opencl-icd has one")
        self.assertTrue(card["same_bytes"], card)
        for figure in ("in_bytes_per_s", "out_bytes_per_s", "launch_s", "round_trip_s"):
            self.assertGreater(card["speeds"][figure], 0)
        self.assertRegex(card["experts"][0]["shape"], r"^Q8_0 \d+x\d+, ")
        self.assertGreater(card["experts"][0]["first_row_s"], 0)
        self.assertIn(f"card      {name} (", self.troupe("probe", TINY, "--gpu", name.upper()).stdout)

    def test_without_opencl_it_says_why_there_is_no_card(self):
        (self.folder / "libOpenCL.so.1").write_text("found first, and no library")
        self.variables["LD_LIBRARY_PATH"] = str(self.folder)
        found = self.record("probe")
        self.assertEqual(found["cards"], [])
        self.assertRegex(found["cards_why"], "^no OpenCL: .")
        self.assertIn(f"\ncards     none: {found['cards_why']}\n", self.troupe("probe").stdout)

    def test_a_driver_that_hangs_takes_nothing_but_the_cards_with_it(self):
        os.mkfifo(self.folder / "libOpenCL.so.1")  # which nobody writes: it is never opened
        self.variables["LD_LIBRARY_PATH"] = str(self.folder)
        hung = subprocess.Popen([TROUPE, "probe", TINY, "--threads", "1"], stdout=subprocess.PIPE, text=True,
                                env=self.environment())
        try:
            lines = [hung.stdout.readline()]
            while lines[-1] and not lines[-1].startswith("kept in"):
                lines.append(hung.stdout.readline())
        finally:
            hung.kill()
            hung.communicate()
        self.assertRegex("".join(lines), r"\nmemory (.*\n)+disk (.*\n)+expert (.*\n)+kept in   ")
        after = self.record("probe", TINY, "--gpu", "none")
        self.assertEqual((after["cards"], after["cards_why"]), ([], "--gpu none"))
        self.assertFalse(after["memory"]["measured_now"])

    def test_a_driver_that_computes_on_the_processor_is_named_and_not_measured(self):
        for card in self.record("probe")["cards"]:
            if card["is_processor"]:
                self.assertIsNone(card["speeds"])
                self.assertIn("computes on the processor, not measured", self.troupe("probe").stdout)

    def test_without_cards_none_is_looked_for(self):
        self.assertEqual(self.record("probe", "--gpu", "none")["cards"], [])
        self.assertNotIn("card ", self.troupe("probe", "--gpu", "none").stdout)

    def test_measures_again_when_asked_to(self):
        self.record("probe", TINY)
        again = self.record("probe", TINY, "--fresh")
        self.assertTrue(again["memory"]["measured_now"] and again["disk"]["measured_now"])
        self.assertTrue(again["experts"][0]["measured_now"])

    def test_measures_for_each_number_of_threads(self):
        self.record("probe", TINY)
        two = self.record("probe", TINY, "--threads", 2)
        self.assertTrue(two["memory"]["measured_now"] and two["experts"][0]["measured_now"])
        self.assertFalse(two["disk"]["measured_now"])

    def test_a_damaged_file_is_warned_of_and_replaced(self):
        self.record("probe")
        path, = self.saved()
        path.write_text('{"format": "troupe cost model", "version": 1')
        done = self.troupe("probe")
        self.assertRegex(done.stderr, r"^warning: .*cost-.*; measuring anew\n$")
        self.assertIn("measured now", done.stdout)
        self.assertFalse(self.record("probe")["memory"]["measured_now"])

    def test_a_cache_that_cannot_be_written_is_no_error(self):
        self.cache.write_text("a file where the folder should be")
        done = self.troupe("probe", TINY)
        self.assertRegex(done.stderr, r"^warning: .* is not kept: .*\n$")
        self.assertIn("measured now", done.stdout)

    def test_a_talk_corrects_what_was_measured_as_a_run_does(self):
        # Reads count only where the run waited for most of them, tokens only if they took about what
        # was measured: a busy machine may prevent either.
        for _ in range(8):
            self.record("probe", TINY, "--fresh")
            path, = self.saved()
            probed = path.read_text()
            self.troupe("run", TINY, "--chat", "-n", 48, "--slots", 8, "--predict", "none", text="The kernel\n")
            if path.read_text() != probed:
                break
        self.assertNotEqual(path.read_text(), probed)

    def test_names_what_is_wrong(self):
        for arguments, code, words in (
                ((self.folder / "none.gguf",), 1, "No such file"),
                (("--threads", 0), 2, "--threads"),
                (("--experts", "x"), 2, "--experts needs a MODEL")):
            done = self.troupe("probe", *arguments, code=code)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        # Where there is no OpenCL, that is what is wrong.
        self.assertRegex(self.troupe("probe", "--gpu", "no-such", code=1).stderr, "^.*(no device is called 'no-such'|no OpenCL).*\n$")
        self.assertEqual(self.saved(), [])


class Plan(PlanCommandTest):
    def test_adds_up(self):
        plan = self.record("plan", TINY, "--memory", "1GiB", "--slots", 60, "--ctx", 256)
        parts = [plan[f"{part}_bytes"] for part in
                 ("program", "dense", "kv_cache", "workspace", "staging", "prediction", "expert")]
        self.assertEqual(sum(parts), plan["planned_bytes"])
        self.assertLessEqual(plan["planned_bytes"], plan["memory_budget_bytes"])
        self.assertEqual((plan["expert_slots"], plan["experts"], plan["context"]), (60, 256, 256))
        self.assertFalse(plan["all_resident"])

    def test_expects_what_follows_from_the_slots(self):
        # Through a link so slow that computing hides little of it.
        few, many = (self.record("plan", TINY, "--memory", "1GiB", "--slots", slots, "--link", "1MiB/1ms")["expected"]
                     for slots in (64, 128))
        self.assertEqual((few["hit_rate"], many["hit_rate"]), (0.25, 0.5))
        # 8 layers of 4 experts a token; each miss reads one.
        self.assertAlmostEqual(few["bytes_read_per_token"] / many["bytes_read_per_token"], 1.5)
        self.assertLess(few["decode_tokens_per_s"], many["decode_tokens_per_s"])
        for expected in (few, many):
            self.assertLessEqual(expected["decode_tokens_per_s_at_worst"],
                                 expected["decode_tokens_per_s"])
            self.assertLessEqual(expected["decode_tokens_per_s"],
                                 expected["decode_tokens_per_s_at_best"])
            self.assertGreater(expected["prefill_tokens_per_s"], 0)

    def test_says_what_it_assumes(self):
        text = self.troupe("plan", TINY, "--memory", "1GiB", "--slots", 64).stdout
        self.assertRegex(text, r"\ndecode +\d+\.\d tokens/s: .* waiting for the disk\n")
        self.assertRegex(text, r"\nprefill +\d+\.\d tokens/s for a prompt of 512\n")
        self.assertRegex(text, r"\na token +reads \S+ \S+ from the disk, 24\.0 experts of 32\n")
        self.assertRegex(text, r"\nassumed +25\.0 % hits")
        self.assertIn("\nloaded from ", text)

    def test_what_was_measured_in_too_little_memory_to_be_kept_is_told_as_such(self):
        little = ("plan", TINY, "--memory", "40MiB", "--ctx", 128, "--slots", 64)
        for said in (self.troupe(*little).stdout, self.troupe(*little).stdout):
            self.assertIn("nothing was measured of the medium (`troupe probe MODEL` does)", said)
            self.assertIn("measured now of this machine, with too little memory to keep it for runs (`troupe probe MODEL` does):", said)
        self.troupe("probe", TINY)
        said = self.troupe(*little).stdout
        self.assertNotIn("nothing was measured", said)
        self.assertIn("from what was measured before of this machine:", said)

    def test_reads_nothing_where_everything_fits(self):
        plan = self.record("plan", TINY, "--memory", "1GiB")
        self.assertTrue(plan["all_resident"])
        self.assertIsNone(plan["store"])
        self.assertEqual((plan["expected"]["hit_rate"], plan["expected"]["bytes_read_per_token"]),
                         (1, 0))
        self.assertEqual(plan["expected"]["decode_wait_s"], 0)

    def test_plans_for_a_model_without_experts(self):
        model = self.folder / "dense.gguf"
        self.troupe("synth", model, "--shape", "tiny-llama", "--type", "Q8_0")
        plan = self.record("plan", model, "--memory", "1GiB")
        self.assertEqual(plan["experts"], 0)
        self.assertGreater(plan["expected"]["decode_tokens_per_s"], 0)

    def test_plans_with_a_container(self):
        container = self.folder / "tiny.experts"
        said = self.troupe("pack", TINY, "-o", container).stdout
        packed, in_place = (
            self.record("plan", TINY, "--memory", "1GiB", "--slots", 64, "--experts", experts)
            for experts in (container, "none"))
        self.assertEqual((packed["store"], in_place["store"]), ("container", "GGUF in place"))
        hints = [[line for line in self.troupe("plan", TINY, "--memory", "1GiB", "--slots", 64, "--experts", experts)
                  .stdout.splitlines() if "`troupe pack`" in line] for experts in (container, "none")]
        self.assertEqual(hints[0], [])
        self.assertRegex(hints[1][0], r"^pack +`troupe pack` makes loads faster, and takes \S+ MiB more of the disk$")
        self.assertIn(re.search(r"takes (\S+ MiB) more", hints[1][0])[1], said.splitlines()[0])
        self.assertEqual(packed["staging_bytes"], 0)
        self.assertGreater(in_place["staging_bytes"], 0)

    def test_a_slower_link_makes_it_slower(self):
        fast, slow = (
            self.record("plan", TINY, "--memory", "1GiB", "--slots", 64, *link)["expected"]
            for link in ((), ("--link", "1MiB/1ms")))
        self.assertGreater(fast["decode_tokens_per_s"], slow["decode_tokens_per_s"])

    def test_the_machine_is_measured_once(self):
        records = [self.record("plan", TINY, "--memory", "1GiB", "--slots", 64, *fresh)["expected"]
                   for fresh in ((), (), ("--fresh",))]
        self.assertEqual([record["measured_now"] for record in records], [True, False, True])

    def test_reads_are_planned_by_what_was_measured_and_the_same_each_time(self):
        options = (TINY, "--memory", "1GiB", "--slots", 64)
        note = lambda record: [line for line in record["notes"] if line.startswith("reads of")]
        first, second = note(self.record("plan", *options)), note(self.record("plan", *options))
        self.assertEqual(first, second)
        self.assertRegex(first[0], r"^reads of \S+ \S+; ahead \d+ of .* % of a medium of .* demand waits")
        self.record("run", *options, "--prompt", "The kernel", "-n", 32)
        self.assertEqual(note(self.record("plan", *options)), first)
        far = note(self.record("plan", *options, "--link", "500MiB/5ms"))
        self.assertNotEqual(far, first)

    def test_a_plan_that_does_not_fit_says_what_would(self):
        done = self.troupe("plan", TINY, "--memory", "5MiB", code=1)
        self.assertRegex(done.stderr, r"^troupe: 5\.0 MiB of memory are too little, .* are the least: ")
        self.assertEqual((done.stdout, self.saved()), ("", []))

    def test_shows_what_requests_at_the_same_time_take(self):
        options = ("plan", TINY, "--memory", "1GiB", "--slots", 60, "--ctx", 256)
        run, alone, many = (self.record(*options, *parallel)
                            for parallel in ((), ("--parallel", 1), ("--parallel", 8)))
        self.assertEqual([plan["sequences"] for plan in (run, alone, many)], [1, 1, 8])
        self.assertEqual(many["kv_positions"], 8 * 256)
        self.assertEqual((alone["kv_cache_bytes"], many["kv_cache_bytes"]),
                         (run["kv_cache_bytes"], 8 * run["kv_cache_bytes"]))
        # A run serves nobody. Rules grow with the answers that may have some, connections do not.
        for plan, least in ((run, 0), (alone, 40 << 20), (many, 47 << 20)):
            served = plan["connections_bytes"] + plan["rules_bytes"]
            (self.assertEqual if plan is run else self.assertGreater)(served, least)
            self.assertEqual(plan["peers_bytes"], 0)
            prompts = (plan["sequences"] + 64 // 4) * 256  # tokens, of which each has 4 bytes
            self.assertEqual(plan["requests_bytes"], 0 if plan is run else (8 << 20) + 4 * prompts)
            self.assertEqual(plan["words_bytes"], 0 if plan is run else 64 * 1024 * 128)  # of the longest word
        self.assertEqual(many["connections_bytes"], alone["connections_bytes"])
        text = self.troupe(*options, "--parallel", 8).stdout
        self.assertIn("8 sequences of up to 256 tokens", text)
        self.assertIn("\nExpected of one request alone, from what was measured before", text)
        done = self.troupe(*options, "--parallel", 0, code=2)
        self.assertIn("--parallel", done.stderr)

    def least(self, *options):
        """The least budget in MiB that a plan names as enough."""
        refused = self.troupe("plan", TINY, "--memory", "1MiB", *options, code=1).stderr
        return float(re.search(r"([0-9.]+) MiB are the least", refused)[1])

    def test_a_run_plans_a_context_for_its_text_alone_and_the_rest_for_experts(self):
        budget = ("--memory", f"{self.least() + 3:.0f}MiB")
        self.record("plan", TINY, *budget)  # the first one measures the machine
        plan = self.record("plan", TINY, *budget)
        run = self.record("run", TINY, *budget, "--prompt", "The kernel", "-n", 20)
        self.assertEqual(run["context"], 256)
        self.assertGreater(plan["context"], 256)
        self.assertGreater(run["expert_slots"], plan["expert_slots"])
        long = self.record("run", TINY, *budget, "--prompt", "The kernel", "-n", 600)
        self.assertGreater(long["context"], 256)
        self.assertLess(long["expert_slots"], run["expert_slots"])
        self.assertIn("\nrun           plans a context for its prompt", self.troupe("plan", TINY, *budget).stdout)
        self.assertNotIn("\nrun  ", self.troupe("plan", TINY, *budget, "--ctx", 256).stdout)

    def test_agrees_with_what_run_does(self):
        options = (TINY, "--memory", "1GiB", "--slots", 64, "--ctx", 256)
        # The first plan here measures the machine, and a sanitizer keeps memory that was given back.
        self.record("plan", *options)
        plan = self.record("plan", *options)
        run = self.record("run", *options, "--prompt", "The kernel", "-n", 2)
        self.assertEqual(run["expert_slots"], plan["expert_slots"])
        self.assertEqual(run["context"], plan["context"])
        # What the process holds when it plans differs by some pages.
        self.assertAlmostEqual(run["planned_bytes"], plan["planned_bytes"], delta=2 << 20)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
