"""Gets Debian packages without installing them, and reads files out of them."""
import fnmatch
import gzip
import io
import pathlib
import subprocess
import tarfile


class PackageFailed(Exception):
    """One line: which package, and what apt or dpkg said."""


def _run(command, name, **options):
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise PackageFailed(f"package {name}: {' '.join(command[:2])} failed, said last: {said[-1]}")
    return done.stdout


def fetch(name, folder):
    """The .deb in `folder`, downloaded if none is there yet, and its version."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob(f"{name}_*.deb"))
    if not found:
        _run(["apt-get", "download", name], name, cwd=folder)
        found = sorted(folder.glob(f"{name}_*.deb"))
    if len(found) != 1:
        raise PackageFailed(f"package {name}: {len(found)} files {name}_*.deb in {folder}, expected one")
    version = _run(["dpkg-deb", "--field", str(found[0]), "Version"], name).decode().strip()
    return found[0], version


def _members(archive):
    for member in archive:
        if member.isfile():
            yield member.name[2:] if member.name.startswith("./") else member.name, member


def _wanted(path, package):
    return (any(fnmatch.fnmatchcase(path, pattern) for pattern in package.paths)
            and not any(fnmatch.fnmatchcase(path, pattern) for pattern in package.besides))


def _files(archive, package):
    for path, member in _members(archive):
        if _wanted(path, package):
            data = archive.extractfile(member).read()
            if path.endswith(".gz"):
                data = gzip.decompress(data)
            yield path, data.decode("utf-8", errors="ignore")


def read(deb, package):
    """Yields (path, contents) of the files that `package` names, in the archive's order."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as outer:
            if not package.archive:
                yield from _files(outer, package)
                return
            for path, member in _members(outer):
                if path == package.archive:
                    with tarfile.open(fileobj=io.BufferedReader(outer.extractfile(member)), mode="r|*") as inner:
                        yield from _files(inner, package)
                    process.kill()
                    return
    raise PackageFailed(f"package {package.name}: no {package.archive} in it")


def copyright_of(deb, name):
    """The package's copyright file, or an empty text."""
    data = _run(["dpkg-deb", "--fsys-tarfile", str(deb)], name)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for path, member in _members(archive):
            if path in (f"usr/share/doc/{name}/copyright", f"usr/share/doc/{name}/copyright.gz"):
                text = archive.extractfile(member).read()
                return (gzip.decompress(text) if path.endswith(".gz") else text).decode("utf-8", "ignore")
    return ""


def default_folder(work):
    return pathlib.Path(work) / "packages"
