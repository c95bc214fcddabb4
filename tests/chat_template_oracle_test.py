#!/usr/bin/env python3
"""Holds the engine's Jinja to Python's: the same bytes, and an error where Python raises one.

usage: chat_template_oracle_test.py RENDER_CASES    (the program built from src/text/jinja)

Templates of real models and of our own (tests/data/chat_templates), each over many conversations, then
random ones (TROUPE_SEED repeats one, TROUPE_CASES says how many). Needs Debian's python3-jinja2; ends
with 77, which ctest takes for skipped, without it.
"""
import json
import os
import pathlib
import subprocess
import sys
import warnings

try:
    import jinja2
except ImportError:
    print("python3-jinja2 is not installed")
    sys.exit(77)

import chat_template_cases
import python_templates
import random_templates

DATA = pathlib.Path(__file__).resolve().parent / "data" / "chat_templates"
ADDRESS = " at 0x"  # in lower case, in what Python prints for an object without a text of its own
LEAST_TEMPLATES = 20


class Renderer:
    """The engine's own, over a pipe."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, source, values):
        case = {"template": source, "values": values, "now": python_templates.NOW_PARTS}
        self.process.stdin.write(json.dumps(case).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the program ended with {self.process.wait()} at\n{source}\n{values}")
        answer = json.loads(line)
        return answer.get("text"), answer.get("error")


def around(text, other):
    """A text near its first difference from another."""
    if text is None or other is None:
        return repr(text if text is None else text[:200])
    at = next((i for i, (a, b) in enumerate(zip(text, other)) if a != b), min(len(text), len(other)))
    return repr(text[max(0, at - 60):at + 60])


class Comparison:
    def __init__(self, renderer):
        self.renderer = renderer
        self.environment = python_templates.make_environment()
        self.equal = self.refused = self.meaningless = 0
        self.differences = []

    def compare(self, name, source, cases):
        template = python_templates.PythonTemplate(source, self.environment)
        for case, values in cases:
            expected, error = template.render(values)
            if expected is not None and ADDRESS in expected.lower():
                self.meaningless += 1
                continue
            found, found_error = self.renderer.render(source, values)
            if expected is None and found is None:
                self.refused += 1
            elif expected == found:
                self.equal += 1
            else:
                self.differences.append(f"{name}, {case}:\n  Python: {around(expected, found)} {error or ''}\n"
                                        f"  found:  {around(found, expected)} {found_error or ''}\n"
                                        f"  template: {source[:1500]!r}")


def compare_known(comparison):
    templates = sorted(DATA.glob("*.jinja"))
    assert len(templates) >= LEAST_TEMPLATES, f"{len(templates)} templates in {DATA}"
    cases = list(chat_template_cases.values_of_cases())
    for path in templates:
        before = comparison.equal
        comparison.compare(path.name, path.read_bytes().decode(), cases)
        assert comparison.equal > before + 10, f"{path.name}: hardly any case renders, so it shows nothing"


def compare_random(comparison, seed, count):
    generator = random_templates.Generator(seed)
    before = comparison.equal + comparison.refused
    for i in range(4 * count):
        if comparison.equal + comparison.refused + len(comparison.differences) - before >= count:
            break
        comparison.compare(f"seed {seed}", generator.template(), [(f"template {i}", random_templates.VALUES)])


def main():
    warnings.simplefilter("ignore", SyntaxWarning)  # of what Jinja compiles
    renderer = Renderer(sys.argv[1])
    # A comparison that cannot fail shows nothing.
    wrong = Comparison(renderer)
    wrong.compare("self", "{{ now_of_python }}", [("a", {})])
    wrong.environment.globals["now_of_python"] = 1
    wrong.compare("self", "{{ now_of_python }}", [("b", {})])
    assert wrong.equal == 1 and len(wrong.differences) == 1, "the comparison does not see a difference"

    known = Comparison(renderer)
    compare_known(known)
    seed, count = int(os.environ.get("TROUPE_SEED", "1")), int(os.environ.get("TROUPE_CASES", "2000"))
    made = Comparison(renderer)
    compare_random(made, seed, count)
    print(f"known templates: {known.equal} equal, {known.refused} refused by both, {len(known.differences)} differ")
    print(f"random templates (seed {seed}): {made.equal} equal, {made.refused} refused by both, "
          f"{len(made.differences)} differ, {made.meaningless} print an address")
    differences = known.differences + made.differences
    print("\n".join(differences[:10]))
    assert made.equal > count // 4, "too few random templates render"
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
