"""Debian's numpy, torch and sentencepiece belong to Debian's python3, which another python3 before it in
the path does not see: a tool that lacks them starts itself again with /usr/bin/python3.

And Debian's OpenBLAS does not know processors that are younger than it is: on those it multiplies with the
instructions of 2004. It is told what there is before it is loaded.
"""
import importlib.util
import os
import sys

_DEBIAN = "/usr/bin/python3"


# OpenBLAS's name of a kind of processor, and the instructions that it has.
_CORES = (("SkylakeX", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}), ("Haswell", {"avx2", "fma"}))


def core_type(cpuinfo):
    """The name for a processor that /proc/cpuinfo describes; None: leave it to OpenBLAS."""
    flags = next((line.split(":", 1)[1].split() for line in cpuinfo.splitlines() if line.startswith("flags")), ())
    return next((name for name, wanted in _CORES if wanted <= set(flags)), None)


def _tell_openblas():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            core = core_type(file.read())
    except OSError:
        return
    if core is not None:
        os.environ.setdefault("OPENBLAS_CORETYPE", core)


def ensure(*modules):
    _tell_openblas()
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not missing:
        return
    if os.environ.get("TROUPE_INTERPRETER") != "debian" and os.access(_DEBIAN, os.X_OK):
        os.execve(_DEBIAN, [_DEBIAN, "-B", *sys.argv], {**os.environ, "TROUPE_INTERPRETER": "debian"})
    sys.exit(f"{os.path.basename(sys.argv[0])}: no module {', '.join(missing)} for {sys.executable}; "
             "scripts/install-packages.sh train installs Debian's")
