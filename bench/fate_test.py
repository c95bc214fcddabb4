"""That bench/fate's bars can be missed, each by its own figure."""
import unittest

import fate_report


def decode(troupe=40.0, demand=10.0, cached=39.0, paths=18.0, guessed=0.98, differing=0, wrong=38.0):
    def system(speed, **more):
        return {"tokens_per_s": speed, "hit_rate": 0.9, "late": 0.1, "MiB_per_token": 1.0, "stall_ms": 1.0,
                "layer_hits": [1.0, 0.5],
                "differing": 0, **more}
    return {"this disk": {50: {
        "on demand, no cache": system(demand), "on demand": system(cached),
        "activation paths": system(paths), "Fate": system(30.0, guessed=0.9, expected=0.7),
        "troupe": system(troupe, guessed=0.5, expected=0.4, differing=differing),
        "troupe, profile": system(troupe, guessed=guessed, expected=0.8),
        "troupe, wrong guesses": system(wrong, guessed=0.0)}}}


def tier(layer_times=0.5, hits=0.995, **changes):
    cells = decode(**changes)["this disk"]
    for system in cells[50].values():
        system["hit_rate"] = hits
    prompts = {512: {"on demand, no cache": 20.0, "on demand": 30.0, "activation paths": 45.0, "Fate": 80.0,
                     "troupe": 90.0, "troupe, profile": 90.0, "troupe, wrong guesses": 30.0}}
    return {"layer_times": layer_times, "bytes_per_s": 5e9, "decode": cells, "prefill": prompts, "disturbed": 0}


def figures(prefill=90.0, lost=0.005, pairs=90.0, prompts_differing=0, **changes):
    lengths = {512: {"on demand, no cache": 20.0, "on demand": 30.0, "activation paths": 45.0,
                     "Fate": 80.0, "troupe": prefill, "troupe, profile": prefill, "troupe, wrong guesses": 30.0}}
    return {"decode": decode(**changes), "tier": tier(), "prefill": {"this disk": lengths}, "disturbed": 0,
            "prompts_differing": prompts_differing,
            "pairs": {"share": 0.5, "loss": {"ratio": 1 + lost, "mean_kl": 0.01, "interval": [1.0, 1.02]},
                      "prefill": {512: {**lengths[512], "troupe, pairs": pairs}}}}


class Bars(unittest.TestCase):
    def missed(self, **changes):
        return fate_report.missed_bars(figures(**changes))

    def test_all_hold_for_good_figures(self):
        self.assertEqual(self.missed(), [])

    def test_each_is_missed_by_its_own_figure(self):
        for changes, what in (({"guessed": 0.96}, "predicted"), ({"demand": 11.0}, "over loading"),
                              ({"paths": 19.0}, "over activation"), ({"cached": 41.0}, "same memory"),
                              ({"prefill": 85.0, "pairs": 85.0}, "prefill"), ({"lost": 0.011}, "pairs of"),
                              ({"wrong": 37.0}, "wrong guesses"), ({"prefill": 29.0}, "same memory"),
                              ({"differing": 1}, "other tokens"), ({"prompts_differing": 1}, "other tokens")):
            missed = self.missed(**changes)
            self.assertTrue(any(what in line for line in missed), (changes, missed))

    def test_a_medium_held_in_memory_has_bars_of_its_own_and_says_why_they_are_missed(self):
        self.assertEqual(fate_report.missed_tier_bars(tier()), [])
        for changes, what in (({"hits": 0.98}, "98.0 % hits (Fate), at least 99: 10.0 % were on their way"),
                              ({"demand": 11.0}, "decode over loading on demand 3.64, at least 4.0; hiding all of what that one waits would give 1.01"),
                              ({"paths": 19.0}, "decode over activation paths 2.11")):
            missed = fate_report.missed_tier_bars(tier(**changes))
            self.assertEqual(len(missed), 1, missed)
            self.assertIn(what, missed[0])
        self.assertIn("1.20 layer times there in place of 0.5",
                      fate_report.missed_tier_bars(tier(layer_times=1.2, hits=0.9))[0])
        self.assertIn("hits 99.5 % at 50 % (bar 99)", fate_report.tier_line(tier(), []))
        self.assertIn("held in memory, 0.50 layer times", fate_report.tier_table(tier()))
        whole = figures()
        whole["tier"] = tier(hits=0.5)
        self.assertTrue(any("held in memory" in line for line in fate_report.missed_bars(whole)))

    def test_the_line_counts_what_was_missed(self):
        bad = figures(demand=11.0)
        line = fate_report.figures_line(bad, fate_report.missed_bars(bad))
        self.assertTrue(line.endswith("bars missed: 1"), line)


if __name__ == "__main__":
    unittest.main()
