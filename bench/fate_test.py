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


def figures(prefill=90.0, lost=0.005, pairs=90.0, prompts_differing=0, **changes):
    lengths = {512: {"on demand, no cache": 20.0, "on demand": 30.0, "activation paths": 45.0,
                     "Fate": 80.0, "troupe": prefill, "troupe, profile": prefill, "troupe, wrong guesses": 30.0}}
    return {"decode": decode(**changes), "prefill": {"this disk": lengths}, "disturbed": 0,
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

    def test_the_line_counts_what_was_missed(self):
        bad = figures(demand=11.0)
        line = fate_report.figures_line(bad, fate_report.missed_bars(bad))
        self.assertTrue(line.endswith("bars missed: 1"), line)


if __name__ == "__main__":
    unittest.main()
