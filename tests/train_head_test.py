#!/usr/bin/env python3
"""Heads that guess, of tools/train: the model read back from its file, the head beside it, its training, its part, and the
file that troupe runs.

usage: train_head_test.py TROUPE [unittest arguments]
Exits with 77 (skipped) where torch or sentencepiece is missing; scripts/install-packages.sh train.
"""
import argparse
import collections
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools/train"), str(ROOT / "tests")]
sys.dont_write_bytecode = True

try:
    import numpy as np
    import sentencepiece
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; scripts/install-packages.sh train installs it")
    sys.exit(77)

import checkpoint  # noqa: E402
import corpus_files  # noqa: E402
import gguf_file  # noqa: E402
import gguf_model  # noqa: E402
import gguf_reader  # noqa: E402
import head  # noqa: E402
import head_file  # noqa: E402
import head_trainer  # noqa: E402
import presets  # noqa: E402
import token_files  # noqa: E402
import trainer  # noqa: E402
import troupe_cli  # noqa: E402
import trunk  # noqa: E402

TOOLS = ROOT / "tools/train"
SMALL = ROOT / "models/small-qwen2moe-q8_0.gguf"
PROSE = ROOT / "tests/data/prose/mixed.txt"
SHAPE = presets.PRESETS["test"].shape
PRESET = presets.Head(tokens=200, dense_width=64, context=48, batch=4, matrix_rate=0.03, rate=1e-2)
TROUPE = None  # the binary, set at the end of this file


def setUpModule():
    torch.set_num_threads(1)


def troupe(*arguments):
    done = subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"troupe {arguments[0]}: exit code {done.returncode}, {done.stderr.strip()}")
    return json.loads(done.stdout)


def command(name):
    """One of the tools as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def made_vocabulary():
    model, rng, letters = io.BytesIO(), np.random.default_rng(1), np.array(list("abcdefghij"))
    lines = [" ".join("".join(rng.choice(letters, 5)) for _ in range(9)) for _ in range(900)]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, model_type="bpe",
                                             vocab_size=SHAPE.vocabulary, byte_fallback=True, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def made_texts(seed=0, count=6000):
    """Each token is decided by the one before, but for a tenth."""
    rng, ids = np.random.default_rng(seed), [5]
    for _ in range(count - 1):
        ids.append(3 + (ids[-1] * 7 + 11) % 40 if rng.random() < 0.9 else int(rng.integers(3, 43)))
    return np.array(ids, np.uint16)


def made_model(path):
    """A model that has learned something of these texts."""
    run = trainer.Trainer(presets.PRESETS["test"], {"prose": made_texts(7, 20000)}, {}, 3, torch.device("cpu"))
    for step in range(300):
        run.train_step(step / 300)
    gguf_model.write(path, "made", SHAPE, 128, run.network.state_dict(), made_vocabulary())
    return gguf_reader.Gguf(path)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_ReadsWhatIsWritten(self):
        rng = np.random.default_rng(2)
        values = rng.normal(size=(3, 64)).astype(np.float32)
        keys = {"general.architecture": "made", "made.count": 7, "made.share": 0.5, "made.is": True,
                "made.list": np.array([3, 5], np.int32), "made.words": ["a", "ü"]}
        path = self.folder / "m.gguf"
        gguf_file.write(path, keys, [("a", np.float32, (3, 64), lambda: values), ("b", gguf_file.Q8_0, (3, 64), lambda: values),
                                     ("c", np.float16, (3, 64), lambda: values), ("d", np.float32, (5,), lambda: values[0, :5])])
        file = gguf_reader.Gguf(path)
        self.assertEqual(file.metadata, {**keys, "made.list": [3, 5]})
        self.assertEqual(file.key("count"), 7)
        np.testing.assert_array_equal(file.floats("a"), values)
        np.testing.assert_array_equal(file.floats("d"), values[0, :5])
        np.testing.assert_allclose(file.floats("c"), values, rtol=1e-3, atol=1e-6)
        # Half a step of the largest number of 32, and the scale in half precision.
        self.assertLess(np.abs(file.floats("b") - values).max(), np.abs(values).max() * (0.5 / 127 + 2 ** -10))

    def test_RowsThatAreNoWholeBlocksAreNotWritten(self):
        path, values = self.folder / "m.gguf", np.zeros((32, 48), np.float32)
        with self.assertRaisesRegex(ValueError, "tensor down: rows of 48 numbers, expected multiples of 32"):
            gguf_file.write(path, {}, [("down", gguf_file.Q8_0, (32, 48), lambda: values)])
        self.assertFalse(path.exists())

    def test_WhatIsNoSuchFileIsRefusedInOneLine(self):
        for content in (b"", b"GGUF", b"GGUF" + bytes(40) + b"x" * 9, b"something else"):
            path = self.folder / "no.gguf"
            path.write_bytes(content)
            with self.assertRaisesRegex(gguf_reader.NotReadable, "no.gguf: no GGUF file"):
                gguf_reader.Gguf(path)
        with self.assertRaisesRegex(gguf_reader.NotReadable, "missing.gguf: No such file"):
            gguf_reader.Gguf(self.folder / "missing.gguf")


class ATrunk(unittest.TestCase):
    def test_SaysWhatTroupeSays(self):
        file = gguf_reader.Gguf(SMALL)
        model, pieces = trunk.Trunk(file), trunk.pieces_of(file)
        ids = [1, *pieces.encode(PROSE.read_text(encoding="utf-8")[:600])]
        said = model.read(torch.tensor([ids]))[2][0, :-1].numpy()
        with tempfile.TemporaryDirectory() as folder:
            rows = troupe_cli.Troupe(TROUPE).evaluate(SMALL, ids, pathlib.Path(folder))
        distances = [np.abs(np.array(row) - wanted).mean() / wanted.std() for row, wanted in zip(rows, said)]
        # Troupe multiplies activations of 8 bits. A weight or form that is wrong moves logits by whole deviations.
        self.assertLess(max(distances), 0.1)
        same = sum(int(np.argmax(row)) == int(wanted.argmax()) for row, wanted in zip(rows, said))
        self.assertGreater(same, 0.93 * len(said))

    def test_CutsTextsAsTroupeDoes(self):
        pieces = trunk.pieces_of(gguf_reader.Gguf(SMALL))
        for text in (PROSE.read_text(encoding="utf-8")[:3000], "  two blanks,\n\ttabs and 1234 digits", "Grüße, 世界 \U0001f600"):
            self.assertEqual(pieces.encode(text), troupe("tokenize", SMALL, "--no-bos", "--prompt", text, "--json", "-")["ids"])

    def test_WithAHeadOrOfAnotherFamilyIsRefused(self):
        file = gguf_reader.Gguf(SMALL)
        file.metadata["qwen2moe.nextn_predict_layers"] = 1
        with self.assertRaisesRegex(gguf_reader.NotReadable, "has a head already"):
            trunk.shape_of(file)
        file.metadata["general.architecture"] = "llama"
        with self.assertRaisesRegex(gguf_reader.NotReadable, "architecture 'llama', expected qwen2moe"):
            trunk.shape_of(file)


class AHead(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.file = made_model(cls.folder / "made-f16.gguf")
        cls.model = trunk.Trunk(cls.file)

    def trainer(self, seed=1):
        texts = {"prose": made_texts(1), "greedy": made_texts(2)}
        return head_trainer.HeadTrainer(self.model, PRESET, texts, {"prose": made_texts(3, 800)}, seed, torch.device("cpu"))

    def test_KnowsNoLaterTokenAndOfItsOwnTheEmbeddingAlone(self):
        ids = torch.from_numpy(made_texts(4, 20).astype(np.int64))[None]
        changed = ids.clone()
        changed[0, 12] = (ids[0, 12] + 1) % 40
        guesser = self.trainer().head
        difference = (guesser.says(self.model, ids)[0] - guesser.says(self.model, changed)[0]).abs().amax(-1)[0]
        self.assertLess(difference[:11].max(), 1e-4)  # row 0 is of the second token
        self.assertGreater(difference[11], 1e-3)

        # The row of a token that it guesses behind is not there yet: it gets that of the token before.
        embeddings, rows, _ = self.model.read(ids)
        angles = self.model.network.angles(19, ids.device)
        other = rows.clone()
        other[:, 19] += 1
        same = [guesser(embeddings[:, 1:], each[:, :-1], *angles) for each in (rows, other)]
        self.assertTrue(torch.equal(*same))

    def test_ItsTokensAreThoseThatTheModelWritesMost(self):
        texts = {"prose": np.full(50, 9, np.uint16), "greedy": np.array([7, 7, 7, 4, 4, 8], np.uint16)}
        self.assertEqual(head_trainer.tokens_for(texts, 2, 10).tolist(), [4, 7])
        self.assertEqual(head_trainer.tokens_for({"prose": texts["prose"]}, 1, 10).tolist(), [9])

    def test_LearnsWhatTheModelSaysAndLeavesTheModelAlone(self):
        run = self.trainer()
        before = {name: each.clone() for name, each in self.model.state_dict().items()}
        first = run.held_out(8)["prose"]
        for step in range(80):
            run.train_step(step / 80)
        self.assertLess(first, 0.3)
        self.assertGreater(run.held_out(8)["prose"], 0.9)
        for name, each in self.model.state_dict().items():
            self.assertTrue(torch.equal(each, before[name]), name)

    def test_GoingOnFromACheckpointEqualsNeverStopping(self):
        through = self.trainer()
        for step in range(6):
            through.train_step(step / 6)
        first = self.trainer()
        for step in range(3):
            first.train_step(step / 6)
        checkpoint.save(self.folder / "c.pt", first.state())
        second = self.trainer()
        second.restore(checkpoint.load(self.folder / "c.pt"))
        for step in range(3, 6):
            second.train_step(step / 6)
        for name, weights in through.head.state_dict().items():
            self.assertTrue(torch.equal(weights, second.head.state_dict()[name]), name)

    def test_GuessesInTroupeWhatItGuessesInTorch(self):
        run = self.trainer()
        for step in range(80):
            run.train_step(step / 80)
        part, joined = self.folder / "made.head.gguf", self.folder / "joined.gguf"
        head.write(part, run.head.state_dict(), self.file, "made")
        head_file.join(self.file, gguf_reader.Gguf(part), joined)
        text = made_texts(5, 32 * 64).tolist()
        (self.folder / "text.ids").write_text(",".join(map(str, text)))
        record = troupe("eval", joined, "--ids-file", self.folder / "text.ids", "--head-draft", 1, "--ctx", 256,
                        "--threads", 1, "--json", "-")
        right = tried = 0
        for begin in range(0, 32 * 64, 8 * 64):  # a fourth of the prompts
            prompt = [1, *text[begin:begin + 64]]
            answer = troupe("run", joined, "--prompt-ids", ",".join(map(str, prompt)), "-n", 128, "--temperature", 0,
                            "--ignore-eos", "--ctx", 256, "--threads", 1, "--speculate", "off", "--json", "-")["token_ids"]
            said, _ = run.head.says(self.model, torch.tensor([prompt + answer]))
            guesses = run.head.tokens[said[0].argmax(-1)].tolist()  # guesses[i] is of token i + 2
            right += sum(guess == token for guess, token in zip(guesses[len(prompt) - 1:], answer[1:]))
            tried += 127
        self.assertEqual(record["tried"], [32 * 127])
        self.assertGreater(right / tried, 0.9)
        self.assertAlmostEqual(record["right"][0] / record["tried"][0], right / tried, delta=0.05)


class Texts(unittest.TestCase):
    """What answers are asked for, and when they are there already."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work, self.tool = pathlib.Path(folder.name), command("head_texts")
        (self.work / "corpus").mkdir()
        corpus_files.write_manifest(self.work / "corpus", {"domains": ["prose", "code"]})
        for domain in ("prose", "code"):
            corpus_files.write_text(self.work / f"corpus/{domain}.train.txt", ["one", "two"])

    def options(self, **changes):
        return argparse.Namespace(**{"model": SMALL, "work": self.work, "texts": None, "megabytes": 6, "answers": 12, "seed": 1,
                                     **changes})

    def test_EditedTextsAreOthers(self):
        file, path = gguf_reader.Gguf(SMALL), self.work / "text.txt"
        path.write_text("some prose", encoding="utf-8")
        for options, edited in ((self.options(texts=[path]), path), (self.options(), self.work / "corpus/code.train.txt")):
            before = self.tool.told(options, file)
            self.assertEqual(self.tool.told(options, file), before)
            edited.write_text("other text", encoding="utf-8")
            self.assertNotEqual(self.tool.told(options, file), before)

    def test_TheModelAnswersAtEachTemperatureBehindPiecesOfEachDomain(self):
        tokens = {"prose": np.zeros(500, np.uint16), "code": np.ones(500, np.uint16)}
        found = collections.Counter((name, prompt[-1]) for name, part, prompt in
                                    self.tool.asked(tokens, np.zeros(500, np.uint16), self.options()) if part == "train")
        self.assertEqual(found, {(name, last): 3 for name in ("greedy", "drawn") for last in (0, 1)})


class Shares(unittest.TestCase):
    """What was measured beside what a card says."""

    def complaints(self, right, tried, stated_right, stated_tried):
        figures = [{"temperature": 0, "length": 2, "right": right, "tried": tried}]
        found = {"name": "made", "evaluation": [{**figures[0], "right": stated_right, "tried": stated_tried}]}
        return command("evaluate_head").unlike_card(argparse.Namespace(folder=ROOT), found, figures)

    def test_AreHeldToTheCardHoweverFarAheadAGuessIs(self):
        self.assertEqual(self.complaints([705, 400], [1000, 800], [700, 404], [1000, 800]), [])
        for right, tried in (([680, 400], [1000, 800]), ([700, 300], [1000, 800]), ([700, 0], [1000, 0])):
            wrong = self.complaints(right, tried, [700, 400], [1000, 800])
            self.assertEqual(len(wrong), 1, right)
            self.assertIn("its card says 70.0 %, 50.0 %", wrong[0])
        self.assertEqual(self.complaints([700, 0], [1000, 0], [700, 0], [1000, 0]), [])


class Commands(unittest.TestCase):
    """From a text to a card, for the model that comes with the project."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work, cls.heads = pathlib.Path(folder.name), pathlib.Path(folder.name) / "out"
        held = json.loads((ROOT / "models/small-qwen2moe.evaluation.json").read_text(encoding="utf-8"))
        cls.held = held["domains"]["prose"]["text"][5000:5600]
        cls.text = cls.work / "text.txt"
        cls.text.write_text(PROSE.read_text(encoding="utf-8")[:6000] + "\n\n" + cls.held + "\n\nthe end\n", encoding="utf-8")
        cls.said = cls.call("head_texts", SMALL, "--work", cls.work, "--texts", cls.text, "--answers", 4, "--troupe", TROUPE)
        cls.train("--steps", 3)

    @classmethod
    def call(cls, tool, *arguments, expect=0):
        """What it said on both streams."""
        done = subprocess.run([sys.executable, "-B", str(TOOLS / tool), *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != expect:
            raise AssertionError(f"{tool}: exit code {done.returncode}, expected {expect}\n{done.stdout}")
        return done.stdout

    @classmethod
    def train(cls, *arguments, expect=0):
        return cls.call("train_head", SMALL, "--work", cls.work, "--set", "context=64", "--set", "batch=1", "--threads", 1,
                        "--device", "cpu", *arguments, expect=expect)

    def export(self):
        self.call("export_head", SMALL, "--work", self.work, "--name", "small-qwen2moe", "--out", self.heads)
        return self.heads / "small-qwen2moe.head.gguf"

    def test_WhatIsHeldOutIsInNoTrainingText(self):
        folder = self.work / "heads/small-qwen2moe"
        pieces = trunk.pieces_of(gguf_reader.Gguf(SMALL))
        text = pieces.decode(token_files.read(folder, "prose", "train").tolist())
        self.assertIn(PROSE.read_text(encoding="utf-8")[:300].split("\n")[0].strip(), text)
        middle = self.held[200:400].split(" ", 1)[1].rsplit(" ", 1)[0]
        self.assertIn(middle, self.text.read_text(encoding="utf-8"))
        self.assertNotIn(middle, text)

    def test_TheModelHasAnsweredAndIsNotAskedTwice(self):
        folder = self.work / "heads/small-qwen2moe"
        manifest = corpus_files.read_manifest(folder)
        # Pieces of 65 tokens, and 192 that the model has written.
        self.assertEqual(manifest["domains"]["greedy"], {"train": 2 * 257, "heldout": 4 * 257})
        self.assertEqual(manifest["domains"]["drawn"], {"train": 2 * 257, "heldout": 4 * 257})
        piece = token_files.read(folder, "greedy", "train")[:257].tolist()
        again = troupe("run", SMALL, "--prompt-ids", ",".join(map(str, piece[:65])), "-n", 192, "--temperature", 0,
                       "--ignore-eos", "--json", "-")
        self.assertEqual(again["token_ids"], piece[65:])
        before = (folder / "answers.jsonl").stat().st_mtime_ns
        said = self.call("head_texts", SMALL, "--work", self.work, "--texts", self.text, "--answers", 4, "--troupe", TROUPE)
        self.assertIn("is there already", said)
        self.assertEqual((folder / "answers.jsonl").stat().st_mtime_ns, before)

    def test_AFinishedTrainingIsLeftAloneAndAnotherIsNotGoneOnFrom(self):
        path = self.work / "heads/small-qwen2moe/checkpoint.pt"
        before = path.stat().st_mtime_ns
        self.assertIn("is finished already", self.train("--steps", 3))
        self.assertIn("another preset", self.train("--steps", 3, "--set", "tokens=64", expect=1))
        self.assertIn("another budget", self.train("--steps", 4, expect=1))
        self.assertIn("dense_width is 48, expected a multiple of 32", self.train("--set", "dense_width=48", expect=2))
        self.assertEqual(path.stat().st_mtime_ns, before)
        other = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
        self.assertIn("is another file", self.call("train_head", other, "--work", self.work, expect=1))

    def test_ATrainingThatWasKilledGoesOn(self):
        path = self.work / "heads/small-qwen2moe/checkpoint.pt"
        kept = path.read_bytes()
        try:
            path.unlink()
            command = [sys.executable, "-B", str(TOOLS / "train_head"), str(SMALL), "--work", str(self.work), "--set",
                       "context=64", "--set", "batch=1", "--threads", "1", "--device", "cpu", "--steps", "100000",
                       "--save-every", "0.001"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                for _ in range(12000):
                    if path.exists() or process.poll() is not None:
                        break
                    time.sleep(0.01)
                process.kill()
            step = checkpoint.load(path)["run"]["step"]
            self.assertGreater(step, 0)
            self.assertIn(f"going on at step {step},", self.train("--steps", 100000, "--stop-after", 0.005))
            self.assertIn("is not finished", self.call("export_head", SMALL, "--work", self.work, "--name", "small-qwen2moe",
                                                       "--out", self.work / "no", expect=1))
        finally:
            path.write_bytes(kept)

    def test_TheJoinedFileHasTheModelsTensorsByteForByteAndAnswersAsTheModel(self):
        part, joined = self.export(), self.work / "joined.gguf"
        self.call("join_head", SMALL, part, joined)
        again = self.work / "again.gguf"
        self.call("join_head", SMALL, part, again)
        self.assertEqual(joined.read_bytes(), again.read_bytes())
        small, both = gguf_reader.Gguf(SMALL), gguf_reader.Gguf(joined)
        self.assertEqual(list(both.tensors)[:len(small.tensors)], list(small.tensors))
        for name, tensor in small.tensors.items():
            self.assertEqual(both.stored(both.tensors[name]), small.stored(tensor), name)
        self.assertEqual(both.key("block_count"), small.key("block_count") + 1)
        answers = {troupe("run", model, "-p", "The kernel", "-n", 40, "--temperature", 0, "--speculate", drafter, "--json",
                          "-")["text"] for model, drafter in ((SMALL, "off"), (joined, "off"), (joined, "heads"))}
        self.assertEqual(len(answers), 1)
        other = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
        self.assertIn("small-qwen2moe-q8_0.gguf with ", self.call("join_head", other, part, self.work / "no.gguf", expect=1))
        self.assertIn("expected head", self.call("join_head", SMALL, SMALL, self.work / "no.gguf", expect=1))
        self.assertFalse((self.work / "no.gguf").exists())

    def test_AHeadIsEvaluatedAndItsCardTellsAnother(self):
        part = self.export()
        arguments = ["--folder", self.heads, "--models", ROOT / "models", "--troupe", TROUPE]
        self.assertIn("its card has no figures", self.call("evaluate_head", *arguments, "--check", expect=1))
        self.assertIn("held to themselves", self.call("evaluate_head", *arguments, "--record", "--check", expect=2))
        said = self.call("evaluate_head", *arguments, "--record")
        self.assertRegex(said, r"temperature 0, 1 at a time: right \d+\.\d %; \d\.\d\d passes for having a draft")
        self.assertIn("0 things do not hold", self.call("evaluate_head", *arguments, "--check"))
        page = (self.heads / "small-qwen2moe.head.md").read_text(encoding="utf-8")
        for each in ("| temperature | guesses at a time |", "| greedy | 0.00 M |", "Texts: ", "output of 512 tokens"):
            self.assertIn(each, page)
        with open(part, "r+b") as file:  # one weight, the last
            file.seek(-40, 2)
            file.write(b"\1")
        self.assertIn("SHA-256", self.call("evaluate_head", *arguments, "--check", expect=1))


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
