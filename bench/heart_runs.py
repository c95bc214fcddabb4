"""The single runs of bench/heart: two trees compiled, two binaries in turn, many sequences together.
What is made of the figures is heart_figures.py's part.
"""
import os
import resource
import shutil
import subprocess

import measured_run
import offload_runs

SHARES = {"in memory": None, "75 %": 0.75, "50 %": 0.5, "25 %": 0.25}
SMALL = ("small-q4_0.gguf", ["--shape", "small", "--type", "Q4_0"])
WIDENED = ("tiny-widened-q8_0.gguf",
           ["--widen", "models/tiny-qwen2moe-q8_0.gguf", "--factor", "256"])
PREFILL, DECODE = 512, 96
TOGETHER = (1, 2, 4, 8, 16, 32)
JOINED_PROMPT = 2048


def _child_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _quietly(command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "CCACHE_DISABLE": "1"}, check=False)
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise measured_run.RunFailed(f"{' '.join(map(str, command))}: exit code {done.returncode}, "
                                     f"said last: {said[-1]}")


class Runs:
    """Takes the measurements, part by part."""

    def __init__(self, root, troupe, folder, against, quick):
        self._root, self._folder, self._against, self._quick = root, folder, against, quick
        self._new = measured_run.Troupe(troupe, folder, "heart")
        self._troupe = troupe

    @property
    def disturbed(self):
        return self._new.disturbed

    def _old_tree(self):
        """A checkout of the older commit, made once."""
        tree = self._folder / f"tree-{self._against}"
        if not tree.exists():
            _quietly(["git", "-C", self._root, "worktree", "prune"])
            _quietly(["git", "clone", "--quiet", "--no-checkout", self._root, tree])
            _quietly(["git", "-C", tree, "checkout", "--quiet", self._against])
        return tree

    def _configure(self, tree, build, *options):
        _quietly(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                  *options])

    def _compile_cpu_seconds(self, tree, build):
        shutil.rmtree(build, ignore_errors=True)
        self._configure(tree, build, "-DTROUPE_TESTS=OFF", "-DTROUPE_BENCHES=OFF",
                        "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold")
        before = _child_cpu_seconds()
        _quietly(["cmake", "--build", build, "--target", "troupe", "-j", str(os.cpu_count())])
        seconds = _child_cpu_seconds() - before
        shutil.rmtree(build)
        return seconds

    def compile(self):
        """CPU seconds that compiling and linking the program takes, with no cache."""
        self._new.say("compiling the older tree")
        old = self._compile_cpu_seconds(self._old_tree(), self._folder / "build-old-timed")
        self._new.say("compiling this tree")
        new = self._compile_cpu_seconds(self._root, self._folder / "build-new-timed")
        return {"old_cpu_s": old, "new_cpu_s": new}

    def _old_binary(self):
        build = self._folder / f"build-{self._against}"
        binary = build / "tools/troupe/troupe"
        if not binary.exists():
            self._new.say(f"building {self._against}")
            self._configure(self._old_tree(), build, "-DTROUPE_TESTS=OFF", "-DTROUPE_BENCHES=OFF")
            _quietly(["cmake", "--build", build, "--target", "troupe", "-j", str(os.cpu_count())])
        return binary

    def _model(self, model):
        name, arguments = model
        arguments = [str(self._root / a) if a.startswith("models/") else a for a in arguments]
        return offload_runs.make_model(self._troupe, self._folder / name, arguments)

    def _probe(self):
        """Has this machine's costs measured now, in a cache of the benchmark's own: what an earlier
        run found while something else was computing shapes no read here."""
        os.environ["XDG_CACHE_HOME"] = str(self._folder / "cache")
        path, _ = self._model(SMALL)
        self._new.say("measuring memory and disk")
        self._new.record("probe", path, "--fresh")

    def speed(self):
        """Decode and prefill of the older binary and this one, in turn, cell by cell."""
        binaries = {"old": measured_run.Troupe(self._old_binary(), self._folder, "heart-old"),
                    "new": self._new}
        self._probe()
        cells = []
        for model in [SMALL] if self._quick else [SMALL, WIDENED]:
            path, container = self._model(model)
            experts = _experts_of(self._new.record("inspect", path))
            for share, part in SHARES.items():
                memory = [] if part is None else ["--slots", round(part * experts),
                                                  "--experts", container]
                cell = {"model": path.stem, "share": share,
                        "decode": {"old": [], "new": []}, "prefill": {"old": [], "new": []}}
                for round_ in range(2 if self._quick else 8):
                    order = ("old", "new") if round_ % 2 == 0 else ("new", "old")
                    for which in order:
                        self._new.say(f"{path.stem}, {share}, round {round_ + 1}, {which}")
                        record = binaries[which].record(
                            "bench", path, "--prefill", PREFILL, "--decode", DECODE, "--reps", 1,
                            "--ctx", 1024, *memory)
                        cell["decode"][which].append(record["decode"][0]["median"])
                        cell["prefill"][which].append(record["prefill"][0]["median"])
                cells.append(cell)
        return cells

    def together(self):
        """Sequences that decode in one pass, beside a prompt read in chunks of as many tokens, and
        the limit that memory and disk set."""
        self._probe()
        path, container = self._model(SMALL)
        experts = _experts_of(self._new.record("inspect", path))
        self._new.say("a long prompt, for the speed of the processors")
        prompt = self._new.record("bench", path, "--prefill", 512, "--decode", 1, "--reps", 3, "--ctx", 1024)
        rows = []
        for share, part in (("in memory", None), ("50 %", 0.5)):
            memory = [] if part is None else ["--slots", round(part * experts), "--experts", container]
            counts = TOGETHER if part is None else (1, 2, 4, 8, 16)
            self._new.say(f"{', '.join(map(str, counts))} sequences, {share}")
            record = self._new.record("bench", path, "--prefill", 32, "--decode", 32, "--reps",
                                      2 if self._quick else 5, "--ctx", 256, "--together",
                                      ",".join(map(str, counts)), *memory)
            rows += [{"share": share, "processors_tokens_per_s": prompt["prefill"][0]["median"], **row}
                     for row in record["together"]]
        return rows

    def join(self):
        """A long prompt joins eight sequences that decode: their longest gap and the median."""
        path, _ = self._model(SMALL)
        self._new.say(f"a prompt of {JOINED_PROMPT} tokens joins eight decodes")
        record = self._new.record("bench", path, "--prefill", 32, "--decode", 8, "--reps", 1,
                                  "--ctx", JOINED_PROMPT + 512, "--join", JOINED_PROMPT)
        return record["join"]


def _experts_of(inspected):
    layers = sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"])
    return layers * inspected["experts"]
