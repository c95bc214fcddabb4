"""A part of this machine's processors for each of a bench's nodes, by cgroups. Needs root."""
import pathlib
import time

CPU = pathlib.Path("/sys/fs/cgroup/cpu")  # cgroups of version 1
CPU_V2 = pathlib.Path("/sys/fs/cgroup")
PERIOD = 10_000  # microseconds: throttling comes in slices no token waits long for


class Processors:
    """A cgroup that limits how many processors its processes use together."""

    def __init__(self, name, processors):
        self.v1 = (CPU / "cpu.cfs_quota_us").exists()
        self.folder = (CPU if self.v1 else CPU_V2) / f"troupe-bench-{name}"
        try:
            self.folder.mkdir(exist_ok=True)
            quota = max(1000, int(processors * PERIOD))
            if self.v1:
                (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD))
                (self.folder / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (self.folder / "cpu.max").write_text(f"{quota} {PERIOD}")
        except OSError as error:
            raise SystemExit(f"no cgroup for processors: {error}")

    def inside(self, command):
        """The command as it runs there."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *map(str, command)]

    def close(self):
        for _ in range(100):
            try:
                return self.folder.rmdir()
            except OSError:
                time.sleep(0.05)


class Confined:
    """Machines as a command is started on them that has a part of the processors: it enters its cgroup first, as a
    namespace does not see cgroups."""

    def __init__(self, machines, processors):
        self.machines, self.processors = machines, processors

    def address(self, i):
        return self.machines.address(i)

    def inside(self, i, command):
        return self.processors.inside(self.machines.inside(i, command))
