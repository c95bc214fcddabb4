#!/usr/bin/env python3
"""Holds the list of mutations to the sources: each line is there once, and each test that is to notice it exists.
Whether the tests do notice is scripts/mutations' to say, which builds them."""
import pathlib
import re
import unittest

import mutations

TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+), *(\w+)\)", re.MULTILINE)


class Mutations(unittest.TestCase):
    def setUp(self):
        self.list = mutations.read()

    def test_there_are_some_of_each_paper(self):
        first = {one.mechanism[0] for one in self.list}
        self.assertLessEqual({"F", "S", "B", "D", "E", "T"}, first)

    def test_each_line_is_there_once_and_changes(self):
        for one in self.list:
            text = (mutations.ROOT / one.file).read_text()
            self.assertNotEqual(one.applied_to(text), text, one.where())

    def test_each_test_is_there(self):
        sources = (mutations.ROOT / "src").rglob("*_test.cc")
        known = {f"{suite}.{name}" for path in sources for suite, name in TEST.findall(path.read_text())}
        for one in self.list:
            for name in one.names():
                self.assertIn(name, known, one.where())

    def test_a_line_that_is_not_there_is_said(self):
        one = mutations.read("| X | does | `f.cc` | `a \\|\\| b` | `a` | `x_tests S.T` |")[0]
        self.assertEqual((one.line, one.target, one.tests), ("a || b", "x_tests", "S.T"))
        self.assertEqual(one.applied_to("if (a || b)"), "if (a)")
        with self.assertRaisesRegex(SystemExit, "there 2 times"):
            one.applied_to("a || b, a || b")


if __name__ == "__main__":
    unittest.main()
