"""The mutations of docs/design/mutations.md: a line of a mechanism, what it becomes, and the test that fails then."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "design" / "mutations.md"
CELL = re.compile(r"(?<!\\)\|")


@dataclasses.dataclass
class Mutation:
    mechanism: str
    what: str
    file: str
    line: str
    becomes: str
    target: str
    tests: str

    def where(self):
        return f"{self.mechanism} ({self.what}) in {self.file}"

    def applied_to(self, text):
        """Exactly one place may be meant."""
        found = text.count(self.line)
        if found != 1:
            raise SystemExit(f"mutations: {self.where()}: the line is there {found} times, expected once: {self.line}")
        return text.replace(self.line, self.becomes)

    def names(self):
        """Of tests; those with parameters without what gtest puts around them ("*/Suite.Test/*")."""
        return [name.removeprefix("*/").removesuffix("/*") for name in self.tests.split(":")]


def code(cell):
    return cell.replace("\\|", "|").strip().removeprefix("`").removesuffix("`")


def read(text=None):
    rows = [CELL.split(line)[1:-1] for line in (text or TABLE.read_text()).splitlines() if line.startswith("| ") and "`" in line]
    found = []
    for mechanism, what, file, line, becomes, fails in rows:
        target, tests = code(fails).split()
        found.append(Mutation(mechanism.strip(), what.strip(), code(file), code(line), code(becomes), target, tests))
    return found
