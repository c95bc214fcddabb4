#!/usr/bin/env python3
"""What a shell sees of cuts: `troupe calibrate --cut` fits codecs for states that cross a cut,
prints what each code loses, and leaves both beside the model.

usage: cut_command_test.py TROUPE [unittest arguments]
"""
import json
import sys
import unittest

import quality_command_test

TEXT = quality_command_test.TEXT
WIDTH = 128


class Cuts(quality_command_test.QualityCommandTest):
    def calibrate(self, *arguments, code=0):
        return self.troupe("calibrate", "--text", TEXT, "--tokens", 64, *arguments, code=code)

    def cuts(self, *arguments):
        return self.record("calibrate", "--text", TEXT, "--tokens", 64, *arguments)["cuts"]

    def saved(self):
        return json.loads((self.folder / "m.cuts.json").read_text())

    def test_are_fitted_measured_and_left_beside_the_model(self):
        record = self.cuts("--cut", "3", "--cut-tokens", 128, "--cut-window", 64, "--cut-ranks", "25,75")
        self.assertEqual(record["file"], str(self.folder / "m.cuts.json"))
        [cut] = record["cuts"]
        self.assertEqual((cut["layer"], cut["measured_on"]), (3, 128))
        codes = {code["code"]: code for code in cut["codes"]}
        self.assertEqual(len(codes), 3 + 2 * 2)
        exact = codes["all, floats"]
        self.assertEqual((exact["bytes_per_token"], exact["mean_kl"], exact["loss"], exact["same_top"]),
                         (4 * WIDTH, 0, 0, 1))
        self.assertLess(codes["all, 8 bits"]["mean_kl"], codes["rank 32, 8 bits"]["mean_kl"])
        self.assertLess(codes["rank 32, 8 bits"]["bytes_per_token"],
                        codes["all, 8 bits"]["bytes_per_token"])
        for code, most in (("all, 8 bits", 8), ("all, 4 bits", 4), ("rank 96, 4 bits", 4)):
            self.assertTrue(0 < codes[code]["bits_a_code"] < most, codes[code])
            self.assertTrue(0 < codes[code]["rans_bytes_per_token"] <= codes[code]["bytes_per_token"],
                            codes[code])
        self.assertEqual((exact["bits_a_code"], exact["rans_bytes_per_token"]), (0, 0))
        saved = self.saved()
        self.assertEqual((saved["format"], saved["version"]), ("troupe cuts", 1))
        self.assertEqual([cut["layer"] for cut in saved["cuts"]], [3])
        # Another cut of the same model comes beside it; what was said of it before is replaced.
        self.calibrate("--cut", "5,3", "--cut-tokens", 64, "--cut-window", 64, "--cut-ranks", "50")
        self.assertEqual([(cut["layer"], cut["measured_on"]) for cut in self.saved()["cuts"]],
                         [(3, 64), (5, 64)])

    def test_a_table_says_bytes_against_loss_and_which_code_keeps_to_a_limit(self):
        out = self.calibrate("--cut", "3", "--cut-tokens", 128, "--cut-window", 64).stdout
        self.assertIn("cut before layer 3: fitted on", out)
        self.assertIn("all, floats", out)
        self.assertRegex(out, r"bits a code +by rANS\n")
        self.assertRegex(out, r"a loss of 1 % at most: .*, \d+ bytes a token")
        self.assertIn(f"left in {self.folder / 'm.cuts.json'}", out)

    def test_bad_cuts_are_refused_in_one_line_before_anything_is_learned(self):
        for cut in ("0", "8", "3,99"):
            done = self.calibrate("--cut", cut, code=1)
            self.assertRegex(done.stderr, r"--cut: a cut before layer \d+, 1 to 7 expected: the model has 8 layers")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("--cut-ranks", self.calibrate("--cut", "3", "--cut-ranks", "101", code=2).stderr)
        self.assertEqual([file.name for file in self.folder.iterdir()], ["m.gguf"])

    def test_options_of_cuts_need_a_cut_and_a_text_of_enough_tokens(self):
        self.assertIn("--cut", self.calibrate("--cut-tokens", 64, code=2).stderr)
        done = self.calibrate("--cut", "3", "--cut-tokens", 100000, code=1)
        self.assertIn("to measure on, as many to learn from", done.stderr)
        done = self.calibrate("--cut", "3", "--cut-tokens", 64, "--cut-fit-tokens", 100, code=1)
        self.assertIn("at least 128 expected: as many as states are wide", done.stderr)


if __name__ == "__main__":
    quality_command_test.TROUPE = sys.argv.pop(1)
    unittest.main()
