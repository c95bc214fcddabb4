#!/usr/bin/env python3
"""Budgets hold in the commands around `run`, too: in a memory cgroup, as in budget_test.py. A program of its own, since a
process begins with the peak of the one that starts it, and that one's has to be small.

usage: budget_commands_test.py TROUPE [unittest arguments]
Exits with 77 (skipped) and the reason where no memory cgroup can be made.
"""
import json
import os
import re
import subprocess

import budget_test
import memory_cgroup
from budget_test import ALLOWANCE, MIB, ROOT, SHAPE, VARIATION


class OtherCommands(budget_test.BudgetTest):
    """What reads a text or measures the machine beside a model, and what is said where nobody gives a budget that fits."""
    shape = SHAPE

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.folder / "text"
        words = (ROOT / "ARCHITECTURE.md").read_bytes()
        with open(cls.text, "wb") as text:  # piece by piece: a process begins with its parent's peak
            for _ in range(16 * MIB // len(words)):
                text.write(words)

    def within(self, limit, *command):
        """What it answered in a cgroup, the most that it had resident, and how often it was killed."""
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        with memory_cgroup.MemoryCgroup(limit) as group:
            process = subprocess.Popen(group.command([budget_test.BINARY, *map(str, command), "--threads", "2"]), env=environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            said, complained = process.stdout.read(), process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            process.stdout.close(), process.stderr.close()
            kills = group.kills()
        return process.returncode, said, complained, usage.ru_maxrss << 10, kills

    def least(self, *command):
        code, _, complained, _, _ = self.within(512 * MIB, *command, "--memory", MIB)
        self.assertEqual(code, 1, complained)
        least = float(re.search(r"([0-9.]+) MiB are the least", complained).group(1))
        return int(least * MIB) + VARIATION

    def test_TheBeginningOfALongTextIsScoredWithinTheBudget(self):
        command = ("eval", self.model, "--text", self.text, "--tokens", 200, "--window", 100, "--ctx", 256)
        budget = self.least(*command)
        self.assertLess(budget, self.text.stat().st_size * 4)
        code, said, complained, peak, kills = self.within(budget + ALLOWANCE, *command, "--memory", budget)
        self.assertEqual((code, kills), (0, 0), complained)
        self.assertIn("perplexity", said)
        self.assertLessEqual(peak, budget)

    def test_ALongTextThatIsScoredWholeIsInThePlan(self):
        command = ("eval", self.model, "--text", self.text, "--ctx", 256)
        self.assertGreater(self.least(*command), self.text.stat().st_size * 10)

    def test_APlanMeasuresTheMachineWithinItsBudget(self):
        budget = self.least("run", self.model, "--prompt", "a", "--ctx", 256) + 10 * MIB
        code, said, complained, peak, kills = self.within(
            budget + ALLOWANCE, "plan", self.model, "--ctx", 256, "--memory", budget, "--fresh")
        self.assertEqual((code, kills), (0, 0), complained)
        self.assertIn("measured now", said)
        self.assertLessEqual(peak, budget)

    def test_ABudgetAboveTheCgroupsIsWarnedOfBeforeItIsTried(self):
        _, _, complained, _, _ = self.within(120 * MIB, "run", self.model, "--prompt", "a", "-n", 1, "--memory", "900MiB")
        self.assertRegex(complained, r"^warning: .* will be taken and only .* can be had \(cgroup 'troupe-[^/]*' has 120.0 MiB\)")
        _, _, complained, _, _ = self.within(600 * MIB, "run", self.model, "--prompt", "a", "-n", 1, "--memory", "900MiB")
        self.assertNotIn("can be had", complained)

    def test_ASmallContainersDefaultLeavesAQuarterFreeAndSaysSoWhereTheRestIsTooLittle(self):
        command = ("run", self.model, "--prompt", "a", "-n", 1)
        code, _, complained, _, kills = self.within(160 * MIB, *command)
        self.assertEqual((code, kills), (0, 0), complained)
        code, _, complained, _, _ = self.within(20 * MIB, *command)
        self.assertEqual(code, 1, complained)
        self.assertRegex(complained, r"are too little, .*cgroup.* free, of which .* are left to other programs \(--memory takes more\)$")

    def test_TheSameCommandMakesTheSamePlanEveryTime(self):
        budget = self.least("run", self.model, "--prompt", "a", "--ctx", 256) + 10 * MIB
        slots = set()
        for _ in range(20):
            done = subprocess.run([budget_test.BINARY, "run", self.model, "--prompt", "a", "-n", "1", "--ctx", "256", "--threads", "2",
                                   "--memory", str(budget), "--json", "-"], check=True, capture_output=True)
            slots.add(json.loads(done.stdout)["expert_slots"])
        self.assertEqual(len(slots), 1, slots)


if __name__ == "__main__":
    budget_test.run_tests()
