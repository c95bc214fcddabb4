#!/usr/bin/env python3
"""Runs the examples in docs/formats on files that troupe writes: a page that lies fails here.

usage: format_examples_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import struct
import sys
import tempfile
import textwrap
import unittest

import troupe_cli

FORMATS = pathlib.Path(__file__).resolve().parent.parent / "docs/formats"
F32, Q4_0 = 0, 2
TROUPE = None  # set at the end of this file


def example_of(page):
    """What the page's one Python block defines."""
    lines = (FORMATS / page).read_text(encoding="utf-8").splitlines()
    first = lines.index("    import struct")
    length = next((n for n, line in enumerate(lines[first:]) if line and line[0] != " "),
                  len(lines) - first)
    names = {}
    exec(textwrap.dedent("\n".join(lines[first:first + length])), names)  # pylint: disable=exec-used
    return names


class ExpertsPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name) / "m.gguf"
        TROUPE.run("synth", self.model, "--shape", "tiny-deepseek2", "--type", "F32", "--layers", 3,
                   "--threads", 1)
        facts = pathlib.Path(folder.name) / "facts.json"
        TROUPE.run("inspect", self.model, "--tensors", "--json", facts)
        self.facts = json.loads(facts.read_text())
        self.container = pathlib.Path(folder.name) / "m.experts"
        TROUPE.run("pack", self.model, "--low", "Q4_0", "--threads", 1)
        self.experts = example_of("experts.md")["experts"]

    def rows_of_gate(self, layer, expert):
        """The expert's rows of floats as the GGUF has them."""
        name = f"blk.{layer}.ffn_gate_exps.weight"
        tensor = next(tensor for tensor in self.facts["tensors"] if tensor["name"] == name)
        columns, rows, _ = tensor["shape"]
        data = self.model.read_bytes()
        return [struct.unpack_from(f"<{columns}f", data,
                                   tensor["offset"] + (expert * rows + row) * columns * 4)
                for row in range(rows)]

    def test_finds_the_weights_of_every_expert(self):
        seen = []
        for layer, expert, types, data in self.experts(self.container):
            seen.append((layer, expert))
            self.assertEqual(types, [F32] * 3)
            rows = self.rows_of_gate(layer, expert)
            for row, expected in enumerate(rows):
                panel, lane = divmod(row, 16)
                at = panel * 16 * 4 * len(expected)
                floats = struct.unpack_from(f"<{16 * len(expected)}f", data, at)
                self.assertEqual(floats[lane::16], expected, f"layer {layer}, expert {expert}")
        count = self.facts["experts"]
        self.assertEqual(seen, [(layer, e) for layer in (1, 2) for e in range(count)])

    def test_finds_the_lower_precision(self):
        full = [len(data) for *_, data in self.experts(self.container)]
        low = list(self.experts(self.container, precision=1))
        self.assertEqual(len(low), len(full))
        for (_, _, types, data), size in zip(low, full):
            self.assertEqual(types, [Q4_0] * 3)
            self.assertEqual(len(data) * 64, size * 9)  # 18 bytes for 32 floats


if __name__ == "__main__":
    TROUPE = troupe_cli.Troupe(sys.argv.pop(1))
    unittest.main()
