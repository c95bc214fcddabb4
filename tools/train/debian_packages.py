"""Gets Debian packages without installing them, and reads files out of them."""
import contextlib
import fnmatch
import gzip
import io
import json
import lzma
import pathlib
import subprocess
import tarfile
import zlib


class PackageFailed(Exception):
    """One line: which package, and what apt, dpkg or tar said."""


def _run(command, name, **options):
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise PackageFailed(f"package {name}: {' '.join(command[:2])} failed, said last: {said[-1]}")
    return done.stdout


def known_versions(path):
    """{package: version} of a NAME.card.json or a manifest.json."""
    try:
        content = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        named = content.get("data", content)["sources"]
        return {name: each["version"] for name, each in named.items() if "version" in each}
    except (ValueError, KeyError, AttributeError, TypeError):
        raise PackageFailed(f"{path}: no versions of packages, expected a NAME.card.json or a manifest.json") from None


def fetch(name, folder, expected=None):
    """The .deb in `folder`, downloaded if none is there yet, and its version; any version will do if none
    is expected."""
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob(f"{name}_*.deb"))
    if not found:
        _run(["apt-get", "download", f"{name}={expected}" if expected else name], name, cwd=folder)
        found = sorted(folder.glob(f"{name}_*.deb"))
    if len(found) != 1:
        raise PackageFailed(f"package {name}: {len(found)} files {name}_*.deb in {folder}, expected one")
    version = _run(["dpkg-deb", "--field", str(found[0]), "Version"], name).decode().strip()
    if expected and version != expected:
        raise PackageFailed(f"package {name}: version {version} in {found[0]}, expected {expected}")
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


@contextlib.contextmanager
def _opened(deb, name):
    """The package's files as an archive that is read once, from its beginning on."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                yield archive
        except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as failure:
            raise PackageFailed(f"package {name}: {deb} is damaged ({failure}); remove it, and the next call "
                                "downloads it") from None
        finally:
            process.kill()


def read(deb, package):
    """Yields (path, contents) of the files that `package` names, in the archive's order."""
    with _opened(deb, package.name) as outer:
        if not package.archive:
            yield from _files(outer, package)
            return
        for path, member in _members(outer):
            if path == package.archive:
                with tarfile.open(fileobj=io.BufferedReader(outer.extractfile(member)), mode="r|*") as inner:
                    yield from _files(inner, package)
                return
    raise PackageFailed(f"package {package.name}: no {package.archive} in it")


def copyright_of(deb, name):
    """The package's copyright file, or an empty text where it is another package's."""
    with _opened(deb, name) as archive:
        for path, member in _members(archive):
            if path in (f"usr/share/doc/{name}/copyright", f"usr/share/doc/{name}/copyright.gz"):
                text = archive.extractfile(member).read()
                return (gzip.decompress(text) if path.endswith(".gz") else text).decode("utf-8", "ignore")
    return ""


def default_folder(work):
    return pathlib.Path(work) / "packages"
