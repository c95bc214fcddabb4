#!/usr/bin/env python3
"""What a shell sees of `troupe replay`, and of --trace on the commands that run a model.

usage: replay_command_test.py TROUPE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests/data/routing/gpt-oss-20b.trace"
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments):
    return subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ok(self, *arguments):
        done = troupe(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def replay(self, *arguments):
        return json.loads(self.ok("replay", *arguments, "--json", "-"))

    def record(self, *options):
        trace, figures = self.folder / "run.trace", self.folder / "run.json"
        self.ok("run", MODEL, "--prompt", "The kernel", "-n", 24, "--temperature", 0, "--threads", 1,
                "--ignore-eos", "--trace", trace, "--json", figures, *options)
        return trace, json.loads(figures.read_text())

    def test_a_run_hits_what_the_replay_of_its_trace_hits(self):
        for slots in (40, 120):
            for policy in ("lru", "lfu", "arc"):
                trace, run = self.record("--slots", slots, "--cache", policy, "--predict", "none")
                result = self.replay(trace, "--as-recorded")[0]["results"][0]
                self.assertEqual((result["expert_hits"], result["expert_misses"]),
                                 (run["expert_hits"], run["expert_misses"]), (slots, policy))
                self.assertEqual(result["policy"], policy)

    def test_recording_changes_no_token(self):
        _, run = self.record("--slots", 60)
        self.ok("run", MODEL, "--prompt", "The kernel", "-n", 24, "--temperature", 0, "--threads", 1,
                "--ignore-eos", "--slots", 60, "--json", self.folder / "plain.json")
        plain = json.loads((self.folder / "plain.json").read_text())
        self.assertEqual(run["token_ids"], plain["token_ids"])

    def test_bench_and_eval_record_too(self):
        trace = self.folder / "t.trace"
        self.ok("bench", MODEL, "--prefill", 16, "--decode", 8, "--prompt-length", 4, "--reps", 1,
                "--threads", 1, "--trace", trace, "--trace-scores", "all")
        facts = json.loads(self.ok("trace", "info", trace, "--json", "-"))[0]
        self.assertEqual(facts["decode_tokens"], 8)
        self.assertTrue(facts["header"]["all_scores"])
        text = self.folder / "t.txt"
        text.write_text("The kernel is the part of the system that everything else stands on. " * 3)
        self.ok("eval", MODEL, "--text", text, "--threads", 1, "--trace", trace, "--trace-domain", "prose")
        facts = json.loads(self.ok("trace", "info", trace, "--json", "-"))[0]
        self.assertEqual(list(facts["tokens_by_domain"]), ["prose"])
        self.assertEqual(facts["decode_tokens"], 0)

    def test_the_optimum_is_never_beaten_and_more_slots_hit_more(self):
        results = self.replay(SAMPLE, "--pass", 1, "--budget", "25,50,75")[0]["results"]
        best = {r["slots"]: r["hit_rate"] for r in results if r["policy"] == "optimum"}
        self.assertEqual(len(best), 3)
        self.assertEqual(sorted(best.values()), list(best.values()))
        for r in results:
            self.assertLessEqual(r["hit_rate"], best[r["slots"]])
            self.assertAlmostEqual(r["below_optimum"], best[r["slots"]] - r["hit_rate"])
            self.assertEqual(r["all"]["asks"], 160 * 6 * 4)

    def test_a_floor_is_a_variant_of_one_pool_and_the_optimum_bounds_each(self):
        results = self.replay(SAMPLE, "--pass", 1, "--budget", 25, "--policy", "lru,optimum", "--cache-share", "global",
                              "--floor", "0,50,100")[0]["results"]
        self.assertEqual([(r["policy"], r["floor"]) for r in results],
                         [("lru", 0), ("lru", 0.5), ("lru", 1), ("optimum", 0)])
        self.assertNotEqual(results[0]["expert_hits"], results[2]["expert_hits"])
        for r in results:
            self.assertGreaterEqual(r["below_optimum"], 0)

    def test_the_optimum_has_no_time(self):
        results = self.replay(SAMPLE, "--pass", 1, "--budget", 50, "--policy", "lru,optimum", "--expert-bytes", "4MiB",
                              "--link", "1GiB")[0]["results"]
        self.assertEqual(["stall_s_per_token" in r for r in results], [True, False])

    def test_a_faster_link_stalls_less_and_reading_ahead_is_counted(self):
        def stall(link, *more):
            costs = ("--expert-bytes", "4MiB", "--expert-us", 300, "--layer-us", 2000)
            return self.replay(SAMPLE, "--pass", 1, "--policy", "lru", "--budget", 50, "--link", link,
                               *costs, *more)[0]["results"][-1]
        slow, fast = stall("1GiB/100us"), stall("4GiB/100us")
        self.assertEqual(slow["hit_rate"], fast["hit_rate"])
        self.assertGreater(slow["stall_s_per_token"], 3 * fast["stall_s_per_token"])
        self.assertEqual(slow["bytes_per_token"], slow["loads_per_token"] * 4 * 2**20)
        oracle = stall("1GiB/100us", "--predict", "oracle", "--ungoverned")
        self.assertGreater(oracle["prefetch"]["useful"] + oracle["prefetch"]["late"], 0)
        self.assertLess(oracle["stall_s_per_token"], slow["stall_s_per_token"])

    def test_an_oracle_that_sees_further_stalls_less_and_the_time_of_tokens_adds_up(self):
        costs = ("--expert-bytes", "4MiB", "--expert-us", 300, "--layer-us", 2000, "--link", "1GiB/100us")
        results = self.replay(SAMPLE, "--pass", 1, "--policy", "lru", "--budget", 75, "--predict",
                              "none,oracle:1,oracle:4,oracle:unlimited", *costs)[0]["results"]
        self.assertEqual([r["predictor"] for r in results], ["none", "oracle:1", "oracle:4", "oracle:unlimited"])
        stalls = [r["stall_s_per_token"] for r in results]
        self.assertEqual(stalls, sorted(stalls, reverse=True))
        self.assertLess(stalls[-1], 0.5 * stalls[0])
        for r in results:
            self.assertAlmostEqual(r["time"]["computing_s"] + r["time"]["overlapped_s"],
                                   160 * r["compute_s_per_token"])
            self.assertAlmostEqual(r["time"]["stall_s"], 160 * r["stall_s_per_token"])
        self.assertGreater(results[-1]["time"]["overlapped_s"], 2 * results[0]["time"]["overlapped_s"])

    def test_echo_judges_by_what_it_is_told(self):
        played = [self.replay(SAMPLE, "--pass", 1, "--policy", "lru,echo", "--budget", 50, *echo)[0]["results"]
                  for echo in ((), ("--echo", "64,0.25,0.95,3"), ("--echo", "1,0,0.5,0.1"))]
        self.assertEqual([results[1]["echo"] for results in played], ["64,0.25,0.95,3", "64,0.25,0.95,3", "1,0,0.5,0.1"])
        self.assertNotIn("echo", played[0][0])
        self.assertEqual(len({results[0]["hit_rate"] for results in played}), 1)
        self.assertEqual(played[0][1]["hit_rate"], played[1][1]["hit_rate"])
        self.assertNotEqual(played[0][1]["hit_rate"], played[2][1]["hit_rate"])

    def test_what_was_foreseen_of_needed_loads_is_told(self):
        arguments = ("--pass", 1, "--policy", "lru", "--budget", 50, "--predict", "eap", "--link", "1GiB",
                     "--expert-bytes", "4MiB", "--layer-us", 2000)
        foresight = self.replay(SAMPLE, *arguments)[0]["results"][0]["prefetch"]["foresight"]
        self.assertGreater(foresight["named"], 0)
        self.assertTrue(foresight["needed"] >= foresight["named"] >= foresight["likely"] >= foresight["in_time"])
        near = foresight["by_layers_ahead"][0]
        self.assertEqual((near["named"], near["likely"]), (foresight["named"], foresight["likely"]))
        self.assertGreaterEqual(near["guesses"], near["came_true"])
        self.assertRegex(self.ok("replay", SAMPLE, *arguments), r"of the experts that had to be loaded \d+\.\d % were predicted, \d+\.\d % in time")

    def test_what_was_known_of_misses_is_told_by_layers_ahead(self):
        trace, _ = self.record("--slots", 96, "--trace-scores", "all")
        arguments = (trace, "--pass", 1, "--policy", "lru", "--budget", 50, "--predict", "none,scores", "--link", "1GiB",
                     "--expert-bytes", "4MiB", "--layer-us", 2000)
        none, scores = (r["prefetch"] for r in self.replay(*arguments)[0]["results"])
        self.assertNotIn("chances", none)
        self.assertEqual([len(distances) for distances in scores["chances"].values()], [5, 5])
        near = scores["chances"]["same_token"][0]
        self.assertEqual((len(near["said"]), len(near["asked"])), (100, 100))
        self.assertEqual(near["misses"], sum(near["asked"]))
        self.assertGreater(near["misses"], 0)
        self.assertLessEqual(near["at_70"], near["at_60"])
        self.assertLessEqual(near["at_60"], near["at_50"])
        self.assertRegex(self.ok("replay", *arguments),
                         r"misses of the same token predicted, % at a precision of 70, 60, 50 %: 1 layer \d+\.\d, \d+\.\d, \d+\.\d; 2 layers")

    def test_substitution_on_recorded_scores_loads_less_and_says_what_refused(self):
        trace, _ = self.record("--slots", 96, "--trace-scores", "all")
        def play(*options):
            return {r["substitution"]: r for r in
                    self.replay(trace, "--budget", 25, "--policy", "lru", *options)[0]["results"]}
        played = play("--substitute", "exact,smoe:alpha=0.4,drop")
        self.assertNotIn("substituted", played["exact"])
        smoe = played["smoe:alpha=0.4"]
        self.assertLess(smoe["loads_per_token"], played["exact"]["loads_per_token"])
        self.assertLess(smoe["bytes_per_token"], played["exact"]["bytes_per_token"])
        self.assertGreater(smoe["substituted"]["replaced_share"], 0)
        self.assertEqual(smoe["substituted"]["links"][0]["counts"]["unknown"], 0)
        self.assertEqual(smoe["substituted"]["passed_over"], 0)
        text = self.ok("replay", trace, "--budget", 25, "--policy", "lru", "--substitute", "smoe:alpha=0.4")
        self.assertIn("replaced", text)
        self.assertIn("none_near", text)
        # The published recordings have no scores of what was not chosen.
        blind = self.replay(SAMPLE, "--pass", 1, "--policy", "lru", "--budget", 50, "--substitute", "smoe")
        counts = blind[0]["results"][0]["substituted"]["links"][0]["counts"]
        self.assertEqual((counts["unknown"], counts["substituted"]), (160 * 6, 0))

    def test_chains_are_listed_as_for_a_run(self):
        told = troupe("replay", SAMPLE, "--substitute", "help")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual(told.stdout, troupe("run", SAMPLE, "--substitute", "help").stdout)

    def test_the_optimum_is_beside_others_that_read_ahead(self):
        results = self.replay(SAMPLE, "--pass", 1, "--budget", 50, "--policy", "lru,optimum", "--predict",
                              "eap,previous")[0]["results"]
        self.assertEqual(sorted((r["policy"], r["predictor"]) for r in results),
                         [("lru", "eap"), ("lru", "previous"), ("optimum", "none")])

    def test_buddies_come_from_other_tokens_than_those_played(self):
        part = self.replay(SAMPLE, "--pass", 1, "--policy", "lru", "--budget", 50, "--substitute",
                           "exact,buddies:tau=-1", "--buddies", "25%")[0]
        self.assertEqual(part["tokens"], 120)
        exact, buddies = part["results"]
        self.assertLess(buddies["loads_per_token"], exact["loads_per_token"])
        self.assertGreater(buddies["substituted"]["substituted"], 0)
        first, rest = self.folder / "first.trace", self.folder / "rest.trace"
        facts = json.loads(self.ok("trace", "info", SAMPLE, "--json", "-"))[0]
        begin, end = facts["first_sequence"], facts["last_sequence"]
        self.assertLess(begin, end)
        self.ok("trace", "cut", SAMPLE, "-o", first, "--sequences", f"{begin},{begin}")
        self.ok("trace", "cut", SAMPLE, "-o", rest, "--sequences", f"{begin + 1},{end}")
        other = self.replay(rest, "--pass", 1, "--policy", "lru", "--budget", 50, "--substitute",
                            "buddies:tau=-1", "--buddies", first)[0]["results"][0]
        self.assertGreater(other["substituted"]["substituted"], 0)

    def test_the_score_policy_is_played_where_all_scores_are(self):
        trace, run = self.record("--slots", 96, "--cache", "score", "--predict", "none", "--trace-scores", "all")
        again = self.replay(trace, "--as-recorded")[0]["results"][0]
        self.assertEqual((again["policy"], again["expert_hits"]), ("score", run["expert_hits"]))
        self.assertIn("score", {r["policy"] for r in self.replay(trace)[0]["results"]})
        self.assertNotIn("score", {r["policy"] for r in self.replay(SAMPLE)[0]["results"]})

    def test_shallow_layers_can_be_compared_and_only_they_gain(self):
        results = self.replay(SAMPLE, "--pass", 1, "--policy", "lru", "--budget", 50, "--shallow", "0,2")[0]["results"]
        even, shallow = (r["hit_rate_by_layer"] for r in results)
        self.assertGreater(shallow[0], even[0])
        self.assertLess(shallow[-1], even[-1])

    def test_plots_are_pictures_of_every_policy(self):
        svg, html = self.folder / "p.svg", self.folder / "p.html"
        self.ok("replay", SAMPLE, "--plot", svg)
        words = [node.text for node in ElementTree.parse(svg).iter() if node.text]
        self.assertTrue({"lru", "lfu", "arc", "optimum"} <= set(words))
        done = troupe("replay", SAMPLE, "--plot", html)
        self.assertEqual((done.returncode, done.stderr), (0, f"plot: {html}\n"))
        self.assertIn("<svg", html.read_text())

    def test_what_a_damaged_chunk_had_is_counted_and_the_rest_is_played(self):
        whole, hurt = self.folder / "whole.trace", self.folder / "hurt.trace"
        self.ok("trace", "merge", SAMPLE, SAMPLE, SAMPLE, "-o", whole)
        data = bytearray(whole.read_bytes())
        data[data.index(b"TRPCHUNK") + 99] ^= 1
        hurt.write_bytes(data)
        done = troupe("replay", hurt, "--pass", 1, "--policy", "lru,optimum", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 damaged place", done.stderr)
        played = json.loads(done.stdout)[0]
        self.assertEqual(played["damaged_places"], 1)
        self.assertGreater(played["tokens_lost"], 0)
        self.assertEqual(played["tokens"] + played["tokens_lost"], 3 * 160)

    def test_bad_input_is_one_line(self):
        for words, code, arguments in (
                ("no routing trace", 1, (ROOT / "README.md",)),
                ("no cache", 1, (SAMPLE, "--as-recorded")),
                ("what an expert weighs", 1, (SAMPLE, "--link", "1GiB")),
                ("--plot", 2, (SAMPLE, "--plot", "x.png")),
                ("--policy", 2, (SAMPLE, "--policy", "best")),
                ("a number of layers", 2, (SAMPLE, "--predict", "oracle:0")),
                ("--floor needs --cache-share global", 2, (SAMPLE, "--floor", 50)),
                ("expected four numbers as in 64,0.25,0.95,3", 2, (SAMPLE, "--echo", "64,2")),
                ("of the policy echo alone", 2, (SAMPLE, "--policy", "lru", "--echo", "16,0,0.5,1")),
                ("--as-recorded takes no", 2, (SAMPLE, "--as-recorded", "--echo", "16,0,0.5,1")),
                ("oracle:N", 2, (SAMPLE, "--predict", "gate")),
                ("takes no --substitute", 2, (SAMPLE, "--policy", "lru", "--predict", "oracle:2", "--substitute", "drop")),
                ("'guess'", 2, (SAMPLE, "--substitute", "guess")),
                ("needs --buddies", 2, (SAMPLE, "--substitute", "buddies")),
                ("--buddies", 2, (SAMPLE, "--buddies", "25%")),
                ("100%", 2, (SAMPLE, "--substitute", "buddies", "--buddies", "100%")),
                ("the trace that is replayed", 1, (SAMPLE, "--substitute", "buddies", "--buddies", SAMPLE)),
                ("deepseek-v2-lite.trace: ", 1, (SAMPLE, "--substitute", "buddies", "--buddies",
                                                 SAMPLE.parent / "deepseek-v2-lite.trace")),
                ("fewer bits", 2, (SAMPLE, "--substitute", "low-bit")),
                ("scores of all experts", 1, (SAMPLE, "--policy", "score")),
                ("of one trace", 2, (SAMPLE, SAMPLE, "--plot", "x.svg")),
                ("of demand alone", 2, (SAMPLE, "--policy", "optimum", "--predict", "eap")),
                ("of exact answers", 2, (SAMPLE, "--policy", "optimum", "--substitute", "drop")),
                ("TRACE", 2, ())):
            done = troupe("replay", *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        done = troupe("run", MODEL, "--prompt", "x", "-n", 1, "--trace", "/nowhere/t.trace")
        self.assertEqual(done.returncode, 2)  # before the model is opened
        self.assertIn("/nowhere/t.trace: there is no folder", done.stderr)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
