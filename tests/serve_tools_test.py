#!/usr/bin/env python3
"""`troupe ps`, `troupe bench-server`, `troupe plan --parallel` and `troupe run --chat` with servers that run.

usage: serve_tools_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import http.server

import gguf_with_template
import serve_test
from serve_test import TEMPLATES, TINY, Server

TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments, **more):
    return subprocess.run([TROUPE, *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


class BenchServer(unittest.TestCase):
    def bench(self, url, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder) / "record.json"
            done = troupe("bench-server", url, *arguments, "--json", record)
            return done, json.loads(record.read_text()) if record.exists() else None

    def assert_fails(self, done, *words):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_tells_what_clients_saw(self):
        with Server("--parallel", 4, "--ctx", 512) as server:
            done, record = self.bench(server.address, "--clients", 4, "--requests", 12, "--prompt-tokens", "5..20",
                                      "--tokens", 10)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual((record["requests"], record["failed"], record["tokens"]), (12, 0, 120))
            self.assertIn(record["prompt_tokens"], range(12 * 5, 12 * 20 + 1))
            self.assertEqual(record["time_to_first_token_s"]["count"], 12)
            self.assertGreater(record["time_between_tokens_s"]["count"], 60)
            for times in ("time_to_first_token_s", "time_between_tokens_s", "whole_s"):
                p50, p90, p99, most = (record[times][key] for key in ("p50", "p90", "p99", "max"))
                self.assertTrue(0 < p50 <= p90 <= p99 <= most, record[times])
            self.assertLessEqual(record["time_to_first_token_s"]["max"], record["whole_s"]["max"])
            self.assertAlmostEqual(record["tokens_per_s"], 120 / record["seconds"])
            self.assertRegex(done.stdout, r"(?m)^ +12 +0 +[\d.]+ +[\d.]+ +[\d.]+$")
            for line in ("to the first token", "between tokens", "whole answer"):
                self.assertRegex(done.stdout, rf"(?m)^{line}( +[\d.]+){{4}}$")
            self.assertEqual(server.metric_reaching('troupe_tokens_total{kind="generated"}', 120), 120)
            # Prompts may begin with the same token by chance.
            self.assertLess(server.metric('troupe_tokens_total{kind="cached"}'), 12)

    def test_asks_the_same_for_a_seed(self):
        with Server("--ctx", 512) as server:
            prompts = [self.bench(server.address, "--requests", 4, "--tokens", 2, "--seed", seed)[1]["prompt_tokens"]
                       for seed in (1, 1, 2)]
            self.assertEqual(prompts[0], prompts[1])
            self.assertNotEqual(prompts[0], prompts[2])
            # The second time it asked for what the server had read.
            self.assertGreaterEqual(server.metric('troupe_tokens_total{kind="cached"}'), prompts[0] - 4)

    def test_clients_are_as_many_as_asked_and_arrivals_wait_for_none(self):
        with Server("--parallel", 8, "--ctx", 512, "--speculate", "off") as server:
            for arguments, rows in ((["--clients", 1], 1), (["--rate", 1000], 2)):
                before = server.metric("troupe_passes_total")
                _, record = self.bench(server.address, "--requests", 8, "--prompt-tokens", 4, "--tokens", 20, *arguments)
                passes = server.metric("troupe_passes_total") - before
                self.assertEqual(record["failed"], 0)
                self.assertEqual(record["sent_late_s"]["max"] > 0, "--rate" in arguments)
                # One after the other they share no pass: 8 prompts and 8 * 19 tokens.
                (self.assertEqual if rows == 1 else self.assertLess)(passes, 8 * 20)

    def test_draws_recorded_lengths(self):
        with tempfile.TemporaryDirectory() as folder, Server("--ctx", 512) as server:
            lengths = pathlib.Path(folder) / "lengths.csv"
            lengths.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n1,30,4\n2,30,4\n")
            subprocess.run(["zstd", "-q", lengths], check=True)
            for path in (lengths, f"{lengths}.zst"):
                done, record = self.bench(server.address, "--requests", 3, "--lengths", path)
                self.assertEqual((record["prompt_tokens"], record["tokens"]), (90, 12))
                self.assertEqual((done.returncode, done.stderr, record["cut_to_context"]), (0, "", 0))
            lengths.write_text("ContextTokens,GeneratedTokens\n10000,10000\n")
            done, record = self.bench(server.address, "--requests", 1, "--lengths", lengths)
            self.assertEqual((record["prompt_tokens"], record["tokens"]), (256, 256))  # the context
            self.assertEqual((done.returncode, record["cut_to_context"]), (0, 1))
            self.assertEqual(done.stderr, "note: 1 of 1 requests were cut to the server's context of 512 tokens\n")
            done, _ = self.bench(server.address, "--lengths", folder + "/none")
            self.assert_fails(done, folder + "/none")

    def test_says_in_a_line_why_it_cannot_ask(self):
        self.assert_fails(troupe("bench-server", "ftp://localhost"), "'ftp://localhost'", "http://HOST:PORT")
        with Server() as server:
            address = server.address
            done, _ = self.bench(address + "/base")
            self.assert_fails(done, "404", "/base/props")
        self.assert_fails(troupe("bench-server", address), f"{address}: Connection refused")

    def test_needs_the_key_that_the_server_wants(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write("one\n")
            keys.flush()
            with Server("--api-keys", keys.name) as server:
                self.assert_fails(self.bench(server.address)[0], "this server wants a key: --api-key or TROUPE_API_KEY")
                self.assert_fails(self.bench(server.address, "--api-key", "two")[0], "401", "no such key")
                done, record = self.bench(server.address, "--api-key", "one", "--requests", 2, "--tokens", 2)
                self.assertEqual((done.returncode, record["tokens"]), (0, 4))

    def test_speaks_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = folder + "/key.pem", folder + "/certificate.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                            certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            with Server("--tls-certificate", certificate, "--tls-key", key) as server:
                self.assert_fails(self.bench(server.address)[0], "certificate", "--insecure")
                short = ["--requests", 2, "--tokens", 2]
                self.assertEqual(self.bench(server.address, *short, "--insecure")[1]["tokens"], 4)
                trusting = troupe("bench-server", server.address, *short, env={**os.environ, "SSL_CERT_FILE": certificate})
                self.assertEqual((trusting.returncode, trusting.stderr), (0, ""))

    def test_counts_what_failed_and_says_the_first_reason(self):
        with Server("--parallel", 1, "--queue", 1, "--ctx", 512) as server:
            done, record = self.bench(server.address, "--clients", 8, "--requests", 8, "--tokens", 100)
            self.assertIn(record["failed"], range(1, 7))
            self.assert_fails(done, f"{record['failed']} of 8 requests failed", "429")
            self.assertEqual(record["tokens"], 100 * (8 - record["failed"]))

    def test_a_stream_that_breaks_has_failed(self):
        class Breaking(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(b'{"context": 1000}')

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/tokenize":
                    return self.answer(b'{"tokens": [1, 2]}')
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'data: {"choices": [{"text": "a"}]}\n\n')

            def answer(self, body):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Breaking) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            done, record = self.bench(f"http://127.0.0.1:{server.server_port}", "--requests", 2)
            server.shutdown()
        self.assertEqual((record["failed"], record["tokens"]), (2, 0))
        self.assert_fails(done, "2 of 2 requests failed", "ended before")


class Plan(unittest.TestCase):
    def test_plans_what_a_server_takes(self):
        options = ("--memory", "1GiB", "--ctx", 512, "--slots", 60, "--parallel", 3)
        for _ in range(2):  # the first one may measure the machine, and holds more memory meanwhile
            done = troupe("plan", serve_test.TINY, *options, "--json", "-")
        planned = json.loads(done.stdout)
        with Server(*options) as server:
            taken = {part: server.metric(f'troupe_memory_plan_bytes{{part="{part}"}}')
                     for part in ("program", "connections", "rules", "peers", "dense", "kv_cache", "workspace",
                                  "prediction")}
        # What the process holds when it plans differs by some pages, and a server has opened its socket by then.
        self.assertAlmostEqual(taken.pop("program"), planned["program_bytes"], delta=8 << 20)
        self.assertAlmostEqual(taken.pop("connections"), planned["connections_bytes"], delta=8 << 20)
        self.assertEqual(taken, {part: planned[f"{part}_bytes"] for part in taken})


class Ps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runtime = pathlib.Path(folder.name)
        self.env = {**os.environ, "XDG_RUNTIME_DIR": folder.name}

    def listed(self):
        done = troupe("ps", "--json", "-", env=self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Others may serve on this machine.
        return {server["pid"]: server for server in json.loads(done.stdout)["servers"]}

    def files(self):
        folder = self.runtime / "troupe"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else None

    def test_shows_servers_and_what_they_do(self):
        with Server("--ctx", 16384, env=self.env) as server, \
                Server(env={**self.env, "TROUPE_API_KEY": "secret"}) as keyed:
            pid = server.process.pid
            self.assertEqual(self.files(), sorted(f"{process.pid}.json" for process in (server.process, keyed.process)))
            idle = self.listed()[pid]
            self.assertEqual((idle["address"], idle["model"]), (server.address, str(serve_test.TINY)))
            self.assertEqual((idle["requests"], idle["tokens_per_s"]), (0, 0))
            self.assertEqual(idle["memory_budget_bytes"], server.metric("troupe_memory_budget_bytes"))
            self.assertIn(idle["resident_bytes"], range(1 << 20, idle["memory_budget_bytes"]))
            stream = server.stream("The kernel", 16000)
            next(stream)
            busy = self.listed()
            self.assertEqual(busy[pid]["requests"], 1)
            self.assertGreater(busy[pid]["tokens_per_s"], 0)
            locked = busy[keyed.process.pid]
            self.assertEqual((locked["requests"], locked["tokens_per_s"]), (None, None))
            self.assertGreater(locked["resident_bytes"], 1 << 20)
            table = troupe("ps", env=self.env).stdout.splitlines()
            rows = [re.split(r" {2,}", row.strip()) for row in table[2:]]
            told = [int(row[3]) for row in rows if row[3] != "-"]
            # Others may serve on this machine: the sentence counts them as well.
            self.assertRegex(table[0], rf"^{len(rows)} servers: {sum(told)} requests? now, [\d.]+ tokens/s "
                                       r"\((\d+) of them wants? a key(, \d+ of them did not tell)?\)$")
            self.assertEqual(sum(map(int, re.findall(r"(\d+) of them", table[0]))), len(rows) - len(told))
            self.assertIn(("1", server.address), [(row[3], row[5]) for row in rows])
            self.assertIn(("-", keyed.address), [(row[3], row[5]) for row in rows])
            self.assertEqual(re.split(r" {2,}", table[1].strip()),
                             ["process", "memory budget", "memory now", "requests now", "tokens/s", "address", "model"])
            stream.close()
        self.assertEqual(self.files(), [])

    def test_a_server_that_was_killed_is_shown_no_more(self):
        with Server(env=self.env) as server:
            self.assertIn(server.process.pid, self.listed())
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            self.assertEqual(self.files(), [f"{server.process.pid}.json"])
            self.assertNotIn(server.process.pid, self.listed())
            self.assertEqual(self.files(), [])

    def test_a_server_that_does_not_answer_holds_up_nobody(self):
        with Server(env=self.env) as server:
            server.process.send_signal(signal.SIGSTOP)
            try:
                self.assertIsNone(self.listed()[server.process.pid]["requests"])
            finally:
                server.process.send_signal(signal.SIGCONT)

    def test_a_folder_that_cannot_be_written_stops_no_server(self):
        (self.runtime / "troupe").write_text("a file in its place")
        with Server(env=self.env) as server:
            self.assertGreater(len(server.complete("The kernel", 4)), 0)
            self.assertEqual(len([line for line in server.said if "troupe ps" in line]), 1)
            self.assertNotIn(server.process.pid, self.listed())


class TerminalChat(unittest.TestCase):
    def test_says_what_the_server_answers_and_keeps_thoughts_apart(self):
        lines = ["Think!", "And then?"]
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            template = (TEMPLATES / "own-invoked-calls.jinja").read_text()  # it begins with reasoning
            marks = gguf_with_template.copy(TINY, model, template, ["<think>", "</think>"])
            choice = {"max_tokens": 40, "temperature": 0.9, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
                      "logit_bias": {str(marks[1]): 9}}

            def answers(server, seed):
                messages = []
                for line in lines:
                    messages.append({"role": "user", "content": line})
                    answer = server.ask("/v1/chat/completions", {**choice, "messages": messages, "seed": seed})
                    messages.append(answer["choices"][0]["message"])
                return messages[1::2]

            with Server("--ctx", 1024, model=model) as server:
                talks = ((seed, answers(server, seed)) for seed in range(60))
                seed, said = next((seed, said) for seed, said in talks
                                  if all(message["content"] and message.get("reasoning_content") for message in said))
            done = troupe("run", model, "--chat", "-n", 40, "--temperature", 0.9, "--logit-bias", f"{marks[1]}=9",
                          "--seed", seed, "--ctx", 1024, input="".join(line + "\n" for line in lines))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "".join(message["content"] + "\n" for message in said))
            for message in said:
                self.assertIn(message["reasoning_content"] + "\n", done.stderr)


if __name__ == "__main__":
    serve_test.TROUPE = TROUPE = sys.argv.pop(1)
    unittest.main()
