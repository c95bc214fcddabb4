"""What `bench/overlap --live` reads experts from: the disk as it is, links of a speed, and links on which loading an
expert takes a number of layer times; those that are faster than the disk with the experts held in memory.
"""
import contextlib
import dataclasses
import pathlib
import shutil

import disk_speed
import measured_run

LATENCY = "100us"


@dataclasses.dataclass(frozen=True)
class Medium:
    name: str                # as --media has it
    bytes_per_s: float       # at most
    link: str = ""           # of --link; empty: as fast as what lies behind it
    held: bool = False       # in memory
    layer_times: float = 0   # that loading an expert takes


def check(names):
    """Raises RunFailed unless every name is one."""
    for name in names:
        if name == "disk" or _layer_times(name) is not None or _megabytes(name) is not None:
            continue
        raise measured_run.RunFailed(f"--media: '{name}', expected disk, layer times as 0.5x, or a speed as 1000MB/{LATENCY}")


def _number(text):
    try:
        return float(text) if float(text) > 0 else None
    except ValueError:
        return None


def _layer_times(name):
    return _number(name[:-1]) if name.endswith("x") else None


def _megabytes(name):
    return _number(name.split("MB", 1)[0]) if "MB" in name else None


def medium(name, expert_bytes, layer_s, disk, copied):
    """`copied`: what reading memory gives, of which it is asked only where the disk is too slow."""
    def times(rate):
        return expert_bytes / rate / layer_s

    if name == "disk":
        return Medium(name, disk, layer_times=times(disk))
    wanted = _layer_times(name)
    rate = 1e6 * _megabytes(name) if wanted is None else expert_bytes / (wanted * layer_s)
    if rate <= disk:
        link = name if wanted is None else f"{int(rate)}/{LATENCY}"
        return Medium(name, rate, link, layer_times=times(rate))
    if wanted is None:  # no link makes a disk faster
        return Medium(name, disk, name, layer_times=times(disk))
    memory = copied()
    link = f"{int(rate)}/{LATENCY}" if rate < memory else ""
    return Medium(name, min(rate, memory), link, held=True, layer_times=times(min(rate, memory)))


@contextlib.contextmanager
def held_in_memory(container, folder):
    """A copy of the experts in a tmpfs, for as long as the block lasts."""
    copy = pathlib.Path(folder) / "troupe-overlap.experts"
    size = container.stat().st_size
    if shutil.disk_usage(folder).free < size:
        raise measured_run.RunFailed(f"{folder}: no room for {size >> 20} MiB of experts; --memory-folder names another tmpfs")
    try:
        shutil.copyfile(container, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def copied_speed(container):
    return disk_speed.copied_bytes_per_s(container, 1 << 30)
