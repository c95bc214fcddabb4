#!/usr/bin/env python3
"""A weak machine and a strong one with one model, each a real `troupe serve`, and a link between them that this test
cuts, holds up and opens again in the middle of answers. Whatever happens, every answer is the one of the model alone.

usage: end_cloud_test.py TROUPE [unittest arguments]
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import serve_test
import troupe_cli
from broken_link import Link, StuckLink
from serve_test import LONGEST, PROMPTS, Server

SHAPE = "tiny-olmoe"
TOKENS = 40
KEY = "a-key-of-this-end"
WEAK = ["--slots", 10, "--link", "40MiB/1ms", "--ctx", 1024]
STRONG = ["--for-ends", "--ctx", 1024, "--parallel", 4]
SEED = int(os.environ.get("TROUPE_SEED", random.randrange(1 << 30)))


class Cloud(Server):
    """One that is asked with its key."""

    def open(self, path, body=None, headers={}, method=None):
        return super().open(path, body, {**headers, "Authorization": f"Bearer {KEY}"}, method)


@contextlib.contextmanager
def meanwhile(work):
    """Something goes on beside, until the event that it is given is set."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def mostly_stopped(process):
    """A process that has its processors for a fortieth of the time: as of a machine that others use."""
    def stop_and_go(over):
        while not over.is_set():
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.04)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.001)
    return meanwhile(stop_and_go)


class EndsAndCloud(unittest.TestCase):
    """Servers of one model, which end with the test."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = troupe_cli.packed_model(serve_test.TROUPE, cls.folder / "model.gguf", SHAPE)
        (cls.folder / "key").write_text(KEY + "\n")

    def server(self, *args, kind=Server, **more):
        server = kind(*args, **{"model": self.model, **more})
        server.__enter__()
        self.addCleanup(server.__exit__, None, None, None)
        return server

    def wait(self, what, server):
        give_up = time.monotonic() + LONGEST
        while not what():
            if time.monotonic() > give_up:
                raise AssertionError("".join(server.said))
            time.sleep(0.02)

    def wait_for_line(self, server, text):
        self.wait(lambda: any(text in line for line in server.said), server)


class Split(EndsAndCloud):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with Server("--ctx", 1024, model=cls.model) as alone:
            cls.expected = {prompt: alone.complete(prompt, TOKENS) for prompt in PROMPTS}
            cls.as_json = cls.json_answer(alone)

    @staticmethod
    def json_answer(server):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        return server.complete("Say", 30, ignore_eos=False, json_schema=schema)

    def pair(self, *end_args, link=Link):
        """A cloud, and an end that reaches it by a link."""
        self.cloud = self.server(*STRONG, kind=Cloud, env={**os.environ, "TROUPE_API_KEY": KEY})
        self.link = link(self.cloud.port)
        self.addCleanup(self.link.close)
        self.end = self.server(*WEAK, "--cloud", self.link.address, "--cloud-key", self.folder / "key", *end_args)

    def split(self, name, place=None):
        return self.end.metric(f"troupe_split_{name}" + (f'{{place="{place}"}}' if place else ""))

    def places(self):
        """What the live page is told of both places."""
        with self.end.open("/live") as watching:
            next(line for line in watching if line == b"event: places\n")
            return json.loads(watching.readline().removeprefix(b"data: "))

    def predicted(self, way):
        return [self.end.metric(f'troupe_split_predicted_{what}_total{{way="{way}"}}')
                for what in ("answers", "seconds", "took_seconds")]

    def page(self):
        with self.end.open("/metrics") as response:
            return response.read().decode()

    def lane_seconds(self, place):
        return [self.end.metric(f'troupe_split_lane_seconds_total{{place="{place}",state="{state}"}}')
                for state in ("busy", "idle")]

    def drafts(self, state):
        return self.end.metric(f'troupe_split_draft_tokens_total{{state="{state}"}}')

    def ask_all(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            def ask(i_prompt):
                i, prompt = i_prompt
                return "".join(self.end.stream(prompt, TOKENS)) if i % 2 else self.end.complete(prompt, TOKENS)
            for prompt, text in zip(jobs, pool.map(ask, enumerate(jobs))):
                self.assertEqual(text, self.expected[prompt], (prompt, SEED))

    @contextlib.contextmanager
    def disturbed(self, least, most):
        """The link is cut, hangs and is there again, each for some time between these."""
        dice = random.Random(SEED)

        def disturb(over):
            while not over.wait(dice.uniform(least, most)):
                dice.choice([self.link.cut, self.link.hang, self.link.heal, self.link.heal])()
        try:
            with meanwhile(disturb):
                yield
        finally:
            self.link.heal()

    def test_answers_are_those_of_the_model_alone_in_either_place(self):
        self.pair()
        self.wait_for_line(self.end, "the cloud is there")
        self.ask_all(PROMPTS * 2)
        self.assertGreater(self.split("tokens_total", "cloud"), 0)
        self.assertEqual(self.json_answer(self.end), self.as_json)
        self.assertGreater(self.cloud.metric('troupe_requests_total{endpoint="/split/answers",status="200"}'), 0)
        # Only the end can say how likely tokens are, and what it takes is measured by that.
        self.end.ask("/v1/completions", {"prompt": PROMPTS[0], "max_tokens": TOKENS, "logprobs": 1})
        self.ask_all(PROMPTS * 2)
        said = {way: self.predicted(way) for way in ("end", "cloud", "cut", "drafts")}
        self.assertGreater(sum(answers for answers, _, _ in said.values()), 0)
        for answers, expected, took in said.values():
            self.assertEqual((answers > 0, answers > 0), (expected > 0, took > 0))

    def test_an_end_that_answers_one_at_a_time_has_many_answers_in_the_cloud_and_computes_none(self):
        self.pair("--parallel", 1, "--place", "cloud")
        self.wait_for_line(self.end, "the cloud is there")
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            for prompt, text in zip(PROMPTS * 2, pool.map(lambda prompt: self.end.complete(prompt, TOKENS), PROMPTS * 2)):
                self.assertEqual(text, self.expected[prompt])
        self.assertEqual(self.split("tokens_total", "cloud"), 2 * len(PROMPTS) * TOKENS)
        self.assertEqual(self.split("tokens_total", "end"), 0)
        self.assertEqual([self.split("moved_total", place) for place in ("end", "cloud")], [0, 0])

    def test_a_link_that_fails_and_hangs_in_mid_answer_costs_no_byte(self):
        self.pair("--place", "drafts")

        def all_has_happened():
            counts = [self.split("tokens_total", "end"), self.split("tokens_total", "cloud"),
                      self.split("taken_over_total", "end"), self.split("cloud_failures_total"),
                      self.drafts("guessed")]
            return all(count >= 5 for count in counts), counts
        with self.disturbed(0.02, 0.4):
            give_up = time.monotonic() + LONGEST
            while not all_has_happened()[0]:
                self.assertLess(time.monotonic(), give_up, (all_has_happened(), SEED))
                self.ask_all(PROMPTS * 3)

    def test_prompts_that_are_cut_by_layers_have_the_token_of_the_model_alone_whatever_the_link_does(self):
        prompts = [prompt * 6 for prompt in PROMPTS]
        with Server("--ctx", 1024, model=self.model) as alone:
            expected = {prompt: alone.complete(prompt, 1) for prompt in prompts}
        self.pair("--place", "layers:1", "--cut-chunk", 16, "--explain-places")
        self.wait_for_line(self.end, "the cloud is there")

        def ask_all():
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for prompt, text in zip(prompts, pool.map(lambda prompt: self.end.complete(prompt, 1), prompts)):
                    self.assertEqual(text, expected[prompt], (prompt, SEED))

        def cut(state):
            return self.end.metric(f'troupe_split_cut_prompts_total{{state="{state}"}}')
        ask_all()
        self.assertGreater(cut("answered"), 0)
        self.wait_for_line(self.end, "behind layers of the end: cut before layer 1, 16 tokens at a time")
        self.wait_for_line(self.end, "the end computed")
        for lane in ("end", "link", "cloud"):
            self.assertGreater(self.end.metric(f'troupe_split_cut_lane_seconds_total{{lane="{lane}",state="busy"}}'), 0)
        self.assertEqual(self.end.metric('troupe_split_cut_rows_total{code="lossy"}'), 0)
        self.assertGreaterEqual(self.lane_seconds("end")[0],  # the layers before the cut are work
                                0.9 * self.end.metric('troupe_split_cut_lane_seconds_total{lane="end",state="busy"}'))
        self.assertTrue(1e3 < self.split("link_bytes_per_second") < 1e12, self.split("link_bytes_per_second"))
        self.assertGreater(self.cloud.metric("troupe_cloud_cut_rows_total"), 0)
        with self.disturbed(0.01, 0.2):
            give_up, answered = time.monotonic() + LONGEST, cut("answered")
            while cut("failed") < 3 or cut("answered") < answered + 3:
                self.assertLess(time.monotonic(), give_up, (cut("failed"), cut("answered"), SEED))
                ask_all()

    def test_longer_answers_behind_a_cut_are_those_of_the_model_alone_whatever_the_link_does(self):
        asked = [(prompt * 6, temperature) for prompt in PROMPTS for temperature in (0, 1)]
        with Server("--ctx", 1024, model=self.model) as alone:
            expected = {one: alone.complete(one[0], 12, temperature=one[1]) for one in asked}
        self.pair("--place", "layers:1", "--cut-chunk", 16, "--explain-places")
        self.wait_for_line(self.end, "the cloud is there")

        def ask_all():
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                texts = pool.map(lambda one: self.end.complete(one[0], 12, temperature=one[1]), asked)
                for one, text in zip(asked, texts):
                    self.assertEqual(text, expected[one], (one, SEED))

        def cut(state):
            return self.end.metric(f'troupe_split_cut_prompts_total{{state="{state}"}}')
        ask_all()
        went_on = self.end.metric("troupe_split_cut_answers_total")
        self.assertGreater(went_on, 0)
        self.assertGreater(self.end.metric("troupe_split_cut_keys_bytes_total"), 0)
        self.assertGreater(self.cloud.metric('troupe_cloud_cut_answers_total{keys="kept"}'), 0)
        self.wait_for_line(self.end, "to its first token")
        with self.disturbed(0.01, 0.2):
            give_up = time.monotonic() + LONGEST
            while cut("failed") < 3 or self.end.metric("troupe_split_cut_answers_total") < went_on + 3:
                self.assertLess(time.monotonic(), give_up, (cut("failed"), went_on, SEED))
                ask_all()

    def test_an_end_whose_cuts_lose_something_says_so_and_answers_exactly_where_there_is_a_limit(self):
        self.pair("--place", "layers:1", "--cut-code", "int8")
        self.wait_for_line(self.end, "the cloud is there")
        self.assertEqual(self.end.ask("/props")["lossiness"], "cut prompts (int8)")
        lossy = 'troupe_split_cut_rows_total{code="lossy"}'
        self.end.ask("/v1/completions", {"prompt": PROMPTS[0] * 6, "max_tokens": 1, "quality": "0.5%"})
        self.assertEqual(self.end.metric(lossy), 0)
        self.wait(lambda: self.end.complete(PROMPTS[1] * 6, 1) is not None and self.end.metric(lossy) > 0, self.end)

    def test_a_cut_that_the_model_does_not_have_is_one_clear_line_and_the_end_serves_on(self):
        for options, said in ((["--place", "layers:99"], "a cut before layer 99, 1 to"),
                              (["--place", "layers:1", "--cut-code", "9999:int8"],
                               "a rank of 9999 is larger than the")):
            with self.subTest(options):
                self.pair(*options)
                self.wait_for_line(self.end, f"no prompts are cut by layers: {said}")
                self.assertEqual(len([line for line in self.end.said if "are cut" in line]), 1, self.end.said)
                self.ask_all(PROMPTS[:1])

    def test_an_end_guesses_ahead_of_a_busy_cloud_which_checks_that_to_the_same_bytes(self):
        self.cloud = self.server(*STRONG, kind=Cloud, env={**os.environ, "TROUPE_API_KEY": KEY})
        self.end = self.server("--ctx", 1024, "--slots", 14, "--parallel", 4, "--cloud", f"http://127.0.0.1:{self.cloud.port}",
                               "--cloud-key", self.folder / "key", "--place", "drafts", "--explain-places")
        self.wait_for_line(self.end, "the cloud is there")
        give_up = time.monotonic() + LONGEST
        with mostly_stopped(self.cloud.process):
            while not self.drafts("right") >= 10:
                self.assertLess(time.monotonic(), give_up,
                                {state: self.drafts(state) for state in ("guessed", "late", "checked", "right")})
                for prompt in PROMPTS:
                    self.assertEqual(self.end.complete(prompt, TOKENS), self.expected[prompt], (prompt, SEED))
        self.assertGreaterEqual(self.drafts("checked"), self.drafts("right"))
        self.assertGreaterEqual(self.drafts("guessed"), self.drafts("right"))
        self.assertGreaterEqual(self.cloud.metric('troupe_drafted_tokens_total{end="accepted"}'), 10)
        self.assertEqual(self.split("tokens_total", "end"), 0)
        self.assertGreater(self.lane_seconds("end")[0], 0)  # guesses are work
        self.assertEqual(self.end.ask("/props")["lossiness"], "exact")
        self.wait_for_line(self.end, "an answer begins at the cloud with drafts of the end: as it was told")
        self.assertEqual(self.json_answer(self.end), self.as_json)

    def test_figures_of_an_end_move_with_what_they_count_and_stay_within_bounds(self):
        begun = time.monotonic()
        self.pair("--place", "drafts")
        self.wait_for_line(self.end, "the cloud is there")

        def crossed():
            return [self.end.metric(f'troupe_split_bytes_total{{direction="{way}"}}') for way in ("sent", "received")]
        before = crossed()
        give_up = time.monotonic() + LONGEST
        while self.drafts("guessed") == 0:
            self.assertLess(time.monotonic(), give_up)
            self.ask_all(PROMPTS)
        told = sum(self.split("tokens_total", place) for place in ("end", "cloud"))
        for was, now in zip(before, crossed()):
            self.assertGreater(now - was, told)  # a token is two bytes of a line at least
        end, cloud = self.lane_seconds("end"), self.lane_seconds("cloud")
        self.assertGreater(min(end[0], cloud[0]), 0)
        self.assertAlmostEqual(sum(end), sum(cloud), delta=0.1)
        self.assertLess(sum(end), time.monotonic() - begun)
        for place in ("end", "cloud"):
            self.assertTrue(0 <= self.split("unused_tokens_total", place) <= told)
        self.assertEqual(self.split("wrong_total"), 0)
        self.assertTrue(0 < self.split("round_trip_seconds") < LONGEST)
        self.assertTrue(0 <= self.split("draft_ahead") <= 64)
        self.assertTrue(0 <= self.split("draft_odds") <= 1)
        self.wait(lambda: "troupe_device_power " in self.page(), self.end)  # it looks each three seconds
        for name in ("power", "processors"):
            self.assertTrue(0 < self.end.metric(f"troupe_device_{name}") <= 1, name)

    def test_a_cloud_that_is_killed_leaves_the_end_alone_until_another_one_is_there(self):
        self.pair("--place", "cloud")
        self.wait_for_line(self.end, "the cloud is there")
        self.ask_all(PROMPTS[:2])  # what that takes there is measured
        stream = self.end.stream(PROMPTS[0], 400)
        first = next(stream)
        self.cloud.process.send_signal(signal.SIGKILL)
        self.cloud.process.wait(LONGEST)
        text = first + "".join(stream)
        self.assertTrue(text.startswith(self.expected[PROMPTS[0]]))
        self.wait_for_line(self.end, "serving alone, as the cloud is away")
        self.ask_all(PROMPTS[:2])
        self.wait(lambda: all(self.places()["token_s"].values()), self.end)
        self.assertEqual(self.places()["cloud"], "away")
        before = self.split("tokens_total", "cloud")
        another = self.server(*STRONG, kind=Cloud, env={**os.environ, "TROUPE_API_KEY": KEY})
        self.link.port = another.port
        self.wait(lambda: self.split("cloud") == 1, self.end)
        self.ask_all(PROMPTS)
        self.assertGreater(self.split("tokens_total", "cloud"), before)

    def test_a_cloud_that_lives_and_gives_no_tokens_does_not_hold_an_answer(self):
        self.pair("--place", "cloud", link=StuckLink)
        self.wait_for_line(self.end, "the cloud is there")
        self.ask_all(PROMPTS)
        self.link.is_stuck = True
        self.assertEqual(self.end.complete(PROMPTS[0], TOKENS), self.expected[PROMPTS[0]])
        self.assertEqual((self.split("cloud_stalls_total"), self.split("cloud_silences_total")), (1, 0))
        self.assertEqual(self.split("taken_over_total", "end"), 1)
        self.link.is_stuck = False
        before = self.split("tokens_total", "cloud")
        self.wait(lambda: self.ask_all(PROMPTS[:1]) or self.split("tokens_total", "cloud") > before, self.end)

    def test_who_leaves_the_end_leaves_the_cloud_too(self):
        self.pair("--place", "cloud")
        self.wait_for_line(self.end, "the cloud is there")
        stream = self.end.stream(PROMPTS[0], 900)
        next(stream)
        stream.close()
        self.cloud.metric_reaching('troupe_answers_total{end="cancelled"}', 1)

    def test_a_cloud_with_tls_is_asked_as_any_server(self):
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        cloud = subprocess.Popen([serve_test.TROUPE, "serve", self.model, "--port", "0", *map(str, STRONG),
                                  "--tls-certificate", certificate, "--tls-key", key], stderr=subprocess.PIPE, text=True)
        self.addCleanup(cloud.stderr.close)
        self.addCleanup(cloud.wait)
        self.addCleanup(cloud.terminate)
        address = next(line for line in cloud.stderr if " at https" in line).split(" at ")[1].strip()
        careful = self.server(*WEAK, "--cloud", address)
        self.wait_for_line(careful, "serving alone")
        self.end = self.server(*WEAK, "--cloud", address, "--place", "cloud",
                               env={**os.environ, "SSL_CERT_FILE": str(certificate)})
        self.wait_for_line(self.end, "the cloud is there")
        self.ask_all(PROMPTS[:3])
        self.assertGreater(self.split("tokens_total", "cloud"), 0)

    def test_a_cloud_that_does_not_fit_is_one_clear_line_and_the_end_serves_alone(self):
        other = self.folder / "other.gguf"
        subprocess.run([serve_test.TROUPE, "synth", other, "--shape", SHAPE, "--type", "Q8_0", "--seed", "5"], check=True,
                       capture_output=True)
        keyed = {**os.environ, "TROUPE_API_KEY": "another"}
        cases = [(dict(model=other), STRONG, "another model"),
                 (dict(), [*STRONG, "--kv-type", "q8_0"], "computes other bytes"),
                 (dict(), ["--ctx", 1024], "--for-ends"),
                 (dict(env=keyed), STRONG, "does not take the key")]
        for how, args, said in cases:
            with self.subTest(said):
                cloud = self.server(*args, **how)
                self.end = self.server(*WEAK, "--cloud", f"http://127.0.0.1:{cloud.port}")
                self.wait_for_line(self.end, "serving alone: ")
                lines = [line for line in self.end.said if "serving alone" in line]
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(said, lines[0])
                self.ask_all(PROMPTS[:1])
                self.assertEqual(self.split("tokens_total", "cloud"), 0)

    def test_a_model_that_is_loaded_again_has_its_cloud_again(self):
        config = self.folder / "end.conf"
        self.cloud = self.server(*STRONG)
        config.write_text("place = end\n")
        self.end = self.server(*WEAK, "--cloud", f"http://127.0.0.1:{self.cloud.port}", "--config", config)
        self.ask_all(PROMPTS[:1])
        self.assertEqual(self.split("tokens_total", "cloud"), 0)
        config.write_text("place = cloud\n")
        self.end.process.send_signal(signal.SIGHUP)
        self.wait_for_line(self.end, "reloaded: serving")
        self.wait(lambda: self.split("cloud") == 1, self.end)
        self.ask_all(PROMPTS[:2])
        self.assertGreater(self.split("tokens_total", "cloud"), 0)

    def test_says_where_each_answer_begins_and_why(self):
        for explain, has_plan in (("--explain", True), ("--explain-places", False)):
            with self.subTest(explain):
                self.pair(explain, "--place", "route-aware")
                self.wait_for_line(self.end, "the cloud is there")
                self.ask_all(PROMPTS)
                self.wait_for_line(self.end, "an answer begins at the cloud: not measured in both places yet")
                self.assertEqual(any("of weights are read" in line for line in self.end.said), has_plan)

    def test_a_calm_end_does_not_wait_for_all_that_a_busy_one_has_sent_to_their_cloud(self):
        keys = {"busy": KEY, "calm": "a-key-of-another-end"}
        (self.folder / "keys").write_text("\n".join(keys.values()))
        cloud = self.server("--for-ends", "--ctx", 1024, "--parallel", 2, "--api-keys", self.folder / "keys", kind=Cloud)
        ends = {}
        for name, key in keys.items():
            (self.folder / name).write_text(key)
            ends[name] = self.server(*WEAK, "--cloud", cloud.address, "--cloud-key", self.folder / name, "--place", "cloud")
            self.wait_for_line(ends[name], "the cloud is there")
        ended = []

        def ask(name, tokens):
            text = ends[name].complete(PROMPTS[0], tokens)
            ended.append(name)
            return text
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            long = [pool.submit(ask, "busy", 900) for _ in range(8)]
            self.wait(lambda: cloud.metric("troupe_cloud_answers_waiting") >= 1, cloud)
            short = [pool.submit(ask, "calm", TOKENS) for _ in range(5)]
        self.assertEqual([job.result() for job in short], [self.expected[PROMPTS[0]]] * 5)
        for job in long:
            self.assertTrue(job.result().startswith(self.expected[PROMPTS[0]]))
        # In the order of arrival all short ones would end behind all long ones.
        last_of_calm = max(i for i, name in enumerate(ended) if name == "calm")
        self.assertGreaterEqual(len(ended) - 1 - last_of_calm, 2, ended)
        self.assertGreaterEqual(cloud.metric("troupe_cloud_turns_to_fewer_total"), 1)
        self.assertGreaterEqual(cloud.metric('troupe_cloud_turns_total{came="later"}'), 6)
        self.assertEqual(cloud.metric("troupe_cloud_answers_waiting"), 0)

    def test_what_is_wrong_with_the_options_is_one_clear_line(self):
        for options, said in ((["--place", "cloud"], "--place needs --cloud"), (["--cloud", "ftp://x"], "ftp"),
                              (["--cloud", "http://x", "--cloud-key", "/nowhere"], "/nowhere")):
            with self.subTest(options):
                done = subprocess.run([serve_test.TROUPE, "serve", self.model, "--port", "0", *options], capture_output=True,
                                      text=True, timeout=LONGEST)
                self.assertIn(done.returncode, (1, 2))
                self.assertIn(said, done.stderr)
                self.assertEqual(len([line for line in done.stderr.splitlines() if line.startswith("troupe")]), 1, done.stderr)


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
