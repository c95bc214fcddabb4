#!/usr/bin/env python3
"""Holds the list of mutations to the sources: each line is there once, and each test that is to notice it exists.
Whether the tests do notice is scripts/mutations' to say, which builds them."""
import pathlib
import re
import unittest

import mutations

# Of the papers Fate (F), SMoE (S), BuddyMoE (B), DanceMoE (D) and EC2MoE (E), and of the engine (T): each has a line that
# switches it off.
MECHANISMS = {
    *("F1", "F2", "F3", "F4", "F5", "F6"),
    *("S1", "S2", "S3", "S4", "S5"),
    *("B1", "B2", "B3", "B4", "B5"),
    *("D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8"),
    *("E1", "E2", "E3", "E4", "E5", "E7", "E8"),
    *("T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9"),
    *("governor", "echo", "offline optimum", "lookahead", "scores", "fill", "before down", "floor"),
}
# And those that have none: what is measured.
WITHOUT_A_LINE = {"F7", "S6", "B6", "D9", "E6"}
# Rivals share a letter, and each is one of its own.
RIVALS = {f"src/placement/{placer}.cc" for placer in ("uniform", "redundance", "smartmoe", "eplb", "optimum_flow")}
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+), *(\w+)\)", re.MULTILINE)


class Mutations(unittest.TestCase):
    def setUp(self):
        self.list = mutations.read()

    def test_every_mechanism_has_one(self):
        self.assertEqual(MECHANISMS - {one.mechanism for one in self.list}, set())

    def test_none_has_a_name_of_the_papers_that_is_not_in_them(self):
        named = {one.mechanism for one in self.list if re.fullmatch(r"[A-Z]\d", one.mechanism)}
        self.assertEqual(named - MECHANISMS, set())

    def test_what_has_none_is_said_on_the_page(self):
        text = mutations.TABLE.read_text().split("\n| mechanism")[0]
        self.assertEqual({code for code in re.findall(r"\b[FSBDET]\d\b", text) if code in WITHOUT_A_LINE}, WITHOUT_A_LINE)
        self.assertTrue(MECHANISMS.isdisjoint(WITHOUT_A_LINE))

    def test_every_rival_of_a_placement_has_one(self):
        self.assertLessEqual(RIVALS, {one.file for one in self.list})

    def test_each_line_is_there_once_and_changes(self):
        for one in self.list:
            text = (mutations.ROOT / one.file).read_text()
            self.assertNotEqual(one.applied_to(text), text, one.where())

    def test_each_test_is_there(self):
        sources = [path for folder in ("src", "tests", "tools") for path in (mutations.ROOT / folder).rglob("*_test.cc")]
        known = {f"{suite}.{name}" for path in sources for suite, name in TEST.findall(path.read_text())}
        for one in self.list:
            for name in one.names():
                self.assertIn(name, known, one.where())

    def test_a_tests_name_is_found_behind_what_its_parameters_put_around_it(self):
        one = mutations.read("| X | does | `f.cc` | `a` | `b` | `x_tests */S.T/*:U.V` |")[0]
        self.assertEqual(one.names(), ["S.T", "U.V"])

    def test_a_line_that_is_not_there_is_said(self):
        one = mutations.read("| X | does | `f.cc` | `a \\|\\| b` | `a` | `x_tests S.T` |")[0]
        self.assertEqual((one.line, one.target, one.tests), ("a || b", "x_tests", "S.T"))
        self.assertEqual(one.applied_to("if (a || b)"), "if (a)")
        with self.assertRaisesRegex(SystemExit, "there 2 times"):
            one.applied_to("a || b, a || b")


if __name__ == "__main__":
    unittest.main()
