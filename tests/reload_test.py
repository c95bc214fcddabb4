#!/usr/bin/env python3
"""Changes the model and the settings of `troupe serve` by SIGHUP, while clients ask it.

usage: reload_test.py TROUPE [unittest arguments]
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error

import serve_test
from serve_test import LONGEST, PROMPTS, TINY

SMALL = TINY.parent / "small-qwen2moe-q8_0.gguf"
NAMES = {TINY: "tiny-qwen2moe-q8_0", SMALL: "small-qwen2moe-q8_0"}
MIB = 1 << 20


class Server(serve_test.Server):
    """A server with a configuration that can be written anew."""

    def __init__(self, folder, *args, tls=None, **settings):
        self.config = pathlib.Path(folder) / "serve.conf"
        self.write(**settings)
        super().__init__("--config", self.config, *args, model=None, tls=tls)

    def write(self, **settings):
        lines = [f"{name.replace('_', '-')} = {value}\n" for name, value in settings.items()]
        self.config.write_text("".join(lines), encoding="utf-8")

    def hang_up(self, **settings):
        if settings:
            self.write(**settings)
        self.process.send_signal(signal.SIGHUP)

    def wait_for(self, words, times=1):
        """The last line with these words, once as many have come."""
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            found = [line for line in list(self.said) if words in line]
            if len(found) >= times:
                return found[-1]
            time.sleep(0.02)
        raise AssertionError(f"'{words}' was not said: " + "".join(self.said))

    def wait_for_parked(self, count):
        end = time.monotonic() + LONGEST
        while self.metric('troupe_requests_now{state="parked"}') != count:
            if time.monotonic() > end:
                raise AssertionError("parked: " + str(self.metric('troupe_requests_now{state="parked"}')))
            time.sleep(0.02)

    def reloads(self):
        return [self.metric('troupe_reloads_total{result="%s"}' % end) for end in ("done", "refused", "undone")]

    def answer(self, prompt, tokens=24):
        """The name of the model that answered, and its text."""
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0.8, "seed": 7, "ignore_eos": True}
        whole = self.ask("/v1/completions", body)
        return whole["model"], whole["choices"][0]["text"]

    def peak(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024


def answers_alone(model, prompts, *args, tokens=24):
    with serve_test.Server(*args, model=model) as server:
        return {prompt: server.complete(prompt, tokens) for prompt in prompts}


class Reload(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pool = concurrent.futures.ThreadPoolExecutor(64)
        self.addCleanup(self.pool.shutdown)

    def assertGoneWith(self, code, job):
        with self.assertRaises(urllib.error.HTTPError) as gone:
            job()
        self.assertEqual(gone.exception.code, code)
        self.addCleanup(gone.exception.close)
        return gone.exception

    def test_a_stream_under_way_loses_nothing_and_the_next_request_waits_for_the_next_model(self):
        alone = answers_alone(TINY, ["The kernel"], "--ctx", 2048, tokens=1200)["The kernel"]
        next_alone = answers_alone(SMALL, ["One two three"])["One two three"]
        with Server(self.folder, model=TINY, ctx=2048) as server:
            stream = server.stream("The kernel", 1200)
            text = next(stream)
            server.hang_up(model=SMALL, ctx=2048, parallel=2)
            server.wait_for("reloading")
            parked = self.pool.submit(server.answer, "One two three")
            tokens = self.pool.submit(server.ask, "/tokenize", {"content": "The kernel"})
            server.wait_for_parked(2)
            self.assertEqual(server.ask("/health"), {"status": "ok"})
            self.assertEqual(server.ask("/v1/models")["data"][0]["id"], NAMES[TINY])
            self.assertEqual(text + "".join(stream), alone)
            self.assertEqual(parked.result(LONGEST), (NAMES[SMALL], next_alone))
            self.assertGreater(len(tokens.result(LONGEST)["tokens"]), 0)
            self.assertIn(f"serving {SMALL}; requests that waited: 2", server.wait_for("reloaded: serving"))
            self.assertEqual(server.ask("/props")["sequences"], 2)
            self.assertEqual(server.reloads(), [1, 0, 0])

    def test_fifty_clients_over_several_reloads_are_all_answered_as_alone(self):
        expected = {NAMES[model]: answers_alone(model, PROMPTS) for model in (TINY, SMALL)}
        # A sanitizer keeps what was freed, up to hundreds of MiB, which the next plan must go without.
        kept = 1000 if "TROUPE_SANITIZED" in os.environ else 0
        first = {"model": TINY, "memory": f"{600 + kept}MiB", "ctx": 512, "queue": 100}
        second = {"model": SMALL, "memory": f"{500 + kept}MiB", "ctx": 512, "queue": 100, "parallel": 6, "slots": 60}
        with Server(self.folder, **first) as server:
            stop = False

            def ask(client):
                answered = []
                while not stop:
                    prompt = PROMPTS[(client + len(answered)) % len(PROMPTS)]
                    answered.append((prompt, *server.answer(prompt)))
                return answered
            clients = [self.pool.submit(ask, client) for client in range(50)]
            try:
                for reload in range(6):
                    time.sleep(0.5)
                    server.hang_up(**(first if reload % 2 else second))
                    server.wait_for("reloaded: serving", reload + 1)
            finally:
                stop = True
            answered = [answer for client in clients for answer in client.result(LONGEST)]
            for prompt, model, text in answered:
                self.assertEqual(text, expected[model][prompt])
            self.assertEqual({model for _, model, _ in answered}, set(NAMES.values()))
            self.assertGreater(len(answered), 100)
            self.assertEqual(server.reloads(), [6, 0, 0])

    @unittest.skipIf("TROUPE_SANITIZED" in os.environ, "a sanitizer keeps what was freed")
    def test_the_process_stays_within_the_larger_budget_in_which_two_models_would_have_no_room(self):
        wide = self.folder / "wide.gguf"  # 308 MiB that answer as the tiny model does
        subprocess.run([serve_test.TROUPE, "synth", wide, "--widen", TINY, "--factor", "48"], check=True,
                       capture_output=True)
        expected = answers_alone(TINY, PROMPTS)
        budgets = [460 * MIB, 400 * MIB]
        experts = {}
        with Server(self.folder, model=wide, memory=budgets[0], ctx=512) as server:
            for reload in range(5):
                jobs = [self.pool.submit(server.complete, prompt) for prompt in PROMPTS]
                server.hang_up(model=wide, memory=budgets[(reload + 1) % 2], ctx=512)
                server.wait_for("reloaded: serving", reload + 1)
                for prompt, job in zip(PROMPTS, jobs):
                    self.assertEqual(job.result(LONGEST), expected[prompt])
                props = server.ask("/props")
                self.assertEqual(props["memory_budget_bytes"], budgets[(reload + 1) % 2])
                experts[props["memory_budget_bytes"]] = props["experts_in_memory"]
            self.assertGreater(experts[budgets[0]], experts[budgets[1]])
            self.assertGreater(server.peak(), 240 * MIB)  # so that another one besides would be seen
            self.assertLessEqual(server.peak(), max(budgets))

    def test_a_bad_configuration_is_told_in_a_line_and_leaves_the_old_one_serving(self):
        good = {"model": TINY, "ctx": 512}
        (self.folder / "none.keys").write_text("\n", encoding="utf-8")
        (self.folder / "text.gguf").write_text("no model", encoding="utf-8")
        (self.folder / "cut.gguf").write_bytes(TINY.read_bytes()[:100_000])
        (self.folder / "bad.jinja").write_text("{{ x", encoding="utf-8")
        bad = [({"memroy": "1GiB"}, r"serve.conf: line 3: there is no option 'memroy'; did you mean 'memory'\?"),
               ({"memory": "much"}, r"serve.conf: line 3: memory: .*much"),
               ({"memory": "1MiB"}, r"1.0 MiB of memory are too little"),
               ({"host": "0.0.0.0"}, r"host: '0.0.0.0' in place of '127.0.0.1' needs a restart"),
               ({"model": self.folder / "gone.gguf"}, r"gone.gguf"),
               ({"model": self.folder / "text.gguf"}, r"text.gguf"),
               ({"model": self.folder / "cut.gguf"}, r"cut.gguf"),
               ({"api_keys": self.folder / "none.keys"}, r"none.keys: no key in it"),
               ({"chat_template": self.folder / "bad.jinja"}, r"bad.jinja: line 1"),
               ({"top_p": 7}, r"top")]
        with serve_test.Server("--ctx", 512) as alone:
            expected = alone.complete("The kernel")
        with Server(self.folder, **good) as server:
            stream = server.stream("The kernel", 400)
            next(stream)
            for count, (change, words) in enumerate(bad, 1):
                server.hang_up(**{**good, **change})
                self.assertRegex(server.wait_for("not reloaded: ", count), words)
                self.assertEqual(server.complete("The kernel"), expected)
            self.assertEqual(len("".join(stream)) > 0, True)
            self.assertEqual(server.reloads(), [0, len(bad), 0])
            server.config.unlink()
            server.hang_up()
            self.assertIn("serve.conf", server.wait_for("not reloaded: ", len(bad) + 1))
            server.hang_up(**good)
            server.wait_for("reloaded: nothing changed; the model stays open")
            self.assertEqual(server.complete("The kernel"), expected)

    def test_without_a_configuration_a_replaced_model_comes_in(self):
        model = self.folder / "model.gguf"
        shutil.copy(TINY, model)
        with serve_test.Server(model=model) as server:
            before = server.complete("The kernel")
            shutil.copy(SMALL, self.folder / "next.gguf")
            (self.folder / "next.gguf").rename(model)
            server.process.send_signal(signal.SIGHUP)
            Server.wait_for(server, "reloaded: serving")
            after = server.complete("The kernel")
        self.assertEqual(before, answers_alone(TINY, ["The kernel"])["The kernel"])
        self.assertEqual(after, answers_alone(SMALL, ["The kernel"])["The kernel"])

    def test_a_model_that_cannot_be_opened_after_all_brings_the_old_one_back(self):
        lost = self.folder / "lost.gguf"
        shutil.copy(SMALL, lost)
        with Server(self.folder, model=TINY, ctx=2048) as server:
            expected = server.complete("The kernel")
            stream = server.stream("The kernel", 1200)
            next(stream)
            server.hang_up(model=lost)
            server.wait_for("reloading")
            lost.unlink()
            parked = self.pool.submit(server.answer, "The kernel")
            server.wait_for_parked(1)
            self.assertGreater(len("".join(stream)), 0)
            self.assertEqual(parked.result(LONGEST), (NAMES[TINY], expected))
            self.assertIn("lost.gguf", server.wait_for("not reloaded: "))
            server.wait_for(f"undone: serving {TINY}")
            self.assertEqual(server.reloads(), [0, 0, 1])

    def test_a_server_that_loses_both_models_says_so_and_fails(self):
        models = [self.folder / "one.gguf", self.folder / "two.gguf"]
        for model in models:
            shutil.copy(TINY, model)
        with Server(self.folder, model=models[0], ctx=2048) as server:
            stream = server.stream("The kernel", 1200)
            next(stream)
            server.hang_up(model=models[1])
            server.wait_for("reloading")
            parked = self.pool.submit(server.answer, "The kernel")
            server.wait_for_parked(1)
            for model in models:
                model.unlink()
            self.assertGreater(len("".join(stream)), 0)
            self.assertGoneWith(503, lambda: parked.result(LONGEST))
            self.assertEqual(server.process.wait(LONGEST), 1)
            self.assertIn("one.gguf", server.wait_for("troupe: "))

    def test_sigterm_during_a_reload_lets_requests_end_and_refuses_those_parked(self):
        with Server(self.folder, model=TINY, ctx=2048) as server:
            stream = server.stream("The kernel", 1200)
            text = next(stream)
            server.hang_up(model=SMALL)
            server.wait_for("reloading")
            parked = self.pool.submit(server.answer, "The kernel")
            server.wait_for_parked(1)
            server.process.send_signal(signal.SIGTERM)
            self.assertGoneWith(503, lambda: parked.result(LONGEST))
            server.process.send_signal(signal.SIGHUP)  # too late
            text += "".join(stream)
            self.assertEqual(server.process.wait(LONGEST), 0)
            self.assertNotIn("reloaded", "".join(server.said))
        self.assertEqual(text, answers_alone(TINY, ["The kernel"], "--ctx", 2048, tokens=1200)["The kernel"])

    def test_sigterm_at_any_moment_of_a_reload_ends_the_server_in_good_order(self):
        for milliseconds in (0, 5, 10, 20, 40, 80, 160):
            with self.subTest(milliseconds), Server(self.folder, model=TINY) as server:
                server.hang_up(model=SMALL)
                asked = self.pool.submit(server.answer, "The kernel")
                time.sleep(milliseconds / 1000)
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(LONGEST), 0)
                try:
                    self.assertIn(asked.result(LONGEST)[0], NAMES.values())
                except urllib.error.HTTPError as refused:
                    self.assertEqual(refused.code, 503)
                    refused.close()
                except OSError:  # it had ended before the client came
                    pass
                self.assertNotIn("troupe: ", "".join(server.said))

    def test_sighup_during_the_drain_of_sigterm_changes_nothing(self):
        with Server(self.folder, model=TINY, ctx=2048) as server:
            stream = server.stream("The kernel", 1200)
            next(stream)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("ending")
            server.hang_up(model=SMALL)
            self.assertGreater(len("".join(stream)), 0)
            self.assertEqual(server.process.wait(LONGEST), 0)
            self.assertNotIn("reloading", "".join(server.said))

    def test_a_second_sighup_ends_the_waiting_and_reads_the_file_once_more(self):
        with Server(self.folder, model=TINY, ctx=4096) as server:
            stream = server.stream("The kernel", 4000)
            next(stream)
            server.hang_up(model=TINY, parallel=3)
            server.wait_for("reloading")
            parked = self.pool.submit(server.answer, "The kernel")
            server.wait_for_parked(1)
            server.hang_up(model=SMALL, parallel=2)
            server.wait_for("reloaded: serving")
            self.assertEqual(parked.result(LONGEST)[0], NAMES[SMALL])
            self.assertEqual(server.ask("/props")["sequences"], 2)
            stream.close()

    def test_no_more_are_parked_than_could_wait(self):
        settings = {"model": TINY, "ctx": 2048, "parallel": 1, "queue": 1}
        with Server(self.folder, **settings) as server:
            stream = server.stream("The kernel", 1200)
            next(stream)
            server.hang_up(**settings, chunk=256)
            server.wait_for("reloading")
            parked = [self.pool.submit(server.answer, prompt) for prompt in PROMPTS[:2]]
            server.wait_for_parked(2)
            refused = self.assertGoneWith(429, lambda: server.answer("a"))
            self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
            with socket.create_connection(("127.0.0.1", server.port), 30):
                pass  # the transport goes on as ever
            self.assertGreater(len("".join(stream)), 0)
            self.assertEqual([job.result(LONGEST)[0] for job in parked], [NAMES[TINY]] * 2)

    def test_clients_that_leave_while_parked_are_forgotten(self):
        with Server(self.folder, model=TINY, ctx=2048) as server:
            stream = server.stream("The kernel", 1200)
            next(stream)
            server.hang_up(model=TINY, ctx=2047)
            server.wait_for("reloading")
            body = json.dumps({"prompt": "a", "max_tokens": 4}).encode()
            with socket.create_connection(("127.0.0.1", server.port), 30) as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                               % (len(body), body))
                server.wait_for_parked(1)
            server.wait_for_parked(0)
            self.assertGreater(len("".join(stream)), 0)
            server.wait_for("requests that waited: 0")

    def test_several_answers_of_a_parked_request_have_their_places(self):
        settings = {"model": TINY, "ctx": 2048, "parallel": 2, "queue": 3}
        with Server(self.folder, **settings) as server:
            stream = server.stream("The kernel", 1200)
            next(stream)
            server.hang_up(**settings, chunk=256)
            server.wait_for("reloading")
            body = {"prompt": ["The kernel", "One"], "n": 2, "max_tokens": 200, "ignore_eos": True}
            # Of the four answers two are under way at a time, and have places.
            several = [self.pool.submit(server.ask, "/v1/completions", body) for _ in range(2)]
            server.wait_for_parked(2)
            self.assertGoneWith(429, lambda: server.ask("/v1/completions", {**body, "prompt": "a"}))
            one = self.pool.submit(server.answer, "One two three")
            server.wait_for_parked(3)
            self.assertGreater(len("".join(stream)), 0)
            for answers in several:
                self.assertEqual(len(answers.result(LONGEST)["choices"]), 4)
            self.assertEqual(one.result(LONGEST)[0], NAMES[TINY])

    def test_keys_names_limits_and_logs_change_under_requests_and_the_model_stays(self):
        keys, log = self.folder / "keys", self.folder / "log"
        keys.write_text("one\n", encoding="utf-8")
        settings = {"model": TINY, "ctx": 2048, "api_keys": keys, "parallel": 1, "queue": 0}
        one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
        body = {"prompt": "The kernel", "max_tokens": 1200, "ignore_eos": True, "stream": True}
        with Server(self.folder, **settings) as server:
            with server.open("/v1/completions", body, headers=one) as stream:
                stream.readline()
                self.assertGoneWith(429, lambda: server.ask("/v1/completions", {"prompt": "a"}, one))
                keys.write_text("two\n", encoding="utf-8")
                server.hang_up()
                self.assertIn("the keys in the file", server.wait_for("reloaded: "))
                server.hang_up(**{**settings, "queue": 1, "name": "renamed", "access_log": log, "tokens": 3})
                self.assertIn("access-log, name, queue, tokens changed; the model stays open",
                              server.wait_for("reloaded: ", 2))
                waits = self.pool.submit(server.ask, "/v1/completions", {"prompt": "a", "max_tokens": 2}, two)
                self.assertEqual(server.ask("/health"), {"status": "ok"})
                self.assertEqual(server.ask("/v1/models", headers=two)["data"][0]["id"], "renamed")
                self.assertGoneWith(401, lambda: server.ask("/v1/models", headers=one))
                self.assertIn(b"[DONE]", stream.read())
            self.assertEqual(waits.result(LONGEST)["model"], "renamed")
            chat = {"messages": [{"role": "user", "content": "Hello"}], "ignore_eos": True}
            self.assertEqual(server.ask("/v1/chat/completions", chat, two)["usage"]["completion_tokens"], 3)
            self.assertNotIn("reloading", "".join(server.said))
        self.assertIn("/v1/models 200", log.read_text(encoding="utf-8"))

    def certificate(self, name):
        """A key, and a certificate of it, as files of that name."""
        files = [self.folder / f"{name}.{kind}" for kind in ("key", "pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", files[0], "-out", files[1],
                        "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                       capture_output=True)
        return files

    def test_a_renewed_certificate_is_shown_to_those_who_come_then_and_a_broken_one_to_nobody(self):
        shown = self.certificate("shown")
        renewed, other = self.certificate("renewed"), self.certificate("other")
        first = shown[1].read_text(encoding="ascii")
        trust = ssl.create_default_context(cadata="".join(files[1].read_text(encoding="ascii")
                                                          for files in (shown, renewed, other)))
        settings = {"model": TINY, "tls_key": shown[0], "tls_certificate": shown[1]}
        with Server(self.folder, tls=trust, **settings) as server:
            def name_shown():
                with socket.create_connection(("127.0.0.1", server.port), LONGEST) as plain, \
                        trust.wrap_socket(plain, server_hostname="127.0.0.1") as client:
                    return dict(pair for part in client.getpeercert()["subject"] for pair in part)["commonName"]

            kept = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=LONGEST, context=trust)
            kept.request("GET", "/health")
            kept.getresponse().read()
            self.assertEqual(name_shown(), "shown")
            for count, (change, words) in enumerate([
                    (lambda: shown[1].write_bytes(renewed[1].read_bytes()), f"{shown[0]}: .*, expected .* with the key of"),
                    (lambda: shown[1].write_text(first[:200], encoding="ascii"), f"{shown[1]}: "),
                    (shown[1].unlink, f"{shown[1]}: ")], 1):
                change()
                server.hang_up()
                self.assertRegex(server.wait_for("not reloaded: ", count), words)
                self.assertEqual(name_shown(), "shown")
            for old, new in zip(shown, renewed):
                old.write_bytes(new.read_bytes())
            server.hang_up()
            self.assertIn("the file of tls-certificate changed; the model stays open", server.wait_for("reloaded: ", 4))
            self.assertEqual(name_shown(), "renewed")
            kept.request("GET", "/health")  # on the connection that was shown the first
            self.assertEqual(kept.getresponse().read(), b'{"status":"ok"}')
            kept.close()
            server.hang_up(**{**settings, "tls_key": other[0], "tls_certificate": other[1]})
            self.assertIn("tls-certificate, tls-key changed; the model stays open", server.wait_for("reloaded: ", 5))
            self.assertEqual(name_shown(), "other")
            server.hang_up(**{**settings, "tls_key": other[0], "tls_certificate": other[1], "parallel": 2})
            server.wait_for("reloaded: serving")
            self.assertEqual(name_shown(), "other")
            ends = server.metric("troupe_http_certificate_expires_timestamp_seconds")
            self.assertAlmostEqual(ends, time.time() + 2 * 86400, delta=LONGEST)
            self.assertEqual(server.reloads(), [3, 3, 0])
            server.hang_up(model=TINY)
            self.assertIn("to do without TLS needs a restart", server.wait_for("not reloaded: ", 4))

    def test_keys_count_though_a_certificate_is_refused_and_the_other_way_round(self):
        shown, renewed = self.certificate("shown"), self.certificate("renewed")
        trust = ssl.create_default_context(cadata="".join(files[1].read_text(encoding="ascii")
                                                          for files in (shown, renewed)))
        keys = self.folder / "keys"
        keys.write_text("leaked\nkept\n", encoding="utf-8")
        leaked, kept = ({"Authorization": f"Bearer {key}"} for key in ("leaked", "kept"))
        settings = {"model": TINY, "api_keys": keys, "tls_key": shown[0], "tls_certificate": shown[1]}
        with Server(self.folder, tls=trust, **settings) as server:
            server.ask("/v1/models", headers=leaked)
            keys.write_text("kept\n", encoding="utf-8")
            shown[0].write_bytes(renewed[0].read_bytes())  # the certificate comes later
            server.hang_up()
            self.assertRegex(server.wait_for("not reloaded: "), "key of.*; the keys count all the same")
            self.assertGoneWith(401, lambda: server.ask("/v1/models", headers=leaked))
            server.ask("/v1/models", headers=kept)
            keys.unlink()
            shown[1].write_bytes(renewed[1].read_bytes())
            server.hang_up()
            self.assertRegex(server.wait_for("not reloaded: ", 2), "keys: .*; the certificate counts all the same")
            with socket.create_connection(("127.0.0.1", server.port), LONGEST) as plain, \
                    trust.wrap_socket(plain, server_hostname="127.0.0.1") as client:
                self.assertIn("renewed", str(client.getpeercert()["subject"]))
            self.assertGoneWith(401, lambda: server.ask("/v1/models", headers=leaked))
            keys.write_text("", encoding="utf-8")  # nobody may ask, or everybody: neither by mistake
            server.hang_up()
            server.wait_for("not reloaded: ", 3)
            server.ask("/v1/models", headers=kept)
            self.assertGoneWith(401, lambda: server.ask("/v1/models"))

    def test_a_limit_that_the_model_needs_opens_it_anew(self):
        with Server(self.folder, model=TINY, parallel=1) as server:
            server.hang_up(model=TINY, parallel=2)
            self.assertIn("reloading: parallel changed; ", server.wait_for("reloading"))
            server.wait_for("reloaded: serving")
            self.assertEqual(server.ask("/props")["sequences"], 2)

    def test_whoever_watches_is_told_of_the_next_model(self):
        with Server(self.folder, model=TINY) as server, server.open("/live") as watching:
            def next_facts():
                for line in watching:
                    if line == b"event: facts\n":
                        return json.loads(watching.readline().removeprefix(b"data: "))
                return None
            self.assertEqual(next_facts()["model"], NAMES[TINY])
            server.hang_up(model=SMALL)
            self.assertEqual(next_facts()["model"], NAMES[SMALL])


class Configuration(unittest.TestCase):
    def run_with(self, text, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
            config.write(text)
            config.flush()
            return subprocess.run([serve_test.TROUPE, "serve", "--config", config.name, *map(str, args)], check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def test_a_mistake_at_the_start_is_one_line_and_fails(self):
        for text, words in [("model = a\nmemory 6GiB\n", "line 2: found 'memory 6GiB', expected NAME = VALUE"),
                            ("port = 1\n", "MODEL is required"),
                            ("model = /none.gguf\nport = 0\n", "/none.gguf")]:
            done = self.run_with(text)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_without_a_model_anywhere_the_usage_is_wrong(self):
        done = subprocess.run([serve_test.TROUPE, "serve"], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("MODEL is required", done.stderr)

    def test_the_command_line_wins(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server(folder, "--parallel", 3, model=TINY, parallel=2, ctx=300, no_prefix_cache="true") as server:
                props = server.ask("/props")
                self.assertEqual((props["sequences"], props["context"]), (3, 300))
                server.hang_up(model=TINY, parallel=5, ctx=200)
                server.wait_for("reloaded: serving")
                props = server.ask("/props")
                self.assertEqual((props["sequences"], props["context"]), (3, 200))


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
