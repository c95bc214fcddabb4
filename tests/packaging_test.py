#!/usr/bin/env python3
"""What can be held of packaging/ without Docker and systemd: that what it names is there.

usage: packaging_test.py TROUPE [unittest arguments]
"""
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TROUPE = None  # the binary, set at the end of this file


def dockerfile():
    """The instructions of its stages: a list of (word, rest) for each."""
    text = re.sub(r"^#.*\n", "", (ROOT / "packaging" / "Dockerfile").read_text(), flags=re.MULTILINE)
    stages = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


@unittest.skipUnless(shutil.which("kubectl"), "no kubectl here; Ubuntu has no package with it")
class Kubernetes(unittest.TestCase):
    FOLDER = ROOT / "packaging" / "kubernetes"

    @classmethod
    def setUpClass(cls):
        done = subprocess.run(["kubectl", "kustomize", cls.FOLDER], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        cls.rendered = done.stdout

    def test_renders_all_that_a_cluster_is_made_of(self):
        kinds = re.findall(r"^kind: (\w+)$", self.rendered, re.MULTILINE)
        self.assertEqual(sorted(kinds), ["ConfigMap", "PodDisruptionBudget", "Service", "Service", "StatefulSet"])
        self.assertIn("image: troupe:latest", self.rendered)
        self.assertRegex(self.rendered, r"name: troupe-[a-z0-9]{10}\b")  # of the map by its content: a change restarts

    def test_a_pod_that_ends_has_time_for_its_services_to_learn_of_it_and_for_its_requests(self):
        wait = int(re.search(r"preStop:\s+exec:\s+command:\s+- sleep\s+- \"(\d+)\"", self.rendered)[1])
        grace = int(re.search(r"terminationGracePeriodSeconds: (\d+)", self.rendered)[1])
        self.assertGreater(wait, 1)
        self.assertGreater(grace, wait + 30)  # drain-s

    def test_the_secret_that_it_tells_to_make_has_the_files_that_nodes_read_and_no_others(self):
        told = (self.FOLDER / "kustomization.yaml").read_text()
        hosts = re.search(r"troupe cluster certificates peers --hosts (\S+)", told)[1].split(",")
        replicas = int(re.search(r"replicas: (\d+)", self.rendered)[1])
        paths = re.findall(r"--peer-(?:authority|certificate|key)=/etc/troupe-peers/(\S+)", self.rendered)
        self.assertEqual(len(paths), 3)
        read = {path.replace("$(POD_NAME)", f"troupe-{i}") for path in paths for i in range(replicas)}
        self.assertEqual(set(re.findall(r"--from-file=peers/(\S+)", told)), read)
        self.assertNotIn("authority.key", read)
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([TROUPE, "cluster", "certificates", folder, "--hosts", ",".join(hosts)],
                                  capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(read | {"authority.key"}, {path.name for path in pathlib.Path(folder).iterdir()})

    def test_its_options_are_those_of_serve(self):
        said = subprocess.run([TROUPE, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        options = re.findall(r"- (--[\w-]+)=", self.rendered)
        self.assertGreater(len(options), 5)
        options += [f"--{line.split()[0]}" for line in (self.FOLDER / "troupe.conf").read_text().splitlines()]
        for option in set(options) - {"--model"}:  # the file's name for MODEL
            self.assertRegex(said, rf"(?m)^ *(-\w,? ?)?{option}\b", option)


class Dockerfile(unittest.TestCase):
    def test_every_source_that_it_copies_is_in_the_repository(self):
        tracked = set(subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True).stdout.split())
        copied = [source for word, rest in dockerfile()[0] if word == "COPY" for source in rest.split()[:-1]]
        self.assertGreater(len(copied), 5)
        for source in copied:
            self.assertTrue((ROOT / source).exists(), source)
            if tracked:  # a release has no git
                self.assertTrue(any(path == source or path.startswith(source + "/") for path in tracked), source)

    def test_every_folder_that_cmake_reads_for_the_program_is_copied(self):
        copied = [source for word, rest in dockerfile()[0] if word == "COPY" for source in rest.split()[:-1]]
        text = (ROOT / "CMakeLists.txt").read_text()
        always = re.sub(r"if\(TROUPE_\w+\).*?endif\(\)", "", text, flags=re.DOTALL)
        folders = re.findall(r"(?:add_subdirectory|include)\(([\w/.]+)\)", always)
        self.assertGreater(len(folders), 20)
        for folder in folders:
            self.assertTrue(any(f"{folder}/".startswith(source + "/") for source in copied), folder)

    def test_every_package_is_debians(self):
        packages = set()
        for stage in dockerfile():
            for word, rest in stage:
                for installed in re.findall(r"apt-get install -y --no-install-recommends ([^&]*)", rest):
                    packages.update(name for name in installed.split() if not name.startswith("/"))
        groups = next(found[1] for _, rest in dockerfile()[0]
                      if (found := re.fullmatch(r"scripts/install-packages.sh ([\w ]+)", rest)))
        script = (ROOT / "scripts" / "install-packages.sh").read_text()
        lists = script[script.index("declare -A packages"):]
        for group in groups.split():
            names = re.search(rf"\[{group}\]='([^']*)'", lists)[1].split()
            packages.update(name.split("|")[0].rstrip("?") for name in names)  # the first is Debian 12's
        self.assertGreater(len(packages), 10)
        found = subprocess.run(["apt-cache", "--no-all-versions", "show", *sorted(packages)], capture_output=True,
                               text=True).stdout
        self.assertEqual(packages - set(re.findall(r"^Package: (.*)$", found, re.MULTILINE)), set())

    def test_it_runs_the_program_as_nobody_special(self):
        last = dockerfile()[-1]
        words = [word for word, _ in last]
        self.assertIn(("ENTRYPOINT", '["troupe"]'), last)
        user = dict(last)["USER"]
        self.assertNotIn(user, ("root", "0"))
        self.assertIn(f" {user}", next(rest for word, rest in last if word == "RUN" and "useradd" in rest))
        self.assertLess(words.index("USER"), words.index("ENTRYPOINT"))
        self.assertTrue(all(rest.startswith("debian:bookworm-slim") for stage in dockerfile() for word, rest in stage
                            if word == "FROM"))

    def test_a_container_is_healthy_while_its_server_answers_health_with_200(self):
        check = dict(dockerfile()[-1])["HEALTHCHECK"]
        self.assertIn(("EXPOSE", "8080"), dockerfile()[-1])
        command = json.loads(re.search(r"CMD (\[.*\])", check)[1])
        status = 200

        class Health(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status if self.path == "/health" and self.headers["Host"] else 400)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = [word.replace("8080", str(server.server_port)) for word in command]
        outcome = lambda: subprocess.run(here, capture_output=True, timeout=20).returncode
        self.assertEqual(outcome(), 0)
        status = 503
        self.assertNotEqual(outcome(), 0)
        server.shutdown()
        server.server_close()
        self.assertNotEqual(outcome(), 0)

    def test_the_package_that_it_takes_is_the_one_that_make_deb_makes(self):
        makefile = (ROOT / "Makefile").read_text()
        taken = next(rest for word, rest in dockerfile()[-1] if word == "COPY")
        made = re.search(r"build/release/troupe_\*\.deb", makefile)[0]
        self.assertIn("--from=build /src/" + made, taken)
        self.assertIn(("RUN", "make deb"), dockerfile()[0])


class Unit(unittest.TestCase):
    def test_it_may_lock_what_mlock_is_to_lock(self):
        unit = (ROOT / "packaging" / "troupe@.service").read_text()
        self.assertIn("\nLimitMEMLOCK=infinity\n", unit)  # systemd's own is 8 MiB


class Commands(unittest.TestCase):
    def test_files_and_documents_use_options_that_there_are(self):
        options = {}
        for path in (ROOT / "packaging" / "Dockerfile", ROOT / "packaging" / "troupe@.service", ROOT / "docs" / "operation.md"):
            commands = re.findall(r"\btroupe ((?:bench-)?serve(?:r)?|ps)\b([^\n`|#]*)", path.read_text())
            self.assertTrue(commands, path)
            for command, rest in commands:
                if command not in options:
                    done = subprocess.run([TROUPE, command, "--help"], capture_output=True, text=True, check=True)
                    options[command] = set(re.findall(r"--[\w-]+", done.stdout))
                for option in re.findall(r"(?<![\w-])--[\w-]+", rest):
                    self.assertIn(option, options[command], f"{path.name}: troupe {command}{rest}")


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
