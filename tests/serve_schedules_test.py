#!/usr/bin/env python3
"""Random schedules of requests to `troupe serve`: whoever comes, shares a beginning, streams, leaves early or ends its
sending at the same time, each request gets the bytes that it gets alone from a server without a prefix cache.

usage: serve_schedules_test.py TROUPE [unittest arguments]
"""
import concurrent.futures
import json
import os
import random
import socket
import subprocess
import sys
import unittest

import serve_test
from serve_test import LONGEST, TINY, Server

ROUNDS = 40
HEADS = ["", "The kernel of a memory is read by many. " * 8, "You are a helpful machine; answer in one line. " * 16]
WORDS = "the kernel of a memory is read by many and changed by few who wait for each other in turn".split()


def drawn(draw):
    """A path and a body, which may be streamed or not."""
    text = draw.choice(HEADS) + " ".join(draw.choices(WORDS, k=draw.randrange(1, 30)))
    body = {"max_tokens": draw.randrange(1, 40), "temperature": draw.choice([0, 0.8]), "seed": draw.randrange(1000)}
    if draw.randrange(3) == 0:
        body |= {"dry_multiplier": 0.8, "xtc_probability": 0.5, "xtc_threshold": 0.05}
    if draw.randrange(3) == 0:
        body["cache_salt"] = draw.choice(["mine", "yours"])
    if draw.randrange(4) == 0:
        body["grammar"] = 'root ::= ("yes" | "no") (", " [a-z]+)*'
    else:
        body["ignore_eos"] = True
    path = draw.choice(["/v1/completions", "/v1/chat/completions", "/v1/messages"])
    if path == "/v1/completions":
        return path, body | {"prompt": text, "n": draw.choice([1, 1, 3])}
    return path, body | {"messages": [{"role": "user", "content": text}]}


def texts_of(path, answer):
    if path == "/v1/messages":
        return ["".join(part.get("text", "") for part in answer["content"])]
    key = (lambda choice: choice["text"]) if path == "/v1/completions" else (lambda choice: choice["message"]["content"])
    return [key(choice) for choice in sorted(answer["choices"], key=lambda choice: choice["index"])]


def streamed(path, events, count):
    texts = [""] * count
    for event in events:
        if path == "/v1/messages":
            if event["type"] == "content_block_delta":
                texts[0] += event["delta"].get("text", "")
            continue
        for choice in event["choices"]:
            piece = choice["text"] if path == "/v1/completions" else choice["delta"].get("content")
            texts[choice["index"]] += piece or ""
    return texts


def sent(port, path, body):
    """A connection that has sent the request."""
    data = json.dumps(body).encode()
    client = socket.create_connection(("127.0.0.1", port), LONGEST)
    client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                   % (path.encode(), len(data), data))
    return client


def half_closed(port, path, body):
    """The answer's bytes for a client that sends its end behind the request, as `nc -N` does."""
    with sent(port, path, body) as client:
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def whole_of(answer):
    """The JSON in an answer that came in chunks or at once."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return json.loads(body)
    text = b""
    while (size := int(body.partition(b"\r\n")[0], 16)) > 0:
        body = body.partition(b"\r\n")[2]
        text, body = text + body[:size], body[size + 2:]
    return json.loads(text)


class Schedules(unittest.TestCase):
    def ask(self, server, path, body, way):
        if way == "half-closed":
            return texts_of(path, whole_of(half_closed(server.port, path, body)))
        if way == "whole":
            return texts_of(path, server.ask(path, body))
        with server.open(path, body | {"stream": True}) as response:
            events = [json.loads(line[6:]) for line in response
                      if line.startswith(b"data: ") and line != b"data: [DONE]\n"]
        return streamed(path, events, body.get("n", 1))

    def leave(self, server, path, body, stream):
        with sent(server.port, path, body | {"stream": stream, "max_tokens": 400}) as client:
            if stream:
                client.recv(1024)

    def test_each_request_gets_its_bytes_in_any_schedule(self):
        seed = int(os.environ.get("TROUPE_SEED", random.randrange(1 << 32)))
        draw = random.Random(seed)
        requests = [drawn(draw) for _ in range(60)]
        with Server("--parallel", 1, "--no-prefix-cache", "--ctx", 1536) as alone:
            expected = [self.ask(alone, path, body, "whole") for path, body in requests]
        with Server("--parallel", 5, "--queue", 200, "--ctx", 1536, "--slots", 40, "--pass-ms", 5) as server, \
                concurrent.futures.ThreadPoolExecutor(24) as pool:
            for round_ in range(ROUNDS):
                jobs, leaving = [], []
                for _ in range(draw.randrange(2, 9)):
                    number = draw.randrange(len(requests))
                    way = draw.choice(["whole", "stream", "stream", "half-closed"])
                    jobs.append((number, way, pool.submit(self.ask, server, *requests[number], way)))
                    if draw.randrange(3) == 0:
                        path, body = draw.choice(requests)
                        leaving.append(pool.submit(self.leave, server, path, body, draw.randrange(2) == 0))
                for number, way, job in jobs:
                    self.assertEqual(job.result(LONGEST), expected[number], f"seed {seed}, round {round_}, {way}")
                for job in leaving:
                    job.result(LONGEST)
            self.assertGreater(server.metric('troupe_tokens_total{kind="cached"}'), 1000)
            server.metric_reaching('troupe_answers_total{end="cancelled"}', 5)


class Alike(unittest.TestCase):
    def test_dry_and_xtc_choose_what_troupe_run_chooses(self):
        for options in ({}, {"dry_multiplier": 1.5, "dry_base": 2, "dry_allowed_length": 1},
                        {"xtc_probability": 1, "xtc_threshold": 0.01},
                        {"dry_multiplier": 3, "dry_penalty_last_n": 20, "dry_sequence_breakers": ["e", "\n"],
                         "xtc_probability": 0.5, "xtc_threshold": 0.02}):
            flags = []
            for name, value in options.items():
                flag = "--" + name.replace("_", "-").replace("breakers", "breaker")
                for one in value if isinstance(value, list) else [value]:
                    flags += [flag, one]
            run = subprocess.run([serve_test.TROUPE, "run", TINY, "--prompt", "The kernel", "-n", "60", "--seed", "7",
                                  "--ignore-eos", *map(str, flags)], capture_output=True, text=True, check=True)
            with Server() as server:
                said = server.ask("/v1/completions", {"prompt": "The kernel", "max_tokens": 60, "seed": 7,
                                                      "ignore_eos": True, **options})["choices"][0]["text"]
            self.assertIn(said.strip(), run.stdout, options)
            if options:
                self.assertNotEqual(said, plain)
            else:
                plain = said


class HalfClosed(unittest.TestCase):
    def test_a_client_that_ends_its_sending_gets_its_answer_and_one_that_leaves_is_cancelled(self):
        body = {"prompt": "The kernel", "max_tokens": 300, "temperature": 0, "ignore_eos": True}
        with Server("--ctx", 30000, "--parallel", 1) as server:
            expected = server.ask("/v1/completions", body)["choices"][0]["text"]
            answer = half_closed(server.port, "/v1/completions", body)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer[:80])
            self.assertEqual(whole_of(answer)["choices"][0]["text"], expected)
            self.assertIn(b"data: [DONE]", half_closed(server.port, "/v1/completions", body | {"stream": True}))
            self.assertIn(b'"tokens":[', half_closed(server.port, "/tokenize", {"content": "The kernel"}))
            self.assertEqual(server.metric('troupe_answers_total{end="cancelled"}'), 0)
            for stream in False, True:
                sent(server.port, "/v1/completions", body | {"max_tokens": 20000, "stream": stream}).close()
            server.metric_reaching('troupe_answers_total{end="cancelled"}', 2)
            self.assertEqual(server.metric('troupe_answers_total{end="finished"}'), 3)


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
