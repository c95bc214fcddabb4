"""The single runs of bench/offload: troupe and llama.cpp, each in a memory cgroup of its own, with
the page cache dropped before. What is made of them is offload_figures.py's.
"""
import dataclasses
import json
import os
import pathlib
import sys

import disk_speed
import llamacpp
import measured_run
import offload_figures

sys.path.insert(0, str(llamacpp.ROOT / "tests"))
import memory_cgroup  # noqa: E402  (tests/ has just become importable)

MOST_SECONDS = 1800  # of any one run: more is a fault, not a figure
_CONTEXT = 1024
_LINK, _LINK_BYTES_PER_S = "500MiB/100us", 500 << 20
_READ_BEFORE = 2 << 30
_VARIATION = 1 << 20  # of what a process finds itself to take, from one to the next


@dataclasses.dataclass(frozen=True)
class Peer:
    """A way to run llama.cpp: weights mapped, never repacked."""
    name: str
    preloads: tuple

    def environment(self):
        return {"LD_PRELOAD": ":".join(map(str, self.preloads))}


def peers(folder):
    no_repack = llamacpp.build_shim(folder, "no_repack")
    pinning = llamacpp.build_pinning_shim(folder)
    if no_repack is None:
        raise measured_run.RunFailed("no C compiler found, expected cc, gcc or clang: without "
                                     "bench/no_repack.c llama.cpp needs twice the memory")
    return [Peer("threads as shipped", (no_repack,)), Peer("threads pinned", (no_repack, pinning))]


def why_not_permitted():
    """None where limits can be set and the page cache dropped; otherwise one line."""
    if os.geteuid() != 0:
        return "memory cgroups and dropping the page cache need root"
    try:
        disk_speed.drop_page_cache()
        with memory_cgroup.MemoryCgroup(64 << 20) as group:
            measured_run.run(group.command(["true"]))
    except (OSError, memory_cgroup.NotPermitted, measured_run.RunFailed) as refusal:
        return str(refusal)
    return None


def experts_of(inspected):
    layers = sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"])
    return layers * inspected["experts"]


def run_limited(command, limit, env=None):
    """Runs `command` in a cgroup of `limit` bytes with nothing of any file in memory."""
    disk_speed.drop_page_cache()
    with memory_cgroup.MemoryCgroup(limit) as group:
        try:
            return measured_run.run(group.command(["timeout", MOST_SECONDS, *command]), env)
        except measured_run.RunFailed as failure:
            if group.kills() == 0:
                raise
            raise measured_run.RunFailed(f"killed for memory at a limit of {limit >> 20} MiB: "
                                         f"{failure}") from failure


class Runner:
    """One model of one troupe binary."""

    def __init__(self, troupe, model, container, threads, folder):
        self._troupe, self._threads = measured_run.Troupe(troupe, folder, "offload"), str(threads)
        self._model, self._folder = model, folder
        self._container = container

    @property
    def runs(self):
        return self._troupe.runs

    @property
    def disturbed(self):
        return self._troupe.disturbed

    def inspect(self):
        return self._troupe.record("inspect", self._model)

    def prompt_ids(self, text, count):
        """The first tokens of a text."""
        head = self._folder / "offload-prompt.txt"
        head.write_text(text, encoding="utf-8")
        record = self._troupe.record("run", self._model, "--file", head, "-n", 1,
                                     "--threads", self._threads)
        if len(record["prompt_ids"]) < count:
            raise measured_run.RunFailed(f"{self._model}: the text gives "
                                         f"{len(record['prompt_ids'])} tokens, {count} needed")
        return record["prompt_ids"][:count]

    def _generate(self, ids, count, *extra):
        # Sampled, not greedy: random weights would soon repeat themselves, and so their experts.
        return ["run", self._model, "--prompt-ids", ",".join(map(str, ids)), "-n", count,
                "--ctx", _CONTEXT, "--temperature", 1, "--top-k", 40, "--seed", 1, "--ignore-eos",
                "--speculate", "off", "--threads", self._threads, *extra]

    def in_memory(self, ids, count, budget=None):
        memory = [] if budget is None else ["--memory", budget]
        record = self._troupe.record(*self._generate(ids, count, *memory))
        if record["expert_slots"] != 0:
            raise measured_run.RunFailed(f"{self._model}: not all of it was in memory; this "
                                         "machine has too little free")
        return record

    def _store_arguments(self, store):
        if store == offload_figures.IN_PLACE:
            return ["--experts", "none"]
        link = ["--link", _LINK] if store == offload_figures.LINK else []
        return ["--experts", self._container, *link]

    def _disk_speed(self, store, total):
        if store == offload_figures.LINK:
            return _LINK_BYTES_PER_S
        return disk_speed.sequential_bytes_per_s(
            self._model if store == offload_figures.IN_PLACE else self._container, total)

    def budget_for(self, slots, store):
        """Bytes that a process with so many experts in memory plans to use."""
        arguments = self._generate([1], 1, "--slots", slots, *self._store_arguments(store))
        return self._troupe.record(*arguments)["planned_bytes"] + _VARIATION

    def limited(self, ids, count, slots, budget, limit, store):
        """The record of a run, and the speeds of sequential reads: before, which also uses up what
        the disk may have saved for a burst, and of as many bytes as the run has read right after.
        """
        before = self._disk_speed(store, _READ_BEFORE)
        arguments = self._generate(ids, count, "--memory", budget, "--slots", slots,
                                   *self._store_arguments(store))
        record = self._troupe.record(*arguments, run=lambda command: run_limited(command, limit))
        return record, [before, self._disk_speed(store, record["bytes_read"])]

    def peer_program_bytes(self, peer):
        """What llama.cpp's process takes before it loads a model: Node.js and its libraries."""
        run = measured_run.run(["node", llamacpp.BENCH / "peer_offload.mjs", "program",
                                self._threads], peer.environment())
        return json.loads(run.stdout)["peak_rss_bytes"]

    def llamacpp(self, peer, phase, prompt, decode, seconds, limit):
        """What peer_offload.mjs says of the phase."""
        ids = self._folder / "offload-ids.json"
        ids.write_text(json.dumps({"prompt": prompt, "decode": decode}), encoding="utf-8")
        run = self._troupe.note(run_limited(
            ["node", llamacpp.BENCH / "peer_offload.mjs", phase, self._model, ids, self._threads,
             seconds], limit, peer.environment()))
        return json.loads(run.stdout)


def make_model(troupe, path, arguments):
    """Synthesizes a model unless it is there, packs its experts unless they are."""
    if not path.exists():
        print(f"making {path.name}", file=sys.stderr)
        measured_run.run([str(troupe), "synth", str(path), *map(str, arguments)])
    container = path.with_suffix(".experts")
    if not container.exists() or container.stat().st_mtime < path.stat().st_mtime:
        print(f"packing {container.name}", file=sys.stderr)
        measured_run.run([str(troupe), "pack", str(path), "-o", str(container)])
    return pathlib.Path(path), container
