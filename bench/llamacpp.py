"""The llama.cpp of bench/setup: its installation, the ways to run it fast, one speed measurement.

What its process does is in peer.mjs and peer_speed.mjs.
"""
import dataclasses
import json
import pathlib
import shutil
import subprocess

import measured_run

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent


def set_up():
    """Installs what is missing; raises RunFailed where that cannot be."""
    done = subprocess.run([BENCH / "setup"], stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise measured_run.RunFailed("bench/setup: llama.cpp is not there, nothing to compare with")


def build_shim(folder, name):
    """Compiles NAME.c, to be preloaded into llama.cpp's process, and returns the library's path, or
    None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, library = BENCH / f"{name}.c", folder / f"{name}.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        measured_run.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library),
                          "-ldl"])
    return library


def build_pinning_shim(folder):
    return build_shim(folder, "pin_threads")


@dataclasses.dataclass(frozen=True)
class Config:
    """A way to run llama.cpp; without pinning and with mmap it is what a user gets."""
    mmap: bool
    shim: pathlib.Path | None

    @property
    def name(self):
        return ("pinned" if self.shim else "as shipped") + (", mmap" if self.mmap else ", no mmap")

    @property
    def as_shipped(self):
        return self.mmap and self.shim is None


def configs(shim):
    """As shipped first. Weights that are read instead of mapped decode a little faster here."""
    shims = [None] if shim is None else [None, shim]
    return [Config(mmap, s) for s in shims for mmap in (True, False)]


def measure_speed(config, model, text, threads, prefill, prompt, decode, reps):
    """Tokens/s of `reps` prefills and decodes in one process, and how that process behaved."""
    done = measured_run.run(
        ["node", str(BENCH / "peer_speed.mjs"), str(model), str(text), str(threads), str(prefill),
         str(prompt), str(decode), str(reps), "mmap" if config.mmap else "nommap"],
        {"LD_PRELOAD": str(config.shim)} if config.shim else None)
    return json.loads(done.stdout), done
