"""A memory cgroup of its own for a command, with swap off: cgroups of version 1 or 2, whichever the
system has. Knows nothing of what runs inside.
"""
import os
import pathlib
import time

_PROC, _MOUNT = pathlib.Path("/proc"), pathlib.Path("/sys/fs/cgroup")

# By version: the limit's file, files that turn swap off and what to write there (None: the limit),
# the most that was used. A kernel without swap accounting lacks the second kind.
_V1 = ("memory.limit_in_bytes",
       {"memory.swappiness": 0, "memory.memsw.limit_in_bytes": None},
       "memory.max_usage_in_bytes", "memory.oom_control")
_V2 = ("memory.max", {"memory.swap.max": 0}, "memory.peak", "memory.events")


class NotPermitted(Exception):
    """One line: why no cgroup can be made here."""


class MemoryCgroup:
    """Exists within a `with`; what was put into it must have ended before."""

    def __init__(self, limit_bytes):
        self._limit = limit_bytes
        self._folder = None
        self._version = None

    def __enter__(self):
        refusals = []
        for version, parent in _parents():
            folder = parent / f"troupe-{os.getpid()}-{time.monotonic_ns()}"
            try:
                self._make(version, folder)
                return self
            except OSError as error:
                refusals.append(str(error))
                if folder.is_dir():
                    folder.rmdir()
        raise NotPermitted("no memory cgroup can be made: "
                           + (refusals[0] if refusals else f"none is mounted at {_MOUNT}"))

    def _make(self, version, folder):
        if version is _V2:  # the processes of a parent that shares memory out must be elsewhere
            (folder.parent / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
        folder.mkdir()
        limit_file, swap_off, _, _ = version
        (folder / limit_file).write_text(str(self._limit), encoding="ascii")
        for name, value in swap_off.items():
            if (folder / name).exists():
                (folder / name).write_text(str(self._limit if value is None else value),
                                           encoding="ascii")
        self._folder, self._version = folder, version

    def __exit__(self, *_):
        for _ in range(100):  # an ended process may still be giving its pages back
            try:
                self._folder.rmdir()
                return
            except OSError:
                time.sleep(0.05)
        raise OSError(f"{self._folder}: cannot be removed, something still runs in it")

    def command(self, command):
        """What to run so that `command` is in the group from its first instruction on."""
        return ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self._folder / "cgroup.procs"),
                *map(str, command)]

    def peak_bytes(self):
        """The most that was charged, files' pages included; None where the kernel does not say."""
        try:
            return int((self._folder / self._version[2]).read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    def kills(self):
        """How many processes the kernel has killed for memory."""
        events = (self._folder / self._version[3]).read_text(encoding="ascii")
        return sum(int(line.split()[1]) for line in events.splitlines()
                   if line.startswith("oom_kill "))


def _parents():
    """(version, folder) under which a group may be made: this process's own, then those above."""
    found = []
    for line in (_PROC / "self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found.append((_V1, _MOUNT / "memory", path))
        elif controllers == "":
            found.append((_V2, _MOUNT, path))
    for version, mount, path in found:
        own = mount / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(mount) and (folder / "cgroup.procs").exists():
                yield version, folder
