#!/usr/bin/env python3
"""bench/serve_figures.py: a bar that nothing could be held to is said, and does not pass for one that was held."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import serve_figures

ROW = {"lost": 0, "gap_p99_ms": 2, "gap_median_ms": 1, "tokens_per_s": 9, "limit_tokens_per_s": 10}


class Bars(unittest.TestCase):
    def test_a_run_without_its_peer_says_which_bars_were_not_held(self):
        figures = {"in memory": ROW, "50 %": {**ROW, "peer": {"tokens_per_s": 1}, "over_peer": 9}}
        self.assertEqual(serve_figures.missed("load", figures), [])
        self.assertEqual(serve_figures.not_held("load", figures), ["load: not compared with llama.cpp, in memory"])
        figures["in memory"] = {**ROW, "peer": {"tokens_per_s": 9}, "over_peer": 1}
        self.assertEqual(serve_figures.not_held("load", figures), [])
        self.assertEqual(len(serve_figures.missed("load", figures)), 1)
        self.assertEqual(serve_figures.not_held("idle", {}), [])

    def test_who_answers_less_beside_any_kind_of_slow_client_misses(self):
        row = {"answers": 100, "lost": 0, "let_go": 0}
        kinds = ("beside slow writers", "beside announced bodies", "beside dripping bodies", "beside slow readers",
                 "beside those of whole answers")
        figures = {"alone": row, "beside endless ones": {**row, "answers": 1}, **dict.fromkeys(kinds, {**row, "answers": 80})}
        self.assertEqual(serve_figures.missed("slow", figures), [])
        for kind in kinds:
            missed = serve_figures.missed("slow", {**figures, kind: {**row, "answers": 79}})
            self.assertEqual(missed, [f"slow: 0.79 of the answers {kind} (0.8)"])


if __name__ == "__main__":
    unittest.main()
