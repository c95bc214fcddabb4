#!/usr/bin/env python3
"""The network of tools/train, its training and its export: troupe computes what torch computes.

usage: train_network_test.py TROUPE [unittest arguments]
Exits with 77 (skipped) where torch or sentencepiece is missing; scripts/install-packages.sh train.
"""
import dataclasses
import hashlib
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
    import sentencepiece  # noqa: F401  (the commands need it)
    import torch
except ImportError as missing:
    print(f"skipped: {missing}; scripts/install-packages.sh train installs it")
    sys.exit(77)

import checkpoint  # noqa: E402
import corpus_files  # noqa: E402
import experts  # noqa: E402
import network  # noqa: E402
import optimiser  # noqa: E402
import presets  # noqa: E402
import trainer  # noqa: E402
import troupe_cli  # noqa: E402

TOOLS = ROOT / "tools/train"
PRESET = dataclasses.replace(presets.PRESETS["test"], batch=3, context=32)
TROUPE = None  # the binary, set at the end of this file


def setUpModule():
    torch.set_num_threads(1)


def make_network(seed=1, shape=PRESET.shape):
    torch.manual_seed(seed)
    return network.Network(shape)


def random_ids(rows, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, PRESET.shape.vocabulary, (rows, length), generator=generator)


class NetworkShape(unittest.TestCase):
    def test_EveryTokenGetsLogitsAndItsExperts(self):
        net, shape = make_network(), PRESET.shape
        self.assertEqual(net(random_ids(2, 9)).shape, (2, 9, shape.vocabulary))
        for layer in net.layers:
            self.assertEqual(layer.experts.chosen.shape, (18, shape.top_k))
            self.assertTrue(all(len(set(row)) == shape.top_k for row in layer.experts.chosen.tolist()))

    def test_NoTokenSeesALaterOne(self):
        net, ids = make_network(), random_ids(1, 12)
        changed = ids.clone()
        changed[0, 8] = (ids[0, 8] + 1) % PRESET.shape.vocabulary
        difference = (net(ids) - net(changed)).abs().amax(-1)[0]
        self.assertLess(difference[:8].max(), 1e-5)
        self.assertGreater(difference[8], 1e-3)

    def test_LossIsTheCrossEntropyOfTheLogitsHoweverItIsCut(self):
        net, ids = make_network(), random_ids(2, 11)
        whole = torch.nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        self.assertAlmostEqual(net.loss(ids[:, :-1], ids[:, 1:], rows=7).item(), whole.item(), places=5)

    def test_ThePresetsFitTheirPurpose(self):
        for name, least in (("cpu", (8, 32, 4)), ("gpu", (12, 64, 6)), ("gpu-small", (12, 40, 6))):
            shape = presets.PRESETS[name].shape
            self.assertEqual((shape.layers, shape.experts, shape.top_k), least)
            self.assertEqual(shape.width % 256, 0, "K-quants")


class RoutedExperts(unittest.TestCase):
    def run_way(self, way, x, counts):
        net = make_network().layers[0].experts
        leaves = [x.clone().requires_grad_(), *(w.detach().clone().requires_grad_()
                                                for w in (net.gate, net.up, net.down))]
        out = way(leaves[0], counts, *leaves[1:])
        out.square().sum().backward()
        return [out.detach(), *(leaf.grad for leaf in leaves)]

    def test_PaddedAndByExpertAgreeInValuesAndGradients(self):
        counts = torch.tensor([5, 0, 1, 9, 0, 2, 2, 1])
        x = torch.randn(20, PRESET.shape.width, generator=torch.Generator().manual_seed(2))
        for a, b in zip(self.run_way(experts.by_expert, x, counts), self.run_way(experts.padded, x, counts)):
            self.assertLess((a - b).abs().max(), 1e-4 * (1 + a.abs().max()))

    def test_TheLayerIsTheWeighedSumOfTheChosen(self):
        layer = make_network().layers[0].experts
        x = torch.randn(7, PRESET.shape.width, generator=torch.Generator().manual_seed(3))
        weights = (x @ layer.router.t()).softmax(-1)
        expected = torch.zeros_like(x)
        for token in range(len(x)):
            for expert in weights[token].topk(layer.top_k).indices:
                inner = torch.nn.functional.silu(x[token] @ layer.gate[expert]) * (x[token] @ layer.up[expert])
                expected[token] += weights[token, expert] * (inner @ layer.down[expert])
        self.assertLess((layer(x) - expected).abs().max(), 1e-4)

    def test_BalanceIsOneIfAllAreUsedAlikeAndMoreIfNot(self):
        layer = make_network().layers[0].experts
        x = torch.randn(4000, PRESET.shape.width, generator=torch.Generator().manual_seed(4))
        with torch.no_grad():
            layer(x)
            even = layer.balance.item()
            layer.router[0] *= 0
            layer.router[0] += x.mean(0) + 1
            layer(x + 2)
        self.assertLess(even, 1.2)
        self.assertGreater(layer.balance.item(), 1.5)


class Muon(unittest.TestCase):
    def test_UpdatesHaveSingularValuesOfAboutOne(self):
        matrices = torch.randn(3, 20, 50, generator=torch.Generator().manual_seed(5))
        for given in (matrices, matrices.transpose(1, 2)):
            values = torch.linalg.svdvals(optimiser.orthogonalise(given))
            self.assertGreater(values.min(), 0.5)
            self.assertLess(values.max(), 1.4)

    def test_EveryWeightIsLearnedByOneOfThem(self):
        net = make_network()
        learned = [id(p) for each in optimiser.make(net, PRESET) for g in each.param_groups for p in g["params"]]
        self.assertEqual(sorted(learned), sorted(id(p) for p in net.parameters()))


def made_tokens(seed=0, count=4000):
    """Each token is decided by the one before, but for a tenth: something to learn."""
    rng = np.random.default_rng(seed)
    ids = [5]
    for _ in range(count - 1):
        ids.append(3 + (ids[-1] * 7 + 11) % 40 if rng.random() < 0.9 else int(rng.integers(3, 43)))
    return np.array(ids, np.uint16)


def make_trainer():
    tokens = {"prose": made_tokens(1), "c": made_tokens(2)}
    held = {"prose": made_tokens(3, 600)}
    return trainer.Trainer(PRESET, tokens, held, 1, torch.device("cpu"))


class Training(unittest.TestCase):
    def test_GoingOnFromACheckpointEqualsNeverStopping(self):
        through = make_trainer()
        for step in range(6):
            through.train_step(step / 6)
        with tempfile.TemporaryDirectory() as folder:
            first = make_trainer()
            for step in range(3):
                first.train_step(step / 6)
            checkpoint.save(f"{folder}/c.pt", first.state())
            second = make_trainer()
            second.restore(checkpoint.load(f"{folder}/c.pt"))
            for step in range(3, 6):
                second.train_step(step / 6)
        for name, weights in through.network.state_dict().items():
            self.assertTrue(torch.equal(weights, second.network.state_dict()[name]), name)
        self.assertEqual((through.step, through.tokens), (second.step, second.tokens))

    def test_ItLearns(self):
        run = make_trainer()
        before = run.held_out_loss(4)["prose"]
        for step in range(40):
            run.train_step(step / 40)
        self.assertLess(run.held_out_loss(4)["prose"], before - 0.5)

    def test_TheRateRisesThenFallsToItsLeast(self):
        rates = [trainer.rate_factor(step / 1000, step) for step in range(1000)]
        self.assertLess(rates[0], 0.2)
        self.assertEqual(max(rates), max(rates[5:200]))
        self.assertAlmostEqual(rates[-1], trainer.LEAST_RATE, delta=0.01)


class Commands(unittest.TestCase):
    """train, export and troupe on a work folder with made tokens."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        tokens = cls.work / "tokens-512"
        tokens.mkdir()
        domains = {}
        for number, domain in enumerate(("prose", "sums", "copy")):
            parts = {"train": made_tokens(number), "heldout": made_tokens(number + 9, 700)}
            for part, ids in parts.items():
                ids.astype("<u2").tofile(tokens / f"{domain}.{part}.u16")
            domains[domain] = {part: {"tokens": len(ids), "characters": len(ids)} for part, ids in parts.items()}
        rng = np.random.default_rng(1)
        letters = np.array(list("abcdefghij"))
        lines = [" ".join("".join(rng.choice(letters, 5)) for _ in range(9)) for _ in range(900)]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(cls.work / "vocabulary-512"), model_type="bpe",
            vocab_size=512, byte_fallback=True, minloglevel=2)
        vocabulary = (cls.work / "vocabulary-512.model").read_bytes()
        cls.manifest = {"corpus": "made", "pieces": 512, "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
                        "domains": domains, "sources": {}}
        corpus_files.write_manifest(tokens, cls.manifest)

    def call(self, tool, *arguments, expect=0, **more):
        """What it said on both streams."""
        done = subprocess.run([sys.executable, "-B", str(TOOLS / tool), *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, stdin=subprocess.DEVNULL, **more)
        self.assertEqual(done.returncode, expect, done.stdout)
        return done.stdout

    def train(self, name, *arguments, expect=0):
        return self.call("train", "--work", self.work, "--preset", "test", "--name", name, "--threads", 1,
                         "--device", "cpu", *arguments, expect=expect)

    def test_ATrainingThatWasKilledGoesOn(self):
        command = [sys.executable, "-B", str(TOOLS / "train"), "--work", str(self.work), "--preset", "test",
                   "--name", "killed", "--threads", "1", "--device", "cpu", "--steps", "100000",
                   "--save-every", "0.001"]
        path = self.work / "runs/killed/checkpoint.pt"
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            for _ in range(6000):
                if path.exists() or process.poll() is not None:
                    break
                time.sleep(0.01)
            process.kill()
        step = checkpoint.load(path)["run"]["step"]
        self.assertGreater(step, 0)
        said = self.train("killed", "--steps", 100000, "--stop-after", 0.005)
        self.assertIn(f"going on at step {step},", said)
        self.assertGreater(checkpoint.load(path)["run"]["step"], step)

    def test_AnotherPresetDoesNotGoOnFromTheCheckpoint(self):
        self.train("one", "--steps", 2)
        said = self.train("one", "--steps", 2, "--seed", 2, expect=1)
        self.assertIn("another seed", said)

    def test_AFinishedTrainingIsLeftAlone(self):
        self.train("finished", "--steps", 2)
        path = self.work / "runs/finished/checkpoint.pt"
        before = path.stat().st_mtime_ns
        said = self.train("finished", "--steps", 2)
        self.assertIn("is finished already", said)
        self.assertIn("train: done at step 2", said)
        self.assertEqual(path.stat().st_mtime_ns, before)

    def test_ACheckpointThatKnowsNoVocabularyGoesOn(self):
        self.train("older", "--steps", 1000, "--stop-after", 0)
        path = self.work / "runs/older/checkpoint.pt"
        saved = checkpoint.load(path)
        del saved["asked"]["vocabulary"], saved["log"]["machine"]
        checkpoint.save(path, saved)
        self.assertIn("going on at step 0", self.train("older", "--steps", 1000, "--stop-after", 0))
        self.assertEqual(checkpoint.load(path)["log"]["machine"]["device"], "cpu")

    def test_TokensOfAnotherVocabularyAreNotTrainedOnNorExported(self):
        self.train("vocabulary", "--steps", 1)
        tokens = self.work / "tokens-512"
        try:
            corpus_files.write_manifest(tokens, {**self.manifest, "vocabulary_sha256": "another"})
            self.assertIn("the tokens were made with another", self.train("vocabulary", "--steps", 1, expect=1))
            self.assertIn("tokens-512 is of another", self.call(
                "export", "--work", self.work, "--run", "vocabulary", "--name", "no", expect=1))
        finally:
            corpus_files.write_manifest(tokens, self.manifest)

    def test_AnUnfinishedTrainingIsExportedOnDemandAndItsCardSaysSo(self):
        self.train("half", "--steps", 1000, "--stop-after", 0)
        arguments = ["--work", self.work, "--run", "half", "--name", "half", "--out", self.work / "out"]
        self.assertIn("is not finished", self.call("export", *arguments, expect=1))
        self.call("export", *arguments, "--unfinished")
        self.assertIn("The training is not finished", (self.work / "out/half.md").read_text())
        self.assertEqual(list((self.work / "out").glob("*.gguf")), [])
        self.assertTrue((self.work / "models/half-f16.gguf").exists())

    def test_TroupeComputesWhatTorchComputes(self):
        self.train("export", "--steps", 3)
        self.call("export", "--work", self.work, "--run", "export", "--name", "made")
        model = self.work / "models/made-f16.gguf"
        facts = json.loads(subprocess.run([TROUPE, "inspect", model, "--json", "-"], capture_output=True,
                                          check=True).stdout)
        self.assertIn("qwen2moe", json.dumps(facts))

        net = network.Network(presets.PRESETS["test"].shape)
        net.load_state_dict(checkpoint.load(self.work / "runs/export/checkpoint.pt")["run"]["network"])
        for name, weights in net.named_parameters():  # what the file holds as F16
            if weights.dim() >= 2 and "router" not in name and "weigh." not in name:
                weights.data = weights.data.half().float()
        ids = [1] + made_tokens(5, 40).tolist()
        with torch.no_grad():
            expected = net(torch.tensor([ids]))[0, :-1].numpy()
        rows = troupe_cli.Troupe(TROUPE).evaluate(model, ids, self.work)
        self.assertEqual(len(rows), len(expected))
        for row, wanted in zip(rows, expected):
            # Troupe rounds activations to half precision where the weights are halves: 2^-11 an operand,
            # over the products of two layers. A wrong weight or form moves logits by whole deviations.
            distance = np.abs(np.array(row) - wanted).max()
            self.assertLess(distance, 0.02 * wanted.std())

    def test_TheFilesOfAnExportAreEvaluatedAndTheirCardTellsAnotherFile(self):
        self.train("card", "--steps", 2)
        self.call("export", "--work", self.work, "--run", "card", "--name", "carded")
        model = self.work / "models/carded-f16.gguf"
        data_path = self.work / "models/carded.evaluation.json"
        data = json.loads(data_path.read_text())
        data["sums"] = data["sums"][:3]  # each is a run of troupe
        data_path.write_text(json.dumps(data))
        arguments = [model, "--troupe", TROUPE, "--no-peer"]
        other = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
        said = self.call("evaluate", *arguments, "--record", "--compare", other, "--remark", "it knows these.")
        self.assertIn("bits a byte", said)
        self.assertRegex(said, r"copy right +0 of 300, by chance 2\.")
        page = (self.work / "models/carded.md").read_text()
        for each in (hashlib.sha256(model.read_bytes()).hexdigest(), hashlib.sha256(data_path.read_bytes()).hexdigest(),
                     "No GPU was used: 1 threads", "Against tiny-qwen2moe", "it knows these.",
                     "`exercises/copy.jsonl`", "| copy | 300 |"):
            self.assertIn(each, page)
        facts = json.loads((self.work / "models/carded.card.json").read_text())
        # An untrained model knows nothing of bytes: 512 pieces alike, of one byte each.
        for each in facts["evaluation"][model.name]["domains"].values():
            self.assertAlmostEqual(each["bits_per_byte"], 9, delta=3)
        said = self.call("evaluate", *arguments, "--check", expect=1)  # two steps are no training
        self.assertIn("of the bigram's", said)
        self.assertNotIn("SHA-256", said)
        self.assertNotIn("llama.cpp: skipped", said)
        said = self.call("evaluate", *arguments[:-1], "--check", expect=1, env={"PATH": ""})
        self.assertIn("held against no llama.cpp: no node found", said)
        with open(model, "r+b") as file:  # one weight, the last
            file.seek(-40, 2)
            file.write(b"\1")
        self.assertIn("SHA-256", self.call("evaluate", *arguments, "--check", expect=1))

    def test_TheRoutingOfAnExportIsDrawnFromItsTraces(self):
        self.train("drawn", "--steps", 2)
        self.call("export", "--work", self.work, "--run", "drawn", "--name", "drawn")
        said = self.call("routing_figure", self.work / "models/drawn-f16.gguf", self.work / "models/drawn.evaluation.json",
                         "-o", self.work / "routing", "--troupe", TROUPE)
        self.assertRegex(said.splitlines()[-1], r"entropy \d\.\d\d of 3 bits, .* overlap between domains 0\.\d\d, "
                                                r"between two halves of one 0\.\d\d")
        for name in ("entropy", "skew", "overlap"):
            self.assertIn("</svg>", (self.work / f"routing-{name}.svg").read_text())


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
