"""Asks a llama.cpp in a process of its own (peer_oracle.mjs) for logits and greedy tokens."""
import json
import os
import pathlib
import subprocess

import llamacpp

_SCRIPT = pathlib.Path(__file__).resolve().parent / "peer_oracle.mjs"


class OracleFailed(Exception):
    """The process has ended, or answers what it should not."""


class Oracle:
    """One request at a time; logits go through files in `folder`. The models of the last request
    stay loaded: a file that was asked about must not change. Weights are never repacked: on
    processors with AMX, llama.cpp packs weights for it that it then has no operation for (its
    issue 19184, LFM2), and ends."""

    def __init__(self, folder):
        self._folder = folder
        self._errors = open(folder / "oracle.log", "w+", encoding="utf-8")
        no_repack = llamacpp.build_shim(folder, "no_repack")
        if no_repack is None:
            raise OracleFailed("no C compiler found, expected cc, gcc or clang (for bench/no_repack.c)")
        self._process = subprocess.Popen(["node", str(_SCRIPT)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._errors, text=True,
                                         env=os.environ | {"LD_PRELOAD": str(no_repack)})

    def close(self):
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended; whoever asked it last was told
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _ask(self, operation, model, **details):
        request = json.dumps({"op": operation, "model": str(model), **details})
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._errors.seek(0)
            said = [line for line in self._errors.read().splitlines() if line] or ["nothing"]
            raise OracleFailed(f"llama.cpp, {operation} of {model}: ended, said last: {said[-1]}")
        return json.loads(answer)

    def _rows(self, path, count):
        rows = memoryview(path.read_bytes()).cast("f")
        width = len(rows) // count
        return [rows[i * width:(i + 1) * width] for i in range(count)]

    def tokenize(self, model, text):
        """Without BOS."""
        return self._ask("tokenize", model, text=text)["ids"]

    def greedy(self, model, prompt, count):
        """Tokens, each one's margin over the second, and the logits behind each."""
        path = self._folder / "greedy.f32"
        answer = self._ask("greedy", model, prompt=prompt, count=count, logits=str(path))
        return answer["tokens"], answer["margins"], self._rows(path, count)

    def teacher(self, model, ids):
        """Row i: the logits after ids[0..i]."""
        path = self._folder / "teacher.f32"
        self._ask("teacher", model, ids=ids, logits=str(path))
        return self._rows(path, len(ids))

    def search(self, model, copies, prompts, count, margin, distinct):
        """The index of the first prompt whose greedy continuation has no near tie, or None."""
        return self._ask("search", model, copies=[str(copy) for copy in copies], prompts=prompts,
                         count=count, min_margin=margin, min_distinct=distinct)["found"]
