#!/usr/bin/env python3
"""What `troupe serve` does when it is killed, when the disk fails under it, and when its log finds no room.

usage: serve_faults_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error

import serve_test
from serve_test import LONGEST, PROMPTS, TINY, Server

SLOTS = 40  # fewer than one answer uses
# Loaded into a server: whatever it reads and writes in a folder called "slow" takes a while.
SLOW_FILES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_if_slow(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return;
  path[n] = 0;
  if (strstr(path, "/slow/") != NULL) usleep(300000);
}
#define SLOW(name, data)                                                          \\
  ssize_t name(int fd, data bytes, size_t size, off_t offset) {                   \\
    ssize_t (*real)(int, data, size_t, off_t) = dlsym(RTLD_NEXT, #name);          \\
    wait_if_slow(fd);                                                             \\
    return real(fd, bytes, size, offset);                                         \\
  }
SLOW(pread, void*)
SLOW(pread64, void*)
SLOW(pwrite, const void*)
SLOW(pwrite64, const void*)
"""


class ServeFaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def pack(self):
        container = self.folder / "tiny.experts"
        subprocess.run([serve_test.TROUPE, "pack", TINY, "-o", container], check=True, capture_output=True)
        return container

    def test_an_expert_that_cannot_be_read_fails_whoever_needs_it_until_it_is_there_again(self):
        container = self.pack()
        whole = container.read_bytes()
        with Server("--slots", SLOTS, "--experts", container, "--no-prefix-cache") as server:
            expected = {prompt: server.complete(prompt) for prompt in PROMPTS}
            os.truncate(container, 4096)
            failed = 0
            for prompt in PROMPTS:
                try:
                    self.assertEqual(server.complete(prompt), expected[prompt])
                except urllib.error.HTTPError as error:
                    self.assertEqual(error.code, 500)
                    self.assertIn("tiny.experts", json.load(error)["error"]["message"])
                    error.close()
                    failed += 1
            self.assertGreater(failed, 0)
            self.assertEqual(server.ask("/health"), {"status": "ok"})
            # What was written to while in use is compared with its checksums at each read from then on.
            container.write_bytes(whole)
            self.assertEqual({prompt: server.complete(prompt) for prompt in PROMPTS}, expected)
            os.utime(container)
            self.assertEqual({prompt: server.complete(prompt) for prompt in PROMPTS}, expected)
            container.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
            with self.assertRaises(urllib.error.HTTPError) as refused:
                for prompt in PROMPTS:
                    server.complete(prompt)
            self.assertIn("it is damaged", json.load(refused.exception)["error"]["message"])
            refused.exception.close()
            container.write_bytes(whole)
            server.process.send_signal(signal.SIGHUP)
            server.metric_reaching('troupe_reloads_total{result="done"}', 1)
            self.assertEqual({prompt: server.complete(prompt) for prompt in PROMPTS}, expected)

    def test_a_stream_whose_expert_cannot_be_read_ends_with_the_error(self):
        container = self.pack()
        with Server("--slots", SLOTS, "--experts", container, "--ctx", 4096) as server:
            body = {"prompt": "The kernel", "max_tokens": 4000, "stream": True, "ignore_eos": True}
            with server.open("/v1/completions", body) as response:
                lines = iter(response)
                self.assertTrue(next(lines).startswith(b"data: "))
                os.truncate(container, 4096)
                events = [line for line in lines if line.startswith(b"data: ")]
            self.assertEqual(events[-1], b"data: [DONE]\n")
            self.assertIn("error", json.loads(events[-2][6:]))

    def test_killed_in_the_middle_of_streams_it_leaves_nothing_half_written(self):
        prefixes, log = self.folder / "prefixes", self.folder / "log"
        options = ("--prefix-file", prefixes, "--access-log", log, "--ctx", 2048)
        with Server(*options) as server:
            expected = server.complete(PROMPTS[0], 200)
        kept = prefixes.read_bytes()
        for _ in range(3):
            with Server(*options) as server:
                begun = threading.Barrier(4)

                def stream(prompt):
                    try:
                        pieces = server.stream(prompt, 1900)
                        next(pieces)
                        begun.wait()
                        list(pieces)
                    except OSError:
                        pass  # it was killed
                threads = [threading.Thread(target=stream, args=(prompt,)) for prompt in PROMPTS[:3]]
                for thread in threads:
                    thread.start()
                begun.wait()
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                for thread in threads:
                    thread.join()
            self.assertEqual(prefixes.read_bytes(), kept)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["log", "prefixes"])
        with Server(*options) as server:
            self.assertEqual(server.complete(PROMPTS[0], 200), expected)

    def test_what_was_read_is_found_again_after_a_restart(self):
        prefixes = self.folder / "prefixes"
        body = {"prompt": "The kernel " * 60, "max_tokens": 8, "temperature": 0}
        answers = []
        for _ in range(2):
            with Server("--prefix-file", prefixes, "--ctx", 1024) as server:
                answers.append(server.ask("/v1/completions", body))
        self.assertEqual(answers[0]["choices"], answers[1]["choices"])
        cached = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in answers]
        self.assertEqual(cached, [0, answers[0]["usage"]["prompt_tokens"] - 1])
        self.assertEqual(prefixes.stat().st_mode & 0o777, 0o600)
        # Damaged, it is said so and begun without.
        damaged = bytearray(prefixes.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        prefixes.write_bytes(damaged)
        with Server("--prefix-file", prefixes, "--ctx", 1024) as server:
            self.assertTrue(any(str(prefixes) in line for line in server.said), server.said)
            answer = server.ask("/v1/completions", body)
        self.assertEqual(answer["choices"], answers[0]["choices"])
        self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def make_slow(self):
        """A folder, and the environment in which whatever is read and written in it takes long."""
        source, library, folder = self.folder / "slow.c", self.folder / "slow.so", self.folder / "slow"
        source.write_text(SLOW_FILES, encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        folder.mkdir()
        return folder, {**os.environ, "LD_PRELOAD": str(library)}

    def wait_for_open_file(self, process, folder):
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
                try:
                    if os.readlink(link).startswith(f"{folder}/"):
                        return
                except FileNotFoundError:  # it was closed meanwhile
                    pass
            time.sleep(0.01)
        raise AssertionError(f"no file of {folder} was opened")

    @unittest.skipIf("TROUPE_SANITIZED" in os.environ, "a sanitizer must be loaded first")
    def test_a_second_signal_ends_the_writing_of_prefixes_and_leaves_nothing(self):
        folder, env = self.make_slow()
        prefixes = folder / "prefixes"
        with Server("--prefix-file", prefixes, "--ctx", 1024, env=env) as server:
            server.complete("The kernel " * 60, 8)
            server.process.send_signal(signal.SIGTERM)
            self.wait_for_open_file(server.process, folder)
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(timeout=LONGEST), 0)
        self.assertTrue(any("prefixes are not kept" in line for line in server.said), server.said)
        self.assertEqual(list(folder.iterdir()), [])

    @unittest.skipIf("TROUPE_SANITIZED" in os.environ, "a sanitizer must be loaded first")
    def test_the_first_signal_lets_prefixes_be_written_also_where_a_reload_writes_them(self):
        folder, env = self.make_slow()
        model, prefixes = self.folder / "model.gguf", folder / "prefixes"
        shutil.copy(TINY, model)
        with Server("--prefix-file", prefixes, "--ctx", 1024, env=env, model=model) as server:
            server.complete("The kernel " * 60, 8)
            os.utime(model, (1, 1))  # as if it had been replaced
            server.process.send_signal(signal.SIGHUP)
            self.wait_for_open_file(server.process, folder)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=LONGEST), 0)
        self.assertEqual(list(folder.iterdir()), [prefixes])
        self.assertFalse(any("reloaded" in line for line in server.said), server.said)

    @unittest.skipIf("TROUPE_SANITIZED" in os.environ, "a sanitizer must be loaded first")
    def test_a_signal_ends_the_reading_of_prefixes(self):
        folder, env = self.make_slow()
        options = ("--prefix-file", folder / "prefixes", "--ctx", "1024")
        with Server(*options) as server:
            server.complete("The kernel " * 60, 8)
        kept = (folder / "prefixes").read_bytes()
        with subprocess.Popen([serve_test.TROUPE, "serve", TINY, "--port", "0", *options], stderr=subprocess.PIPE,
                              text=True, env=env) as process:
            self.wait_for_open_file(process, folder)
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("is not loaded", said)
        self.assertNotIn("serving", said)
        self.assertEqual((folder / "prefixes").read_bytes(), kept)

    def test_a_prefix_file_is_written_only_if_there_is_something_new(self):
        options = ("--prefix-file", self.folder, "--ctx", 512)
        with Server(*options):
            pass
        self.assertEqual(list(self.folder.iterdir()), [])
        with Server(*options) as server:
            server.complete("The kernel")
        (kept,) = self.folder.iterdir()
        before = kept.stat()
        with Server(*options) as server:
            self.assertTrue(any(f"pages from {kept}" in line for line in server.said), server.said)
            server.complete("The kernel")
        self.assertEqual(kept.stat().st_ino, before.st_ino)
        self.assertEqual(kept.stat().st_mtime_ns, before.st_mtime_ns)

    def test_two_servers_with_one_prefix_file_do_not_overwrite_each_others(self):
        prefixes = self.folder / "prefixes"
        options = ("--prefix-file", prefixes, "--ctx", 512)
        with Server(*options) as second:
            second.complete("One two three")
            with Server(*options) as first:
                first.complete("The kernel")
            kept = prefixes.read_bytes()
        self.assertEqual(prefixes.read_bytes(), kept)
        self.assertTrue(any("prefixes are not kept" in line and str(prefixes) in line for line in second.said),
                        second.said)

    def test_a_prefix_file_that_cannot_be_written_is_told_and_loses_no_answer(self):
        with Server("--prefix-file", "/proc/none", "--ctx", 512) as server:
            self.assertTrue(server.complete("The kernel"))
        server.reader.join(timeout=LONGEST)
        self.assertTrue(any("/proc/none" in line for line in server.said), server.said)

    def test_every_request_has_a_line_in_the_log_and_no_secret(self):
        log = self.folder / "log"
        env = {**os.environ, "TROUPE_API_KEY": "hidden"}
        key = {"Authorization": "Bearer hidden"}
        with Server("--access-log", log, "--log-format", "json", env=env) as server:
            server.ask("/v1/completions?key=hidden", {"prompt": "secret words", "max_tokens": 2}, key)
            server.ask("/health")
            for path in ("/v1/models", "/none"):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.ask(path)
                refused.exception.close()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([(line["method"], line["path"], line["status"], line["end"]) for line in lines],
                         [("POST", "/v1/completions", 200, "answered"), ("GET", "/health", 200, "answered"),
                          ("GET", "/v1/models", 401, "answered"), ("GET", "/none", 401, "answered")])
        self.assertEqual([(line["model"], line["answer_tokens"]) for line in lines[:2]], [(TINY.stem, 2), ("-", 0)])
        self.assertEqual(len({line["id"] for line in lines}), 4)
        self.assertNotIn("hidden", log.read_text())
        self.assertNotIn("secret", log.read_text())

    def test_a_full_disk_under_the_log_costs_lines_and_nothing_else(self):
        with Server("--access-log", "/dev/full") as server:
            first = server.complete("The kernel")
            self.assertEqual(server.complete("The kernel"), first)
            server.metric_reaching('troupe_log_lines_total{end="lost"}', 2)
            self.assertEqual(server.metric('troupe_log_lines_total{end="written"}'), 0)
            self.assertTrue(any("/dev/full" in line for line in server.said))


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
