#!/usr/bin/env python3
"""Holds every #include line against the arrows between folders (ARCHITECTURE.md, 'The map').

An arrow is 'may include'; arrows are transitive. A new one is a change of design: change it here
and in ARCHITECTURE.md, in the same commit. Also checks that each source starts with a comment that
says what it is for, and that only kernels/ knows Highway.
"""
import pathlib
import re
import sys

ARROWS = {
    "base": set(),
    "quant": {"base"},
    "kernels": {"quant"},
    "io": {"base"},
    "gguf": {"io"},
    "expert": {"base"},
    "trace": {"io", "expert"},
    "plot": {"base"},
    "text": {"base"},
    "model": {"kernels", "gguf", "expert"},
    "store": {"io", "gguf", "expert"},
    "runtime": {"model", "store", "text", "trace"},
    "server": {"runtime"},
    "cluster": {"runtime"},
    "sim": {"trace"},
    "cuda": {"kernels", "expert"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def reachable(folder):
    seen, stack = {folder}, [folder]
    while stack:
        for below in ARROWS[stack.pop()]:
            if below not in seen:
                seen.add(below)
                stack.append(below)
    return seen


def faults_of(path, folder, text):
    """Yields one line per broken rule; folder is None for tools and tests, which may include all."""
    for kind, target in INCLUDE.findall(text):
        layer = target.split("/")[0]
        if kind == '"' and layer in ARROWS and folder and layer not in reachable(folder):
            yield f'{path}: includes "{target}", but {folder}/ may include only {sorted(reachable(folder))}'
        if target.startswith("hwy/") and folder not in ("kernels", None):
            yield f"{path}: includes <{target}>; Highway belongs to kernels/ alone"
        if kind == '"' and layer not in ARROWS and folder and "/" in target and not target.startswith("hwy/"):
            yield f'{path}: includes "{target}", which names no folder of the map'
    if not text.startswith("//") and not text.startswith("/*"):
        yield f"{path}: its first line is no comment that says what the file is for"


def check(root):
    faults, count = [], 0
    for path in sorted(root.glob("src/*/**/*")):
        if path.suffix not in (".h", ".cc", ".cu"):
            continue
        count += 1
        folder = path.relative_to(root / "src").parts[0]
        text = path.read_text(encoding="utf-8")
        if folder not in ARROWS:
            faults.append(f"{path}: folder '{folder}' is not on the map")
            continue
        # The header says it for its source, and a test's names are its sentences.
        spoken_for = path.suffix == ".cc" and (
            path.with_suffix(".h").exists() or path.stem.endswith("_test"))
        found = faults_of(path.relative_to(root), folder, text)
        faults += [f for f in found if not (spoken_for and "no comment" in f)]
    return faults, count


def self_test():
    """The checker must fail where it should, or its silence means nothing."""
    bad = '// x\n#include "runtime/session.h"\n'
    assert list(faults_of("p", "model", bad)), "an upward include must be a fault"
    assert list(faults_of("p", "base", '// x\n#include "hwy/highway.h"\n')), "Highway outside kernels/"
    assert list(faults_of("p", "base", "#pragma once\n")), "a missing opening comment must be a fault"
    assert not list(faults_of("p", "model", '// x\n#include "base/status.h"\n#include <vector>\n'))


if __name__ == "__main__":
    self_test()
    root = pathlib.Path(__file__).resolve().parent.parent
    faults, count = check(root)
    print("\n".join(faults), end="\n" if faults else "")
    print(f"layers: {count} files, {len(faults)} faults")
    sys.exit(1 if faults else 0)
