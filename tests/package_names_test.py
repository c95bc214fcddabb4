#!/usr/bin/env python3
"""Lets scripts/install-packages.sh install on Debian 12, Debian 13 and Ubuntu 24.04, by the package lists that
tests/data/packages.tsv has of them: apt-get and apt-cache are stand-ins, and nothing is installed there."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "install-packages.sh"
TOOLS = ("bash", "cut", "dirname", "env", "grep", "mktemp", "rm", "sed", "tail")  # what it uses of any system
# What is for developers of the project alone and lacks a package there.
LACKING = {"Ubuntu 24.04": {"page": "chromium", "train": "python3-torch"}}

STAND_INS = {
    "id": "echo ${USER_ID:-0}",
    # usage: dpkg-query -W -f=FORMAT PACKAGE
    "dpkg-query": """[ -n "${INSTALLED:-}" ] && grep -qxF -- "$3" "$INSTALLED" && echo installed""",
    "apt-cache": """case $1 in
  show) # a boost that is not there is mentioned by others, and no error
    if grep -qxF -- "$2" "$LISTED"; then echo "Package: $2"; else [[ $2 == libboost* ]] || exit 100; fi ;;
  depends) echo "  Depends: clang-$CLANG" ;;
  *) exit 2 ;;
esac""",
    "apt-get": """[ -z "${OFFLINE:-}" ] || { echo "E: Failed to fetch"; exit 100; }
[ "$1" = update ] && exit
[ "$1 $2 $3" = "install -y --no-install-recommends" ] || exit 2
shift 3
printf '%s\\n' "$@" >"$ASKED"
for name in "$@"; do
  grep -qxF -- "$name" "$LISTED" || { echo "E: Unable to locate package $name"; exit 100; }
done""",
}


def releases():
    lines = (ROOT / "tests" / "data" / "packages.tsv").read_text().splitlines()
    head, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {name: {row[0]: row[i] for row in rows if row[i] not in "-?"} for i, name in enumerate(head) if i}


def groups():
    script = SCRIPT.read_text()
    return re.findall(r"^  \[([\w-]+)\]='", script[script.index("declare -A packages"):script.index("declare -A command_of")],
                      re.MULTILINE)


class PackageNames(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bin = pathlib.Path(self.folder.name) / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        for name, body in STAND_INS.items():
            (self.bin / name).write_text(f"#!{shutil.which('bash')}\n{body}\n")
            (self.bin / name).chmod(0o755)

    def install(self, listed, *groups, **variables):
        """What the script says and asks apt-get for where these packages are to be had and none, or those of the file
        INSTALLED, are installed."""
        clang = re.match(r"1:(\d+)", listed["clang"])[1]
        listing, asked = (pathlib.Path(self.folder.name) / name for name in ("listed", "asked"))
        listing.write_text("".join(f"{name}\n" for name in listed))
        asked.write_text("")
        done = subprocess.run([self.bin / "bash", SCRIPT, *groups], capture_output=True, text=True,
                              env={"PATH": str(self.bin), "LISTED": str(listing), "ASKED": str(asked), "CLANG": clang,
                                   "TMPDIR": self.folder.name, **variables})
        return done, asked.read_text().split()

    def test_every_group_is_to_be_had_on_every_release(self):
        self.assertGreater(len(groups()), 10)
        for release, listed in releases().items():
            for group in groups():
                with self.subTest(release=release, group=group):
                    done, asked = self.install(listed, group)
                    self.assertTrue(asked)
                    lacking = LACKING.get(release, {}).get(group)
                    if lacking:
                        self.assertIn("could not install", done.stderr)
                        self.assertIn(lacking, set(asked) - set(listed))
                    else:
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                        self.assertEqual(set(asked) - set(listed), set())

    def test_of_two_names_a_release_gets_its_own(self):
        boost = {"Debian 12": "libboost1.81-dev", "Debian 13": "libboost1.83-dev", "Ubuntu 24.04": "libboost1.83-dev"}
        runtime = {"Debian 12": "libclang-rt-14-dev", "Debian 13": "libclang-rt-19-dev", "Ubuntu 24.04": "libclang-rt-18-dev"}
        for release, listed in releases().items():
            asked = self.install(listed, "run", "clang")[1]
            self.assertEqual({name for name in asked if "boost" in name}, {boost[release]})
            self.assertEqual({name for name in asked if "clang-rt" in name}, {runtime[release]})

    def test_what_a_release_may_lack_is_left_out_there_and_asked_for_elsewhere(self):
        for release, listed in releases().items():
            asked = self.install(listed, "test")[1]
            self.assertEqual("kubernetes-client" in asked, "kubernetes-client" in listed)
        self.assertNotIn("kubernetes-client", releases()["Ubuntu 24.04"])

    def test_only_optional_packages_missing_is_no_error_whoever_asks(self):
        listed = releases()["Debian 12"]
        for command in ("g++", "cmake", "ninja", "pkg-config"):
            (self.bin / command).symlink_to(shutil.which("true"))
        needed = [name for name in listed if name != "opencl-c-headers"]
        installed = pathlib.Path(self.folder.name) / "installed"
        installed.write_text("".join(f"{name}\n" for name in needed))
        done, asked = self.install(listed, "run", INSTALLED=str(installed))
        self.assertEqual((done.returncode, asked), (0, ["opencl-c-headers"]), done.stdout + done.stderr)
        without = "going on without opencl-c-headers (optional): "
        done, asked = self.install(listed, "run", INSTALLED=str(installed), USER_ID="1000")
        self.assertEqual((done.returncode, done.stdout, done.stderr, asked), (0, without + "needs root or sudo\n", "", []))
        done, _ = self.install(listed, "run", INSTALLED=str(installed), OFFLINE="1")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], without + "apt-get could not install that")
        # One who may become root only by a password is not asked for it.
        (self.bin / "sudo").write_text(f"#!{shutil.which('bash')}\nexit 1\n")
        (self.bin / "sudo").chmod(0o755)
        done, _ = self.install(listed, "run", INSTALLED=str(installed), USER_ID="1000")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, without + "needs root\n", ""))
        (self.bin / "sudo").unlink()
        # What is needed stays an error.
        installed.write_text("".join(f"{name}\n" for name in needed if name != "liblemon-dev"))
        for variables in ({"USER_ID": "1000"}, {"OFFLINE": "1"}):
            done, _ = self.install(listed, "run", INSTALLED=str(installed), **variables)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_a_name_that_no_list_has_is_an_error(self):
        listed = dict(releases()["Debian 12"])
        del listed["liblemon-dev"]
        done, _ = self.install(listed, "run")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Unable to locate package liblemon-dev", done.stderr)

    def test_what_a_bare_machine_begins_with_is_to_be_had(self):
        include = re.search(r'include=\$\(IFS=,; echo "([\w,-]+)\$', (ROOT / "scripts" / "make-debian").read_text())[1]
        for release, listed in releases().items():
            self.assertEqual(set(include.split(",")) - set(listed), set(), release)

    def test_the_list_has_what_is_asked_for_and_no_more(self):
        named = {name.rstrip("?") for group in re.findall(r"^  \[[\w-]+\]='([^']*)'", SCRIPT.read_text(), re.MULTILINE)
                 for name in re.split(r"[\s|]+", group)}
        named |= {"ca-certificates", "git", "make"}
        for release, listed in releases().items():
            for name in listed:
                self.assertTrue(name in named or re.sub(r"-\d+-", "-VERSION-", name) in named, f"{release}: {name}")


if __name__ == "__main__":
    unittest.main()
