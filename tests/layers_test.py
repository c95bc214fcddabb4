#!/usr/bin/env python3
"""Holds every #include line to what the folder's CMakeLists.txt says that it may include.

A folder is what has a troupe_library of its own; its DEPS are the folders it may include, and theirs
(arrows are transitive). Tests, benchmarks and *_for_test.h may also include what troupe_tests names.
DEPS must not form a circle, and none may be named that is not needed. Each source must begin with a
comment that says what it is for; each library of others belongs to the folders in OWNERS.
"""
import pathlib
import re
import sys

# Libraries of others, by the beginning of an include, and who may include them.
OWNERS = {
    "boost/": {"http"},
    "CL/": {"gpu"},
    "cuda.h": {"gpu"},
    "Eigen/": {"expert_gate", "lab"},
    "grpc": {"cluster_etcd", "cluster_grpc", "cluster_transport"},
    "hwy/": {"kernels"},
    "lemon/": {"placement"},
    "liburing": {"io"},
    "pcre2": {"text"},
    "zstd": {"io", "trace"},
    "xxhash": {"store", "trace", "lab", "runtime", "split_codec"},
    "nlohmann/": {"base"},
    "openssl/": {"http", "cluster_face", "fetch"},
    "curl/": {"fetch"},
    "prometheus/": {"server"},
    "CLI/": set(),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
CALL = re.compile(r"(troupe_library|troupe_tests)\(([^)]*)\)")
FOR_TESTS = re.compile(r"(_test\.cc|_bench\.cc|_for_test\.h|_testing\.h)$")


class Folder:
    def __init__(self, path):
        self.path = path       # under src/
        self.deps = []         # names of libraries
        self.test_deps = []


def parse(text):
    """The troupe_library's name, its DEPS, and the DEPS of the tests beside it."""
    name, deps, test_deps = None, [], []
    for call, body in CALL.findall(re.sub(r"#.*", "", text)):
        words = body.split()
        named = []
        for word in words[1:]:
            if word.isupper():
                taking = word == "DEPS"
            elif taking:
                named.append(word.removeprefix("troupe::"))
        if call == "troupe_library":
            name, deps = words[0], named
        else:
            test_deps = named
    return name, deps, test_deps


def read_folders(source):
    folders = {}
    for file in sorted(source.rglob("CMakeLists.txt")):
        name, deps, test_deps = parse(file.read_text(encoding="utf-8"))
        if name is None:
            continue
        folders[name] = Folder(str(file.parent.relative_to(source)))
        folders[name].deps, folders[name].test_deps = deps, test_deps
    return folders


def reachable(folders, names, seen=None):
    seen = set() if seen is None else seen
    for name in names:
        if name in folders and name not in seen:
            seen.add(name)
            reachable(folders, folders[name].deps, seen)
    return seen


def circle_in(folders):
    for name in folders:
        if name in reachable(folders, folders[name].deps):
            return name
    return None


def owner_of(folders, path):
    """The library in whose folder a path under src/ lies: the innermost one."""
    best = None
    for name, folder in folders.items():
        inside = path.startswith(folder.path + "/")
        if inside and (best is None or len(folder.path) > len(folders[best].path)):
            best = name
    return best


def faults_of(folders, path, text):
    name = owner_of(folders, path)
    if name is None:
        yield f"src/{path}: lies in no folder that has a troupe_library"
        return
    for_tests = bool(FOR_TESTS.search(path))
    roots = [name] + (folders[name].test_deps if for_tests else [])
    allowed = reachable(folders, roots)
    for kind, target in INCLUDE.findall(text):
        for beginning, owners in OWNERS.items():
            if target.startswith(beginning) and name not in owners and not for_tests:
                yield f"src/{path}: includes <{target}>, which belongs to {sorted(owners) or 'tools/'}"
        if kind == "<" or "/" not in target or target.startswith("hwy/"):
            continue
        other = owner_of(folders, target)
        if other is None:
            yield f'src/{path}: includes "{target}", which lies in no folder'
        elif other not in allowed:
            yield f'src/{path}: includes "{target}", but {name} may include only {sorted(allowed)}'


def needless_of(folders, source):
    """DEPS that no file of the folder includes: an arrow on the map that is not there."""
    used = {name: set() for name in folders}
    for path in source.rglob("*"):
        if path.suffix not in (".h", ".cc") or FOR_TESTS.search(path.name):
            continue
        name = owner_of(folders, str(path.relative_to(source)))
        for kind, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if kind == '"' and name:
                used[name].add(owner_of(folders, target))
    for name, folder in folders.items():
        for dep in folder.deps:
            if dep in folders and dep not in used[name]:
                yield f"src/{folder.path}/CMakeLists.txt: names troupe::{dep}, which nothing there includes"


def check(root):
    source = root / "src"
    folders = read_folders(source)
    faults = []
    if (name := circle_in(folders)) is not None:
        faults.append(f"{name}: may include itself through its DEPS")
    faults += needless_of(folders, source)
    count = 0
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".h", ".cc", ".cu"):
            continue
        count += 1
        text = path.read_text(encoding="utf-8")
        # The header says it for its source, and a test's names are its sentences.
        spoken_for = path.suffix == ".cc" and (
            path.with_suffix(".h").exists() or path.stem.endswith("_test"))
        if not spoken_for and not text.startswith(("//", "/*")):
            faults.append(f"{path.relative_to(root)}: its first line is no comment that says what the file is for")
        faults += faults_of(folders, str(path.relative_to(source)), text)
    return faults, count


def self_test():
    """The checker must fail where it should, or its silence means nothing."""
    base, model, sub = Folder("base"), Folder("model"), Folder("model/sub")
    model.deps, model.test_deps, sub.deps = ["base"], ["sub"], ["model"]
    folders = {"base": base, "model": model, "sub": sub}
    assert list(faults_of(folders, "base/a.h", '#include "model/b.h"\n')), "an upward include"
    assert not list(faults_of(folders, "model/a.h", '#include "base/b.h"\n#include <vector>\n'))
    assert list(faults_of(folders, "model/a.h", '#include "model/sub/b.h"\n')), "up into a subfolder"
    assert not list(faults_of(folders, "model/sub/a.h", '#include "base/b.h"\n')), "arrows are transitive"
    assert not list(faults_of(folders, "model/a_test.cc", '#include "model/sub/b.h"\n')), "a test may"
    assert list(faults_of(folders, "base/a.cc", "#include <hwy/highway.h>\n")), "Highway outside kernels/"
    assert circle_in(folders) is None
    base.deps = ["sub"]
    assert circle_in(folders) is not None, "a circle"
    text = "troupe_library(a\n  SRCS\n    x.cc\n  DEPS\n    troupe::b # why\n  EXTERNAL\n    C::c)\ntroupe_tests(a SRCS y.cc DEPS troupe::d)"
    assert parse(text) == ("a", ["b"], ["d"]), parse(text)


if __name__ == "__main__":
    self_test()
    faults, count = check(pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(faults), end="\n" if faults else "")
    print(f"layers: {count} files, {len(faults)} faults")
    sys.exit(1 if faults else 0)
