"""Runs a command and says what it printed, and whether somebody else was computing meanwhile; `Troupe` runs one
binary of ours so and reads what it recorded.
"""
import dataclasses
import json
import os
import pathlib
import sys
import tempfile
import textwrap
import time

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class MeasuredRun:
    stdout: str
    # Processors that everything else on the machine (a hypervisor's other guests included) kept
    # busy meanwhile, on average.
    others: float
    cpu_s: float = 0.0  # of all its threads


class RunFailed(Exception):
    """One line: which command, how it ended, and what it said last."""


def _busy_seconds():
    with open("/proc/stat", encoding="ascii") as stat:
        fields = stat.readline().split()
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_S


def run(command, env=None):
    """Runs `command`, `env` added to the environment; raises RunFailed unless it exits with 0."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        busy, start = _busy_seconds(), time.monotonic()
        pid = os.posix_spawnp(command[0], command, {**os.environ, **(env or {})}, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)])
        _, status, usage = os.wait4(pid, 0)  # unlike subprocess, gives this child's own usage
        seconds = max(time.monotonic() - start, 1 / _TICKS_PER_S)
        others = _busy_seconds() - busy - usage.ru_utime - usage.ru_stime
        for stream in (out, err):
            stream.seek(0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            said = err.read().decode(errors="replace").strip().splitlines() or ["nothing"]
            shown = textwrap.shorten(" ".join(command), 300, placeholder=" …")
            raise RunFailed(f"{shown}: exit code {code}, said last: {said[-1]}")
        return MeasuredRun(stdout=out.read().decode(), others=max(0.0, others / seconds),
                           cpu_s=usage.ru_utime + usage.ru_stime)


class Troupe:
    """One troupe binary for one benchmark: counts its runs, and those that somebody disturbed."""

    def __init__(self, binary, folder, benchmark):
        self._binary, self._benchmark = str(binary), benchmark
        self._path = pathlib.Path(folder) / f"{benchmark}-run.json"
        self.runs = self.disturbed = 0

    def say(self, what):
        print(f"{self._benchmark}: {what}", file=sys.stderr)

    def note(self, run):
        self.runs += 1
        self.disturbed += run.others > 0.1
        return run

    def record(self, *arguments, run=run):
        """What `troupe ARGUMENTS` left under --json."""
        self._path.unlink(missing_ok=True)
        self.note(run([self._binary, *map(str, arguments), "--json", str(self._path)]))
        return json.loads(self._path.read_text(encoding="utf-8"))
