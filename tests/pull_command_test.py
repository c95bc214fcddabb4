#!/usr/bin/env python3
"""Models that are got from a hub or a registry which cuts, lies and refuses: nothing that is not
whole is ever taken for whole, and what went wrong is said in one line.

usage: pull_command_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import pty
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import terminal
from model_hub import ModelHub, Plan

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TROUPE = None  # the binary, set at the end of this file

REPO = "owner/Tiny-GGUF"
NAME = f"hf.co/{REPO}:Q8_0"
FILE = "tiny-Q8_0.gguf"


class PullTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = TINY.read_bytes()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.models = self.folder / "models"
        self.hub = ModelHub()
        self.addCleanup(self.hub.close)
        self.hub.repos[REPO] = {FILE: self.model, "tiny-Q4_0.gguf": b"GGUF" + bytes(100)}
        self.hub.models["library/tiny:1b"] = self.model
        self.path = self.models / "hf.co" / REPO / FILE

    @property
    def plan(self):
        return self.hub.plan

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if "PROXY" not in name.upper() and not name.startswith("HF_")}
        return {**kept, "HOME": str(self.folder), "TROUPE_MODELS": str(self.models),
                "HF_ENDPOINT": self.hub.address, "OLLAMA_REGISTRY": self.hub.address, **more}

    def troupe(self, *arguments, **environment):
        return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, env=self.environment(**environment), timeout=120)

    def pull(self, name=NAME, tries=2, **environment):
        """The record of a pull that succeeds."""
        done = self.troupe("pull", name, "--tries", tries, "--json", "-", **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        return json.loads(done.stdout)

    def fails(self, *words, name=NAME, tries=2, **environment):
        """A pull that fails: one line, exit 1, and no file that looks whole."""
        done = self.troupe("pull", name, "--tries", tries, **environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(sorted(self.models.rglob("*.gguf")), [])
        self.assertNotIn("complete", self.troupe("list").stdout)
        return lines[0]

    def is_whole(self):
        self.assertEqual(self.path.read_bytes(), self.model)
        left = [path.name for path in self.models.rglob("*") if ".part" in path.name]
        self.assertEqual(left, [])


class Gets(PullTest):
    def test_a_model_of_the_hub_that_then_runs_by_its_name(self):
        record = self.pull()
        self.is_whole()
        self.assertEqual(record["name"], NAME)
        self.assertEqual(record["bytes_fetched"], len(self.model))
        self.assertEqual((record["requests"], record["redirects"]), (3, 1))
        for name in (NAME, "Tiny-GGUF", "owner/tiny-gguf:q8_0"):
            run = self.troupe("run", name, "--prompt", "The", "-n", 4, "--temperature", 0)
            self.assertEqual(run.returncode, 0, run.stderr)
        by_path = self.troupe("inspect", TINY, "--json", "-")
        by_name = self.troupe("inspect", "Tiny-GGUF", "--json", "-")
        self.assertEqual(json.loads(by_name.stdout)["weights"], json.loads(by_path.stdout)["weights"])

    def test_a_model_of_ollamas_library(self):
        record = self.pull("tiny:1b")
        self.assertEqual(record["name"], "ollama.com/library/tiny:1b")
        self.assertEqual((self.models / "ollama.com/library/tiny/1b.gguf").read_bytes(), self.model)
        self.assertEqual(self.troupe("tokenize", "tiny:1b", "--prompt", "The").returncode, 0)

    def test_all_parts_of_a_split_model(self):
        parts = self.folder / "parts"
        parts.mkdir()
        done = self.troupe("split", TINY, parts / "m-Q8_0", "--size", "2MiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        files = {f"Q8_0/{path.name}": path.read_bytes() for path in sorted(parts.iterdir())}
        self.assertGreater(len(files), 2)
        self.hub.repos[REPO] = files
        record = self.pull()
        self.assertEqual(len(record["files"]), len(files))
        self.assertEqual(self.troupe("inspect", "Tiny-GGUF").returncode, 0)

    def test_nothing_that_is_here_already(self):
        self.pull()
        before = len(self.hub.asked("files"))
        record = self.pull()
        self.assertEqual((record["bytes_fetched"], record["files_found"]), (0, 1))
        self.assertEqual(len(self.hub.asked("files")), before)
        self.assertIn("is here already", self.troupe("pull", NAME).stdout.splitlines()[0])

    def test_a_newer_version_of_what_is_here(self):
        self.pull()
        newer = bytearray(self.model)
        newer[-1] ^= 1
        self.hub.repos[REPO][FILE] = bytes(newer)
        self.assertEqual(self.pull()["bytes_fetched"], len(newer))
        self.assertEqual(self.path.read_bytes(), bytes(newer))

    def test_with_a_token_that_no_other_host_sees(self):
        self.plan.token = "hf_secret"
        self.fails("needs a token (HF_TOKEN)")
        self.fails("the token in HF_TOKEN is not accepted", HF_TOKEN="hf_wrong")
        self.pull(HF_TOKEN="hf_secret")
        self.is_whole()
        self.assertTrue(self.hub.asked("files"))
        for path, headers in self.hub.asked("files"):
            self.assertNotIn("Authorization", headers, path)
        self.plan.token = None
        self.pull("tiny:1b", HF_TOKEN="hf_secret")  # the hub's token is nothing to the registry
        manifest = [headers for path, headers in self.hub.asked("hub") if "/v2/" in path]
        self.assertTrue(manifest)
        for headers in manifest:
            self.assertNotIn("Authorization", headers)

    def test_through_the_proxy_of_the_environment(self):
        self.fails("127.0.0.1", tries=1, http_proxy="http://127.0.0.1:9")
        self.pull(http_proxy="http://127.0.0.1:9", no_proxy="127.0.0.1")

    def test_says_first_that_it_is_here_and_how_to_run_it(self):
        lines = self.troupe("pull", NAME).stdout.splitlines()
        self.assertTrue(lines[0].startswith(f"{NAME} is here: "), lines)
        self.assertIn(f"troupe run {NAME}", lines[1])

    def test_a_file_without_a_checksum_and_says_so(self):
        self.plan.listed_sha256[FILE] = None
        self.assertEqual(self.pull()["files_unchecked"], 1)
        self.is_whole()


class GoesOn(PullTest):
    def test_where_a_connection_was_cut(self):
        self.plan.cuts = [5000, 70000, 1]
        record = self.pull()
        self.is_whole()
        self.assertEqual(record["requests_repeated"], 3)
        self.assertEqual(record["bytes_fetched"], len(self.model))
        ranges = [headers.get("Range") for _, headers in self.hub.asked("files")]
        self.assertEqual(ranges, [None, "bytes=5000-", "bytes=75000-", "bytes=75001-"])
        self.assertEqual(self.hub.asked("files")[1][1]["If-Range"], '"same"')

    def test_in_a_later_call_with_what_an_earlier_one_has_left(self):
        self.plan.cuts = [60000, 0, 0]
        self.fails(NAME.partition(":Q")[0], tries=2)
        listed = self.troupe("list").stdout
        self.assertRegex(listed, rf"{NAME} .* Q8_0 +[\d-]+ +- +\d+ % here")
        run = self.troupe("run", NAME, "--prompt", "x")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(f"`troupe pull {NAME}` goes on", run.stderr)
        self.hub.plan = Plan()
        record = self.pull()
        self.assertEqual(record["bytes_found"], 60000)
        self.assertEqual(record["bytes_fetched"], len(self.model) - 60000)
        self.is_whole()

    def test_after_a_kill(self):
        self.plan.slow = 0.05
        process = subprocess.Popen([TROUPE, "pull", NAME], env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for_part(20000)
        process.kill()
        process.wait()
        self.hub.plan = Plan()
        self.assertGreaterEqual(self.pull()["bytes_found"], 20000)
        self.is_whole()

    def test_after_ctrl_c_which_says_so(self):
        self.plan.slow = 0.05
        process = subprocess.Popen([TROUPE, "pull", NAME], env=self.environment(), text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for_part(20000)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(said.splitlines(), [f"troupe: stopped; `troupe pull {NAME}` goes on where it was"])
        self.hub.plan = Plan()
        self.assertGreaterEqual(self.pull()["bytes_found"], 20000)
        self.is_whole()

    def wait_for_part(self, size):
        part = self.path.with_name(FILE + ".part")
        end = time.monotonic() + 20
        while not part.exists() or part.stat().st_size < size:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_anew_where_the_file_has_changed_meanwhile(self):
        self.plan.cuts = [5000]
        self.plan.etags = ['"old"', '"new"']
        record = self.pull()
        self.assertEqual(record["files_begun_anew"], 1)
        self.is_whole()

    def test_anew_where_the_server_knows_no_ranges(self):
        self.plan.cuts = [5000]
        self.plan.no_ranges = True
        self.assertEqual(self.pull()["files_begun_anew"], 1)
        self.is_whole()

    def test_anew_where_what_lies_there_is_damaged(self):
        self.plan.cuts = [60000, 0, 0]
        self.fails()
        part = self.path.with_name(FILE + ".part")
        damaged = bytearray(part.read_bytes())
        damaged[1000] ^= 1
        part.write_bytes(damaged)
        self.hub.plan = Plan()
        self.assertEqual(self.pull()["files_begun_anew"], 1)
        self.is_whole()

    def test_after_a_server_had_too_many_requests(self):
        self.plan.listing_statuses = [(429, {"Retry_After": 1})]
        self.plan.statuses = [(503, {}), (429, {})]
        before = time.monotonic()
        self.assertEqual(self.pull(tries=4)["requests_repeated"], 2)
        self.assertGreaterEqual(time.monotonic() - before, 1)
        self.is_whole()


class Refuses(PullTest):
    def test_what_does_not_hash_to_what_was_listed(self):
        self.plan.listed_sha256[FILE] = 64 * "0"
        self.fails("is not what was listed", 64 * "0")
        self.assertEqual([path.name for path in self.models.rglob("*.part")], [])

    def test_a_registrys_blob_that_is_another(self):
        self.plan.sends["library/tiny:1b"] = self.model[:-1] + b"\x55"
        self.fails("is not what was listed", name="tiny:1b")

    def test_a_file_that_is_larger_or_smaller_than_listed(self):
        for lie in (len(self.model) - 1, len(self.model) + 1, 1):
            with self.subTest(lie=lie):
                self.plan.listed_bytes[FILE] = lie
                self.fails(f"listed with {lie} bytes")

    def test_a_body_that_goes_on_where_the_file_ends(self):
        self.plan.no_length = True
        self.plan.sends[FILE] = self.model + b"x"
        self.fails("the server sends more")

    def test_a_body_without_a_length_that_ends_too_early(self):
        self.plan.no_length = True
        self.plan.sends[FILE] = self.model[:1000]
        self.fails("nothing after 1000 of")

    def test_a_range_that_was_not_asked_for(self):
        self.plan.cuts = [5000]
        self.plan.wrong_range = f"bytes 0-{len(self.model) - 1}/{len(self.model)}"
        self.fails("bytes from 5000 on were asked for")

    def test_a_server_that_refuses(self):
        for status, words in ((401, "HF_TOKEN"), (403, "accept its terms"), (404, "no such model"),
                              (429, "too many requests"), (500, "cannot answer now")):
            for list_ in ("statuses", "listing_statuses"):
                with self.subTest(status=status, of=list_):
                    self.hub.plan = Plan()
                    setattr(self.plan, list_, 3 * [(status, {})])
                    self.fails(words, str(status))

    def test_to_wait_for_hours(self):
        self.plan.statuses = [(429, {"Retry_After": 3600})]
        before = time.monotonic()
        self.fails("too many requests", "come again in 3600 s", tries=5)
        self.assertLess(time.monotonic() - before, 20)

    def test_redirects_that_do_not_end_or_lead_out_of_the_web(self):
        self.plan.redirect_loop = True
        self.fails("redirects")
        for where in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/"):
            with self.subTest(where=where):
                self.hub.plan = Plan()
                self.plan.redirect = where
                self.fails("is no address of a server")

    def test_listings_that_are_none_or_name_files_elsewhere(self):
        evil = {"siblings": [{"rfilename": "../../../evil-Q8_0.gguf", "size": 4}]}
        for text in ("", "<html>", "[]", "{}", '{"siblings":3}', '{"siblings":[]}', json.dumps(evil)):
            with self.subTest(text=text):
                self.plan.listing_text = text
                self.fails(REPO)

    def test_a_type_that_there_is_not_and_says_which_there_are(self):
        self.fails("has no Q6_K", "Q8_0 (", "Q4_0 (", name=f"hf.co/{REPO}:Q6_K")
        self.fails("several types", "Q8_0 (", name=f"hf.co/{REPO}")
        self.fails("no such model", name="hf.co/owner/other")
        self.fails("no such model", name="tiny:7b")

    def test_more_than_fits_on_the_disk(self):
        self.plan.listed_bytes[FILE] = 1 << 45
        self.fails("are missing, and", "free", "TROUPE_MODELS")
        self.assertEqual(self.hub.asked("files"), [])

    def test_to_get_what_another_is_getting(self):
        self.plan.slow = 0.05
        first = subprocess.Popen([TROUPE, "pull", NAME], env=self.environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        part = self.path.with_name(FILE + ".part")
        while not part.exists() or part.stat().st_size == 0:
            time.sleep(0.01)
        self.fails("another `troupe pull` is getting it")
        removed = self.troupe("rm", NAME)
        self.assertEqual(removed.returncode, 1)
        self.assertIn("another `troupe pull`", removed.stderr)
        self.plan.slow = 0
        _, said = first.communicate(timeout=60)
        self.assertEqual((first.returncode, said), (0, ""))
        self.is_whole()

    def test_names_that_are_none(self):
        for name in ("", "a b", "../x", "owner/repo", "https://elsewhere.example/owner/repo"):
            done = self.troupe("pull", name)
            self.assertEqual(done.returncode, 2, name)
            self.assertEqual(len(done.stderr.splitlines()), 1, name)

    def test_a_host_that_is_not_there(self):
        self.fails("127.0.0.1", tries=1, HF_ENDPOINT="http://127.0.0.1:9")
        self.assertEqual(self.troupe("pull", NAME, HF_ENDPOINT="nowhere").returncode, 1)

    def test_each_new_try_is_told_of_at_a_terminal(self):
        primary, secondary = pty.openpty()
        with subprocess.Popen([TROUPE, "pull", NAME, "--tries", "2"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=secondary, env=self.environment(HF_ENDPOINT="http://127.0.0.1:9")):
            os.close(secondary)
            seen = terminal.all_written(primary)
        self.assertEqual(seen.count(b"trying again"), 1, seen)
        self.assertRegex(seen, rb"trying again \(2 of 2\): .*127\.0\.0\.1")


class CannotRun(PullTest):
    """What is known from the first bytes, before the weights come."""
    UNREAD, NAME = "tiny-IQ2_XXS.gguf", f"hf.co/{REPO}:IQ2_XXS"

    def setUp(self):
        super().setUp()
        data = bytearray(self.model)
        name = b"blk.3.attn_q.weight"
        struct.pack_into("<I", data, data.index(name) + len(name) + 4 + 2 * 8, 34)
        self.hub.repos[REPO][self.UNREAD] = bytes(data) + bytes(8 << 20)

    def refused(self, *words, name):
        said = self.fails(*words, "--force gets it anyway", name=name, tries=1)
        self.assertEqual([path for path in self.models.rglob("*") if path.is_file()], [], said)

    def test_a_type_that_is_not_read_is_refused_before_the_weights(self):
        self.plan.cuts = [2 << 20]  # there is no more to be had
        self.refused(self.UNREAD, "'blk.3.attn_q.weight': type TQ1_0", "Q4_K_M", name=self.NAME)
        forced = self.troupe("pull", self.NAME, "--force")
        self.assertEqual((forced.returncode, forced.stderr), (0, ""))
        self.assertEqual(self.path.with_name(self.UNREAD).read_bytes(), self.hub.repos[REPO][self.UNREAD])

    def test_a_family_that_is_none_here_is_refused(self):
        self.hub.repos[REPO][FILE] = self.model.replace(b"qwen2moe", b"qwen9moe")
        self.refused("general.architecture is 'qwen9moe'", name=NAME)
        self.hub.models["library/tiny:1b"] = self.hub.repos[REPO][FILE]
        self.refused("general.architecture is 'qwen9moe'", name="tiny:1b")

    def test_a_header_that_comes_in_pieces_is_read_whole(self):
        self.plan.cuts = [100, 5000]
        self.assertEqual(self.pull(tries=4)["requests_repeated"], 2)
        self.is_whole()

    def test_what_an_earlier_call_has_left_is_looked_at_too(self):
        for here, force in ((60000, []), (2 << 20, ["--force"])):
            with self.subTest(here=here):
                self.plan.cuts = [here, 0, 0]
                self.assertEqual(self.troupe("pull", self.NAME, "--tries", 2, *force).returncode, 1)
                self.assertEqual(self.path.with_name(self.UNREAD + ".part").stat().st_size, here)
                self.hub.plan = Plan()
                self.refused(self.UNREAD, "type TQ1_0", name=self.NAME)

    def test_what_lies_there_damaged_is_got_again_before_the_file_is_refused(self):
        self.plan.cuts = [60000, 0, 0]
        self.fails()
        part = self.path.with_name(FILE + ".part")
        part.write_bytes(part.read_bytes().replace(b"qwen2moe", b"qwen9moe"))
        self.hub.plan = Plan()
        self.assertEqual(self.pull()["files_begun_anew"], 1)
        self.is_whole()

    def test_a_newer_version_that_is_refused_leaves_the_one_that_is_here(self):
        self.pull()
        unread = self.model.replace(b"qwen2moe", b"qwen9moe")
        for files in ({FILE: unread}, {FILE: unread + b"x"}, {"renamed-Q8_0.gguf": unread}):
            with self.subTest(files=list(files)):
                self.hub.repos[REPO] = files
                refused = self.troupe("pull", NAME)
                self.assertEqual(refused.returncode, 1)
                self.assertIn("general.architecture is 'qwen9moe'", refused.stderr)
                self.is_whole()
                self.assertRegex(self.troupe("list").stdout, rf"{NAME} .* complete\n")
                run = self.troupe("run", NAME, "--prompt", "The", "-n", 2, "--temperature", 0)
                self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_newer_version_takes_the_place_of_the_older_once_its_first_bytes_are_known(self):
        self.pull()
        newer = self.model[:-1] + bytes([self.model[-1] ^ 1])
        self.hub.repos[REPO] = {FILE: newer}
        self.plan.cuts = [5000, 0, 0]
        self.assertEqual(self.troupe("pull", NAME, "--tries", 2).returncode, 1)
        self.assertEqual(self.path.read_bytes(), self.model)
        self.assertRegex(self.troupe("list").stdout, rf"{NAME} .* complete\n")
        self.hub.plan = Plan()
        self.assertEqual(self.pull()["bytes_found"], 5000)
        self.assertEqual(self.path.read_bytes(), newer)
        self.assertEqual(self.pull()["files_found"], 1)


class NothingHalf(PullTest):
    def test_whatever_happens_on_the_way(self):
        """Faults at random, call after call: until a call succeeds no file looks whole."""
        seed = int(os.environ.get("TROUPE_SEED", "7"))
        rng = random.Random(seed)
        other = bytes(rng.randrange(256) for _ in range(2000))
        for round_ in range(6):
            self.troupe("rm", NAME)
            for call in range(20):
                self.hub.plan = Plan()
                self.plan.cuts = [rng.randrange(len(self.model)) for _ in range(rng.randrange(4))]
                self.plan.no_ranges = rng.random() < 0.2
                self.plan.no_length = rng.random() < 0.2
                self.plan.etags = rng.choice([[], ['"a"', '"b"', '"c"'], ["W/\"a\""], [""]])
                self.plan.statuses = rng.choice([[], [(500, {})], [(404, {})]])
                if rng.random() < 0.3:
                    self.plan.sends[FILE] = rng.choice([other, self.model + b"x", self.model[:-1], b""])
                done = self.troupe("pull", NAME, "--tries", 2)
                where = f"seed {seed}, round {round_}, call {call}: {done.stderr}"
                self.assertIn(done.returncode, (0, 1), where)
                self.assertEqual(self.path.exists(), done.returncode == 0, where)
                if done.returncode == 0:
                    self.assertEqual(self.path.read_bytes(), self.model, where)
                    break
                self.assertEqual(len(done.stderr.splitlines()), 1, where)


class Lists(PullTest):
    def test_nothing_and_says_how_to_get_something(self):
        said = self.troupe("list").stdout
        self.assertEqual(len(said.splitlines()), 1)
        self.assertIn("troupe pull", said)

    def test_name_size_type_and_whether_it_is_complete(self):
        self.pull()
        said = self.troupe("list").stdout.splitlines()
        self.assertTrue(said[0].startswith("1 model, "), said)
        self.assertRegex(said[-1], rf"^{NAME} +[\d.]+ MiB +Q8_0 +20\d\d-\d\d-\d\d +- +complete$")
        model = json.loads(self.troupe("list", "--json", "-").stdout)["models"][0]
        self.assertEqual((model["name"], model["complete"], model["bytes"]), (NAME, True, len(self.model)))
        self.assertAlmostEqual(model["got"], time.time(), delta=3600)
        self.assertEqual(self.troupe("pack", NAME).returncode, 0)
        self.assertRegex(self.troupe("list").stdout, rf"{NAME} .* experts\b.* complete\n")
        self.assertGreater(json.loads(self.troupe("list", "--json", "-").stdout)["models"][0]["beside"]["experts"], 0)

    def test_and_removes_with_all_that_belongs_to_it(self):
        self.pull()
        self.assertEqual(self.troupe("pack", NAME).returncode, 0)
        self.assertTrue(self.path.with_suffix(".experts").exists())
        said = self.troupe("rm", "Tiny-GGUF")
        self.assertRegex(said.stdout, rf"^removed {NAME}: .* are free again\n$")
        self.assertEqual(list(self.models.rglob("*")), [])
        gone = self.troupe("rm", "Tiny-GGUF")
        self.assertEqual(gone.returncode, 1)
        self.assertIn("there is no model 'Tiny-GGUF'", gone.stderr)

    def test_models_where_xdg_says(self):
        data = str(self.folder / "data")
        self.pull(TROUPE_MODELS="", XDG_DATA_HOME=data)
        self.assertTrue((self.folder / "data/troupe/models/hf.co" / REPO / FILE).exists())


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
