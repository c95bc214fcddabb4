"""Runs the troupe binary for tests: one function a command, results as Python values.

Knows the command line's contract and nothing about what is right.
"""
import array
import json
import math
import os
import pathlib
import struct
import subprocess

_FOOTER = struct.Struct("<II8s")  # rows, vocabulary, magic
_MAGIC = b"TRPLGT01"

# Tests run beside each other, and threads that wait for each other 50 microseconds long do not like
# to share a processor. Results are the same for any number (tests/exactness_test.cc).
_THREADS = 1


class LogitRows:
    """Rows of float32 over the vocabulary, as troupe saves them (docs/formats/logits.md)."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        count, vocabulary, magic = _FOOTER.unpack(data[-_FOOTER.size:])
        assert magic == _MAGIC, f"{path}: ends in {magic}, expected {_MAGIC}"
        self._vocabulary = vocabulary
        self._rows = memoryview(data)[:4 * count * vocabulary].cast("f")
        self.tokens = array.array("i", data[4 * count * vocabulary:-_FOOTER.size])
        assert len(self.tokens) == count, f"{path}: {len(self.tokens)} tokens for {count} rows"

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, row):
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self._rows[row * self._vocabulary:(row + 1) * self._vocabulary]


class TroupeFailed(Exception):
    """One line: which command, and what it said on stderr."""


def packed_model(binary, path, shape):
    """A synthetic model of that shape, a name or what a config.json says, and its container beside it."""
    if isinstance(shape, dict):
        config = path.with_name("config.json")
        config.write_text(json.dumps(shape), encoding="utf-8")
        shape = config
    troupe = Troupe(binary)
    troupe.run("synth", path, "--shape", shape, "--type", "Q8_0")
    troupe.run("pack", path)
    return path


def kernels(binary, named=None):
    """The instruction set that it computes with, or None if this machine does not run what was named."""
    env = {**os.environ, **({"TROUPE_KERNELS": named} if named else {})}
    done = subprocess.run([str(binary), "--version"], env=env, capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.returncode == 0 else None


class Troupe:
    def __init__(self, binary):
        self._binary = str(binary)

    def run(self, *arguments):
        done = subprocess.run([self._binary, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TroupeFailed(f"troupe {' '.join(map(str, arguments))}: exit code "
                               f"{done.returncode}, {done.stderr.strip()}")
        return done.stdout

    def synthesize(self, out, shape, type_, seed):
        self.run("synth", out, "--shape", shape, "--type", type_, "--seed", seed, "--threads",
                 _THREADS)

    def generate(self, model, prompt_ids, count, folder):
        """Greedy decoding: the record of the run, and the logits behind each token."""
        record, logits = folder / "run.json", folder / "run.logits"
        self.run("run", model, "--prompt-ids", ",".join(map(str, prompt_ids)), "-n", count,
                 "--temperature", 0, "--ignore-eos", "--threads", _THREADS, "--json", record,
                 "--logits", logits)
        return json.loads(record.read_text()), LogitRows(logits)

    def evaluate(self, model, ids, folder):
        """Teacher forcing: row i holds the logits behind ids[i + 1], after all ids before it."""
        ids_file, logits = folder / "eval.ids", folder / "eval.logits"
        ids_file.write_text(",".join(map(str, ids)))
        self.run("eval", model, "--ids-file", ids_file, "--threads", _THREADS, "--logits", logits)
        rows = LogitRows(logits)
        assert list(rows.tokens) == list(ids[1:]), "eval scored other tokens than it was given"
        return rows


def log_softmax(row):
    """The row's log-probabilities, in double."""
    top = max(row)
    log_sum = top + math.log(sum(math.exp(x - top) for x in row))
    return [x - log_sum for x in row]
