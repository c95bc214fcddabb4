"""That bench/substitution's bars can be missed, each by its own figure."""
import unittest

import substitution_report


def row(speed, loss=0.0, kl=0.0, hits=0.8, read=10.0, replaced=0.0, deciding=0.002):
    return {"tokens_per_s": speed, "perplexity_ratio": 1 + loss, "perplexity_ratio_interval": [0.99, 1.01 + loss],
            "mean_kl": kl, "hit_rate": hits, "MiB_per_token": read, "stall_ms": 1.0, "replaced": replaced,
            "replaced_there": replaced,
            "gates": {"buddies": {"tau_closed": 1, "gamma_closed": 2, "beta_closed": 3, "rho_closed": 4}},
            "deciding": deciding}


def figures(smoe=60.0, loss=0.008, hits=0.85, deciding=0.002, buddies_kl=0.01, buddies_speed=45.0, buddies_read=7.5,
            cached=0.7):
    systems = {"exact": row(40.0), "exact, next gate only": row(35.0), "exact, nothing read ahead": row(30.0),
               "smoe 0.3": row(smoe, loss, 0.005, hits, 6.0, 2.0, deciding), "smoe 0.6": row(90.0, 0.02, 0.03),
               "buddies": row(80.0, 0.004, 0.03, replaced=1.0, read=7.5),
               "buddies, all gates": row(buddies_speed, 0.004, buddies_kl, replaced=1.0, read=buddies_read),
               "buddies, beta 0.5": row(30.0, 0.002, 0.004, replaced=0.5, read=9.5)}
    for name in ("random", "drop", "drop:renormalise=1"):
        systems[f"{name}, rho 1"] = row(50.0, 0.03, 0.04, replaced=2.0)
        systems[f"{name}, rho 2"] = row(60.0, 0.06, 0.10, replaced=3.0)
    balance = {"none": {"exact": 50.0}, "as fast as the link": {"exact": 55.0}}
    return {"experts": 256, "disturbed": 0, "balance": balance,
            "batches": {1: {"chosen": "smoe 0.3", "systems": systems,
                            "cached": {"75": 0.9, "50": 0.8, "37.5": cached}}}}


class Bars(unittest.TestCase):
    def test_all_hold_for_good_figures(self):
        self.assertEqual(substitution_report.missed_bars(figures()), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what in (({"smoe": 50.0}, "of the time"), ({"loss": 0.011}, "no setting within"),
                              ({"hits": 0.55}, "served from cache"), ({"deciding": 0.02}, "deciding took"),
                              ({"cached": 0.59}, "with 37.5 % of the experts"),
                              ({"buddies_speed": 43.0}, "1.07x the tokens/s of exact"),
                              ({"buddies_read": 8.5}, "0.85 of the bytes of exact")):
            missed = substitution_report.missed_bars(figures(**changes))
            self.assertTrue(missed and what in missed[0], (changes, missed))

    def test_a_setting_that_loses_too_much_is_not_counted_however_fast(self):
        self.assertEqual(substitution_report.paid(figures(), 1), "smoe 0.3")

    def test_controls_are_compared_at_the_rate_of_the_buddies(self):
        rows = figures()["batches"][1]["systems"]
        self.assertAlmostEqual(substitution_report.rival_kl(rows, "random", 1.0), 0.02)
        self.assertAlmostEqual(substitution_report.rival_kl(rows, "random", 2.5), 0.07)
        self.assertTrue(substitution_report.buddies_win(rows, "buddies, all gates"))
        self.assertFalse(substitution_report.buddies_win(rows, "buddies"))

    def test_of_buddies_that_win_the_fastest_count(self):
        self.assertEqual(substitution_report.best_buddies(figures()["batches"][1]["systems"]), "buddies, all gates")
        self.assertEqual(substitution_report.best_buddies(figures(buddies_kl=0.03)["batches"][1]["systems"]),
                         "buddies, beta 0.5")

    def test_buddies_that_lose_have_nothing_to_save(self):
        lose = figures(buddies_kl=0.03, buddies_speed=20.0)
        rows = lose["batches"][1]["systems"]
        rows["buddies, beta 0.5"]["mean_kl"] = 0.03
        self.assertEqual(substitution_report.missed_bars(lose), [])
        self.assertIn("do not beat", substitution_report.buddies_line(lose))

    def test_bars_and_the_line_look_at_every_batch(self):
        both = figures()
        both["batches"][3] = figures(buddies_kl=0.03, buddies_speed=20.0, cached=0.5)["batches"][1]
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
        line = substitution_report.figures_line(figures(), [])
        self.assertIn("saves 33.3 % of the time for a loss of 0.80 % of perplexity", line)
        self.assertIn("bars missed: 0", line)


if __name__ == "__main__":
    unittest.main()
