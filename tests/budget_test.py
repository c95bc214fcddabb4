#!/usr/bin/env python3
"""A budget holds: in a memory cgroup 64 MiB larger than its --memory, swap off, troupe is never
killed, its peak stays below what it was given, and its tokens are those of a run without limit.

usage: budget_test.py TROUPE [unittest arguments]
Exits with 77 (skipped) and the reason where no memory cgroup can be made.
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

import memory_cgroup
import troupe_cli

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
# What the kernel charges beside the process's own pages: page tables, files' pages on their way.
ALLOWANCE = 64 * MIB
# A plan measures the process it is made in, and that differs a little from one to the next.
VARIATION = MIB

# 160 MB in Q8_0, nearly all of it in experts.
LAYERS, EXPERTS, VOCABULARY = 6, 32, 2048
SHAPE = {"model_type": "olmoe", "hidden_size": 512, "intermediate_size": 512,
         "max_position_embeddings": 4096, "norm_topk_prob": False, "num_attention_heads": 8,
         "num_experts": EXPERTS, "num_experts_per_tok": 4, "num_hidden_layers": LAYERS,
         "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
         "tie_word_embeddings": False, "vocab_size": VOCABULARY}

# Many small experts: what is kept for each expert of a router weighs more. 107 MB in Q8_0.
WIDE_LAYERS, WIDE_EXPERTS = 4, 128
WIDE_SHAPE = {**SHAPE, "intermediate_size": 128, "num_experts": WIDE_EXPERTS,
              "num_experts_per_tok": 8, "num_hidden_layers": WIDE_LAYERS}

# So many that counting which are chosen together takes more than what a run holds. 62 MB in Q8_0.
PAIRS_SHAPE = {**SHAPE, "hidden_size": 256, "intermediate_size": 128, "num_experts": 256,
               "num_experts_per_tok": 8, "num_hidden_layers": 2}

# A vocabulary as large as those of models that many speak to: a row of logits is 600 kB, and what
# drawing a token takes 2.4 MB.
LARGE_VOCABULARY = 150_000
LARGE_VOCABULARY_SHAPE = {**SHAPE, "hidden_size": 128, "intermediate_size": 256,
                          "vocab_size": LARGE_VOCABULARY}

LONG = {"prompt": 1500, "context": 2048}
# With the least memory every token of a prompt may be a chunk of its own, and reads its experts.
SHORT = {"prompt": 100, "context": 256}
# 5000 bytes of this project's own words, read from a file: some 3600 tokens of a generated tokenizer.
TEXT = {"prompt": "text", "context": 4096}
GENERATED = 8
STORES = {"packed": [], "in place": ["--experts", "none", "--reader", "threads"]}


class BudgetTest(unittest.TestCase):
    """What budgets are tried on: a model with its container."""
    shape = SHAPE
    more = []  # options of every run

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = troupe_cli.packed_model(BINARY, cls.folder / "model.gguf", cls.shape)

    @classmethod
    def prompt(cls, case):
        if case is TEXT:
            return ["--file", str(cls.folder / "text")]
        ids = random.Random(1).choices(range(VOCABULARY), k=case["prompt"])
        return ["--prompt-ids", ",".join(map(str, ids))]

    @classmethod
    def command(cls, case, budget=None, store="packed"):
        memory = [] if budget is None else ["--memory", str(budget)]
        return [BINARY, "run", str(cls.model), *cls.prompt(case), "--ctx", str(case["context"]),
                "-n", str(GENERATED), "--temperature", "0", "--ignore-eos",
                "--threads", "2", "--json", str(cls.folder / "run.json"),
                *memory, *STORES[store], *cls.more]

    @classmethod
    def troupe(cls, case, budget=None, store="packed", group=None):
        command = cls.command(case, budget, store)
        return subprocess.run(group.command(command) if group else command, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    @classmethod
    def record_of(cls, done):
        assert done.returncode == 0, done.stderr
        return json.loads((cls.folder / "run.json").read_text(encoding="utf-8"))

    def least_budget(self, case, store):
        """What the line that refuses a budget names as enough."""
        done = self.troupe(case, MIB, store)
        self.assertEqual(done.returncode, 1, done.stderr)
        least = re.search(r"([0-9.]+) MiB are the least", done.stderr)
        self.assertIsNotNone(least, done.stderr)
        return int(float(least.group(1)) * MIB) + VARIATION

    def run_within(self, case, budget, store):
        """The record of a run in a cgroup of its own; checks what has to hold for each."""
        with memory_cgroup.MemoryCgroup(budget + ALLOWANCE) as group:
            done = self.troupe(case, budget, store, group)
            kills, charged = group.kills(), group.peak_bytes()
        self.assertEqual(kills, 0, f"killed for memory; the group was charged {charged} bytes")
        self.assertEqual(done.returncode, 0, done.stderr)
        record = self.record_of(done)
        self.assertLessEqual(record["memory_budget_bytes"], budget)
        self.assertLessEqual(record["peak_rss_bytes"], budget)
        self.assertEqual(record["token_ids"], self.unlimited[case["prompt"]]["token_ids"])
        return record


class Budget(BudgetTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.unlimited = {case["prompt"]: cls.record_of(cls.troupe(case)) for case in (LONG, SHORT)}

    def test_ALongPromptStaysWithinEveryBudget(self):
        resident = self.unlimited[LONG["prompt"]]["planned_bytes"]
        for store in STORES:
            least = self.least_budget(LONG, store)
            slots = []
            for share in (0.2, 0.5, 0.8):
                budget = least + int(share * (resident - least))
                with self.subTest(store=store, budget=budget):
                    record = self.run_within(LONG, budget, store)
                    self.assertGreater(record["expert_misses"], 0)
                    self.assertGreater(record["bytes_read"], 0)
                    slots.append(record["expert_slots"])
            with self.subTest(store=store):  # each budget was used for what it could hold
                self.assertEqual(slots, sorted(set(slots)))
                self.assertLess(max(slots, default=0), LAYERS * EXPERTS)

    def test_WhereEverythingFitsNothingIsReadAgain(self):
        budget = self.unlimited[LONG["prompt"]]["planned_bytes"] + VARIATION
        record = self.run_within(LONG, budget, "packed")
        self.assertEqual(record["expert_misses"], 0)

    def test_AllOfTheProgramsCodeIsMappedSoThatTheKernelCanAddNone(self):
        """How much of it the kernel maps by itself follows the page cache: a plan must not follow that."""
        mapping = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-[-x]p .* (/.*)")
        with subprocess.Popen(self.command(LONG, self.least_budget(LONG, "packed")), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            most, code, of = 0, 0, pathlib.Path(f"/proc/{process.pid}")
            while process.poll() is None:
                resident = re.search(r"RssFile:\s+(\d+) kB", (of / "status").read_text(encoding="utf-8"))
                most = max(most, int(resident.group(1)) * 1024 if resident else 0)
                maps = [mapping.match(line) for line in (of / "maps").read_text(encoding="utf-8").splitlines()]
                code = max(code, sum(int(one[2], 16) - int(one[1], 16) for one in maps if one))
                time.sleep(0.01)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(code, 8 * MIB)
        # But for tables that the linker has written, which count as the process's own.
        self.assertGreater(most, code - 2 * MIB)

    def test_TheLeastBudgetThatIsNamedIsEnough(self):
        for store in STORES:
            with self.subTest(store):
                least = self.least_budget(SHORT, store)
                self.run_within(SHORT, least, store)
                below = self.troupe(SHORT, least - 6 * VARIATION, store)
                self.assertEqual(below.returncode, 1, below.stderr)
                self.assertEqual(len(below.stderr.strip().splitlines()), 1, below.stderr)


class Together(BudgetTest):
    """Sequences that decode in shared passes, and the measurement of the memory's speed after them."""
    # Keys and values of 512 tokens. The least budget has room for those of one sequence.
    CONTEXT_BYTES = 512 * LAYERS * 2 * SHAPE["hidden_size"] * 2
    WORK = ["--prefill", "64", "--decode", "8", "--prompt-length", "32", "--reps", "1"]

    @classmethod
    def command_of(cls, sequences, budget=None):
        memory = [] if budget is None else ["--memory", str(budget)]
        return [BINARY, "bench", str(cls.model), *cls.WORK, "--together", str(sequences), "--ctx", "512",
                "--threads", "2", "--json", str(cls.folder / "bench.json"), *memory]

    def bench(self, sequences, budget=None, group=None):
        command = self.command_of(sequences, budget)
        return subprocess.run(group.command(command) if group else command, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def record(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / "bench.json").read_text(encoding="utf-8"))

    def least(self, sequences):
        done = self.bench(sequences, MIB)
        self.assertEqual(done.returncode, 1, done.stderr)
        return int(float(re.search(r"([0-9.]+) MiB are the least", done.stderr).group(1)) * MIB) + VARIATION

    def check(self, sequences, budget):
        with memory_cgroup.MemoryCgroup(budget + ALLOWANCE) as group:
            done = self.bench(sequences, budget, group)
            self.assertEqual(group.kills(), 0, f"killed for memory; {group.peak_bytes()} bytes were charged")
        record = self.record(done)
        self.assertEqual(record["memory_budget_bytes"], budget)
        self.assertLessEqual(record["peak_rss_bytes"], budget)
        self.assertLessEqual(record["peak_with_bandwidth_bytes"], budget)
        (row,) = record["together"]
        self.assertEqual(row["sequences"], sequences)
        return record

    def test_ManySequencesStayWithinTheBudget(self):
        for sequences, more in ((1, 0), (4, 0), (4, 40 * MIB), (16, 0)):
            budget = self.least(sequences) + (sequences - 1) * self.CONTEXT_BYTES + more
            with self.subTest(sequences=sequences, budget=budget):
                record = self.check(sequences, budget)
                self.assertGreater(record["together"][0]["read_bytes_a_pass"], 0)

    def test_MoreSequencesNeedMoreMemory(self):
        self.assertGreater(self.least(16), self.least(1))

    def test_TheMemorysSpeedIsMeasuredWithWhatTheBudgetLeaves(self):
        budget = self.least(1) + 100 * MIB
        record = self.check(1, budget)
        self.assertLess(record["read_bandwidth_buffer_bytes"], budget)
        self.assertGreater(record["read_bandwidth_buffer_bytes"], budget // 2)


class TogetherWithALargeVocabulary(BudgetTest):
    """Requests whose tokens are drawn from many logits, all at the same time."""
    shape = LARGE_VOCABULARY_SHAPE
    SEQUENCES = 9  # that bench --join holds
    CONTEXT_BYTES = 512 * LAYERS * 2 * LARGE_VOCABULARY_SHAPE["hidden_size"] * 2

    def bench(self, budget, group=None):
        command = [BINARY, "bench", str(self.model), "--prefill", "32", "--decode", "2", "--reps", "1",
                   "--join", "64", "--ctx", "512", "--threads", "2",
                   "--json", str(self.folder / "bench.json"), "--memory", str(budget)]
        return subprocess.run(group.command(command) if group else command, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def test_RequestsThatDrawTheirTokensStayWithinTheBudget(self):
        refused = self.bench(MIB)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        least = int(float(re.search(r"([0-9.]+) MiB are the least", refused.stderr).group(1)) * MIB)
        budget = least + VARIATION + (self.SEQUENCES - 1) * self.CONTEXT_BYTES
        with memory_cgroup.MemoryCgroup(budget + ALLOWANCE) as group:
            done = self.bench(budget, group)
            self.assertEqual(group.kills(), 0, f"killed for memory; {group.peak_bytes()} bytes were charged")
        self.assertEqual(done.returncode, 0, done.stderr)
        record = json.loads((self.folder / "bench.json").read_text(encoding="utf-8"))
        self.assertIn("join", record)
        self.assertLessEqual(record["peak_rss_bytes"], budget)


class WideRouter(BudgetTest):
    """Everything that a run may hold beside the model: its text, a profile, the trace it writes."""
    shape = WIDE_SHAPE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.folder / "text"
        text.write_bytes((ROOT / "ARCHITECTURE.md").read_bytes()[:5000])
        cls.profile = cls.folder / "a.profile"
        subprocess.run([BINARY, "calibrate", cls.model, "--text", text, "-o", cls.profile,
                        "--buddies-output", cls.folder / "a.buddies"],
                       check=True, capture_output=True)
        cls.unlimited = {TEXT["prompt"]: cls.record_of(cls.troupe(TEXT))}

    def hold(self, shares, *more):
        type(self).more = [str(option) for option in more]
        resident = self.unlimited[TEXT["prompt"]]["planned_bytes"]
        least = self.least_budget(TEXT, "packed")
        for share in shares:
            budget = least + int(share * (resident - least))
            with self.subTest(budget=budget):
                record = self.run_within(TEXT, budget, "packed")
                self.assertGreater(record["expert_misses"], 0)
                self.assertLess(record["expert_slots"], WIDE_LAYERS * WIDE_EXPERTS)

    def test_ATextStaysWithinItsBudget(self):
        self.hold((0.1,), "--profile", "none")

    def test_AProfileStaysWithinTheBudget(self):
        self.hold((0, 0.5), "--profile", self.profile)

    def test_AProfileAndATraceStayWithinTheBudget(self):
        trace = self.folder / "a.trace"
        self.hold((0.5,), "--profile", self.profile, "--trace", trace)
        self.assertGreater(trace.stat().st_size, 0)


class Calibration(BudgetTest):
    """What calibrate counts is within the budget as well, and what it learns is the same."""
    shape = PAIRS_SHAPE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.folder / "text"
        cls.text.write_bytes((ROOT / "ARCHITECTURE.md").read_bytes()[:3000])

    def calibrate(self, name, *memory, group=None):
        files = [self.folder / f"{name}.{kind}" for kind in ("profile", "buddies")]
        command = [BINARY, "calibrate", str(self.model), "--text", str(self.text), "--ctx", "512",
                   "--threads", "2", "-o", str(files[0]), "--buddies-output", str(files[1]),
                   *map(str, memory)]
        done = subprocess.run(group.command(command) if group else command, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not all(file.exists() for file in files):
            return done, None
        learned = json.loads(files[0].read_text(encoding="utf-8"))
        return done, [learned["learned"], learned["paths"], files[1].read_bytes()]

    def test_TheLeastThatCalibrateNamesIsEnoughAndTeachesTheSame(self):
        done, unlimited = self.calibrate("unlimited")
        self.assertEqual(done.returncode, 0, done.stderr)
        refused, left = self.calibrate("refused", "--memory", MIB)
        self.assertEqual((refused.returncode, left), (1, None), refused.stderr)
        least = int(float(re.search(r"([0-9.]+) MiB are the least", refused.stderr).group(1)) * MIB)
        for budget in (least + VARIATION, least + 12 * MIB):
            with self.subTest(budget=budget), memory_cgroup.MemoryCgroup(budget + ALLOWANCE) as group:
                done, learned = self.calibrate("limited", "--memory", budget, group=group)
                self.assertEqual((done.returncode, group.kills()), (0, 0), done.stderr)
                self.assertTrue(learned == unlimited)  # a comparison that shows no megabytes

    def test_FittingACutStaysWithinTheBudgetAndFindsTheSame(self):
        def fit(name, *memory, group=None):
            cuts = self.folder / f"{name}.cuts.json"
            done, _ = self.calibrate(name, "--cut", 1, "--cut-tokens", 128, "--cut-window", 64,
                                     "--cut-ranks", "25,75", "--cuts-output", cuts, *memory, group=group)
            return done, cuts.read_bytes() if cuts.exists() else None

        done, unlimited = fit("whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        budget = MIB
        while (refused := fit("few", "--memory", budget)[0]).returncode != 0:
            least = re.search(r"([0-9.]+) MiB are the least", refused.stderr)
            self.assertIsNotNone(least, refused.stderr)
            self.assertGreater(float(least.group(1)) * MIB, budget)
            budget = int(float(least.group(1)) * MIB) + VARIATION
        with memory_cgroup.MemoryCgroup(budget + ALLOWANCE) as group:
            done, found = fit("limited", "--memory", budget, group=group)
            self.assertEqual((done.returncode, group.kills()), (0, 0), done.stderr)
            self.assertTrue(found == unlimited)


def run_tests():
    """Of the program that is run, on the troupe that its first argument says."""
    global BINARY
    BINARY = sys.argv.pop(1)
    try:
        with memory_cgroup.MemoryCgroup(ALLOWANCE):
            pass
    except memory_cgroup.NotPermitted as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    run_tests()
