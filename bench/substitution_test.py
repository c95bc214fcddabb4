"""That bench/substitution's bars can be missed, each by its own figure, that settings are chosen on other text than is
reported, and that controls are brought to the rate of the buddies that they are held to."""
import json
import math
import pathlib
import tempfile
import unittest
from unittest import mock

import fake_troupe
import paired_blocks
import substitution_report
import substitution_rivals
import substitution_runs
import substitution_section

OPEN, GATED = substitution_runs.OPEN_BUDDIES[0], substitution_runs.GATED_BUDDIES


def blocks(kl, width=0.1):
    """Of a text of eight blocks, about that mean."""
    return [[250, kl * (1 + width * (-1) ** i)] for i in range(8)]


def row(speed, loss=0.0, kl=0.0, hits=0.8, read=10.0, replaced=0.0, deciding=0.002):
    return {"tokens_per_s": speed, "perplexity_ratio": 1 + loss / 2, "perplexity_ratio_interval": [0.99, 1 + loss],
            "mean_kl": kl, "mean_kl_interval": [0, 1.1 * kl], "kl_blocks": blocks(kl), "hit_rate": hits, "MiB_per_token": read,
            "stall_ms": 1.0, "replaced": replaced, "replaced_there": replaced,
            "gates": {"buddies": {"tau_closed": 1, "gamma_closed": 2, "beta_closed": 3, "rho_closed": 4}},
            "deciding": deciding}


def figures(smoe=60.0, loss=0.008, hits=0.85, deciding=0.002, buddies_kl=0.01, buddies_speed=45.0, buddies_read=7.5,
            cached=0.85, matched=True):
    systems = {"exact": row(40.0), "exact, scores": row(38.0), "exact, next gate only": row(35.0), "exact, nothing read ahead": row(30.0),
               "smoe 0.3": row(smoe, loss, 0.005, hits, 6.0, 2.0, deciding), "smoe 0.6": row(90.0, 0.02, 0.03),
               "base": row(20.0), "CE": row(25.0), "CE+CR": row(50.0), "CE+CR+look-ahead": row(52.0), "CE+CR+top scores": row(48.0),
               "echo, nothing ahead": row(55.0), "bias 0.1": row(58.0, kl=0.006), "bias 0.2": row(70.0, kl=0.02),
               OPEN: row(80.0, 0.004, 0.03, replaced=1.0, read=7.5),
               GATED: row(buddies_speed, 0.004, buddies_kl, replaced=1.0, read=buddies_read)}
    rivals = {name: {rival: {"chain": f"{rival}:rho=2:most-share=0.5", "rate": systems[name]["replaced_there"], "matched": matched,
                             "mean_kl": 0.02 + 0.001 * i, "kl_blocks": blocks(0.02 + 0.001 * i), "perplexity_ratio": 1.03,
                             "perplexity_ratio_interval": [1.0, 1.06]}
                     for i, rival in enumerate(substitution_rivals.CONTROLS)} for name in (OPEN, GATED)}
    balance = {"none": {"exact": 33.0, "smoe:alpha=0.3": 44.0}, "as fast as the link": {"exact": 55.0, "smoe:alpha=0.3": 55.0}}
    budgets = {budget: {"cached": {"exact": 0.8, "chosen": chosen}, "tokens_per_s": {"exact": 40.0, "chosen": speed}}
               for budget, chosen, speed in (("75", 0.9, 80.0), ("50", 0.85, 60.0), ("37.5", cached, None))}
    return {"experts": 256, "disturbed": 0, "processors": 2, "disk_bytes_per_s": 3.5e9, "balance": balance,
            "batches": {1: {"chosen": "smoe 0.3", "chosen_loss_there": 0.004, "systems": systems, "rivals": rivals, "budgets": budgets,
                            "buddies": {OPEN: substitution_runs.OPEN_BUDDIES[1],
                                        GATED: "buddies:tau=layers:gamma=0.2:beta=0.75:rho=2"}}}}


class Bars(unittest.TestCase):
    def test_all_hold_for_good_figures(self):
        self.assertEqual(substitution_report.missed_bars(figures()), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what in (({"smoe": 50.0}, "smoe 0.3 saves 20.0 % of the time, at least 24"),
                              ({"loss": 0.011}, "smoe 0.3 may lose 1.10 % of perplexity"),
                              ({"hits": 0.75}, "75.0 % served from cache, more than exact's 80.0"), ({"deciding": 0.02}, "deciding took"),
                              ({"cached": 0.79}, "79.0 % served from cache with 37.5 % of the experts, more than exact's 80.0"),
                              ({"buddies_speed": 43.0}, "1.07x the tokens/s of exact"),
                              ({"buddies_read": 8.5}, "0.85 of the bytes of exact")):
            missed = substitution_report.missed_bars(figures(**changes))
            self.assertEqual((len(missed), what in missed[0]), (1, True), (changes, missed))
        unmatched = substitution_report.missed_bars(figures(matched=False))
        self.assertEqual((len(unmatched), "not compared at the same rate" in unmatched[0]), (2 * len(substitution_rivals.CONTROLS), True))
        self.assertIn("at least 60", substitution_report.missed_bars(figures(cached=0.59))[0])

    def test_a_setting_is_held_to_the_upper_limit_of_what_it_may_lose(self):
        within = row(60.0, loss=0.004, kl=0.005)
        self.assertAlmostEqual(substitution_runs.loss(within), math.exp(0.0055) - 1)
        self.assertAlmostEqual(substitution_runs.loss(row(60.0, loss=0.008, kl=0.005)), 0.008)
        unsure = within | {"perplexity_ratio_interval": [None, None]}
        self.assertEqual(substitution_runs.loss(unsure), math.inf)

    def test_no_other_row_stands_in_for_the_setting_that_was_chosen(self):
        slow = figures(smoe=45.0)
        slow["batches"][1]["systems"]["CE+CR"]["tokens_per_s"] = 400.0
        self.assertIn("smoe 0.3 saves 11.1 %", substitution_report.missed_bars(slow)[0])
        self.assertIn("smoe 0.3 saves 11.1 %", substitution_report.figures_line(slow, []))

    def test_buddies_win_where_all_of_the_interval_says_so(self):
        part = figures()["batches"][1]
        self.assertTrue(substitution_report.buddies_win(part, GATED))
        self.assertFalse(substitution_report.buddies_win(part, OPEN))
        rival = part["rivals"][GATED]["best live score"]
        rival["kl_blocks"] = blocks(0.0103, width=-0.4)  # a larger mean, but not in every block
        self.assertLess(substitution_report.apart(part, GATED, "best live score")[0], 0)
        self.assertFalse(substitution_report.buddies_win(part, GATED))

    def test_buddies_that_lose_have_nothing_to_save(self):
        lose = figures(buddies_kl=0.03, buddies_speed=20.0)
        self.assertEqual(substitution_report.missed_bars(lose), [])
        self.assertIn("do not beat", substitution_report.buddies_line(lose))

    def test_bars_and_the_line_look_at_every_batch(self):
        both = figures()
        both["batches"][3] = figures(cached=0.5, buddies_speed=30.0)["batches"][1]
        missed = substitution_report.missed_bars(both)
        self.assertTrue(any(line.startswith("batch 3: buddies, all gates: 0.75x") for line in missed), missed)
        self.assertTrue(any(line.startswith("batch 3: 50.0 % served") for line in missed), missed)
        self.assertTrue(any(line.startswith("batch 3: smoe 0.3 saves 33.3 % of the time, at least 35") for line in missed), missed)
        self.assertIn("batch 3 buddies, all gates beat", substitution_report.buddies_line(both))


class Tables(unittest.TestCase):
    def test_they_and_the_line_show_every_system(self):
        text = substitution_report.tables(figures())
        for name in figures()["batches"][1]["systems"]:
            self.assertIn(name, text)
        self.assertIn("second lane as fast as the link", text)
        self.assertIn("buddies, all gates: buddies:tau=layers:gamma=0.2:beta=0.75:rho=2, chosen on other problems; tau_closed 1, gamma_closed 2, "
                      "beta_closed 3, rho_closed 4", text)
        self.assertIn("'A' is smoe 0.3, which lost at most 0.40 % on the problems", text)
        rival = [line for line in text.splitlines() if line.startswith("  best live score")][-1]
        self.assertEqual(rival.split()[3:], ["1.000", "0.0210", "-0.0110", "(-0.0120", "to", "-0.0100)", "+3.00", "%", "best", "live",
                                             "score:rho=2:most-share=0.5"])
        line = substitution_report.figures_line(figures(), [])
        self.assertIn("saves 33.3 % of the time for a loss of at most 0.80 % of perplexity", line)
        self.assertIn("bars missed: 0", line)

    def test_budgets_have_hits_and_speeds_as_far_as_measured(self):
        lines = substitution_report.budgets_text(figures()["batches"][1]).splitlines()
        self.assertEqual(lines[-2].split()[-6:], ["90.0", "%", "85.0", "%", "85.0", "%"])
        self.assertEqual(lines[-1].split()[-2:], ["80.00", "60.00"])

    def test_the_replay_is_held_to_the_engine(self):
        error = substitution_report.replay_error(figures())
        self.assertAlmostEqual(error["exact"], 0.1)
        self.assertAlmostEqual(error["smoe:alpha=0.3"], -0.2)
        self.assertIn("exact +10 %, smoe:alpha=0.3 -20 %", substitution_report.tables(figures()))

    def test_the_papers_figures_stand_beside_ours(self):
        table = substitution_report.papers_table(figures()).splitlines()
        self.assertEqual(table[0], "| | token by token | paper |")
        self.assertIn("| time saved over the fastest exact way, the paper's alpha of 0.3 | 33.3 % | 24 % |", table)
        self.assertIn("| eviction by score (CE) over LRU saves | 20.0 % | 8 % |", table)
        self.assertIn("| prefetching by the paper's look-ahead (Pre) in addition | 3.8 % | 14 % |", table)
        self.assertIn("| a second lane as fast as the link (BA), in a replay | 20.0 % | 34 % |", table)
        self.assertIn("| buddies with all gates: bytes, of exact's | 75 % | about 80 % |", table)

    def test_the_section_says_what_the_figures_say(self):
        both = figures()
        both["batches"][3] = figures(buddies_kl=0.0205, smoe=45.0)["batches"][1]
        text = substitution_section.section(json.loads(json.dumps(both)), "substitution")
        for words in ("on 2 processors and a disk of 3.5 GB/s", "Bars that are missed:\n\n- batch 3: smoe 0.3 saves 11.1 %",
                      "token by token 33.3 % (bar 24) at alpha 0.3, for a loss of at most 0.80 %",
                      "At the paper's alpha of 0.3 it saves token by token 33.3 %, above the bar of 24; three tokens at a time 11.1 %, below the bar of 35.",
                      "bias 0.1 saves 31.0 % at a KL of 0.0060, the router 33.3 % at 0.0050",
                      "token by token: they beat random, best live score, zero fill, zero fill renormalised, smaller top-k.\n",
                      "three tokens at a time: they beat best live score, zero fill, zero fill renormalised, smaller top-k; they lose to random.\n",
                      "Where buddies do not beat every control", "1.12 times the tokens/s of exact and 75 % of its bytes", "off the engine's by +10 % for exact, -20 % for smoe:alpha=0.3",
                      "](substitution/time-1.svg)", "](substitution/loss-3.svg)", "    batch 3; 'A' is smoe 0.3"):
            self.assertIn(words, text)
        self.assertEqual(text.count("(BA), in a replay |"), 1)
        self.assertIn("Every bar holds.", substitution_section.section(figures()))
        self.assertNotIn(".svg", substitution_section.section(figures()))

    def test_the_section_takes_its_place_in_the_report(self):
        begin, end = substitution_section.BEGIN, substitution_section.END
        self.assertEqual(substitution_section.put_into(f"a\n{begin}\nold\n{end}\nb\n", "new"), f"a\n{begin}\n\nnew\n\n{end}\nb\n")
        with self.assertRaises(ValueError):
            substitution_section.put_into(f"a {end} b {begin}", "new")
        report = (substitution_runs.ROOT / "docs/reports/substitution.md").read_text(encoding="utf-8")
        self.assertIn("new", substitution_section.put_into(report, "new"))

    def test_a_difference_is_paired_by_blocks(self):
        mean, least, most = paired_blocks.difference([[2, 1.0], [2, 5.0], [2, 0.0]], [[2, 0.0], [2, 0.0], [2, 0.0]])
        self.assertAlmostEqual(mean, 2)
        self.assertAlmostEqual(most - mean, 4.302652730 * math.sqrt(7 / 3))  # of 1, 5, 0 about 2: variance 7
        self.assertAlmostEqual(mean - least, most - mean)
        same = paired_blocks.difference([[3, 4.0], [1, 9.0]], [[3, 3.5], [1, 8.5]])
        self.assertTrue(all(abs(x - 0.5) < 1e-12 for x in same), same)
        self.assertEqual(paired_blocks.difference([[3, 4.0]], [[3, 3.0]]), (1.0, -math.inf, math.inf))
        with self.assertRaises(ValueError):
            paired_blocks.difference([[3, 4.0]], [[4, 3.0]])
        for freedom, t in ((5, 2.57058), (10, 2.22814), (30, 2.04227)):
            self.assertAlmostEqual(paired_blocks.student_t975(freedom), t, 4)


class AnsweringTroupe(fake_troupe.FakeTroupe):
    def inspect(self, _):
        return {"layer_bytes": [{"expert_bytes": 32 * 1000}] * 8, "experts": 32, "experts_per_token": 4}

    def calibrate(self, _):
        return {}

    def eval(self, arguments):
        for option in ("--logits", "--trace"):
            if option in arguments:
                pathlib.Path(arguments[arguments.index(option) + 1]).write_text("made")
        chain = arguments[arguments.index("--substitute") + 1] if "--substitute" in arguments else "exact"
        share = float(chain.split("most-share=")[1]) if "most-share=" in chain else 0.5
        replaced = 0 if chain == "exact" else round(1000 * 4 * share)
        return {"tokens": 1000, "pass_s": 2.0, "deciding_s": 0.001, "substituted": replaced, "dropped": 0, "stall_s": 1.0,
                "bytes_read": (1 << 20) - replaced, "use_hits": 90, "use_misses": 10, "perplexity_ratio": 1.001, "mean_kl": 0.001,
                "mean_kl_interval": [0.0, 0.002], "kl_blocks": blocks(0.001), "perplexity_ratio_interval": [1.0, 1.002],
                "substitution_links": [{"link": chain, "counts": dict.fromkeys(("tau_closed", "gamma_closed", "beta_closed", "rho_closed"), 1)}]}

    def replay(self, arguments):
        chains = arguments[arguments.index("--substitute") + 1].split(",")
        return [{"results": [{"substitution": chain, "stall_s_per_token": 0.01, "compute_s_per_token": 0.01} for chain in chains]}]


class Runs(unittest.TestCase):
    def measure(self, quick):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with mock.patch("measured_run.Troupe", AnsweringTroupe), \
                 mock.patch("disk_speed.sequential_bytes_per_s", lambda *_: 3.5e9), \
                 mock.patch("offload_runs.make_model", lambda *_: (folder / "m.gguf", folder / "m.experts")):
                comparison = substitution_runs.Comparison("troupe", folder, quick)
                return comparison.measure(), comparison._troupe.calls

    @staticmethod
    def text_of(arguments):
        return pathlib.Path(arguments[arguments.index("--text") + 1]).name

    def test_what_learns_what_chooses_and_what_is_reported_have_texts_of_their_own(self):
        for quick in (True, False):
            found, calls = self.measure(quick)
            self.assertEqual({self.text_of(a) for command, a in calls if command == "calibrate"}, {"mixed.txt"})
            runs = [arguments for command, arguments in calls if command == "eval" and "--slots" in arguments]
            quality = [arguments for arguments in runs if "--experts" not in arguments]
            self.assertEqual({self.text_of(a) for a in runs if "--experts" in a}, {"substitution-reported.txt"})
            self.assertEqual({self.text_of(a) for a in quality}, {"substitution-chosen.txt", "substitution-reported.txt"})
            of_rivals = [a for a in quality if any("most-share" in word for word in a)]
            self.assertEqual({self.text_of(a) for a in of_rivals}, {"substitution-reported.txt"})
            tried = {word for a in quality for word in a if "gamma" in word and self.text_of(a) == "substitution-chosen.txt"}
            self.assertEqual(tried, set(substitution_runs.gated_buddies()))
            self.assertEqual({name for part in found["batches"].values() for name in part["rivals"]}, {GATED} if quick else {OPEN, GATED})
            for part in found["batches"].values():
                for rivals in part["rivals"].values():
                    self.assertEqual(list(rivals), list(substitution_rivals.CONTROLS))
                    self.assertTrue(all(rival["matched"] for rival in rivals.values()), rivals)
            substitution_report.tables(found)
            substitution_report.figures_line(found, substitution_report.missed_bars(found))
            if not quick:
                substitution_section.section(found)

    def test_every_run_but_the_recorded_one_begins_with_a_full_cache(self):
        for quick in (True, False):
            runs = [arguments for command, arguments in self.measure(quick)[1] if command == "eval"]
            filled = [arguments[arguments.index("--fill") + 1] for arguments in runs if "--fill" in arguments]
            self.assertEqual(set(filled), {"on"})
            self.assertTrue(all("--trace" in arguments for arguments in runs if "--fill" not in arguments))
            self.assertEqual(len(runs) - len(filled), 1)

    def test_a_problem_and_its_answer_are_on_the_same_side(self):
        first, rest = substitution_runs.halves("a?\nyes\n\nb?\nno\n\nc?\nno\n")
        self.assertEqual((first, rest), ("a?\nyes\n", "b?\nno\n\nc?\nno\n"))
        text = substitution_runs.QUESTIONS.read_text(encoding="utf-8")
        first, rest = substitution_runs.halves(text)
        self.assertEqual(first + "\n" + rest, text)
        self.assertTrue(all(part.count("####") > 6 for part in (first, rest)))
        self.assertTrue(first.rstrip().splitlines()[-1].startswith("#### "))

    def test_no_speed_and_nothing_reported_decides_what_is_chosen(self):
        def record(kl, read, replaced=100):
            return {"tokens": 100, "bytes_read": read, "substituted": replaced, "dropped": 0, "mean_kl": kl, "mean_kl_interval": [0, kl],
                    "perplexity_ratio_interval": [1, 1], "pass_s": kl}
        alphas = {"smoe 0.1": record(0.001, 900), "smoe 0.3": record(0.005, 500), "smoe 0.6": record(0.011, 100)}
        self.assertEqual(substitution_runs.choose_alpha(alphas), "smoe 0.3")
        self.assertEqual(substitution_runs.choose_alpha({"smoe 0.3": record(0.02, 100), "smoe 0.1": record(0.012, 900)}), "smoe 0.1")
        chains = {"mild": record(0.001, 900, 50), "good": record(0.004, 700), "wild": record(0.02, 100, 300)}
        self.assertEqual(substitution_runs.choose_buddies(chains, record(0, 1000, 0)), "good")
        self.assertEqual(substitution_runs.choose_buddies(chains, record(0, 100, 0)), "mild")  # none reads few enough


class Rivals(unittest.TestCase):
    def test_a_knob_is_turned_until_the_rate_is_the_wanted_one(self):
        for rate_of, wanted in ((lambda x: 4 * x, 2.96), (lambda x: 5 * x ** 3, 0.37), (lambda x: round(40 * x) / 10, 1.2)):
            asked = []
            knob, rate = substitution_rivals.match_rate(lambda x, of=rate_of, asked=asked: asked.append(x) or of(x), wanted)
            self.assertTrue(substitution_rivals.is_matched(rate, wanted), (knob, rate))
            self.assertEqual(rate, rate_of(knob))
            self.assertLessEqual(len(asked), 1 + substitution_rivals.MOST_STEPS)

    def test_a_control_that_cannot_come_to_the_rate_says_so(self):
        self.assertEqual(substitution_rivals.match_rate(lambda x: 1.5 * x, 2.0), (1.0, 1.5))
        self.assertFalse(substitution_rivals.is_matched(1.5, 2.0))

    def test_the_nearest_that_was_measured_counts_where_rates_jump(self):
        self.assertEqual(substitution_rivals.match_rate(lambda x: 0.0 if x < 0.3 else 3.0, 2.0)[1], 3.0)

    def test_every_control_has_the_gates_and_the_budget_of_the_buddies(self):
        chain = lambda control: substitution_rivals.chain_of(control, "buddies:tau=layers:gamma=0.2:beta=0.75:rho=2:eta=1", 4, 0.25)
        self.assertEqual(chain("random"), "random:tau=layers:gamma=0.2:beta=0.75:rho=2:most-share=0.25")
        self.assertEqual(chain("zero fill, renormalised"),
                         "drop:renormalise=1:tau=layers:gamma=0.2:beta=0.75:rho=2:most-share=0.25")
        self.assertEqual(chain("smaller top-k"), "top:keep=2:tau=layers:gamma=0.2:beta=0.75:most-share=0.25")

    def test_what_is_chosen_elsewhere_costs_least_a_slot(self):
        record = {"substituted": 3, "dropped": 1, "tokens": 2, "mean_kl": 0.01}
        self.assertEqual(substitution_rivals.rate_in(record), 2.0)
        self.assertEqual(substitution_rivals.cost_of_a_slot(record), 0.005)
        self.assertEqual(substitution_rivals.cost_of_a_slot({**record, "substituted": 0, "dropped": 0}), float("inf"))


if __name__ == "__main__":
    unittest.main()
