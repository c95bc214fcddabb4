#!/usr/bin/env python3
"""Runs `troupe serve` as a process and asks it as clients do: over sockets, many at once, leaving early.

usage: serve_test.py TROUPE [unittest arguments]
"""
import base64
import collections
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import gguf_with_template

TROUPE = None  # the binary, set at the end of this file
TINY = pathlib.Path(__file__).resolve().parent.parent / "models" / "tiny-qwen2moe-q8_0.gguf"
# Seconds that anything may take; a sanitizer on a busy machine is slow.
LONGEST = 600 if "TROUPE_SANITIZED" in os.environ else 120
PROMPTS = ["The kernel", "One two three", "def main():", "Once upon a time", "In 1999", "#include <", "Dear", "42"]


class Server:
    """A server of the tiny model; ended by SIGTERM at the end of a `with`."""

    def __init__(self, *args, tls=None, env=None, model=TINY, files=None, group=None):
        self.tls = tls
        path = [] if model is None else [model]  # a configuration may name it
        command = [TROUPE, "serve", *map(str, path), "--port", "0", *map(str, args)]
        self.process = subprocess.Popen(command if group is None else group.command(command),  # a memory_cgroup's
                                        stderr=subprocess.PIPE, text=True, env=env,
                                        preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, files)))
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"at (https?://[\d.]+:(\d+))", line):
                self.address, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError("it did not start: " + "".join(self.said))
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=LONGEST)
            assert self.process.returncode == 0, f"it ended with {self.process.returncode}: " + "".join(self.said[-20:])
        self.reader.join(timeout=LONGEST)
        self.process.stderr.close()

    def open(self, path, body=None, headers={}, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        return urllib.request.urlopen(request, timeout=LONGEST, context=self.tls)

    def ask(self, path, body=None, headers={}):
        with self.open(path, body, headers) as response:
            return json.load(response)

    def complete(self, prompt, tokens=24, **more):
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0.8, "seed": 7, "ignore_eos": True, **more}
        return self.ask("/v1/completions", body)["choices"][0]["text"]

    def stream(self, prompt, tokens=24, **more):
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0.8, "seed": 7, "ignore_eos": True,
                "stream": True, **more}
        with self.open("/v1/completions", body) as response:
            for line in response:
                if line.startswith(b"data: ") and line != b"data: [DONE]\n":
                    for choice in json.loads(line[6:])["choices"]:
                        yield choice["text"]

    def metric(self, name):
        with self.open("/metrics") as response:
            for line in response.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.rsplit(" ", 1)[1])
        raise AssertionError(name)

    def metric_reaching(self, name, least):
        """Its value once it is at least that: a counter may follow the answer that it counts."""
        give_up = time.monotonic() + LONGEST
        while (value := self.metric(name)) < least:
            if time.monotonic() > give_up:
                raise AssertionError(f"{name}: found {value}, expected at least {least}")
            time.sleep(0.02)
        return value


class Serve(unittest.TestCase):
    def test_answers_are_the_same_bytes_whoever_shares_their_passes(self):
        with Server("--slots", 40, "--parallel", 1) as alone:
            expected = {prompt: alone.complete(prompt) for prompt in PROMPTS}
        with Server("--slots", 40, "--parallel", 5, "--queue", 200) as server:
            jobs = PROMPTS * 6
            with concurrent.futures.ThreadPoolExecutor(24) as pool:
                whole = list(pool.map(server.complete, jobs))
                streamed = list(pool.map(lambda prompt: "".join(server.stream(prompt)), jobs))
            self.assertEqual(whole, [expected[prompt] for prompt in jobs])
            self.assertEqual(streamed, whole)

    def test_clients_that_leave_cancel_their_answers_and_change_nobody_elses(self):
        with Server("--parallel", 4, "--queue", 100, "--ctx", 2048) as server:
            expected = server.complete("The kernel", 60)

            def leave(prompt):
                stream = server.stream(prompt, 1900)
                for _ in zip(range(3), stream):
                    pass
                stream.close()
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                leaving = [pool.submit(leave, prompt) for prompt in PROMPTS]
                staying = [pool.submit(server.complete, "The kernel", 60) for _ in range(6)]
                for job in leaving:
                    job.result()
                self.assertEqual([job.result() for job in staying], [expected] * 6)
            self.assertEqual(server.metric_reaching('troupe_answers_total{end="cancelled"}', len(PROMPTS)), len(PROMPTS))
            self.assertEqual(server.metric('troupe_requests_now{state="decoding"}'), 0)

    def test_a_client_that_leaves_with_a_request_ahead_cancels_its_answer(self):
        with Server("--parallel", 1, "--ctx", 30000) as server:
            body = json.dumps({"prompt": "a", "max_tokens": 20000, "ignore_eos": True}).encode()
            with socket.create_connection(("127.0.0.1", server.port), LONGEST) as client:
                client.sendall(2 * (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                                    % (len(body), body)))
                server.metric_reaching('troupe_requests_now{state="decoding"}', 1)
            server.metric_reaching('troupe_answers_total{end="cancelled"}', 1)
            self.assertEqual(server.metric('troupe_answers_total{end="finished"}'), 0)

    def test_sigterm_lets_requests_end_and_takes_no_more(self):
        with Server("--parallel", 2, "--ctx", 2048) as server:
            stream = server.stream("The kernel", 1500)
            first = next(stream)
            server.process.send_signal(signal.SIGTERM)
            text = first + "".join(stream)
            self.assertEqual(server.process.wait(timeout=LONGEST), 0)
            self.assertRaises(OSError, socket.create_connection, ("127.0.0.1", server.port), 5)
        with Server("--ctx", 2048) as again:
            self.assertEqual(again.complete("The kernel", 1500), text)

    def test_sigterm_lets_a_request_that_has_begun_to_come_be_answered(self):
        with Server() as server, socket.create_connection(("127.0.0.1", server.port), LONGEST) as client:
            body = json.dumps({"prompt": "The kernel", "max_tokens": 5}).encode()
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
            server.ask("/health")  # what came before is read
            server.process.send_signal(signal.SIGTERM)
            with self.assertRaises(OSError):
                while True:
                    socket.create_connection(("127.0.0.1", server.port), 5).close()
            client.sendall(body[9:])
            answer = b""
            while got := client.recv(4096):
                answer += got
            self.assertRegex(answer, rb"^HTTP/1.1 200 (.|\s)*Connection: close(.|\s)*\"text\":")
            self.assertEqual(server.process.wait(timeout=LONGEST), 0)

    def test_whoever_watches_does_not_hold_up_the_end(self):
        with Server("--drain-s", 100 * LONGEST) as server:
            watching = server.open("/live")
            self.assertEqual(watching.readline(), b"event: facts\n")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=LONGEST), 0)
            watching.close()

    def test_the_page_allows_no_script_and_no_style_but_its_own(self):
        with Server() as server, server.open("/") as response:
            html, policy, tag = response.read().decode(), response.headers["Content-Security-Policy"], response.headers["ETag"]
            for element, directive in (("<script type=\"module\">(.*)</script>", "script-src"), ("<style>(.*)</style>", "style-src")):
                text = re.search(element, html, re.DOTALL)[1]
                digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
                self.assertIn(f"{directive} 'sha256-{digest}';", policy)
            with self.assertRaises(urllib.error.HTTPError) as unchanged:
                server.open("/", headers={"If-None-Match": tag})
            self.assertEqual(unchanged.exception.code, 304)
            self.assertEqual(unchanged.exception.read(), b"")
            unchanged.exception.close()

    def test_requests_that_do_not_end_in_time_after_sigterm_are_cancelled(self):
        with Server("--ctx", 4096, "--drain-s", 0) as server:
            stream = server.stream("The kernel", 4000)
            next(stream)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=LONGEST), 0)
            stream.close()

    def test_only_clients_with_a_key_are_answered(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write("one\n\n  two  \n")
            keys.flush()
            with Server("--api-keys", keys.name, env={"TROUPE_API_KEY": "three"}) as server:
                self.assertEqual(server.ask("/health"), {"status": "ok"})
                for key in ("one", "two", "three"):
                    self.assertIn("data", server.ask("/v1/models", headers={"Authorization": f"Bearer {key}"}))
                for headers in ({}, {"Authorization": "Bearer four"}, {"x-api-key": "on"}):
                    with self.assertRaises(urllib.error.HTTPError) as refused:
                        server.ask("/v1/models", headers=headers)
                    self.assertEqual(refused.exception.code, 401)
                    refused.exception.close()
                for secret in ("one", "two", "three"):
                    self.assertNotIn(secret, "".join(server.said).replace("serving", ""))

    def test_speaks_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = folder + "/key.pem", folder + "/certificate.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                            certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            trust = ssl.create_default_context(cafile=certificate)
            with Server("--tls-certificate", certificate, "--tls-key", key, tls=trust) as server:
                self.assertEqual("".join(server.stream("The kernel")), server.complete("The kernel"))
                # An end that is not announced would be an error: of a stream to HTTP/1.0 it is the end of the body.
                ask = b'{"prompt":"The kernel","max_tokens":4,"stream":true}'
                with socket.create_connection(("127.0.0.1", server.port), LONGEST) as plain, \
                        trust.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as client:
                    client.sendall(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(ask), ask))
                    said = b"".join(iter(lambda: client.recv(65536), b""))
                self.assertTrue(said.endswith(b"data: [DONE]\n\n"), said)
            done = subprocess.run([TROUPE, "serve", TINY, "--port", "0", "--tls-certificate", key, "--tls-key", key],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(key, done.stderr.splitlines()[-1])

    def test_an_error_behind_blanks_is_cut_off_and_without_chunks_there_are_none(self):
        ask = b'{"prompt":"a","max_tokens":4,"timeout":6.5}'
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            with Server("--parallel", 1, "--ctx", 32768, "--silence-s", 1, "--drain-s", 0,
                        "--access-log", log) as server:
                stream = server.stream("a", 30_000)  # has the only sequence
                next(stream)

                def drain():
                    with contextlib.suppress(Exception):
                        collections.deque(stream, maxlen=0)
                threading.Thread(target=drain, daemon=True).start()
                new = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONGEST)
                new.request("POST", "/v1/completions", ask)
                with socket.create_connection(("127.0.0.1", server.port), LONGEST) as old:
                    old.sendall(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(ask), ask))
                    said = b"".join(iter(lambda: old.recv(65536), b""))
                self.assertRegex(said, rb"^HTTP/1.[01] 504 ")
                self.assertTrue(said.split(b"\r\n\r\n", 1)[1].startswith(b"{"), said)
                response = new.getresponse()
                self.assertEqual(response.status, 200)
                with self.assertRaises(http.client.IncompleteRead):
                    response.read()
                new.close()
                self.assertEqual(server.metric_reaching('troupe_http_ended_total{why="cut_off"}', 1), 1)
                status = 'troupe_requests_total{endpoint="/v1/completions",status="504"}'
                self.assertEqual(server.metric(status), 2)
            lines = [line for line in log.read_text().splitlines() if " 504 " in line]
            self.assertEqual(["cut_off" in line for line in lines].count(True), 1, lines)
            self.assertEqual(len(lines), 2)

    def test_a_page_of_another_host_or_origin_is_refused(self):
        with Server() as server:
            for header in {"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}:
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.open("/v1/models", headers=header)
                self.assertEqual(refused.exception.code, 403)
                option = "--allow-host evil.example" if "Host" in header else f"--cors {header['Origin']}"
                self.assertIn(option, refused.exception.read().decode())
                refused.exception.close()
            for origin in "app://obsidian.md", "vscode-webview://0a1b", "file://", "tauri://localhost":
                with server.open("/v1/models", headers={"Origin": origin, "x-api-key": "none"}) as answer:
                    self.assertEqual(answer.headers["Access-Control-Allow-Origin"], origin)
        with Server("--cors", "null") as server:  # a page that was opened as a file
            for method in "OPTIONS", "GET":
                with server.open("/v1/models", headers={"Origin": "null"}, method=method) as answer:
                    self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "null")
        with Server("--allow-host", "box.lan", "--cors", "https://page.example") as server:
            server.open("/v1/models", headers={"Host": "box.lan"})
            server.open("/v1/models", headers={"Origin": "https://page.example"})
            for method, path in (("OPTIONS", "/v1/models"), ("OPTIONS", "/v1/chat/completions"), ("GET", "/none")):
                try:
                    answer = server.open(path, headers={"Origin": "https://page.example"}, method=method)
                except urllib.error.HTTPError as refused:
                    answer = refused
                self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "https://page.example", (method, path))

    def test_a_body_may_be_as_long_as_the_option_says(self):
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000_000}}
        talk = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, picture]}], "max_tokens": 1}
        with Server("--ctx", 1024) as server:
            with self.assertRaises(urllib.error.HTTPError) as refused:
                server.ask("/v1/chat/completions", talk)
            self.assertEqual(refused.exception.code, 413)
            self.assertIn("--most-body", refused.exception.read().decode())
            refused.exception.close()
        with Server("--ctx", 1024, "--most-body", "10MiB") as server:
            self.assertEqual(len(server.ask("/v1/chat/completions", talk)["choices"]), 1)
            with self.assertRaises(urllib.error.HTTPError) as refused:  # more text than can be made tokens of
                server.ask("/v1/completions", {"prompt": "a b " * 2_200_000})
            self.assertEqual(refused.exception.code, 400)
            self.assertEqual(json.load(refused.exception)["error"]["param"], "prompt")
            refused.exception.close()

    def test_a_prompt_that_was_read_before_is_not_read_again(self):
        body = {"prompt": "The kernel " * 60, "max_tokens": 8, "temperature": 0}
        with Server("--ctx", 1024) as server, Server("--ctx", 1024, "--no-prefix-cache") as without:
            first, again = server.ask("/v1/completions", body), server.ask("/v1/completions", body)
            alone = [without.ask("/v1/completions", body) for _ in range(2)]
        for answer in [first, again, *alone]:
            self.assertEqual(answer["choices"], first["choices"])
        cached = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in (first, again, *alone)]
        self.assertEqual(cached, [0, first["usage"]["prompt_tokens"] - 1, 0, 0])

    def test_limits_hold_whatever_a_request_says(self):
        body = {"prompt": "1234567890" * 80, "max_tokens": 4000, "ignore_eos": True, "timeout": 100}
        with Server("--most-tokens", 5, "--ctx", 4096) as server:
            answer = server.ask("/v1/completions", body)
            self.assertEqual((answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]), (5, "length"))
        with Server("--request-s", 0.001, "--ctx", 4096) as server:
            with self.assertRaises(urllib.error.HTTPError) as late:
                server.ask("/v1/completions", body)
            self.assertEqual(late.exception.code, 504)
            late.exception.close()

    def test_a_suffix_makes_a_model_with_marks_fill_the_gap(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            before, after, middle = gguf_with_template.copy(
                TINY, model, "", ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"])
            with Server(model=model) as server:
                def tokens(text):
                    return server.ask("/tokenize", {"content": text, "add_special": True})["tokens"]
                begin = tokens("")  # what every text of this model begins with
                prompt = [*begin, before, *tokens("int main() {")[len(begin):], after, *tokens("}")[len(begin):], middle]
                self.assertEqual(server.complete("int main() {", suffix="}"), server.complete(prompt))
                self.assertNotEqual(server.complete("int main() {", suffix="}"), server.complete("int main() {"))

    def test_as_many_clients_find_a_place_as_there_may_be_connections(self):
        with Server("--connections", 300, files=(64, 1000)) as server, contextlib.ExitStack() as opened:
            for _ in range(299):
                client = opened.enter_context(socket.create_connection(("127.0.0.1", server.port), LONGEST))
                client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertRegex(client.recv(4096), rb"^HTTP/1.1 200 ")
            self.assertEqual(resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE), (556, 1000))
        with Server("--connections", 300, files=(64, 100)) as server:
            self.assertIn("only 100 files may be open", "".join(server.said))

    def test_a_port_that_is_taken_is_an_error_of_one_line(self):
        with Server() as server:
            done = subprocess.run([TROUPE, "serve", TINY, "--port", str(server.port)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[-1], rf"127.0.0.1:{server.port}: .*in use; --port chooses another$")
            with tempfile.NamedTemporaryFile("w", suffix=".gguf") as bad:  # told before the model is looked at
                done = subprocess.run([TROUPE, "serve", bad.name, "--port", str(server.port)], capture_output=True, text=True)
                self.assertRegex(done.stderr.splitlines()[-1], rf"127.0.0.1:{server.port}: .*in use; --port chooses another$")

    def test_who_asks_before_the_model_is_loaded_is_told_to_come_again(self):
        def ask(port, path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)
            connection.request("GET", path)
            response = connection.getresponse()
            seen = response.status, response.headers.get("Retry-After"), response.read()
            connection.close()
            return seen

        def asked_while_loading():
            """What was answered before the first 200."""
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            seen = {}
            process = subprocess.Popen([TROUPE, "serve", TINY, "--port", str(port)], stderr=subprocess.DEVNULL)
            try:
                while process.poll() is None and (seen.get("/health", (0,))[0] != 200):
                    with contextlib.suppress(ConnectionError):
                        found = {path: ask(port, path) for path in ("/v1/models", "/health")}
                        if found["/health"][0] != 200:
                            return found
                        seen = found
            finally:
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=LONGEST), 0)
            return None
        for _ in range(50):  # a small model is there soon
            if found := asked_while_loading():
                break
        else:
            self.fail("nobody was told to come again")
        self.assertEqual((found["/health"][0], found["/health"][2]), (503, b'{"status":"loading model"}'))
        self.assertEqual(found["/v1/models"][0], 503)
        self.assertGreater(int(found["/v1/models"][1]), 0)
        self.assertIn("being loaded", json.loads(found["/v1/models"][2])["error"]["message"])

    def test_bodies_that_are_only_announced_cut_nobody_off(self):
        with Server("--parallel", 2, "--ctx", 4096) as server, contextlib.ExitStack() as opened:
            expected = server.complete("The kernel", 2000)
            stream = server.stream("The kernel", 2000)
            text = next(stream)
            for _ in range(100):
                client = opened.enter_context(socket.create_connection(("127.0.0.1", server.port), LONGEST))
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (1 << 20))
            server.metric_reaching("troupe_http_connections", 101)
            self.assertEqual(server.ask("/health"), {"status": "ok"})
            self.assertGreater(len(server.ask("/tokenize", {"content": "a " * 200_000})["tokens"]), 1000)
            self.assertEqual(text + "".join(stream), expected)
            for why in ("no_room", "too_slow"):
                self.assertEqual(server.metric(f'troupe_http_ended_total{{why="{why}"}}'), 0)

    def test_a_client_that_does_not_read_is_let_go_and_holds_up_nobody(self):
        with Server("--parallel", 2, "--ctx", 4096) as server:
            with socket.socket() as lazy:
                lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                lazy.connect(("127.0.0.1", server.port))
                body = json.dumps({"prompt": "a", "max_tokens": 4000, "stream": True, "ignore_eos": True,
                                   "logprobs": 20}).encode()
                lazy.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                self.assertEqual(server.complete("The kernel", 5), server.complete("The kernel", 5))
                self.assertEqual(server.metric_reaching('troupe_http_ended_total{why="too_slow"}', 1), 1)

    def test_a_server_that_anyone_can_reach_without_a_key_says_so(self):
        def said(*args, **env):
            with Server(*args, env={**os.environ, **env}) as server:
                return "".join(server.said)
        self.assertIn("no key is asked for at 0.0.0.0", said("--host", "0.0.0.0"))
        self.assertNotIn("no key", said("--host", "0.0.0.0", TROUPE_API_KEY="secret"))
        self.assertNotIn("no key", said())

    @unittest.skipIf("TROUPE_SANITIZED" in os.environ, "a sanitizer keeps what was freed")
    def test_texts_far_too_long_are_refused_and_take_little_memory(self):
        def peak():
            return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1])
        with Server() as server:
            server.complete("The kernel")
            before = peak()
            for text, why in (("x" * 1_000_000, "a word of more than 65536 bytes"), ("a " * 490_000, "context")):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.ask("/v1/completions", {"prompt": text})
                self.assertEqual(refused.exception.code, 400)
                self.assertIn(why, json.load(refused.exception)["error"]["message"])
                refused.exception.close()
            self.assertLess(peak() - before, 20 << 10)  # a text of a mebibyte took 50 when its length had no limit
            self.assertEqual(len(server.complete("The kernel")) > 0, True)

    @unittest.skipIf("TROUPE_SANITIZED" in os.environ, "a sanitizer keeps what was freed")
    def test_memory_is_flat_over_malformed_requests(self):
        def resident():
            status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+)", status)[1])
        bad = [b"", b"{", b"[]", b'{"prompt":5}', b'{"prompt":"a","n":-1}', b'{"prompt":"a","stop":[""]}',
               b"[" * 2000, b'{"prompt":"\\ud800"}', b'{"prompt":"a","logit_bias":{"":1}}', b"\xff\xfe",
               b'{"messages":[{"role":"user"}]}']
        with Server() as server:
            def send(i):
                body = bad[i % len(bad)]
                with socket.create_connection(("127.0.0.1", server.port), 30) as client:
                    client.sendall(b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                    answer = b""
                    while got := client.recv(4096):
                        answer += got
                self.assertRegex(answer, rb"^HTTP/1.1 4\d\d ", body)
                self.assertIn(b'"message":"', answer)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(send, range(500)))
                before = resident()
                list(pool.map(send, range(3000)))
            self.assertLess(resident() - before, 4096)
            self.assertEqual(len(server.complete("The kernel")) > 0, True)


TEMPLATES = pathlib.Path(__file__).resolve().parent / "data" / "chat_templates"
PAINT = {"name": "paint", "description": "Paints a thing.", "parameters": {
    "type": "object", "properties": {"size": {"type": "integer", "minimum": 1, "maximum": 9},
                                     "colour": {"type": "string", "enum": ["red", "green"]}},
    "required": ["size", "colour"], "additionalProperties": False}}
# Models by their templates, with the marks that are special tokens of theirs.
MODELS = {
    "Qwen-Qwen3-0.6B": ["<tool_call>", "</tool_call>", "<think>", "</think>"],
    "Qwen3-Coder": [],
    "GLM-4.6": ["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    "deepseek-ai-DeepSeek-V3.1": ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
                                  "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"],
    "mistralai-Mistral-Nemo-Instruct-2407": ["[TOOL_CALLS]"],
    "ibm-granite-granite-3.3-2B-Instruct": ["<|tool_call|>"],
    "openai-gpt-oss-120b": ["<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>"],
    "own-numbered-calls": ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
                           "<|tool_call_argument_begin|>", "<|tool_call_end|>"],
    "own-invoked-calls": ["<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"],
    "own-bare-calls": ["<|python_tag|>"],
}


class Tools(unittest.TestCase):
    def check(self, call):
        self.assertEqual(call["name"], "paint")
        arguments = json.loads(call["arguments"])
        self.assertEqual(set(arguments), {"size", "colour"})
        self.assertIn(arguments["size"], range(1, 10))
        self.assertIn(arguments["colour"], ["red", "green"])

    def stream(self, server, path, body):
        with server.open(path, {**body, "stream": True}) as response:
            for line in response:
                if line.startswith(b"data: ") and line != b"data: [DONE]\n":
                    yield json.loads(line[6:])

    def test_models_of_each_syntax_make_the_calls_that_are_asked_for(self):
        ask = {"messages": [{"role": "user", "content": "Paint!"}], "tools": [{"type": "function", "function": PAINT}],
               "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 400, "temperature": 1.2,
               "chat_template_kwargs": {"enable_thinking": False}}
        with tempfile.TemporaryDirectory() as folder:
            for name, marks in MODELS.items():
                model = pathlib.Path(folder) / "model.gguf"
                template = (TEMPLATES / (name + ".jinja")).read_text()
                gguf_with_template.copy(TINY, model, template, marks)
                with self.subTest(name), Server("--ctx", 4096, model=model) as server:
                    called = 0
                    for seed in range(4):
                        choice = server.ask("/v1/chat/completions", {**ask, "seed": seed})["choices"][0]
                        if choice["finish_reason"] == "length":
                            continue  # it thought for too long
                        self.assertEqual(choice["finish_reason"], "tool_calls")
                        self.assertIsNone(choice["message"]["content"])
                        call = choice["message"]["tool_calls"][0]
                        self.check(call["function"])
                        called += 1
                        streamed = ""
                        for chunk in self.stream(server, "/v1/chat/completions", {**ask, "seed": seed}):
                            for delta in chunk["choices"][0]["delta"].get("tool_calls", []):
                                streamed += delta["function"]["arguments"]
                        self.assertEqual(streamed, call["function"]["arguments"])
                        # What a client sends next: the call and what came of it.
                        after = [*ask["messages"], choice["message"],
                                 {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
                        server.ask("/v1/chat/completions", {**ask, "messages": after, "tool_choice": "auto",
                                                            "max_tokens": 4})
                    self.assertGreater(called, 0)

    def test_reasoning_is_counted_and_ends_where_it_is_told(self):
        talk = [{"role": "user", "content": "Think!"}]
        body = {"messages": talk, "max_tokens": 60, "temperature": 1.2, "ignore_eos": True}
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            template = (TEMPLATES / "own-invoked-calls.jinja").read_text()  # it begins with reasoning
            gguf_with_template.copy(TINY, model, template, ["<think>", "</think>"])
            with Server("--ctx", 512, "--parallel", 4, model=model) as server:
                def ask(seed, **more):
                    answer = server.ask("/v1/chat/completions", {**body, "seed": seed, **more})
                    return answer["choices"][0]["message"], answer["usage"]["completion_tokens_details"]["reasoning_tokens"]

                limited = [ask(seed, thinking_budget_tokens=10) for seed in range(4)]
                for seed, (message, reasoning) in enumerate(limited):
                    self.assertIn(reasoning, range(10, 14))  # 10, and the rest of a character
                    self.assertTrue(message["reasoning_content"])
                    self.assertTrue(message["content"])
                    free, more = ask(seed)
                    self.assertGreater(more, 13)
                    self.assertTrue(free["reasoning_content"].startswith(message["reasoning_content"].rstrip("\ufffd")))
                self.assertEqual(ask(1, thinking_budget=0)[1], 0)
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    self.assertEqual(list(pool.map(lambda seed: ask(seed, thinking_budget_tokens=10), range(4))), limited)
                message = server.ask("/v1/messages", {**body, "seed": 2,
                                                      "thinking": {"type": "enabled", "budget_tokens": 10}})
                self.assertEqual([block["type"] for block in message["content"]], ["thinking", "text"])
                self.assertEqual(message["content"][0]["thinking"], limited[2][0]["reasoning_content"])
                response = server.ask("/v1/responses", {"input": "Think!", "max_output_tokens": 60, "temperature": 1.2,
                                                        "ignore_eos": True, "seed": 3, "thinking_token_budget": 10})
                self.assertEqual(response["usage"]["output_tokens_details"]["reasoning_tokens"], limited[3][1])
                self.assertEqual(response["output"][0]["content"][0]["text"], limited[3][0]["reasoning_content"])

    def test_a_call_is_the_same_whoever_asks_and_however(self):
        forms = {"/v1/responses": {"input": "Paint!", "tools": [{"type": "function", **PAINT}], "tool_choice": "required",
                                   "parallel_tool_calls": False},
                 "/v1/messages": {"messages": [{"role": "user", "content": "Paint!"}], "max_tokens": 400,
                                  "tools": [{"name": "paint", "description": PAINT["description"],
                                             "input_schema": PAINT["parameters"]}],
                                  "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}}
        with Server("--ctx", 4096) as server:
            found = []
            for path, body in forms.items():
                answer = server.ask(path, {**body, "seed": 5})
                events = list(self.stream(server, path, {**body, "seed": 5}))
                if path == "/v1/responses":
                    call = answer["output"][0]
                    self.check(call)
                    found.append(json.loads(call["arguments"]))
                    self.assertEqual(events[-1]["type"], "response.completed")
                    self.assertEqual(events[-1]["response"]["output"][0]["arguments"], call["arguments"])
                    self.assertEqual([event["sequence_number"] for event in events], list(range(len(events))))
                else:
                    self.assertEqual(answer["stop_reason"], "tool_use")
                    found.append(answer["content"][0]["input"])
                    parts = "".join(event["delta"].get("partial_json", "") for event in events
                                    if event["type"] == "content_block_delta")
                    self.assertEqual(json.loads(parts), answer["content"][0]["input"])
            self.assertEqual(found[0], found[1])

    def test_what_cannot_be_answered_names_its_field(self):
        hello = {"messages": [{"role": "user", "content": "a"}]}
        with Server() as server:
            for path, body, param in [
                    ("/v1/chat/completions", {**hello, "functions": [{"name": "f"}]}, "functions"),
                    ("/v1/chat/completions", {**hello, "tools": [{"type": 5}]}, "tools[0].type"),
                    ("/v1/chat/completions", {**hello, "tool_choice": "required"}, "tool_choice"),
                    ("/v1/responses", {"input": "a", "previous_response_id": "resp_1"}, "previous_response_id"),
                    ("/v1/responses", {}, "input")]:
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    server.ask(path, body)
                self.assertEqual(refused.exception.code, 400)
                error = json.load(refused.exception)["error"]
                self.assertEqual((error["param"], error["code"]), (param, None), error)
                refused.exception.close()


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
