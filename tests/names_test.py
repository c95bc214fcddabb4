#!/usr/bin/env python3
"""Holds the names in unnamed namespaces to being alone in their folder.

A folder's sources are compiled several at a time (troupe_units in cmake/Troupe.cmake), and which of
them come together changes with each new one: two of them may not give a constant, a type, or a
function of the same parameters the same name. Sources that stand alone (ARITHMETIC) are left out.
"""
import collections
import pathlib
import re
import sys

UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.MULTILINE | re.DOTALL)
SKIPPED = re.compile(r"template\b|using namespace\b|static_assert\b|[A-Z_0-9]+\(|#|//|\}|\)|\s|$")
TYPE = re.compile(r"(?:struct|class|enum class|enum)\s+(\w+)\s*(?:final\s*)?[:{]|using (\w+) =")
VALUE = re.compile(r"(?:inline |static |constexpr |const |thread_local )*[\w:<>,&* ]+?[ &*](\w+)(?:\[\w*\])? *(?:=|\{|;)")
FUNCTION = re.compile(r"(?:inline |static |constexpr |\[\[\w+\]\] )*[\w:<>,&* ]+?[ &*](\w+)\(")
ALONE = re.compile(r"\bARITHMETIC\b")


def parameters(text, at):
    """The types between the bracket at `at` and the one that closes it, names and spaces left out."""
    depth, end = 0, at
    while True:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            break
        end += 1
    types = []
    for parameter in re.split(r",(?![^<(]*[>)])", text[at + 1:end]):
        parameter = re.sub(r"=.*", "", parameter, flags=re.DOTALL).strip()
        types.append(re.sub(r"\s+", "", re.sub(r"\b\w+$", "", parameter) or parameter))
    return ",".join(types)


def names_of(text):
    """What a source's unnamed namespaces declare at their outer level."""
    names = set()
    for body in UNNAMED.findall(text):
        at = 0
        for line in body.splitlines(keepends=True):
            start, at = at, at + len(line)
            if SKIPPED.match(line):
                continue
            if found := TYPE.match(line):
                names.add(found[1] or found[2])
            elif (found := FUNCTION.match(line)) and "=" not in line[:found.end()]:
                names.add(f"{found[1]}({parameters(body, start + found.end() - 1)})")
            elif (found := VALUE.match(line)) and found[1] != "struct":  # which has no name there
                names.add(found[1])
    return names


def clashes(sources):
    """Of sources that may be compiled together: (name, the sources that declare it)."""
    owners = collections.defaultdict(list)
    for source, text in sources:
        for name in names_of(text):
            owners[name].append(source)
    faults = {name: found for name, found in owners.items() if len(found) > 1}
    # Functions may be overloaded, but not by a type or a value.
    for name in [name for name in owners if "(" in name]:
        plain = name[:name.index("(")]
        if others := [source for source in owners.get(plain, []) if source not in owners[name]]:
            faults[plain] = sorted({*others, *owners[name]})
    return sorted(faults.items())


def check(root):
    groups = collections.defaultdict(list)
    for folder in ("src", "tools", "tests"):
        for path in sorted((root / folder).rglob("*.cc")):
            cmake = path.parent / "CMakeLists.txt"
            if cmake.exists() and ALONE.search(cmake.read_text(encoding="utf-8")):
                continue
            if path.stem.endswith("_bench") or path.stem == "main":  # programs of their own
                continue
            is_test = path.stem.endswith("_test")
            groups[path.parent, is_test].append((path, path.read_text(encoding="utf-8")))
    faults = []
    for sources in groups.values():
        for name, found in clashes(sources):
            places = ", ".join(str(path.relative_to(root)) for path in found)
            faults.append(f"{name}: in the unnamed namespaces of {places}")
    return faults, sum(map(len, groups.values()))


def self_test():
    """The checker must fail where it should, or its silence means nothing."""
    def unnamed(body):
        return f"namespace troupe {{\nnamespace {{\n\n{body}\n}}  // namespace\n}}  // namespace troupe\n"

    def clash(one, other):
        return clashes([("a.cc", unnamed(one)), ("b.cc", unnamed(other))])
    assert clash("constexpr int kOne = 1;\n", "const double kOne = 1;\n")
    assert clash("struct Pair {\n  int a;\n};\n", "class Pair final : Base {\n};\n")
    assert clash("using Row = int;\n", "enum class Row {\n};\n")
    assert clash("int Sum(int a,\n        int b) {\n}\n", "int Sum(int x, int y);\n")
    assert clash("std::vector<int> Of(const std::map<int, int>& m) {\n}\n", "int Of(const std::map<int, int>& n) {\n}\n")
    assert clash("int Sum(int a) {\n}\n", "using Sum = int;\n")
    assert not clash("int Sum(int a) {\n}\n", "int Sum(double a) {\n}\n"), "overloads may be"
    assert not clash("int One() {\n  int same = 1;\n}\n", "int Two() {\n  int same = 2;\n}\n"), "inner names may be"
    assert not clashes([("a.cc", "int kOne = 1;\n"), ("b.cc", "int kOne = 1;\n")]), "outside is the linker's matter"


if __name__ == "__main__":
    self_test()
    faults, count = check(pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(faults), end="\n" if faults else "")
    print(f"names: {count} files, {len(faults)} faults")
    sys.exit(1 if faults else 0)
