"""The figures of a bench/fate that has ended early, and who may go on from them."""
import hashlib
import json
import pathlib

import measured_run

_BY_NUMBER = ("decode", "same_cache", "keeping", "chosen", "tried", "prefill")  # of each link: by budget, or by length


def of_run(binary, quick, cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """What has to be the same for figures to stand beside each other."""
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {"program": hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest(), "processor": processor, "quick": quick}


def write(path, figures, run):
    """There as a whole, or as it was."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps({"of": run, **figures}, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


def read(path, run):
    """None: there is no such file."""
    if not path.exists():
        return None
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
        was = figures.pop("of")
        for part in _BY_NUMBER:
            figures[part] = {link: _by_number(of_link) for link, of_link in figures[part].items()}
        if "pairs" in figures:
            figures["pairs"]["prefill"] = _by_number(figures["pairs"]["prefill"])
    except (ValueError, KeyError, AttributeError) as error:
        raise measured_run.RunFailed(f"{path}: no figures of bench/fate: {error!r}") from None
    for what, value in run.items():
        if was.get(what) != value:
            raise measured_run.RunFailed(f"{path}: it is of {what} {was.get(what)}, expected {value}; without --go-on it is written "
                                         "anew")
    return figures


def _by_number(table):
    return {int(number): value for number, value in table.items()}
