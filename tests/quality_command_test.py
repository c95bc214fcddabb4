#!/usr/bin/env python3
"""What a shell sees of the dial: `troupe calibrate` leaves buddies and, where asked, what quality
costs beside the model; `troupe run --quality` picks from that, says what, and refuses to guess.

usage: quality_command_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error

import serve_test

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TEXT = ROOT / "tests/data/prose/mixed.txt"
EXPERTS = 8 * 32
TROUPE = None  # the binary, set at the end of this file


class QualityCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "m.gguf"
        shutil.copyfile(TINY, self.model)

    def troupe(self, command, *arguments, code=0):
        """One thread: tests run beside each other."""
        done = subprocess.run(
            [TROUPE, command, self.model, *map(str, arguments), "--threads", "1"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def refused(self, *arguments, code=1):
        done = self.troupe(*arguments, code=code)
        if code == 1:
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def record(self, *arguments):
        return json.loads(self.troupe(*arguments, "--json", "-").stdout)

    def run_record(self, *arguments, predict="none"):
        return self.record("run", "--prompt", "The kernel", "-n", 24, "--temperature", 0,
                           "--slots", EXPERTS // 2, "--predict", predict, *arguments)


class Buddies(QualityCommandTest):
    def test_are_learned_beside_the_model_and_answer_where_asked(self):
        message = self.refused("run", "--prompt", "a", "--substitute", "buddies", "--slots", 64)
        self.assertIn("m.buddies.json: no such file", message)
        self.assertIn(f"`troupe calibrate {self.model} --text FILE`", message)
        record = self.record("calibrate", "--text", TEXT, "--tokens", 600)
        self.assertEqual(record["buddies"], str(self.folder / "m.buddies.json"))
        self.assertGreater(record["mean_buddies"], 1)
        file = json.loads((self.folder / "m.buddies.json").read_text())
        self.assertEqual((file["format"], file["version"]), ("troupe buddies", 1))
        self.assertEqual(len(file["by_layer"]), 8)

        exact = self.run_record()
        buddies = self.run_record("--substitute", "buddies:tau=layers:rho=2")
        self.assertEqual(exact["substitutions"], 0)
        self.assertGreater(buddies["substituted"], 0)
        self.assertEqual(buddies["substitutions"], buddies["substituted"])
        self.assertLess(buddies["expert_misses"], exact["expert_misses"])

    def test_each_gate_that_is_closed_leaves_every_answer_exact(self):
        self.record("calibrate", "--text", TEXT, "--tokens", 600)
        exact = self.run_record()
        opened = self.run_record("--substitute", "buddies:tau=-1:gamma=2:beta=2:rho=2")
        self.assertGreater(opened["substituted"], 0)
        for closed, counter in (("tau=1:gamma=2:beta=2:rho=2", "tau_closed"), ("tau=-1:gamma=0:beta=2:rho=2", "gamma_closed"),
                                ("tau=-1:gamma=2:beta=0:rho=2", "beta_closed"), ("tau=-1:gamma=2:beta=2:rho=0", "rho_closed")):
            found = self.run_record("--substitute", f"buddies:{closed}")
            (counts,) = (link["counts"] for link in found["substitution_links"])
            self.assertEqual((found["token_ids"], found["substituted"]), (exact["token_ids"], 0), closed)
            self.assertEqual([name for name in ("tau_closed", "gamma_closed", "beta_closed", "rho_closed") if counts[name] > 0], [counter])

    def test_are_learned_from_a_recorded_run_as_well(self):
        trace = self.folder / "run.trace"
        run = self.run_record("--ignore-eos", "--speculate", "off", "--trace", trace)
        record = self.record("calibrate", "--trace", trace)
        self.assertEqual(record["tokens"], len(run["prompt_ids"]) + run["decode_steps"])
        self.assertGreater(record["told_by_previous"], 4 / 32)  # that chance tells
        self.assertGreater(record["told_by_paths"], 0)
        self.assertGreater(record["mean_buddies"], 1)
        buddies = json.loads((self.folder / "m.buddies.json").read_text())
        self.assertEqual((buddies["text"], len(buddies["by_layer"])), (str(trace), 8))
        profile = json.loads((self.folder / "m.profile.json").read_text())
        self.assertEqual((profile["learned"], profile["forecasts"]), ([], []))
        self.assertEqual([paths["layer"] for paths in profile["paths"]], list(range(1, 8)))
        self.assertEqual(len(profile["shallow"]), 6)
        self.assertGreater(self.run_record("--substitute", "buddies:tau=layers:rho=2")["substituted"], 0)
        self.assertEqual(self.run_record(predict="eap")["token_ids"], run["token_ids"])

    def test_what_a_trace_cannot_tell_is_refused(self):
        trace = self.folder / "run.trace"
        self.run_record("--trace", trace)
        for options in (("--measure-quality", "--shares", 50), ("--groups", 4), ("--cut", 3)):
            self.assertIn("take runs of a text", self.refused("calibrate", "--trace", trace, *options, code=2))
        self.assertIn("--text", self.refused("calibrate", "--trace", trace, "--text", TEXT, code=2))
        self.assertIn("--text or --trace is required", self.refused("calibrate", code=2))
        other = ROOT / "tests/data/routing/deepseek-v2-lite.trace"
        self.assertIn(f"{other}: a trace of another model", self.refused("calibrate", "--trace", other))
        self.record("calibrate", "--text", TEXT, "--tokens", 600)
        self.assertIn("m.profile.json: was learned from a text", self.refused("calibrate", "--trace", trace))
        self.assertIn("was learned from a text", self.refused("calibrate", "--trace", trace, "-o", self.folder / "other.json"))
        self.record("calibrate", "--trace", trace, "-o", self.folder / "other.json", "--buddies-output", self.folder / "b.json")
        self.assertNotEqual(json.loads((self.folder / "m.profile.json").read_text())["learned"], [])

    def test_lists_are_cut_as_asked(self):
        few = self.record("calibrate", "--text", TEXT, "--tokens", 600, "--most-buddies", 2)
        self.assertLessEqual(few["mean_buddies"], 2)
        self.assertLess(few["mean_coverage"], 0.95)


class Router(QualityCommandTest):
    def test_replaces_of_what_is_missing_those_of_low_score_alone(self):
        found = self.run_record("--substitute", "smoe:alpha=0.4")
        (counts,) = (link["counts"] for link in found["substitution_links"])
        self.assertGreater(counts["top_score"], 0)
        self.assertGreater(counts["low_score"], counts["low_score_missing"])
        self.assertGreater(counts["low_score_missing"], 0)
        self.assertGreater(counts["substituted"], 0)
        self.assertEqual(counts["substituted"] + counts["none_near"], counts["low_score_missing"])
        none = self.run_record("--substitute", "smoe:alpha=0")
        self.assertEqual(none["substitution_links"][0]["counts"]["low_score_missing"], 0)
        self.assertEqual(none["token_ids"], self.run_record()["token_ids"])

    def test_reads_ahead_by_its_own_look_ahead_what_it_would_not_replace(self):
        lossy = self.run_record("--ungoverned", "--substitute", "smoe:alpha=0.4", predict="smoe")
        self.assertEqual(lossy["predictor"], "smoe")
        self.assertGreater(lossy["experts_left_out"], 0)
        self.assertGreater(lossy["experts_guessed"], 0)
        exact = self.run_record("--ungoverned", predict="smoe")
        self.assertEqual(exact["experts_left_out"], 0)
        self.assertGreater(exact["experts_guessed"], lossy["experts_guessed"])
        self.assertEqual(exact["token_ids"], self.run_record()["token_ids"])


class Quality(QualityCommandTest):
    def test_is_not_guessed_without_measurements(self):
        for quality in ("1%", "balanced", "fast"):
            message = self.refused("run", "--prompt", "a", "--quality", quality, "--slots", 64)
            self.assertIn("m.quality.json: no such file", message)
            self.assertIn(f"`troupe calibrate {self.model} --text FILE --measure-quality`", message)
        for quality in ("0%", "5", "best"):
            self.assertIn("expected exact, balanced, fast or a percentage",
                          self.refused("run", "--prompt", "a", "--quality", quality, code=2))
        self.refused("run", "--prompt", "a", "--quality", "fast", "--substitute", "drop", code=2)

    def test_costs_nothing_where_every_expert_is_in_memory(self):
        done = self.troupe("run", "--prompt", "a", "-n", 2, "--quality", "fast", "--explain")
        self.assertIn("exact, whatever may be lost: every expert is in memory", done.stderr)

    def test_is_measured_and_then_picked_from(self):
        record = self.record("calibrate", "--text", TEXT, "--measure-quality", "--quality-tokens", 256,
                             "--quality-window", 32, "--shares", 50, "--predict", "none",
                             "--chain", "smoe:alpha=0,smoe:alpha=0.3",  # chains together, or one by one
                             "--chain", "drop:most-share=0.2")
        self.assertEqual([path.name for path in sorted(self.folder.iterdir())],
                         ["m.buddies.json", "m.gguf", "m.profile.json", "m.quality.json", "m.scores"])
        (share,) = record["quality"]["shares"]
        self.assertEqual(share["share"], 0.5)
        none, smoe, drop = share["chains"]
        self.assertEqual(none["loss_bound"], 0)
        self.assertEqual(none["changed"], 0)
        for chain in (smoe, drop):
            self.assertGreater(chain["changed"], 0)
            self.assertGreater(chain["mean_kl"], 0)
            self.assertLess(chain["bytes_per_token"], share["exact"]["bytes_per_token"])
        self.assertGreater(drop["mean_kl"], smoe["mean_kl"])

        # A limit between the two chains' losses takes the milder one, a looser one the other.
        self.assertLess(smoe["loss_bound"], drop["loss_bound"])
        self.assertLess(drop["bytes_per_token"], smoe["bytes_per_token"])
        mild = 50 * (smoe["loss_bound"] + drop["loss_bound"])
        self.assertLess(0, mild)
        for limit, chain in ((mild, "smoe:alpha=0.3"), (101 * drop["loss_bound"], "drop:most-share=0.2")):
            found = self.run_record("--quality", f"{limit}%")
            self.assertEqual(found["substitution"], chain)
            self.assertEqual(found["quality"], f"{limit:.6g}%")
            self.assertGreater(found["substitutions"], 0)
        exact = self.run_record("--quality", "exact")
        self.assertEqual(exact["token_ids"], self.run_record()["token_ids"])
        self.assertEqual(exact["substitution"], "exact")

        explained = self.troupe("plan", "--slots", EXPERTS // 2, "--quality", f"{mild}%").stdout
        self.assertIn("smoe:alpha=0.3, which read", explained)
        self.assertIn("that was measured with --cache echo and --predict none", explained)
        self.assertIn("--shares 22.5", self.refused("run", "--prompt", "a", "--slots", EXPERTS // 4,
                                                  "--quality", "fast"))
        self.serve_within(mild)

    def serve_within(self, limit):
        """A server gives its own quality to who asks for it, exact answers to who allows less, and never more."""
        with serve_test.Server("--slots", EXPERTS // 2, "--predict", "none", "--ctx", 512, "--threads", 1,
                               "--quality", f"{limit}%", model=self.model) as server:
            def ask(quality):
                answer = server.ask("/v1/completions", {"prompt": "The kernel", "max_tokens": 24, "temperature": 0,
                                                        "quality": quality})
                return answer["choices"][0]["text"], answer["troupe"]["substitutions"]
            self.assertGreater(ask(f"{limit}%")[1], 0)
            self.assertEqual(ask(f"{limit / 2}%"), ask("exact"))
            self.assertEqual(ask("exact")[1], 0)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                ask("90%")
            error = json.load(refused.exception)["error"]
            refused.exception.close()
            self.assertEqual((refused.exception.code, error["param"]), (400, "quality"))
            self.assertIn(f"at most {limit:.6g}%", error["message"])

    MEASURE = ("calibrate", "--text", TEXT, "--tokens", 64, "--measure-quality", "--quality-tokens", 64,
               "--predict", "none", "--most-loss", 1000, "--chain", "drop:most-share=0.2")

    def shares(self):
        return [share["share"] for share in json.loads((self.folder / "m.quality.json").read_text())["shares"]]

    def test_a_share_is_measured_beside_those_that_are_there(self):
        self.record(*self.MEASURE, "--shares", 25)
        done = self.troupe(*self.MEASURE, "--shares", 50, "--json", "-")
        self.assertEqual((self.shares(), done.stderr), ([0.25, 0.5], ""))
        self.assertEqual([share["share"] for share in json.loads(done.stdout)["quality"]["shares"]], [0.5])
        for slots in (EXPERTS // 4, EXPERTS // 2):
            self.troupe("run", "--prompt", "a", "-n", 2, "--slots", slots, "--quality", "50%")
        # Figures of another cache cannot stand beside them.
        done = self.troupe(*self.MEASURE, "--shares", 50, "--cache", "lru", "--json", "-")
        self.assertEqual(self.shares(), [0.5])
        self.assertIn("m.quality.json: its shares were measured with --cache echo; replaced", done.stderr)

    def test_predictions_come_first_and_what_is_measured_is_announced(self):
        said = self.troupe(*self.MEASURE, "--shares", 25).stdout
        self.assertRegex(said, r"^predictions learned: \d+ % of the experts")
        self.assertRegex(said, r"(?s)\nnow measuring quality: 64 tokens\n\nwith 64 experts in memory:\n.*\ndone: with 64 experts")

    def test_a_text_that_is_too_short_names_a_number_of_tokens_that_fits(self):
        short = self.folder / "short.txt"
        short.write_text("The kernel is a program. " * 10)
        said = self.refused("calibrate", "--text", short, "--measure-quality")
        found = int(re.search(r": (\d+) tokens, at least 4096 expected", said)[1])
        fits = int(re.search(r", or --quality-tokens (\d+)$", said.strip())[1])
        self.assertIn(2 * fits, range(found // 2, found + 1))
        short.write_text("The kernel")
        self.assertNotIn("or --quality-tokens", self.refused("calibrate", "--text", short, "--measure-quality"))

    def test_shares_that_leave_nothing_out_are_refused_before_anything_is_read(self):
        self.assertIn("none of them leaves an expert out", self.refused(*self.MEASURE, "--shares", 99.99))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["m.gguf"])

    def test_exact_logits_have_no_name_while_chains_are_compared_with_them(self):
        process = subprocess.Popen([TROUPE, *map(str, (self.MEASURE[0], self.model, *self.MEASURE[1:],
                                                      "--shares", 25, "--link", "2MiB"))],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in process.stdout:
            if line.endswith("experts in memory:\n"):  # after it, exact and the chain read at 2 MiB a second
                break
        self.assertIsNone(process.poll())
        process.kill()
        process.communicate()
        self.assertEqual([path.name for path in sorted(self.folder.iterdir())],
                         ["m.buddies.json", "m.gguf", "m.profile.json", "m.scores"])

    def test_nothing_is_learned_from_low_copies(self):
        message = self.refused("calibrate", "--text", TEXT, "--low-copy", "decode", code=2)
        self.assertIn("is learned from exact runs", message)

    def let_each_chain_be_faster_than_the_one_before(self):
        """In place of times measured over few tokens on a machine that does other things, too."""
        path = self.folder / "m.quality.json"
        measured = json.loads(path.read_text())
        for share in measured["shares"]:
            for place, chain in enumerate(share["chains"]):
                chain["seconds_per_token"] = 0.01 / (1 + place)
        path.write_text(json.dumps(measured))

    def test_a_time_a_token_needs_times_of_the_same_conditions(self):
        chains = [word for alpha in (0, 0.3, 0.6) for word in ("--chain", f"smoe:alpha={alpha}")]
        self.record("calibrate", "--text", TEXT, "--measure-quality", "--quality-tokens", 64,
                    "--shares", 50, "--predict", "none", "--most-loss", 1000, *chains)
        self.let_each_chain_be_faster_than_the_one_before()
        # So short a time is met by no alpha measured, so long a one by exact.
        self.assertGreater(self.run_record("--latency", 1e-3)["substitutions"], 0)
        self.assertIn("and less with no other", self.troupe("plan", "--slots", EXPERTS // 2, "--predict", "none",
                                                            "--latency", 1e-3).stdout)
        self.assertEqual(self.run_record("--latency", 1e6)["substitution"], "exact")
        for other in (("--predict", "gate"), ("--predict", "none", "--cache", "lru")):
            self.assertIn("with the same options takes them", self.refused("run", "--prompt", "a", "--slots", EXPERTS // 2,
                                                     *other, "--latency", 5))


if __name__ == "__main__":
    serve_test.TROUPE = TROUPE = sys.argv.pop(1)
    unittest.main()
