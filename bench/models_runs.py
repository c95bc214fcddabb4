"""The runs of bench/models, of one model at a time: with everything in memory as bench/vs_llamacpp
does it, and in memory cgroups as bench/offload does it. What is made of them is
models_figures.py's.
"""
import json
import sys

import llamacpp
import measured_run
import models_figures
import offload_figures
import offload_runs
import speed_table

TEXT = llamacpp.ROOT / "tests/data/prose/mixed.txt"
_TEXT_CHARACTERS = 1000  # gives more tokens than a prompt below, under the vocabulary of `synth`
_PROMPT = 32
_ALLOWANCE = 64 << 20    # what the kernel charges a process beside its own memory
RANDOM = "random weights: routing is near uniform"


class Effort:
    """How much of everything is done: a few minutes for each model, or for all of them."""

    def __init__(self, quick, rounds):
        self.quick = quick
        self.prefill, self.decode, self.reps, self.rounds = \
            (128, 24, 1, 1) if quick else (512, 64, 1, rounds)
        self.shares = (0.5,) if quick else models_figures.SHARES
        self.limited_decode, self.peer_seconds = (24, 6) if quick else (48, 15)


class Measuring:
    def __init__(self, options, family, files, folder):
        self._options, self._family, self._files, self._folder = options, family, files, folder
        self._effort = Effort(options.quick, options.rounds)
        layers = family.depth(options.quick, options.whole)
        self._result = models_figures.Measured(family, layers, files.model.stat().st_size)

    def _say(self, what):
        print(f"{self._family.name}: {what}", file=sys.stderr)

    def measure(self):
        if "memory" in self._options.parts:
            self._in_memory()
        if "limits" in self._options.parts:
            self._files.pack()
            self._limited()
        return self._result

    # Everything in memory.

    def _in_memory(self):
        name = f"{self._family.name} {self._family.mix}"
        comparison = speed_table.Comparison(name, self._result.file_bytes)
        self._result.memory = comparison
        configs = llamacpp.configs(llamacpp.build_pinning_shim(self._folder))
        if self._effort.quick:
            configs = configs[-1:]
        for round_ in range(self._effort.rounds):
            self._say(f"in memory, round {round_ + 1} of {self._effort.rounds}")
            _read_into_page_cache(self._files.model)
            comparison.add_troupe(*self._troupe_bench())
            for config in configs:
                comparison.add_llamacpp(config, *llamacpp.measure_speed(
                    config, self._files.model, TEXT, self._options.threads, self._effort.prefill,
                    _PROMPT, self._effort.decode, self._effort.reps))
            configs = [c for c in configs if c.as_shipped or comparison.is_best_at_something(c)]

    def _troupe_bench(self):
        report = self._folder / "models-bench.json"
        done = measured_run.run(
            [str(self._options.troupe), "bench", str(self._files.model), "--threads",
             str(self._options.threads), "--prompt-file", str(TEXT), "--prefill",
             str(self._effort.prefill), "--decode", str(self._effort.decode), "--prompt-length",
             str(_PROMPT), "--reps", str(self._effort.reps), "--json", str(report)])
        return json.loads(report.read_text(encoding="utf-8")), done

    # With part of the experts in memory.

    def _limited(self):
        run = offload_runs.Runner(self._options.troupe, self._files.model, self._files.container,
                                  self._options.threads, self._folder)
        peers = offload_runs.peers(self._folder)[-1 if self._effort.quick else 0:]
        inspected = run.inspect()
        # Experts of one model differ in size where a mix gives some layers more bits.
        mean = inspected["expert_bytes"] // offload_runs.experts_of(inspected)
        limited = offload_figures.Offload(self._family.name, RANDOM, self._result.file_bytes,
                                          {**inspected, "one_expert_bytes": mean})
        self._result.limited = limited
        limited.peer_program_bytes = max(map(run.peer_program_bytes, peers))
        ids = run.prompt_ids(TEXT.read_text(encoding="utf-8")[:_TEXT_CHARACTERS], _PROMPT)
        self._say("tokens with everything in memory")
        for _ in range(self._effort.rounds):
            record = run.in_memory(ids, self._effort.limited_decode)
            limited.unlimited.append(record["decode_tokens_per_s"])
        for share in self._effort.shares:
            self._say(f"{share:.0%} of the experts in memory")
            budget = self._budget(run, peers, share, inspected, ids, record["token_ids"])
            limited.budgets.append(budget)
            # Reading the prompt takes llama.cpp most of a minute: the best way at first goes on.
            peers = [max(peers, key=lambda p, of=budget: of.peers[p.name].decode)]
        limited.runs, limited.disturbed = run.runs, run.disturbed

    def _budget(self, run, peers, share, inspected, ids, expected):
        store = offload_figures.PACKED
        slots = round(share * offload_runs.experts_of(inspected))
        size = run.budget_for(slots, store)
        budget = offload_figures.Budget(share, size, size + _ALLOWANCE)
        runs = budget.stores[store] = offload_figures.TroupeRuns()
        for _ in range(self._effort.rounds):
            record, disk = run.limited(ids, self._effort.limited_decode, slots, size,
                                       budget.limit_bytes, store)
            self._result.limited.differing += record["token_ids"] != expected
            runs.records.append(record)
            runs.disk += disk
        for peer in peers:
            limit = budget.limit_bytes + self._result.limited.peer_program_bytes
            runs = budget.peers[peer.name] = offload_figures.PeerRuns()
            runs.take_decode(run.llamacpp(peer, "decode", ids, expected, self._effort.peer_seconds, limit))
        return budget


def _read_into_page_cache(path):
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 22)
        while file.readinto(buffer):
            pass
