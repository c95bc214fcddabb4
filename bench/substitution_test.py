"""That bench/substitution's bars can be missed, each by its own figure, and that controls are brought to the rate of the
buddies that they are held to."""
import pathlib
import tempfile
import unittest
from unittest import mock

import fake_troupe
import substitution_report
import substitution_rivals
import substitution_runs


def row(speed, loss=0.0, kl=0.0, hits=0.8, read=10.0, replaced=0.0, deciding=0.002):
    return {"tokens_per_s": speed, "perplexity_ratio": 1 + loss, "perplexity_ratio_interval": [0.99, 1.01 + loss],
            "mean_kl": kl, "hit_rate": hits, "MiB_per_token": read, "stall_ms": 1.0, "replaced": replaced,
            "replaced_there": replaced,
            "gates": {"buddies": {"tau_closed": 1, "gamma_closed": 2, "beta_closed": 3, "rho_closed": 4}},
            "deciding": deciding}


def figures(smoe=60.0, loss=0.008, hits=0.85, deciding=0.002, buddies_kl=0.01, buddies_speed=45.0, buddies_read=7.5,
            cached=0.7, chosen="buddies, all gates", matched=True):
    systems = {"exact": row(40.0), "exact, next gate only": row(35.0), "exact, nothing read ahead": row(30.0),
               "smoe 0.3": row(smoe, loss, 0.005, hits, 6.0, 2.0, deciding), "smoe 0.6": row(90.0, 0.02, 0.03),
               "buddies": row(80.0, 0.004, 0.03, replaced=1.0, read=7.5),
               "buddies, all gates": row(buddies_speed, 0.004, buddies_kl, replaced=1.0, read=buddies_read),
               "buddies, beta 0.5": row(30.0, 0.002, 0.004, replaced=0.5, read=9.5)}
    rivals = {name: {rival: {"chain": f"{rival}:rho=2:most-share=0.5", "rate": systems[name]["replaced_there"], "matched": matched,
                             "mean_kl": 0.02 + 0.001 * i, "perplexity_ratio": 1.03, "perplexity_ratio_interval": [1.0, 1.06]}
                     for i, rival in enumerate(substitution_rivals.CONTROLS)} for name in substitution_runs.BUDDIES}
    balance = {"none": {"exact": 50.0}, "as fast as the link": {"exact": 55.0}}
    return {"experts": 256, "disturbed": 0, "balance": balance,
            "batches": {1: {"chosen": "smoe 0.3", "chosen_loss_there": 0.004, "chosen_buddies": chosen, "systems": systems,
                            "rivals": rivals,
                            "cached": {"75": 0.9, "50": 0.8, "37.5": cached}}}}


class Bars(unittest.TestCase):
    def test_all_hold_for_good_figures(self):
        self.assertEqual(substitution_report.missed_bars(figures()), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what in (({"smoe": 50.0}, "of the time"), ({"loss": 0.011}, "no setting within"),
                              ({"hits": 0.55}, "served from cache"), ({"deciding": 0.02}, "deciding took"),
                              ({"cached": 0.59}, "with 37.5 % of the experts"),
                              ({"buddies_speed": 43.0}, "1.07x the tokens/s of exact"),
                              ({"buddies_read": 8.5}, "0.85 of the bytes of exact"),
                              ({"matched": False}, "not compared at the same rate")):
            missed = substitution_report.missed_bars(figures(**changes))
            self.assertTrue(missed and what in missed[0], (changes, missed))

    def test_a_setting_that_loses_too_much_is_not_counted_however_fast(self):
        self.assertEqual(substitution_report.paid(figures(), 1), "smoe 0.3")

    def test_buddies_win_against_every_control_or_not(self):
        part = figures()["batches"][1]
        self.assertTrue(substitution_report.buddies_win(part, "buddies, all gates"))
        self.assertFalse(substitution_report.buddies_win(part, "buddies"))
        part["rivals"]["buddies, all gates"]["best live score"]["mean_kl"] = 0.009
        self.assertFalse(substitution_report.buddies_win(part, "buddies, all gates"))

    def test_buddies_that_lose_have_nothing_to_save(self):
        lose = figures(buddies_kl=0.03, buddies_speed=20.0)
        self.assertEqual(substitution_report.missed_bars(lose), [])
        self.assertIn("do not beat", substitution_report.buddies_line(lose))

    def test_bars_and_the_line_look_at_every_batch(self):
        both = figures()
        both["batches"][3] = figures(cached=0.5, chosen="buddies, beta 0.5")["batches"][1]
        missed = substitution_report.missed_bars(both)
        self.assertTrue(any(line.startswith("batch 3: buddies, beta 0.5: 0.75x") for line in missed), missed)
        self.assertTrue(any(line.startswith("batch 3: 50.0 % served") for line in missed), missed)
        self.assertIn("batch 3 buddies, beta 0.5 beat", substitution_report.buddies_line(both))

    def test_tables_and_the_line_show_every_system(self):
        text = substitution_report.tables(figures())
        for name in figures()["batches"][1]["systems"]:
            self.assertIn(name, text)
        self.assertIn("second lane as fast as the link", text)
        self.assertIn("tau_closed 1, gamma_closed 2, beta_closed 3, rho_closed 4", text)
        self.assertIn("70.0 % with 37.5 % of the experts", text)
        self.assertIn("buddies, all gates, chosen on the other half of the text; tau_closed 1", text)
        self.assertIn("'A' is smoe 0.3, which lost 0.40 % on the half it was chosen on", text)
        rival = next(line for line in text.splitlines() if line.startswith("  best live score"))
        self.assertEqual(rival.split()[3:], ["1.000", "0.0210", "+3.00", "%", "best", "live", "score:rho=2:most-share=0.5"])
        line = substitution_report.figures_line(figures(), [])
        self.assertIn("saves 33.3 % of the time for a loss of 0.80 % of perplexity", line)
        self.assertIn("bars missed: 0", line)


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
                "bytes_read": 1 << 20, "use_hits": 90, "use_misses": 10, "perplexity_ratio": 1.001, "mean_kl": 0.001,
                "perplexity_ratio_interval": [1.0, 1.002],
                "substitution_links": [{"link": chain, "counts": dict.fromkeys(("tau_closed", "gamma_closed", "beta_closed", "rho_closed"), 1)}]}

    def replay(self, arguments):
        chains = arguments[arguments.index("--substitute") + 1].split(",")
        return [{"results": [{"substitution": chain, "stall_s_per_token": 0.01, "compute_s_per_token": 0.01} for chain in chains]}]


class Runs(unittest.TestCase):
    def measure(self, quick):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with mock.patch("measured_run.Troupe", AnsweringTroupe), \
                 mock.patch("offload_runs.make_model", lambda *_: (folder / "m.gguf", folder / "m.experts")):
                comparison = substitution_runs.Comparison("troupe", folder, quick)
                return comparison.measure(), comparison._troupe.calls

    def test_settings_are_chosen_on_one_half_of_a_text_and_reported_on_the_other(self):
        for quick in (True, False):
            found, calls = self.measure(quick)
            runs = [arguments for command, arguments in calls if command == "eval" and "--slots" in arguments]
            quality = [arguments for arguments in runs if "--experts" not in arguments]
            text = lambda arguments: pathlib.Path(arguments[arguments.index("--text") + 1]).name
            self.assertEqual({text(arguments) for arguments in quality}, {"substitution-chosen.txt", "substitution-reported.txt"})
            of_rivals = [a for a in quality if any("most-share" in word for word in a)]
            self.assertEqual({text(arguments) for arguments in of_rivals}, {"substitution-reported.txt"})
            self.assertEqual({name for part in found["batches"].values() for name in part["rivals"]},
                             {"buddies"} if quick else set(substitution_runs.BUDDIES))
            for part in found["batches"].values():
                for rivals in part["rivals"].values():
                    self.assertEqual(list(rivals), list(substitution_rivals.CONTROLS))
                    self.assertTrue(all(rival["matched"] for rival in rivals.values()), rivals)
            substitution_report.tables(found)
            substitution_report.figures_line(found, substitution_report.missed_bars(found))


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
