"""Debian's numpy, torch and sentencepiece belong to Debian's python3, which another python3 before it in
the path does not see: a tool that lacks them starts itself again with /usr/bin/python3.
"""
import importlib.util
import os
import sys

_DEBIAN = "/usr/bin/python3"


def ensure(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not missing:
        return
    if os.environ.get("TROUPE_INTERPRETER") != "debian" and os.access(_DEBIAN, os.X_OK):
        os.execve(_DEBIAN, [_DEBIAN, "-B", *sys.argv], {**os.environ, "TROUPE_INTERPRETER": "debian"})
    sys.exit(f"{os.path.basename(sys.argv[0])}: no module {', '.join(missing)} for {sys.executable}; "
             "scripts/install-packages.sh train installs Debian's")
