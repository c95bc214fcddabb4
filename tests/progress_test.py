#!/usr/bin/env python3
"""Holds scripts/progress.sh to what it says of the output of ninja, ctest and apt-get."""
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "progress.sh"


def shown(kind, lines, *what):
    """What is written, line by line and without the seconds, and what the log has."""
    with tempfile.NamedTemporaryFile(mode="r") as log:
        out = subprocess.run([SCRIPT, kind, log.name, *what], input="".join(f"{line}\n" for line in lines),
                             stdout=subprocess.PIPE, check=True, text=True).stdout
        return re.sub(r", \d+ s\b", "", out).splitlines(), log.read().splitlines()


def result(number, of, name, end):
    return f" {number}/{of} Test  #{number}: {name} .......   {end}    0.01 sec"


class Progress(unittest.TestCase):
    def test_a_build_has_a_line_for_every_tenth_and_its_log_every_line(self):
        lines = [f"{n} of 200 Building CXX object {n}.o" for n in range(1, 201)]
        out, log = shown("build", lines, "building troupe")
        self.assertEqual(out[:3], ["building troupe: 1 of 200", "building troupe: 20 of 200",
                                   "building troupe: 40 of 200"])
        self.assertEqual(out[-1], "building troupe: 200 of 200")
        self.assertEqual(len(out), 11)
        self.assertEqual(log, lines)

    def test_a_build_with_nothing_to_do_says_nothing(self):
        out, log = shown("build", ["ninja: no work to do."], "building troupe")
        self.assertEqual((out, log), ([], ["ninja: no work to do."]))

    def test_tests_are_counted_by_how_they_end(self):
        out, _ = shown("tests", [
            "Test project /somewhere", "    Start 1: arc_test", result(1, 4, "arc_test", "Passed"),
            result(2, 4, "budget_test", "***Skipped"), result(3, 4, "lru_test", "***Timeout"),
            result(4, 4, "fd_test", "***Failed  Error regular expression found in output. Regex=[x]"),
            "", "50% tests passed, 2 tests failed out of 4", "\t  3 - lru_test (Timeout)"])
        self.assertEqual(out[-1], "tests: 1 of 4 passed, 1 skipped, 2 failed; skipped: budget_test; "
                                  "failed: lru_test fd_test")

    def test_of_a_failing_test_the_failure_is_shown_and_not_what_passed(self):
        out, _ = shown("tests", [
            "    Start 1: arc_test", result(1, 1, "arc_test", "***Failed"), "[ RUN      ] Arc.Evicts",
            "[       OK ] Arc.Evicts (0 ms)", "arc_test.cc:7: Failure", "  Expected: 1",
            "[  FAILED  ] Arc.Keeps (0 ms)", "0% tests passed, 1 tests failed out of 1",
            "Errors while running CTest"])
        self.assertEqual(out, [result(1, 1, "arc_test", "***Failed"), "arc_test.cc:7: Failure",
                               "  Expected: 1", "[  FAILED  ] Arc.Keeps (0 ms)",
                               "tests: 0 of 1 passed, 1 failed; failed: arc_test"])

    def test_packages_are_fetched_unpacked_and_installed(self):
        names = ["g++", "cmake"]
        out, _ = shown("packages", [
            "Get:1 lists", "1 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.",
            *[f"Get:{n} {name}" for n, name in enumerate(names)],
            *[f"Unpacking {name} (1.0) ..." for name in names],
            *[f"Setting up {name} (1.0) ..." for name in names]])
        self.assertEqual(out, [f"packages: {n} of 2 {phase}" for phase in ("fetched", "unpacked", "installed")
                               for n in (1, 2)])

    def test_what_is_slow_to_begin_says_so(self):
        with tempfile.NamedTemporaryFile() as log:
            out = subprocess.run(f"(sleep 3; echo 1 of 1 x) | PROGRESS_SECONDS=1 {SCRIPT} build {log.name} it",
                                 shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        self.assertRegex(out[0], r"^it: begun, \d+ s$")
        self.assertRegex(out[-1], r"^it: 1 of 1, \d+ s$")

    def test_a_line_without_an_end_counts(self):
        with tempfile.NamedTemporaryFile() as log:
            out = subprocess.run([SCRIPT, "build", log.name, "it"], input=b"1 of 1 Linking", check=True,
                                 stdout=subprocess.PIPE).stdout
        self.assertRegex(out.decode(), r"^it: 1 of 1, \d+ s\n$")


if __name__ == "__main__":
    unittest.main()
