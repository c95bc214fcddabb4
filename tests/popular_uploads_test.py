#!/usr/bin/env python3
"""Files laid out as the most downloaded ones of their families are, without their data: names, shapes
and types of all tensors, and the keys (upload_layouts.py). Troupe says what they hold and how it would run them;
with one tensor missing or misshapen it says which.

usage: popular_uploads_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf_writer
from upload_layouts import FACTS, UPLOADS


class PopularUploads(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "m.gguf"
        self.environment = {**os.environ, "XDG_CACHE_HOME": folder.name}

    def troupe(self, *arguments, code=0):
        done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                              check=False, env=self.environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_TheirFamiliesTypesAndPlansAreTold(self):
        for name, ((metadata, tensors), count) in UPLOADS.items():
            with self.subTest(name):
                self.assertEqual(len(tensors), count)
                gguf_writer.write_without_data(self.path, metadata, tensors)
                said = self.troupe("inspect", self.path).stdout
                for fact in FACTS[name]:
                    self.assertIn(fact, said)
                self.troupe("plan", self.path, "--memory", "16GiB", "--threads", 1)

    def test_WhatIsLeftOutOfAFileIsToldInTheTableOfModels(self):
        table = (pathlib.Path(__file__).resolve().parent.parent / "docs/models.md").read_text(encoding="utf-8")
        for name in ("GLM-4.5-Air", "LFM2-8B-A1B", "Qwen3.6-35B-A3B"):
            with self.subTest(name):
                gguf_writer.write_without_data(self.path, *UPLOADS[name][0])
                left_out = json.loads(self.troupe("inspect", self.path, "--json", "-").stdout)["left_out_bytes"] / 2**30
                row = next((line for line in table.splitlines() if line.startswith(f"| {name} |")), "")
                self.assertEqual(f"{left_out:.1f} of it left out" in row, left_out > 0.05, row)

    def test_OneTensorThatIsMissingOrMisshapenIsNamed(self):
        wrong = {"gpt-oss-20b": ["blk.23.attn_sinks.weight", "blk.7.ffn_up_exps.bias"],
                 "GLM-4.7-Flash": ["blk.46.attn_v_b.weight"],
                 "LFM2-8B-A1B": ["blk.20.shortconv.conv.weight", "token_embd_norm.weight"],
                 "GLM-4.5-Air": ["blk.45.exp_probs_b.bias"],
                 "granite-3.1-3b-a800m": ["blk.31.ffn_down_exps.weight"],
                 "granite-4.0-h-tiny": ["blk.0.ssm_conv1d.bias", "blk.39.ssm_a", "blk.35.attn_v.weight"],
                 "Nemotron-3-Nano-30B-A3B": ["blk.50.ssm_d", "blk.42.attn_k.weight", "blk.51.exp_probs_b.bias",
                                             "blk.51.ffn_up_shexp.weight", "blk.1.attn_norm.weight"],
                 "Qwen3.6-35B-A3B": ["blk.38.ssm_conv1d.weight", "blk.39.attn_q.weight"],
                 "Ling-mini-2.0": ["blk.19.attn_qkv.weight"],
                 "Hunyuan-A13B": ["blk.31.attn_k_norm.weight"],
                 "gemma-4-26B-A4B": ["blk.0.attn_v.weight", "blk.29.post_ffw_norm_2.weight"]}
        for name, names in wrong.items():
            metadata, tensors = UPLOADS[name][0]
            for spoilt in names:
                dimensions, type_ = tensors[spoilt]
                others = {other: tensors[other] for other in tensors if other != spoilt}
                longer = (*dimensions[:-1], 2 * dimensions[-1])
                for case, files in (("is missing", others),
                                    ("has shape", others | {spoilt: (longer, type_)})):
                    with self.subTest(f"{spoilt} {case}"):
                        gguf_writer.write_without_data(self.path, metadata, files)
                        said = self.troupe("plan", self.path, "--memory", "16GiB", code=1).stderr
                        self.assertIn(spoilt, said)
                        self.assertIn(case, said)
                        self.assertEqual(said.count("\n"), 1)


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
