#!/usr/bin/env python3
"""Asks a server for what could take much memory, in the least budget that it can be started with.

What the process has had at most (VmHWM) stays within that budget, whatever clients send.
usage: serve_memory_test.py TROUPE [unittest arguments]
"""
import concurrent.futures
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import unittest
import urllib.error

import serve_test
from serve_test import LONGEST, TINY, Server


MOST_BODY = 8 << 20  # the usual one


def least_budget(*args):
    """MiB, as the error names it where there is far too little."""
    done = subprocess.run([serve_test.TROUPE, "serve", TINY, "--port", "0", "--memory", "1MiB", *map(str, args)],
                          capture_output=True, text=True, check=False)
    return int(re.search(r"([\d.]+) MiB are the least", done.stderr)[1].split(".")[0]) + 1


class ServeMemory(unittest.TestCase):
    def serve(self, *args):
        self.budget = least_budget(*args)
        return Server("--memory", f"{self.budget}MiB", *args)

    def check(self, server):
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        most = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
        print(f"{self.id().rsplit('.', 1)[1]}: {most:.0f} of {self.budget} MiB", file=sys.stderr)
        self.assertLessEqual(most, self.budget)

    def refused(self, server, path, body):
        """What the error says, and which field it names."""
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.ask(path, body)
        error = json.load(refused.exception)["error"]
        refused.exception.close()
        self.assertEqual(refused.exception.code, 400, error)
        return error["message"], error["param"]

    def test_requests_that_wait_keep_what_their_responses_repeat_within_the_budget(self):
        body = json.dumps({"input": "x", "user": ["v"] * 130_000, "max_output_tokens": 4000, "ignore_eos": True}).encode()
        head = f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with self.serve("--ctx", 4096, "--parallel", 1) as server:
            def send():
                client = socket.create_connection(("127.0.0.1", server.port), LONGEST)
                client.sendall(head + body)
                return client
            with concurrent.futures.ThreadPoolExecutor(64) as pool:
                clients = list(pool.map(lambda _: send(), range(64)))
            over = kept = 0  # requests that wait no more, and what the others keep at most
            give_up = time.monotonic() + LONGEST
            while over < 50 and time.monotonic() < give_up:
                with server.open("/metrics") as page:
                    counts = re.findall(r'troupe_requests_total{endpoint="/v1/responses",.*} (\d+)', page.read().decode())
                over = sum(map(int, counts))
                kept = max(kept, server.metric("troupe_requests_kept_bytes"))
                time.sleep(0.02)
            for client in clients:
                client.close()
            self.assertGreater(kept, 5 * len(body))
            self.assertLess(kept, 9 << 20)
            self.check(server)

    def test_answers_of_a_long_prompt_share_it(self):
        with self.serve("--ctx", 4096, "--parallel", 1) as server:
            for path, text in (("/v1/completions", "a b " * 250_000), ("/completion", ["a b " * 7_500] * 32)):
                message, _ = self.refused(server, path, {"prompt": text, "n": 128, "max_tokens": 1})
                self.assertIn("maximum context length is 4096 tokens", message)
            fits = {"prompt": "a b " * 1000, "n": 128, "max_tokens": 1}
            self.assertEqual(len(server.ask("/v1/completions", fits)["choices"]), 128)
            self.check(server)

    def test_answers_with_many_logprobs_stay_within_the_budget(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1000, "ignore_eos": True, "logprobs": True,
                "top_logprobs": 20}
        with self.serve("--ctx", 4096, "--parallel", 4) as server:
            message, field = self.refused(server, "/v1/chat/completions", {**chat, "n": 11})
            self.assertEqual(field, "n")
            self.assertIn("11000 tokens with their logprobs", message)

            def ask(_):
                try:
                    return len(json.dumps(server.ask("/v1/chat/completions", {**chat, "n": 2})))
                except urllib.error.HTTPError as error:
                    error.close()
                    return error.code
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                answers = sorted(pool.map(ask, range(6)))
            self.assertEqual(set(answer for answer in answers if answer < 1000), {429})
            self.assertGreater(answers[-1], 2 << 20)
            echo = {"prompt": ["a b " * 1000] * 12, "max_tokens": 1, "logprobs": 1, "echo": True}
            self.assertEqual(len(server.ask("/v1/completions", echo)["choices"]), 12)
            self.assertEqual(self.refused(server, "/v1/completions", {**echo, "logprobs": 20})[1], "prompt")
            self.check(server)

    def test_tokens_with_their_pieces_stay_within_the_budget(self):
        with self.serve("--ctx", 4096, "--parallel", 1) as server:
            message, field = self.refused(server, "/tokenize", {"content": "a b " * 250_000, "with_pieces": True})
            self.assertEqual(field, "with_pieces")
            self.assertIn("4.0 MiB", message)
            tokens = server.ask("/tokenize", {"content": "a b " * 20_000, "with_pieces": True})["tokens"]
            self.assertEqual("".join(token["piece"] for token in tokens).strip(), ("a b " * 20_000).strip())
            ids = server.ask("/tokenize", {"content": "a b " * 125_000})["tokens"]
            self.assertEqual(ids[:30_000], [token["id"] for token in tokens[:30_000]])
            self.check(server)

    def test_headers_of_requests_whose_bodies_do_not_come_stay_within_the_budget(self):
        begin = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
        for fields, status in ((b"a:b\r\n" * 6000, b" 431 "), ((b"a: " + b"b" * 300 + b"\r\n") * 100, None)):
            with self.subTest(status=status), self.serve("--ctx", 4096, "--parallel", 1) as server:
                clients = []
                for _ in range(900):
                    clients.append(socket.create_connection(("127.0.0.1", server.port), LONGEST))
                    clients[-1].sendall(begin + fields + b"\r\n")
                if status:
                    self.assertIn(status, clients[-1].recv(100))
                self.assertTrue(server.ask("/tokenize", {"content": "a b "})["tokens"])
                self.check(server)
                for client in clients:
                    client.close()

    def test_chats_as_large_as_bodies_may_be_stay_within_the_budget(self):
        chat = {"max_tokens": 1, "messages": [{"role": "user", "content": "a b " * ((MOST_BODY - 1000) // 4)}]}
        pieces = {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "a b "}] * (MOST_BODY // 40)}]}
        short = {"max_tokens": 1, "messages": [{"role": "user", "content": "a"}] * (MOST_BODY // 40)}
        for body in chat, pieces, short:
            text = json.dumps(body).encode()
            self.assertLess(len(text), MOST_BODY)
            with self.subTest(bytes=len(text)), self.serve("--ctx", 4096, "--parallel", 1, "--most-body", "8MiB") as server:
                def ask(path):
                    try:
                        return server.ask(path, body)
                    except urllib.error.HTTPError as error:
                        with error:
                            return error.code
                paths = ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"] * 3
                with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
                    codes = list(pool.map(ask, paths))
                self.assertLessEqual({code for code in codes if not isinstance(code, dict)}, {400, 413, 429, 503}, codes)
                self.assertEqual(len(server.ask("/v1/completions", {"prompt": "a", "max_tokens": 1})["choices"]), 1)
                self.check(server)

    def test_many_who_ask_for_metrics_at_once_stay_within_the_budget(self):
        with self.serve("--ctx", 4096, "--parallel", 1) as server:
            def flood(_):
                client = socket.create_connection(("127.0.0.1", server.port), LONGEST)
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)  # and does not read
                return client
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                clients = list(pool.map(flood, range(500)))
            for _ in range(5):
                self.assertEqual(len(server.ask("/v1/completions", {"prompt": "a", "max_tokens": 1})["choices"]), 1)
                time.sleep(0.2)
            self.check(server)
            for client in clients:
                client.close()

    def test_a_suffix_behind_many_prompts_and_prompts_before_many_answers_are_counted(self):
        with self.serve("--ctx", 16384, "--parallel", 1) as server:
            message, field = self.refused(server, "/v1/completions", {"prompt": ["a"] * 128, "suffix": "b " * 500_000})
            self.assertEqual(field, "suffix")
            self.assertIn("128000000 bytes of text", message)
            body = {"prompt": "The kernel " * 1500, "n": 128, "max_tokens": 1, "echo": True}
            message, field = self.refused(server, "/v1/completions", body)
            self.assertEqual(field, "n")
            self.assertIn("of prompts in the answers", message)
            self.assertEqual(len(server.ask("/v1/completions", {**body, "n": 2})["choices"]), 2)
            self.check(server)


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
