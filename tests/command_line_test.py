#!/usr/bin/env python3
"""What a shell sees of troupe: exit codes, one line of error, whole files or none.

usage: command_line_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import pty
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import terminal
import troupe_cli

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
TROUPE = None  # the binary, set at the end of this file


def troupe(*arguments, **options):
    """Runs it and checks what holds for every run: 0, or 1 or 2 with one line on stderr."""
    done = subprocess.run([TROUPE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          text=True, check=False, **options)
    command = " ".join(map(str, arguments))
    assert done.returncode in (0, 1, 2), f"troupe {command}: exit {done.returncode}\n{done.stderr}"
    if done.returncode == 0:  # `run` says its figures there, so that stdout is the text alone
        assert done.stderr == "" or arguments[0] == "run", f"troupe {command}: wrote to stderr: {done.stderr}"
    elif arguments:
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("troupe: "), f"{command}: {done.stderr!r}"
    return done


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_fails(self, code, words, *arguments, **options):
        before = sorted(self.folder.rglob("*"))
        done = troupe(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before, "a failure must leave no file")

    def synthesize(self, name="model.gguf", shape="tiny-olmoe", type_="Q4_0"):
        path = self.folder / name
        self.assertEqual(troupe("synth", path, "--shape", shape, "--type", type_).returncode, 0)
        return path


class Readme(CommandLineTest):
    def test_the_first_example_answers_as_shown(self):
        lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("    $ build/release/tools/troupe/troupe run "))
        program, *arguments = shlex.split(lines[first].removeprefix("    $ "))
        done = subprocess.run([TROUPE, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = "\n".join(line.removeprefix("    ") for line in lines[first + 1:first + 4])
        self.assertEqual(done.stdout.splitlines()[:3], shown.splitlines())
        self.assertRegex(done.stderr + done.stdout, r"experts: \d+ of 256 in memory")


class Usage(CommandLineTest):
    def test_lists_its_commands(self):
        done = troupe("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("run", "inspect", "pack", "quantize", "synth", "bench", "bench-server", "eval", "ps"):
            self.assertIn(f"\n  {command} ", done.stdout)

    def test_explains_every_command_with_an_example(self):
        listed = [line.split()[0] for line in troupe("--help").stdout.splitlines()
                  if line.startswith("  ")]
        for command in listed:
            done = troupe(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example:", done.stdout)
            self.assertIn(f"troupe {command} ", done.stdout.split("Example:")[1])

    def test_help_has_no_limits_and_defaults_of_its_parser(self):
        for command in ("run", "eval", "bench", "bench-server", "ps", "calibrate", "replay", "place", "simulate", "simulate-server", "simulate-ends", "trace"):
            told = troupe(command, "--help-all" if command == "trace" else "--help").stdout
            self.assertIn("--json", told)
            for words in ("{false}", "{true}", " in [", "NONNEGATIVE", "UINT"):
                self.assertNotIn(words, told, command)
        self.assert_fails(2, ["--top-k: '-1' found, expected a"], "run", TINY, "--prompt", "a", "--top-k", -1)

    def test_computes_with_the_instruction_set_that_it_is_told_to(self):
        env = {**os.environ, "TROUPE_KERNELS": "scalar"}
        self.assertEqual(troupe_cli.kernels(TROUPE, "scalar"), "scalar")
        best = troupe("run", TINY, "--prompt", "The kernel", "-n", 8, "--temperature", 0, "--explain")
        less = subprocess.run([TROUPE, "run", TINY, "--prompt", "The kernel", "-n", "8", "--temperature", "0", "--explain"], env=env,
                              capture_output=True, text=True)
        self.assertRegex(less.stderr, r"(?m)^kernels +scalar$")
        self.assertEqual(less.stdout, best.stdout)
        unknown = subprocess.run([TROUPE, "--version"], env={**env, "TROUPE_KERNELS": "sse9"}, capture_output=True, text=True)
        self.assertEqual(unknown.returncode, 2)
        self.assertRegex(unknown.stderr, r"^troupe: TROUPE_KERNELS: 'sse9', this machine runs scalar[^\n]*\n$")

    def test_says_its_version(self):
        version, targets = troupe("--version").stdout.splitlines()
        self.assertRegex(version, r"^troupe \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}(\+changes)?|unknown)\)$")
        built, used = re.fullmatch(r"built for (.+); this machine runs (\S+)", targets).groups()
        self.assertIn(used, built.split(", "))

    def test_says_unknown_for_a_tree_without_git(self):
        source = self.folder / "tree"
        source.mkdir()
        def commit_of(*definitions):
            out = self.folder / "commit.cc"
            subprocess.run(["cmake", f"-DSOURCE={source}", f"-DOUT={out}", *definitions, "-P",
                            ROOT / "cmake/WriteCommit.cmake"], check=True, stdout=subprocess.DEVNULL)
            return re.search(r'return "(.*)"', out.read_text())[1]
        self.assertEqual(commit_of(), "unknown")
        self.assertEqual(commit_of("-DCOMMIT=v1.2"), "v1.2")
        git = ["git", "-C", source, "-c", "user.name=n", "-c", "user.email=e"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        (source / "file").write_text("a")
        subprocess.run([*git, "add", "file"], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", "m"], check=True)
        self.assertRegex(commit_of(), r"^[0-9a-f]{12}$")
        before = (self.folder / "commit.cc").stat().st_mtime_ns
        commit_of()
        self.assertEqual((self.folder / "commit.cc").stat().st_mtime_ns, before, "nothing is built again")
        (source / "file").write_text("b")
        self.assertRegex(commit_of(), r"^[0-9a-f]{12}\+changes$")

    def test_helps_with_a_command_by_either_order(self):
        self.assertEqual(troupe("help", "run").stdout, troupe("run", "--help").stdout)
        self.assert_fails(2, ["no command 'ruin'"], "help", "ruin")

    def test_options_of_llama_cpp_mean_what_they_mean_there_or_are_explained(self):
        same = troupe("run", TINY, "-p", "The", "-n", 5, "-s", 3, "-t", 1, "-c", 64).stdout
        self.assertEqual(troupe("run", TINY, "--prompt", "The", "--tokens", 5, "--seed", 3).stdout, same)
        endless = troupe("run", TINY, "-p", "The", "-n", -1, "-c", 64, "--ignore-eos", "-s", -1)
        self.assertIn("ended: context full", endless.stderr)
        for option in (["-ngl", 99], ["-ngl=99"], ["--n-gpu-layers", 99], ["--gpu-layers=99"]):
            self.assert_fails(2, [f"there is no option {str(option[0]).split('=')[0]}", ": no layers go to a GPU here"],
                              "run", TINY, "-p", "The", *option)
        short = json.loads(troupe("bench", TINY, "-p", 8, "-n", 4, "-r", 1, "-f", ROOT / "README.md", "-c", 256, "--json", "-").stdout)
        self.assertEqual([speed["tokens"] for speed in short["prefill"]], [8])
        scored = [troupe("eval", TINY, text, ROOT / "README.md", tokens, 40, "--json", "-").stdout
                  for text, tokens in (("-f", "-n"), ("--text", "--tokens"))]
        self.assertEqual(*(json.loads(one)["perplexity"] for one in scored))

        for words, hint in ((["--n-predict", 5], "--n-predict; here it is -n"), (["--ctx-size", 5], "--ctx-size; here it is --ctx"),
                            (["--temp", 0], "--temp; here it is --temperature"), (["-ub", 64], "-ub; here it is --chunk"),
                            (["-cnv"], "-cnv; here it is --chat"), (["-ctk", "q8_0"], "-ctk; here it is --kv-type"),
                            (["-md", TINY], "-md; here it is --draft"), (["-fa"], "-fa: attention never stores its scores"),
                            (["-hf", "o/r"], "-hf: `troupe pull hf.co/OWNER/REPO` gets a model"), (["--jinja"], "--jinja: "),
                            (["--no-mmap"], "--no-mmap: "), (["--log-disable"], "--log-disable; here it is --quiet")):
            self.assert_fails(2, [f"there is no option {hint}"], "run", TINY, "-p", "The", *words)

    def test_commands_of_other_programs_are_known(self):
        with tempfile.TemporaryDirectory() as models:
            env = {**os.environ, "TROUPE_MODELS": models}
            listed = [subprocess.run([TROUPE, word], env=env, capture_output=True, text=True, check=True).stdout for word in ("list", "ls")]
        self.assertEqual(*listed)
        self.assertEqual(troupe("version").stdout, troupe("--version").stdout)
        self.assertEqual(troupe("-V").stdout, troupe("--version").stdout)
        done = troupe("show", TINY)
        self.assertEqual((done.returncode, done.stderr), (2, "troupe: there is no command 'show'; did you mean 'inspect'? (see troupe --help)\n"))

    def test_asks_for_a_command(self):
        done = troupe()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("Usage: troupe COMMAND", done.stderr)

    def test_names_the_commands_there_are(self):
        self.assert_fails(2, ["no command 'ruin'; did you mean 'run'?"], "ruin")
        self.assertNotIn("synth", troupe("ruin").stderr)
        self.assert_fails(2, ["no command 'xyzzy'; the commands are run, ", "synth"], "xyzzy")

    def test_tells_usage_from_failure(self):
        out = self.folder / "m.gguf"
        self.assert_fails(2, ["MODEL is required", "troupe inspect --help"], "inspect")
        self.assert_fails(2, ["--bogus"], "inspect", TINY, "--bogus")
        self.assert_fails(2, ["'Q9' is no type", "Q4_K"], "quantize", TINY, out, "Q9")
        self.assert_fails(2, ["--shape is required", "olmoe-1b-7b"], "synth", out)
        self.assert_fails(2, ["--threads"], "quantize", TINY, out, "Q4_0", "--threads", "0")
        self.assert_fails(2, ["'6 parsecs' is not a size"], "synth", out, "--shape", "tiny-llama",
                          "--split", "6 parsecs")
        self.assert_fails(2, ["--mix: 'Q4_K' found, expected one of Q4_K_M, MXFP4_MOE"], "synth", out, "--shape", "tiny-llama", "--mix", "Q4_K")
        self.assert_fails(2, ["'Q9' is no type"], "pack", TINY, "--low", "Q9")
        self.assert_fails(2, ["TYPE: 'q4_k_m'", "did you mean Q4_K?"], "quantize", TINY, out, "q4_k_m")
        self.assert_fails(2, ["--low: 'Q2_K_S'", "did you mean Q2_K?"], "pack", TINY, "--low", "Q2_K_S")
        for command in (["run", TINY, "-p", "a"], ["plan", TINY], ["device", TINY]):
            self.assert_fails(2, ["--memory: '32' found, which is 32 B, expected a size with its unit: 32MiB or 32GiB?"],
                              *command, "--memory", 32)
        for option, value, words in (("--memory", 0, "'0' found, expected more than 0"), ("--shallow", -1, "'-1' found, expected 0 or more"),
                                     ("--cpus", 1000, "processor 1000 found, this machine has 0"),
                                     ("--substitute", "drop;random", "expected one chain")):
            self.assert_fails(2, [f"{option}: ", words], "run", TINY, "-p", "a", option, value)
        self.assert_fails(2, ["chains are separated by commas"], "replay", ROOT / "tests/data/routing/gpt-oss-20b.trace",
                          "--substitute", "exact;drop")
        self.assert_fails(2, ["--size: '300' found", "300MiB"], "split", TINY, self.folder / "p", "--size", 300)
        self.assert_fails(2, ["--tokens: no value found, expected N"], "run", TINY, "-p", "a", "-n")
        self.assert_fails(2, ["--cache: 'fifo' found, expected one of lru, "], "run", TINY, "-p", "a", "--cache", "fifo")
        self.assert_fails(2, ["there is no subcommand 'inof'", "did you mean info?"], "trace", "inof")
        self.assert_fails(2, ["a subcommand is missing, expected one of status, "], "cluster")
        self.assert_fails(2, ["'b.gguf' found, no further argument expected"], "inspect", TINY, "b.gguf")
        self.assert_fails(2, ["--widen needs --factor"], "synth", out, "--widen", TINY)
        self.assert_fails(2, ["--factor", "--widen"], "synth", out, "--shape", "small", "--factor",
                          "2")

    def test_says_when_standard_output_is_full(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for arguments in (["--help"], ["inspect", TINY], ["inspect", TINY, "--tensors"],
                              ["inspect", TINY, "--json", "-"]):
                done = troupe(*arguments, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn("No space left on device", done.stderr)


    def test_ends_quietly_when_nobody_reads_standard_output_any_more(self):
        for arguments in (["--help"], ["inspect", TINY], ["inspect", TINY, "--tensors"], ["inspect", TINY, "--json", "-"],
                          ["run", TINY, "--prompt", "x", "-n", "3"], ["inspect", "--help"]):
            reading, writing = os.pipe()
            os.close(reading)
            done = subprocess.run([TROUPE, *map(str, arguments)], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
            os.close(writing)
            self.assertEqual(done.returncode, 141, arguments)  # as a shell has it for SIGPIPE
            self.assertFalse([line for line in done.stderr.splitlines() if line.startswith("troupe: ")], done.stderr)
        # As people do it, with more than a pipe holds; and no word where the failure is another one.
        done = subprocess.run(["bash", "-c", '"$0" inspect "$1" --tensors | head -1; echo ${PIPESTATUS[0]}', TROUPE, TINY],
                              capture_output=True, text=True, check=False)
        self.assertIn(done.stdout.splitlines()[-1], ("0", "141"))  # it may all have fitted into the pipe
        self.assertEqual(done.stderr, "")
        self.assert_fails(1, ["No such file"], "inspect", self.folder / "none.gguf")


class BadInput(CommandLineTest):
    COMMANDS = (["inspect"], ["pack"], ["quantize"], ["run", "--prompt", "x", "-n", "1"])

    def assert_every_command_refuses(self, words, path):
        for command, *options in self.COMMANDS:
            arguments = [command, path, *options]
            if command == "quantize":
                arguments += [self.folder / "out.gguf", "Q4_0"]
            self.assert_fails(1, [str(path), *words], *arguments)

    def test_names_a_file_that_is_missing(self):
        self.assert_every_command_refuses(["No such file"], self.folder / "none.gguf")

    def test_refuses_what_is_no_file(self):
        (self.folder / "sub").mkdir()
        self.assert_every_command_refuses([], self.folder / "sub")

    def test_refuses_a_wrong_magic(self):
        path = self.folder / "m.gguf"
        path.write_bytes(b"PK\x03\x04" + bytes(100))
        self.assert_every_command_refuses(["PK", "GGUF"], path)

    def test_refuses_a_file_cut_anywhere(self):
        data = TINY.read_bytes()
        path = self.folder / "cut.gguf"
        for length in (0, 3, 4, 20, 100, 5000, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:length])
            self.assert_every_command_refuses([], path)

    def test_refuses_an_architecture_it_does_not_know(self):
        path = self.folder / "m.gguf"
        path.write_bytes(TINY.read_bytes().replace(b"qwen2moe", b"qwen9moe"))
        for command in (["inspect", path], ["run", path, "--prompt", "x"]):
            self.assert_fails(1, ["'qwen9moe'", "olmoe"], *command)

    def test_refuses_a_tensor_of_an_unknown_type(self):
        data = bytearray(TINY.read_bytes())
        name = b"blk.3.attn_q.weight"
        at = data.index(name) + len(name) + 4 + 2 * 8  # its rank and two dimensions
        self.assertEqual(struct.unpack_from("<I", data, at), (8,))
        struct.pack_into("<I", data, at, 77)
        path = self.folder / "m.gguf"
        path.write_bytes(data)
        self.assert_every_command_refuses(["blk.3.attn_q.weight", "77"], path)
        struct.pack_into("<I", data, at, 34)
        path.write_bytes(data)
        self.assert_every_command_refuses(["blk.3.attn_q.weight", "type TQ1_0, which this does not read; a Q4_K_M"], path)

    def test_refuses_a_config_of_another_family(self):
        path = self.folder / "config.json"
        path.write_text('{"model_type": "jamba"}')
        self.assert_fails(1, ["'jamba'", "qwen3_moe"], "synth", self.folder / "m.gguf", "--shape",
                          path)
        self.assert_fails(1, ["'jambalaya' is neither a file nor a shape"], "synth",
                          self.folder / "m.gguf", "--shape", "jambalaya")


    def test_what_is_wrong_with_json_is_said_with_file_place_found_and_expected(self):
        path = self.folder / "a.json"
        sums, text = self.folder / "model.checksums.json", self.folder / "t.txt"
        model = self.synthesize()
        text.write_text("The kernel. " * 50)
        for content, fault in (("GGUF", "line 1, column 1: found 'G', expected a value"),
                               ("{\n", "line 2, column 1: found the end of the text, expected a text in double quotes"),
                               ("[1 2]", "line 1, column 4: found a number, expected ']'")):
            path.write_text(content)
            sums.write_text(content)
            for command in (["place", path], ["simulate", path], ["synth", self.folder / "m.gguf", "--shape", path]):
                self.assert_fails(1, [f"troupe: {path}: not JSON: {fault}\n"], *command)
            self.assert_fails(1, [f"troupe: {sums}: not JSON: {fault}\n"], "inspect", model, "--verify")
        path.write_text("{\n")
        self.assert_fails(1, [f"troupe: {path}, line 1: not JSON: line 1, column 2: found the end of the text, "],
                          "eval", model, "--tasks", path)

    def test_a_host_that_there_is_not_is_named(self):
        for command in (["bench-server", "http://no-such-host.invalid"], ["cluster", "status", "http://no-such-host.invalid"]):
            self.assert_fails(1, ["host 'no-such-host.invalid'"], *command)

    def test_a_chat_template_is_named_by_its_file(self):
        path = self.folder / "bad.jinja"
        path.write_text("{{ x")
        for command in (["run", TINY, "--chat"], ["serve", TINY, "--port", 0]):
            self.assert_fails(1, [f"--chat-template: {path}: line 1: the template ends inside of a tag"], *command, "--chat-template", path)


class Quantize(CommandLineTest):
    def test_converts_there_and_back(self):
        first = self.synthesize(type_="F32")
        small, again = self.folder / "small.gguf", self.folder / "again.gguf"
        self.assertEqual(troupe("quantize", first, small, "q4_k", "--output-type", "Q6_K",
                                "--json", "-").returncode, 0)
        facts = json.loads(troupe("inspect", small, "--json", "-").stdout)
        self.assertEqual(facts["types"]["Q6_K"]["tensors"], 1)
        self.assertEqual(troupe("quantize", small, again, "F32").returncode, 0)
        self.assertEqual(again.stat().st_size, first.stat().st_size)

    def test_gives_the_same_bytes_for_any_number_of_threads(self):
        source = self.synthesize(type_="F16")
        outputs = []
        for threads in (1, 2, 5):
            out = self.folder / f"{threads}.gguf"
            troupe("quantize", source, out, "Q4_K", "--threads", threads)
            outputs.append(out.read_bytes())
        self.assertTrue(outputs[0] == outputs[1] == outputs[2])

    def test_rounds_as_asked(self):
        source = self.synthesize(type_="F16")
        outputs = {}
        for rounding in ("plain", "best"):
            out = self.folder / f"{rounding}.gguf"
            record = json.loads(troupe("quantize", source, out, "Q4_0", "--rounding", rounding,
                                       "--json", "-").stdout)
            self.assertEqual(record["rounding"], rounding)
            outputs[rounding] = out.read_bytes()
        self.assertNotEqual(outputs["plain"], outputs["best"])
        default = self.folder / "default.gguf"
        troupe("quantize", source, default, "Q4_0")
        self.assertEqual(default.read_bytes(), outputs["best"])
        self.assert_fails(2, ["--rounding"], "quantize", source, default, "Q4_0", "--rounding", "up")

    def test_refuses_to_replace_what_it_reads(self):
        source = self.synthesize()
        before = source.read_bytes()
        self.assert_fails(1, ["it is the file to be read"], "quantize", source, source, "Q8_0")
        self.assertEqual(source.read_bytes(), before)

    def test_leaves_the_old_file_when_it_fails(self):
        out = self.synthesize("out.gguf")
        before = out.read_bytes()
        self.assert_fails(1, ["none.gguf"], "quantize", self.folder / "none.gguf", out, "Q8_0")
        self.assert_fails(1, ["File too large"], "quantize", TINY, out, "Q8_0",
                          preexec_fn=lambda: limit_files(100_000))
        self.assertEqual(out.read_bytes(), before)


class Pack(CommandLineTest):
    def pack(self, *arguments):
        return json.loads(troupe("pack", *arguments, "--json", "-").stdout)

    def test_writes_beside_the_model_under_its_name(self):
        model = self.synthesize("m.v2.gguf")
        record = self.pack(model)
        out = self.folder / "m.v2.experts"
        self.assertEqual(record["output"], str(out))
        self.assertEqual(record["output_bytes"], out.stat().st_size)
        self.assertIsNone(record["low_type"])
        self.assertRegex(troupe("pack", model).stdout,
                         r"^packed \d+ experts into \S+m\.v2\.experts: .+ s\n\S+m\.v2\.checksums\.json: .+\n$")
        self.assertEqual(len(list(self.folder.iterdir())), 3)

    def test_takes_any_part_of_a_split_model(self):
        whole = self.folder / "whole.gguf"
        for path, *split in ((whole,), (self.folder / "m.gguf", "--split", "300KiB")):
            troupe("synth", path, "--shape", "tiny-olmoe", "--type", "Q8_0", *split)
        parts = sorted(self.folder.glob("m-*-of-*.gguf"))
        self.assertGreater(len(parts), 1)
        record = self.pack(parts[1])
        self.assertEqual(record["output"], str(self.folder / "m.experts"))
        self.pack(whole)
        self.assertEqual((self.folder / "m.experts").read_bytes(),
                         (self.folder / "whole.experts").read_bytes())

    def test_adds_a_smaller_copy(self):
        model = self.synthesize(type_="Q8_0")
        one, two = self.pack(model, "-o", self.folder / "1"), self.pack(
            model, "-o", self.folder / "2", "--low", "q2_k", "--threads", 2)
        self.assertEqual(two["low_type"], "Q2_K")
        self.assertEqual(one["expert_bytes"], two["expert_bytes"])
        self.assertLess(two["low_expert_bytes"], two["expert_bytes"])
        self.assertGreaterEqual(two["output_bytes"] - one["output_bytes"], two["low_expert_bytes"])
        self.assertIn("once more in Q2_K", troupe("pack", model, "--low", "Q2_K").stdout)
        self.assert_fails(1, ["a smaller type expected"], "pack", model, "--low", "F16")

    def test_makes_a_model_in_two_precisions_whose_low_copies_answer_if_they_may(self):
        original = self.synthesize(type_="F16", shape="tiny-olmoe")
        record = self.pack(original, "--high", "Q8_0", "--low", "Q4_0")
        model = self.folder / "model-q8_0.gguf"
        self.assertEqual([record["model"], record["made_from"], record["output"]],
                         [str(model), str(original), str(self.folder / "model-q8_0.experts")])
        run = ("run", model, "--prompt-ids", ",".join(map(str, range(20, 60))), "-n", 4,
               "--temperature", 0, "--predict", "none")  # what is read ahead depends on time
        records = {}
        for low in ("off", "prefill=0.5", "prefill=1,decode"):
            result = troupe(*run, "--slots", 2, "--low-copy", low, "--json", "-")
            records[low] = json.loads(result.stdout)
            self.assertEqual(records[low]["low_copy"], low)
            self.assertEqual("not exact" in result.stderr, low != "off")
        resident = json.loads(troupe(*run, "--json", "-").stdout)
        self.assertEqual(records["off"]["token_ids"], resident["token_ids"])
        counts = [record["low_copies"] for record in records.values()]
        self.assertEqual(counts[0], 0)
        self.assertLess(counts[1], counts[2])
        self.assertEqual(records["prefill=0.5"]["decode"]["low_copies"], 0)
        self.assertLess(records["prefill=0.5"]["bytes_read"], records["off"]["bytes_read"])
        self.assertIn("in its low copy",
                      troupe(*run, "--slots", 2, "--low-copy", "decode", "--explain").stderr)
        self.assert_fails(2, ["--low-copy", "expected"], *run, "--low-copy", "some")
        self.assert_fails(1, ["have no low copies"], "run", original, "--prompt", "x", "--slots", 2,
                          "--low-copy", "decode")

    def test_says_what_did_not_fit_the_types_of_either_copy(self):
        original = self.folder / "m.gguf"
        shutil.copyfile(TINY, original)  # 8 layers, rows of 128 and 64
        pair = ("--high", "Q4_K", "--low", "Q2_K", "--rounding", "plain")
        record = self.pack(original, *pair)
        self.assertEqual([record["high_type"], record["low_type"]], ["Q4_K", "Q2_K"])
        self.assertEqual(record["high_matrices_in_fallback_types"], 8 * 3)
        self.assertEqual(record["matrices_in_fallback_types"], 2 * 8 * 3)
        said = troupe("pack", original, *pair).stdout
        self.assertIn("24 matrices of the model are in another type than Q4_K", said)
        self.assertIn("24 matrices of the second copy are in another type than Q2_K", said)
        record = self.pack(self.synthesize("fits.gguf", type_="F16"), *pair)
        self.assertEqual(record["matrices_in_fallback_types"], 0)

    def evaluate_in_two_precisions(self):
        original = self.synthesize(type_="F16", shape="tiny-olmoe")
        self.pack(original, "--high", "Q8_0", "--low", "Q4_0")
        ids = self.folder / "ids"
        ids.write_text(",".join(str(7 * i % 200) for i in range(64)))
        return ("eval", self.folder / "model-q8_0.gguf", "--ids-file", ids, "--window", 32,
                "--slots", 8, "--predict", "none")

    def test_finds_the_share_that_may_be_low(self):
        evaluate = self.evaluate_in_two_precisions()
        found = json.loads(troupe(*evaluate, "--find-low-share", 100, "--json", "-").stdout)
        self.assertEqual(found["low_share"], 1)
        self.assertEqual([trial["share"] for trial in found["trials"]], [0, 1])
        again = json.loads(troupe(*evaluate, "--low-copy", "prefill=1", "--json", "-").stdout)
        self.assertNotEqual(again["perplexity"], found["trials"][0]["perplexity"])
        self.assertGreater(again["low_copies"], 0)
        self.assertIn("--low-copy prefill=", troupe(*evaluate, "--find-low-share", 0.001).stdout)
        # The share is of prompts, whatever else is allowed.
        beside = json.loads(troupe(*evaluate, "--find-low-share", 100, "--low-copy", "decode", "--json", "-").stdout)
        self.assertEqual(beside["trials"], found["trials"])
        # Nor does it depend on which load ends first.
        slow = json.loads(troupe(*evaluate, "--find-low-share", 100, "--link", "50MiB/1ms", "--json", "-").stdout)
        self.assertEqual(slow["trials"], found["trials"])

    def test_evaluates_what_low_copies_do_to_tokens_that_are_generated(self):
        evaluate = (*self.evaluate_in_two_precisions(), "--json", "-")
        exact = json.loads(troupe(*evaluate).stdout)
        low = json.loads(troupe(*evaluate, "--low-copy", "decode").stdout)
        self.assertEqual((exact["together"], low["together"]), (32, 1))
        self.assertGreater(low["low_assignments"], 0)
        self.assertNotEqual(low["perplexity"], exact["perplexity"])

    def test_refuses_a_model_without_experts(self):
        model = self.synthesize(shape="tiny-llama")
        self.assert_fails(1, [str(model), "a model without experts"], "pack", model)

    def test_refuses_to_replace_the_model(self):
        model = self.synthesize()
        before = model.read_bytes()
        (self.folder / "link").symlink_to(model)
        for out in (model, self.folder / "link"):
            self.assert_fails(1, ["it is the file to be read"], "pack", model, "-o", out)
        self.assertEqual(model.read_bytes(), before)

    def test_replaces_an_old_container_whole_or_not_at_all(self):
        model = self.synthesize(type_="Q8_0")
        out = self.folder / "model.experts"
        self.pack(model, "--low", "Q4_0")
        before = out.read_bytes()
        self.assert_fails(1, ["File too large"], "pack", model,
                          preexec_fn=lambda: limit_files(100_000))
        self.assertEqual(out.read_bytes(), before)
        record = self.pack(model)
        self.assertLess(record["output_bytes"], len(before))
        self.assertEqual(record["output_bytes"], out.stat().st_size)
        self.assertEqual(len(list(self.folder.iterdir())), 3)

    def test_a_killed_one_leaves_nothing(self):
        if not has_unnamed_files(self.folder):
            self.skipTest("this file system has no O_TMPFILE")
        # Its experts take seconds to convert to Q2_K on one thread; it is killed after the first.
        model = self.folder / "model.gguf"
        troupe("synth", model, "--shape", "tiny-deepseek2-lite", "--type", "Q8_0")
        process = subprocess.Popen([TROUPE, "pack", str(model), "--low", "Q2_K", "--threads", "1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and bytes_in_unnamed_files(process.pid, self.folder) < 1 << 20:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertEqual(list(self.folder.iterdir()), [model])


class Verify(CommandLineTest):
    def flip(self, path, at):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def tensors(self, model):
        return json.loads(troupe("inspect", model, "--tensors", "--json", "-").stdout)["tensors"]

    def damage(self, model):
        """What is found: the lines of the parts."""
        done = troupe("inspect", model, "--verify")
        self.assertEqual(done.returncode, 1, done.stdout)
        first, *parts = done.stdout.splitlines()
        self.assertRegex(first, r"^damaged: \d+ parts? of ")
        return [part.strip() for part in parts]

    def test_finds_any_byte_that_has_changed_since_the_model_was_packed(self):
        model = self.synthesize(type_="Q8_0")
        troupe("pack", model)
        done = troupe("inspect", model, "--verify")
        self.assertRegex(done.stdout, r"^whole: every byte of \S+ is what was recorded "
                                      r"\(\d+ tensors and \d+ packed experts\)\n$")
        by_name = {tensor["name"]: tensor for tensor in self.tensors(model)}
        for name in ("token_embd.weight", "blk.1.ffn_down_exps.weight"):
            tensor = by_name[name]
            experts = tensor["shape"][2] if len(tensor["shape"]) > 2 else 1
            for part in (0.01, 0.37, 0.99):
                at = int(part * tensor["bytes"])
                self.flip(model, tensor["offset"] + at)
                found = self.damage(model)
                self.assertIn(f"tensor '{name}'", found[0])
                if experts > 1:
                    self.assertIn(f"expert {at * experts // tensor['bytes']} of {experts}", found[0])
                self.assertEqual(len(found), 1)
                self.flip(model, tensor["offset"] + at)
        self.flip(model, 40)
        self.assertEqual(troupe("inspect", model, "--verify").returncode, 1)

    def test_a_run_refuses_an_expert_that_has_changed_since_the_model_was_packed(self):
        model = self.synthesize(type_="Q8_0")
        troupe("pack", model)
        sums, container = self.folder / "model.checksums.json", self.folder / "model.experts"
        prompt = ("--prompt-ids", ",".join(map(str, range(3, 63))), "-n", 4, "--temperature", 0, "--ignore-eos")
        in_place = ("run", model, "--experts", "none", "--slots", 6, *prompt)
        tensor = next(tensor for tensor in self.tensors(model) if tensor["name"] == "blk.1.ffn_down_exps.weight")
        expert = tensor["bytes"] // 8
        whole = troupe(*in_place)
        self.assertEqual(whole.returncode, 0, whole.stderr)

        def verified(arguments):
            return json.loads(troupe(*arguments, "--json", "-").stdout)["verified"]
        self.assertGreater(verified(in_place), 0)
        self.assertGreater(verified(("run", model, "--slots", 6, *prompt)), 0)
        resident = ("run", model, "--experts", "none", *prompt)
        self.assertEqual(verified(resident), sum(of["shape"][2] for of in self.tensors(model)
                                                 if of["name"].endswith(".ffn_down_exps.weight")))
        self.flip(model, tensor["offset"] + 3 * expert + 1000)
        found = (rf"^troupe: {re.escape(str(model))}, byte {tensor['offset'] + 3 * expert}: tensor 'blk.1.ffn_down_exps.weight', expert 3: "
                 rf"checksum [0-9a-f]{{16}}, [0-9a-f]{{16}} expected by {re.escape(str(sums))}: it is damaged, or was changed ")
        for arguments in (in_place, ("run", model, "--experts", "none", *prompt)):  # read when it is needed, and at the start
            with self.subTest(arguments):
                done = troupe(*arguments)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertRegex(done.stderr, found)
        packed = troupe("run", model, "--slots", 6, *prompt)  # the container's copy is whole
        self.assertEqual((packed.returncode, packed.stdout), (0, whole.stdout), packed.stderr)
        sums.unlink()
        container.unlink()
        self.assertEqual(troupe(*in_place).returncode, 0)  # nobody has recorded what it should be
        self.assertEqual((verified(in_place), verified(resident)), (0, 0))
        self.flip(model, tensor["offset"] + 3 * expert + 1000)
        self.assertEqual(troupe(*in_place).stdout, whole.stdout)

    def test_damage_is_not_recorded_anew_as_right(self):
        model = self.synthesize(type_="Q8_0")
        troupe("pack", model)
        sums = (self.folder / "model.checksums.json").read_bytes()
        self.assertEqual(troupe("pack", model).returncode, 0)
        tensor = next(tensor for tensor in self.tensors(model) if tensor["name"] == "blk.1.attn_output.weight")
        self.flip(model, tensor["offset"] + tensor["bytes"] // 2)
        done = troupe("pack", model)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^troupe: \S+: tensor 'blk.1.attn_output.weight' is not what \S+ recorded: ")
        self.assertEqual((self.folder / "model.checksums.json").read_bytes(), sums)
        # Another model under that name is no damage.
        self.synthesize(type_="Q4_0")
        self.assertEqual(troupe("pack", model).returncode, 0)
        self.assertEqual(troupe("inspect", model, "--verify").returncode, 0)

    def test_names_the_packed_expert_that_has_changed(self):
        model = self.synthesize(type_="Q8_0")
        troupe("pack", model)
        container = self.folder / "model.experts"
        self.flip(container, container.stat().st_size - 5000)
        expert, advice = self.damage(model)
        self.assertRegex(expert, r"model\.experts: layer \d+, expert \d+$")
        self.assertIn("itself is whole: `troupe pack`", advice)

    def test_says_that_nothing_is_proven_without_checksums(self):
        model = self.synthesize(type_="F32")
        said = troupe("inspect", model, "--verify").stdout
        self.assertTrue(said.startswith("not proven: nobody has recorded checksums of "), said)
        self.assertIn("every weight is a number", said)
        record = json.loads(troupe("inspect", model, "--verify", "--json", "-").stdout)["verify"]
        self.assertEqual((record["proven"], record["damaged"]), (False, []))
        tensor = next(tensor for tensor in self.tensors(model) if tensor["name"] == "blk.1.ffn_up_exps.weight")
        data = bytearray(model.read_bytes())
        data[tensor["offset"]:tensor["offset"] + 4] = struct.pack("<f", float("nan"))
        model.write_bytes(data)
        self.assertIn("'blk.1.ffn_up_exps.weight': expert 0 of", self.damage(model)[0])


class FirstWords(CommandLineTest):
    """The first line is the one that the user came for."""

    def first(self, *arguments):
        done = troupe(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()[0]

    def setUp(self):
        super().setUp()
        self.text = self.folder / "t.txt"
        self.text.write_text((ROOT / "README.md").read_text(encoding="utf-8")[:4000], encoding="utf-8")

    def test_of_what_makes_files(self):
        model = self.synthesize(type_="Q8_0")
        self.assertRegex(self.first("pack", model), r"^packed \d+ experts into \S+: ")
        out = self.folder / "q4.gguf"
        self.assertRegex(self.first("quantize", model, out, "Q4_0"), r"^\S+ has [\d.]+ \wiB in Q4_0, instead of [\d.]+ \wiB in ")

    def test_of_a_run_are_behind_its_text_and_its_figures_behind_them(self):
        said = troupe("run", TINY, "-p", "The kernel", "-n", 12, "--slots", 60, "--temperature", 0, "--ignore-eos").stderr.splitlines()
        said = [line for line in said if line.startswith("[")]
        self.assertRegex(said[0], r"^\[12 tokens at [\d.]+ tokens/s, \d+ % of the time waiting for experts; peak memory [\d.]+ MiB; ended: length\]$")
        for line, begin in zip(said[1:4], (r"\[prompt: \d+ tokens at [\d.]+ tokens/s, ", r"\[experts: 60 of 256 in memory, [\d.]+ \wiB read in ",
                                           r"\[each token: [\d.]+ % cache hits, ")):
            self.assertRegex(line, begin)

    def test_of_what_shows(self):
        self.assertRegex(self.first("inspect", TINY), r"^\S+: [\d.]+ million weights in [\d.]+ MiB, of which a token uses [\d.]+ MiB$")
        self.assertRegex(self.first("plan", TINY, "--slots", 64), r"^64 of 256 experts \(25 %\) fit into [\d.]+ GiB: expect [\d.]+ tokens/s of an answer, ")
        self.assertRegex(self.first("plan", TINY), r"^everything fits into [\d.]+ MiB: expect ")
        self.assertRegex(self.first("device", TINY), r"^this machine may run \d+ of 256 experts now, by ")
        self.assertEqual(self.first("tokenize", TINY, "--prompt", "The kernel"), "3 tokens")
        trace = ROOT / "tests/data/routing/gpt-oss-20b.trace"
        self.assertRegex(self.first("trace", "info", trace), rf"^{trace}: the routing of \d+ tokens through openai/gpt-oss-20b$")
        self.assertRegex(self.first("trace", "stats", trace), r"^[\d.]+ % of a token's experts are used by the next token again, by chance [\d.]+ %$")

    def test_of_what_measures(self):
        model = self.synthesize(type_="Q8_0")
        self.assertRegex(self.first("bench", model, "--prefill", 16, "--decode", 4, "--reps", 1),
                         r"^[\d.]+ tokens/s of an answer, [\d.]+ tokens/s of a prompt, .* of memory at most$")
        self.assertRegex(self.first("probe"), r"^this machine reads [\d.]+ GB/s of memory$")
        self.assertRegex(self.first("eval", model, "--text", self.text, "--tokens", 64), r"^perplexity [\d.]+ over \d+ tokens$")
        logits = self.folder / "l"
        troupe("eval", model, "--text", self.text, "--tokens", 64, "--logits", logits)
        self.assertRegex(self.first("eval", model, "--text", self.text, "--tokens", 64, "--reference", logits),
                         r"^[+-]0\.00 % perplexity against the reference, and the same most likely token 100\.0 % of the time$")
        self.assertRegex(self.first("calibrate", model, "--text", self.text),
                         r"^done: \d+ % of the experts that a layer uses will be predicted instead of \d+ %")

    def test_of_what_simulates(self):
        scenario = ROOT / "tests/data/routing/scenario.json"
        self.assertRegex(self.first("simulate", scenario), r"^a prompt takes [\d.]+ s \(mean; p95 [\d.]+ s\), and [\d.]+ % of expert calls stay local")
        self.assertRegex(self.first("place", scenario, "--method", "all"), r"^fewest calls of other servers: \w+ \([\d.]+ % stay local\); fastest pass: \w+")
        self.assertRegex(self.first("place", scenario, "--method", "eplb"), r"^[\d.]+ % of expert calls stay on their server as eplb places them")
        self.assertRegex(self.first("replay", ROOT / "tests/data/routing/gpt-oss-20b.trace", "--policy", "lru,lfu", "--budget", "25,50"),
                         r"^best cache: l[rf]u, which has [\d.]+ % of the experts that are used with \d+ slots in memory")


def has_unnamed_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
        return True
    except OSError:
        return False


def bytes_in_unnamed_files(process, folder):
    """Of the files without a name that the process has open there; 0 if it is gone."""
    total = 0
    try:
        for file in pathlib.Path(f"/proc/{process}/fd").iterdir():
            if os.readlink(file).startswith(f"{folder.resolve()}/#"):
                total += file.stat().st_size
    except OSError:
        return 0
    return total


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class FullDisk(CommandLineTest):
    def writers(self, folder):
        out = pathlib.Path(folder) / "out.gguf"
        return (["quantize", TINY, out, "F16"], ["pack", TINY, "-o", out], ["synth", out, "--shape", "tiny-olmoe"],
                ["synth", out, "--shape", "tiny-olmoe", "--split", "300KiB"],
                ["synth", out, "--widen", TINY, "--factor", "4"])

    def test_leaves_nothing_when_a_file_may_not_grow(self):
        for arguments in self.writers(self.folder):
            self.assert_fails(1, ["out", "File too large"], *arguments,
                              preexec_fn=lambda: limit_files(200_000))

    def test_leaves_nothing_on_a_disk_that_is_full(self):
        # A file system of 512 KiB of our own, in name spaces of our own: no need to be root.
        script = ('mount -t tmpfs -o size=512k none "$1" || exit 77; shift; "$@"; code=$?; '
                  'echo "left: $(ls -A "$FOLDER")"; exit $code')
        for arguments in self.writers(self.folder):
            done = subprocess.run(
                ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh",
                 self.folder, TROUPE, *map(str, arguments)],
                capture_output=True, text=True, check=False,
                env={**os.environ, "FOLDER": str(self.folder)})
            if done.returncode not in (0, 1, 2) or "unshare" in done.stderr:
                self.skipTest(f"no file system of our own here: {done.stderr.strip()}")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"^troupe: .*No space left on device\n$")
            self.assertEqual(done.stdout, "left: \n")


class Synth(CommandLineTest):
    def test_makes_every_tiny_shape_a_model_that_opens(self):
        listed = troupe("synth", "--help").stdout
        shapes = sorted({word.strip(",;") for word in listed.split() if word.startswith("tiny-")})
        shapes = [shape for shape in shapes if not shape.endswith(".gguf")]
        self.assertGreaterEqual(len(shapes), 8)
        for shape in shapes:
            path = self.synthesize(f"{shape}.gguf", shape, "Q8_0")
            facts = json.loads(troupe("inspect", path, "--json", "-").stdout)
            self.assertEqual(facts["vocabulary"], 512)

    def test_overrides_what_the_shape_says(self):
        path = self.folder / "m.gguf"
        troupe("synth", path, "--shape", "tiny-olmoe", "--layers", 3, "--context", 77, "--tokenizer",
               TINY, "--vocab", 4100)
        facts = json.loads(troupe("inspect", path, "--json", "-").stdout)
        self.assertEqual((facts["layers"], facts["trained_context"], facts["vocabulary"]),
                         (3, 77, 4100))

    def test_reports_its_parts(self):
        path = self.folder / "m.gguf"
        record = json.loads(troupe("synth", path, "--shape", "tiny-llama", "--split", "200KiB",
                                   "--json", "-").stdout)
        self.assertGreater(len(record["files"]), 1)
        self.assertEqual(sum(pathlib.Path(file).stat().st_size for file in record["files"]),
                         record["bytes"])

    def test_widens_a_model_that_says_the_same(self):
        wide = self.folder / "wide.gguf"
        self.assertEqual(troupe("synth", wide, "--widen", TINY, "--factor", 3).returncode, 0)
        tokens = []
        for model in (TINY, wide):
            record = self.folder / "run.json"
            troupe("run", model, "--prompt", "The kernel", "-n", 24, "--temperature", 0, "--json",
                   record)
            tokens.append(json.loads(record.read_text())["token_ids"])
        self.assertEqual(len(tokens[0]), 24)
        self.assertEqual(tokens[0], tokens[1])


class SplitAndMerge(CommandLineTest):
    def test_what_is_split_is_merged_to_the_same_bytes_and_runs_meanwhile(self):
        done = json.loads(troupe("split", TINY, self.folder / "parts", "--size", "3MiB", "--json", "-").stdout)
        self.assertGreater(len(done["files"]), 1)
        merged = self.folder / "merged.gguf"
        self.assertIn("in 1 file", troupe("merge", done["files"][-1], merged).stdout)
        again = self.folder / "again.gguf"
        troupe("merge", merged, again)
        self.assertEqual(again.read_bytes(), merged.read_bytes())
        answer = ("-p", "The kernel", "-n", 8, "--temperature", 0, "-t", 1)
        for model in (done["files"][0], merged):
            self.assertEqual(troupe("run", model, *answer).stdout, troupe("run", TINY, *answer).stdout)

    def test_refuses_sizes_that_are_none_and_names_that_are_taken_by_what_is_read(self):
        self.assert_fails(2, ["--size"], "split", TINY, self.folder / "p", "--size", "0MiB")
        model = self.synthesize()
        self.assert_fails(1, ["another name"], "merge", model, model)


class Tokenize(CommandLineTest):
    def test_text_becomes_tokens_and_tokens_become_text(self):
        record = json.loads(troupe("tokenize", TINY, "--prompt", "The kernel\n", "--json", "-").stdout)
        run = self.folder / "run.json"
        troupe("run", TINY, "--prompt", "The kernel\n", "-n", 1, "--json", run)
        self.assertEqual(record["ids"], json.loads(run.read_text())["prompt_ids"])
        self.assertEqual(record["text"], "The kernel\n")
        for words in (("-m", TINY, "--prompt", "The kernel"), (TINY, "The kernel"), ("--model", TINY, "-p", "The kernel")):
            self.assertEqual(troupe("tokenize", *words, "--count").stdout, "3\n", words)
        self.assertEqual(troupe("tokenize", TINY, "--ids", "1 2,3", "--count").stdout, "3\n")
        self.assert_fails(2, ["TEXT: 'b' found beside another text"], "tokenize", TINY, "b", "-p", "a")
        self.assertIn("The kernel\n", "".join(record["tokens"]))  # beside what the model wants around it
        ids = ",".join(map(str, record["ids"]))
        self.assertEqual(troupe("tokenize", TINY, "--ids", ids).stdout, "The kernel\n\n")
        told = troupe("tokenize", TINY, "--prompt", "The kernel\n").stdout
        self.assertEqual(len(told.splitlines()), len(record["ids"]) + 1)
        self.assertIn('"\\n"', told)

    def test_counts_what_is_piped_in(self):
        done = subprocess.run([TROUPE, "tokenize", str(TINY), "--count"], input="The kernel\n", text=True,
                              capture_output=True, check=True)
        ids = json.loads(troupe("tokenize", TINY, "--prompt", "The kernel\n", "--json", "-").stdout)["ids"]
        self.assertEqual(done.stdout, f"{len(ids)}\n")

    def test_names_of_special_tokens_are_text_unless_they_are_asked_for(self):
        end = json.loads(troupe("tokenize", TINY, "--ids", 0, "--json", "-").stdout)["tokens"][0]
        count = lambda *more: int(troupe("tokenize", TINY, "--prompt", end, "--no-bos", "--count", *more).stdout)
        self.assertEqual(count("--special"), 1)
        self.assertGreater(count(), 1)

    def test_refuses_ids_outside_the_vocabulary(self):
        self.assert_fails(1, ["token 1 has id 99999999"], "tokenize", TINY, "--ids", "1,99999999")
        self.assert_fails(2, ["give one of"], "tokenize", TINY, "--ids", 1, "--prompt", "a")


class Inspect(CommandLineTest):
    def test_adds_up(self):
        facts = json.loads(troupe("inspect", TINY, "--tensors", "--json", "-").stdout)
        self.assertEqual(facts["architecture"], "qwen2moe")
        self.assertEqual((facts["experts"], facts["experts_per_token"]), (32, 4))
        self.assertEqual(facts["file_bytes"], TINY.stat().st_size)
        total = sum(tensor["bytes"] for tensor in facts["tensors"])
        self.assertEqual(total, facts["dense_bytes"] + facts["expert_bytes"])
        self.assertEqual(total, sum(share["bytes"] for share in facts["types"].values()))

    def test_writes_its_record_to_a_file_or_a_device(self):
        record = self.folder / "facts.json"
        self.assertEqual(troupe("inspect", TINY, "--json", record).returncode, 0)
        self.assertEqual(json.loads(record.read_text())["layers"], 8)
        self.assertEqual(troupe("inspect", TINY, "--json", "/dev/null").returncode, 0)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device(), "a device must stay one")
        self.assert_fails(1, ["/dev/full"], "inspect", TINY, "--json", "/dev/full")
        self.assert_fails(2, ["no-folder"], "inspect", TINY, "--json", "/no-folder/facts.json")

    def test_prints_no_escapes_into_a_pipe(self):
        self.assertNotIn("\x1b", troupe("inspect", TINY, "--tensors").stdout)


class Progress(CommandLineTest):
    def on_a_terminal(self, *arguments):
        """What it wrote to its terminal, and to standard output."""
        primary, secondary = pty.openpty()
        out = self.folder / "stdout"
        with open(out, "wb") as stdout:
            process = subprocess.Popen([TROUPE, *map(str, arguments)], stdout=stdout, stderr=secondary)
        os.close(secondary)
        seen = terminal.all_written(primary)
        self.assertEqual(process.wait(), 0)
        return seen, out.read_text(encoding="utf-8")

    def test_draws_a_bar_on_a_terminal_and_wipes_it(self):
        # Enough to take more than a second on any machine, written to where it costs no disk.
        seen, _ = self.on_a_terminal("synth", self.folder / "m.gguf", "--shape", "tiny-deepseek2-lite", "--type", "Q2_K", "--threads", 1)
        self.assertRegex(seen, rb"writing \[#*\.*\] +\d+%")
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen[-40:])

    def test_a_prompt_of_one_pass_is_counted_layer_by_layer(self):
        # All experts of eight layers through a slow disk, which takes seconds on any machine.
        ids = ",".join(map(str, range(20, 420)))
        seen, _ = self.on_a_terminal("run", TINY, "--prompt-ids", ids, "-n", 1, *slow(512))
        shares = {int(share) for share in re.findall(rb"reading the prompt \[#*\.*\] +(\d+)%  \d+ of 400", seen)}
        self.assertGreaterEqual(len(shares - {0, 100}), 3, seen)
        self.assertNotIn(b"reading the prompt", self.piped_run(ids))

    def piped_run(self, ids):
        return subprocess.run([TROUPE, "run", TINY, "--prompt-ids", ids, "-n", "1", *slow(512)], stdin=subprocess.DEVNULL,
                              capture_output=True, check=True).stderr

    def test_a_replay_and_a_simulation_say_how_far_they_are(self):
        data = ROOT / "tests/data/routing"
        # Hundreds of caches, and a hundred thousand prompts: both take seconds on any machine.
        budgets = ",".join(str(slots) for slots in range(2, 190, 4))
        seen, _ = self.on_a_terminal("replay", data / "gpt-oss-20b.trace", "--slots", budgets, "--predict", "none,eap",
                                     "--shallow", "0,3", "--threads", 1, "--json", self.folder / "replay.json")
        self.assertRegex(seen, rb"replaying \[#*\.*\] +\d+%  [^\r]* of ")
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen[-40:])
        seen, told = self.on_a_terminal("simulate", data / "scenario.json", "--set", "/prompts=120000")
        self.assertRegex(seen, rb"simulating dancemoe \[#*\.*\] +\d+%  \d+ of 120000, ")
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen[-40:])
        self.assertNotIn("\x1b", told)

    def test_counts_the_tokens_of_everything_that_quality_is_measured_with(self):
        text = self.folder / "t.txt"
        text.write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
        model = self.folder / "m.gguf"
        model.write_bytes(TINY.read_bytes())
        # Two cache sizes, exact and one chain: four times 1,000 tokens through a slow disk, which take seconds on any machine.
        seen, told = self.on_a_terminal("calibrate", model, "--text", text, "--measure-quality", "--quality-tokens", 1000, "--shares", "25,50",
                                        "--chain", "smoe:alpha=0.1", "--link", "100MiB/1ms", "--threads", 1)
        self.assertRegex(seen, rb"measuring \[#*\.*\] +\d+%  \d+ of 4000, ")
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen[-40:])
        self.assertRegex(told, r"(?m)^done: with 128 experts in memory a token reads \d+ % of what exact answers read by --quality balanced, ")


class Bench(CommandLineTest):
    SHORT = ("--prefill", 8, "--decode", 4, "--prompt-length", 8, "--reps", 1, "--ctx", 256, "--threads", 1)

    def record(self, *arguments):
        done = troupe("bench", TINY, *self.SHORT, *arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_refuses_numbers_of_sequences_that_are_none(self):
        for value in ("0", "-1", "1,0", "two", "1025", ","):
            self.assert_fails(2, ["--together"], "bench", TINY, "--together", value)
        for value in ("0", "-1", "many"):
            self.assert_fails(2, ["--join"], "bench", TINY, "--join", value)

    def test_records_no_routing_of_many_sequences(self):
        trace = self.folder / "a.trace"
        self.assert_fails(2, ["--together", "--trace"], "bench", TINY, "--together", 2, "--trace", trace)
        self.assert_fails(2, ["--join", "--trace"], "bench", TINY, "--join", 20, "--trace", trace)

    def test_needs_tokens_to_time_together(self):
        self.assert_fails(1, ["--together", "--decode 0"], "bench", TINY, "--together", 2, "--decode", 0)

    def test_names_the_context_that_is_too_short(self):
        self.assert_fails(1, ["300", "--ctx"], "bench", TINY, *self.SHORT, "--join", 299)
        self.assert_fails(1, ["264", "--ctx"], "bench", TINY, *self.SHORT, "--together", 256)

    def test_measures_sequences_together_and_a_prompt_that_joins(self):
        record = self.record("--together", "1,3", "--join", 40)
        self.assertEqual([row["sequences"] for row in record["together"]], [1, 3])
        for row in record["together"]:
            for name in ("tokens_per_s", "prompt_tokens_per_s", "limit_tokens_per_s", "experts_a_pass"):
                self.assertGreater(row[name], 0, name)
        one, three = record["together"]
        self.assertLess(one["experts_a_pass"], three["experts_a_pass"])
        join = record["join"]
        self.assertEqual((join["sequences"], join["prompt_tokens"]), (8, 40))
        self.assertGreaterEqual(join["longest_gap_s"], join["median_gap_s"])
        self.assertGreater(join["prompt_seconds"], 0)

    def test_measures_neither_unasked(self):
        record = self.record()
        self.assertNotIn("together", record)
        self.assertNotIn("join", record)

    def test_prints_a_row_for_each_number_of_sequences(self):
        told = troupe("bench", TINY, *self.SHORT, "--together", "1,2", "--join", 20).stdout
        self.assertRegex(told, r"(?m)^ +2 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+ % ")
        self.assertIn("a prompt of 20 tokens joins 8 sequences", told)
        for heading in ("tokens before", "weights read, GB/s", "of the memory's speed", "limit, tokens/s", "disk read/pass"):
            self.assertIn(heading, told)


class Speculates(CommandLineTest):
    def record(self, *arguments):
        return json.loads(troupe("run", TINY, "--prompt", "int driver(int device) { return device; } int driver(int",
                                 "-n", 90, "--ignore-eos", "--json", "-", *arguments).stdout)

    def test_says_the_same_with_drafts_of_any_kind(self):
        for arguments in (["--temperature", 0], ["--temperature", 0.7, "--seed", 3], ["--temperature", 0, "--slots", 40]):
            plain = self.record("--speculate", "off", *arguments)
            self.assertEqual([plain["drafted"], plain["draft_checks"], plain["draft_utility"]], [0, 0, 1])
            for drafter in ("auto", "lookup", "wrong", "random"):
                drafted = self.record("--speculate", drafter, *arguments)
                self.assertEqual(drafted["token_ids"], plain["token_ids"], drafter)
                self.assertEqual(drafted["text"], plain["text"], drafter)
                self.assertLessEqual(drafted["draft_accepted"], drafted["drafted"])

    def test_drafts_nothing_while_a_trace_is_recorded_and_says_so(self):
        trace = self.folder / "run.trace"
        shown = troupe("run", TINY, "--prompt", "The kernel", "-n", 8, "--trace", trace, "--explain").stderr
        self.assertIn("no tokens are drafted while a trace is recorded", shown)
        self.assertIn("speculation: off", shown)

    def test_says_the_same_with_a_draft_model_and_counts_what_it_guessed(self):
        unrelated = self.folder / "unrelated.gguf"
        troupe("synth", unrelated, "--shape", "tiny-llama", "--type", "Q8_0", "--vocab", 4096, "--tokenizer", TINY)
        for arguments in (["--temperature", 0], ["--temperature", 1.2, "--seed", 3, "--repeat-penalty", 1.2],
                          ["--temperature", 0.8, "--seed", 5, "--stop", "e d", "--slots", 40]):
            plain = self.record("--speculate", "off", *arguments)
            for model in (TINY, unrelated):
                drafted = self.record("--speculate", "draft", "--draft", model, *arguments)
                self.assertEqual([drafted["token_ids"], drafted["text"]], [plain["token_ids"], plain["text"]], model)
                self.assertGreater(drafted["drafting_s"], 0)
                guessed = drafted["drafters"]["model"]
                self.assertEqual(guessed, {"drafted": drafted["drafted"], "accepted": drafted["draft_accepted"]})
                if model == TINY and "--stop" not in arguments:  # the model itself is never wrong
                    self.assertGreater(guessed["drafted"], 0)
                    self.assertEqual(guessed["accepted"], guessed["drafted"])

    def test_says_the_same_with_drafts_by_the_experts_in_memory(self):
        # Computing takes next to nothing beside this link, so that a draft is soon worth a check.
        slow = ["--slots", 128, "--link", "60MiB/1ms"]
        plain = self.record("--speculate", "off", *slow, "--temperature", 0)
        drafted = self.record("--speculate", "resident", *slow, "--temperature", 0)
        self.assertEqual([drafted["token_ids"], drafted["text"]], [plain["token_ids"], plain["text"]])
        self.assertGreater(drafted["drafting_s"], 0)
        self.assertEqual(drafted["drafters"]["resident"],
                         {"drafted": drafted["drafted"], "accepted": drafted["draft_accepted"]})
        self.assertGreater(drafted["drafted"], 0)
        self.assertLessEqual(drafted["draft_reads_used"], drafted["draft_reads"])
        self.assertEqual([drafted["dropped"], drafted["substitutions"]], [0, 0])
        self.assertEqual([drafted["planned_bytes"] - plain["planned_bytes"] < 1 << 20, drafted["expert_slots"]],
                         [True, 128])

    def test_drafts_nothing_by_the_experts_in_memory_where_all_of_them_are_and_says_so(self):
        shown = troupe("run", TINY, "--prompt", "The kernel", "-n", 8, "--speculate", "resident", "--explain").stderr
        self.assertIn("no tokens are drafted by the experts in memory: all of them are there", shown)

    def test_a_draft_model_is_within_the_budget(self):
        told = json.loads(troupe("plan", TINY, "--draft", TINY, "--ctx", 512, "--json", "-").stdout)
        budget = told["planned_bytes"] - told["expert_bytes"] // 2
        drafted = self.record("--draft", TINY, "--speculate", "draft", "--ctx", 512, "--memory", budget)
        self.assertGreater(drafted["drafting_s"], 0)
        self.assertLessEqual(drafted["planned_bytes"], budget)
        self.assertLessEqual(drafted["peak_rss_bytes"], budget)

    def test_explains_what_a_draft_model_takes(self):
        shown = troupe("run", TINY, "--prompt", "The kernel", "-n", 20, "--draft", TINY, "--explain").stderr
        self.assertRegex(shown, r"(?m)^draft model   [0-9.]+ MiB$")
        self.assertRegex(shown, r"(?m)^speculation: models took [0-9.]+ s to draft$")
        self.assertRegex(troupe("plan", TINY, "--draft", TINY).stdout, r"(?m)^draft model   [0-9.]+ MiB$")

    def test_refuses_draft_models_that_cannot_help(self):
        def refused(words, *arguments, code=1):
            self.assert_fails(code, words, "run", TINY, "--prompt", "x", *arguments)

        other = self.synthesize()
        text = self.folder / "text.gguf"
        text.write_text("no model")
        refused([f"{other}: not the vocabulary of {TINY}", "expected 4096"], "--draft", other)
        refused([str(text)], "--draft", text)
        refused([str(self.folder / "none.gguf")], "--draft", self.folder / "none.gguf")
        refused(["for the draft model"], "--draft", TINY, "--memory", "20MiB")
        refused(["--speculate does not use"], "--draft", TINY, "--speculate", "lookup")
        refused(["none was given (--draft)"], "--speculate", "draft")

    def test_refuses_drafters_that_it_does_not_know(self):
        self.assert_fails(2, ["--speculate", "magic"], "run", TINY, "--prompt", "x", "--speculate", "magic")


class Numbers(CommandLineTest):
    def test_what_is_no_number_is_refused(self):
        for flag in ("--latency", "--temperature", "--repeat-penalty"):
            for value in ("nan", "inf", "-inf", "1e999"):
                self.assert_fails(2, [], "run", TINY, "--prompt", "One", flag, value)

    def test_the_chain_s_words_are_told(self):
        told = troupe("run", TINY, "--substitute", "help")
        self.assertEqual(told.returncode, 0)
        for link in ("smoe", "buddies", "low-bit", "drop", "bias", "best-live", "random", "top", "reunite"):
            self.assertRegex(told.stdout, rf"(?m)^{link} +\w")


class Trial(unittest.TestCase):
    """scripts/trial itself."""

    def trial(self, *arguments):
        return subprocess.run([ROOT / "scripts/trial", "--troupe", TROUPE, "--kind", "options", *map(str, arguments)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def test_cases_that_the_clock_cuts_are_no_success(self):
        whole = self.trial("--share", 0.005)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertRegex(whole.stdout, r"(?m)^options +3 +0$")
        cut = self.trial("--share", 0.005, "--seconds", 0.001, "--least", 0)
        self.assertEqual(cut.returncode, 124, cut.stderr)
        self.assertIn("3 not reached", cut.stdout)

    def test_a_trial_of_fewer_cases_than_the_least_has_failed(self):
        none = self.trial("--share", 0.005, "--seconds", 0.001)
        self.assertEqual(none.returncode, 1, none.stderr)
        self.assertIn("FAILED only 0 cases were tried, expected 1 at least", none.stderr)
        few = self.trial("--share", 0.005, "--least", 4)
        self.assertEqual(few.returncode, 1, few.stderr)
        self.assertIn("only 3 cases were tried, expected 4 at least", few.stderr)

    def test_a_table_with_a_gap_or_an_overlap_is_seen(self):
        sys.path.insert(0, str(ROOT / "scripts"))
        from trial_table import table_fault  # pylint: disable=import-outside-toplevel
        data = bytearray(TINY.read_bytes())
        self.assertEqual(table_fault(data), "")
        at = data.index(b"blk.3.attn_q.weight") + len(b"blk.3.attn_q.weight") + 4 + 2 * 8 + 4
        offset = struct.unpack_from("<Q", data, at)[0]
        for other in (offset - 32, offset + 32):
            struct.pack_into("<Q", data, at, other)
            self.assertIn(f"a tensor at {other} of the data" if other < offset else "expected at ", table_fault(data))


# A prompt that takes minutes, as experts come one token after the other through a slow link.
def slow(chunk=1):
    return ("--slots", "40", "--predict", "none", "--link", "2MiB", "--chunk", str(chunk), "--ctx", "1000",
            "--threads", "1")


def wait_until_it_catches(process, number):
    """A signal that would come sooner would end the program as ever."""
    status = pathlib.Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = int(re.search(r"^SigCgt:\s*(\w+)$", status.read_text(), re.MULTILINE)[1], 16)
        if caught >> (number - 1) & 1:
            return
        time.sleep(0.001)


class Input(CommandLineTest):
    """Where a prompt comes from, and where results go to."""
    ARGUMENTS = ("run", TINY, "-n", "4", "--temperature", "0", "--threads", "1")

    def piped(self, text, *arguments, **options):
        done = subprocess.run([TROUPE, *map(str, self.ARGUMENTS + arguments)], input=text, capture_output=True,
                              check=False, timeout=60, **options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_a_pipe_is_a_prompt_where_nothing_else_is_given(self):
        prompted = troupe(*self.ARGUMENTS, "--prompt", "The kernel").stdout
        code, said, _ = self.piped(b"The kernel\n")  # as a shell's $(...) has it: without the line end
        self.assertEqual((code, "The kernel" + said), (0, prompted))
        self.assertEqual(self.piped(b"The kernel", "--file", "/dev/stdin")[1], said)
        self.assertEqual(self.piped(b"The kernel", "-f", "-")[1], said)
        self.assertEqual(self.piped(b"ignored", "--prompt", "The kernel")[1], prompted)

    def test_runs_on_the_processors_it_is_given_and_keeps_its_memory(self):
        alone = min(os.sched_getaffinity(0))
        record = json.loads(troupe("run", TINY, "-p", "a", "-n", 2, "--cpus", alone, "--json", "-").stdout)
        self.assertEqual(record["threads"], 1)
        self.assert_fails(2, ["--cpus", "processor 1000 found", "this machine has"], "run", TINY, "-p", "a", "--cpus", 1000)
        self.assert_fails(2, ["--cpus: '2-1'"], "run", TINY, "-p", "a", "--cpus", "2-1")
        process = subprocess.Popen([TROUPE, "run", TINY, "--chat", "--mlock"], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        locked = 0
        while process.poll() is None and locked < TINY.stat().st_size >> 10:  # all of the weights
            locked = int(re.search(r"^VmLck:\s*(\d+) kB$", status.read_text(), re.MULTILINE)[1])
        _, said = process.communicate()
        if process.returncode != 0:
            self.assertIn(b"ulimit -l", said)

    def test_a_named_pipe_is_a_file(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["/bin/sh", "-c", f"printf 'The kernel' >{pipe}"]):
            said = troupe(*self.ARGUMENTS, "--file", pipe).stdout
        self.assertEqual("The kernel" + said, troupe(*self.ARGUMENTS, "--prompt", "The kernel").stdout)

    def test_an_empty_prompt_is_told_of(self):
        self.assertIn("note: the prompt is empty\n", self.piped(b"")[2])
        self.assertNotIn("empty", self.piped(b"The kernel")[2])

    def test_a_node_without_its_program_says_what_builds_it(self):
        alone = self.folder / "troupe"
        alone.write_bytes(pathlib.Path(TROUPE).read_bytes())
        alone.chmod(0o755)
        asked = [alone, "serve", TINY, "--peers", "127.0.0.1:1", "--port", "0"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (1, (
            "troupe: nodes of clusters need troupe-node beside troupe, which is not at "
            f"{self.folder.resolve() / 'troupe-node'}: 'make build' or 'make install' builds it\n")))
        (self.folder / "troupe-node").write_text("not to be executed")
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
        self.assertIn("what runs nodes of clusters: ", done.stderr)

    def test_without_a_pipe_or_a_prompt_there_is_nothing_to_run(self):
        self.assert_fails(2, ["nothing to run"], *self.ARGUMENTS)

    def test_an_argument_behind_the_model_is_the_prompt(self):
        prompted = troupe(*self.ARGUMENTS, "--prompt", "The kernel").stdout
        self.assertEqual(troupe(*self.ARGUMENTS, "The kernel").stdout, prompted)
        self.assertEqual(troupe("run", "-m", TINY, *self.ARGUMENTS[2:], "The kernel").stdout, prompted)
        self.assertEqual(self.piped(b"ignored", "The kernel")[1], prompted)
        self.assert_fails(2, ["PROMPT: 'Files' found beside another prompt"], *self.ARGUMENTS, "Files", "-p", "a")
        self.assert_fails(2, ["'more' found, no further argument expected"], *self.ARGUMENTS, "Files", "more")

    def test_token_ids_have_single_commas_between_them(self):
        for ids in ("1,,2", "1,", ",1"):
            self.assert_fails(1, ["token ids"], *self.ARGUMENTS, "--prompt-ids", ids)

    def test_an_answer_may_stand_alone(self):
        asked = [TROUPE, "run", str(TINY), "-p", "The kernel", "-n", "4", "--temperature", "0"]
        both = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        alone = subprocess.run([*asked, "--no-echo", "--quiet"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        self.assertEqual("The kernel" + alone.stdout, both.stdout)
        self.assertIn("ended: length", both.stderr)
        self.assertNotIn("[", alone.stderr)
        lossy = subprocess.run([*asked, "--quiet", "--slots", "32", "--substitute", "drop"], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=True)
        self.assertIn("not exact", lossy.stderr)  # which an answer never hides

    def test_what_is_piped_in_beside_a_prompt_is_said_to_be_unread(self):
        asked = [TROUPE, "run", str(TINY), "-p", "a", "-n", "1"]
        for given, said in ((b"text\n", 1), (b"", 0)):
            reading, writing = os.pipe()
            os.write(writing, given)
            os.close(writing)
            with open(reading, encoding="utf-8") as piped:
                done = subprocess.run(asked, stdin=piped, capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr.count("note: what is piped in is not read, as a prompt is given\n"), said, done.stderr)
        with open(ROOT / "README.md", encoding="utf-8") as file:
            self.assertIn("is not read", subprocess.run(asked, stdin=file, capture_output=True, text=True, check=True).stderr)
        self.assertNotIn("is not read", subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr)

    def test_a_trace_goes_to_standard_output_alone(self):
        done = subprocess.run([TROUPE, *map(str, self.ARGUMENTS), "--prompt", "The kernel", "--trace", "-"],
                              stdin=subprocess.DEVNULL, capture_output=True, check=True)
        self.assertEqual(done.stdout[:8], b"TRPTRACE")
        trace = self.folder / "a.trace"
        trace.write_bytes(done.stdout)
        self.assertIn("\n  whole\n", troupe("trace", "info", trace).stdout)
        self.assert_fails(2, ["standard output is for one of them"], *self.ARGUMENTS, "--prompt", "a", "--trace", "-", "--json", "-")

    def test_what_cannot_be_written_is_found_before_the_work(self):
        for option in ("--json", "--logits", "--trace"):
            self.assert_fails(2, [option, "/proc/x: creating it"], *self.ARGUMENTS, "--prompt", "a", option, "/proc/x")
        self.assert_fails(2, ["a name expected"], "quantize", TINY, "-", "Q4_0")
        text = self.folder / "text"
        text.write_text("The kernel. " * 200)
        link = pathlib.Path(f"/proc/{os.getpid()}/a.gguf")  # beside it nothing can be written, root or not
        self.assert_fails(2, ["creating it"], "calibrate", TINY, "--text", text, "-o", link)

    def test_a_models_name_cannot_command_a_terminal(self):
        model = self.folder / "a.gguf"
        data = TINY.read_bytes()
        at = data.index(b"general.name") + len(b"general.name") + 4
        length = struct.unpack("<Q", data[at:at + 8])[0]
        name = (b"\x1b[2J" + b"x" * length)[:length]
        model.write_bytes(data[:at + 8] + name + data[at + 8 + length:])
        self.assertNotIn("\x1b", troupe("inspect", model).stdout)
        self.assertNotIn("\x1b", troupe("run", model, "-p", "a", "-n", 1, "--explain").stderr)

    def test_odd_wishes_are_remarked_on_before_the_run(self):
        said = troupe("run", TINY, "-n", 1, "-p", "a", "--ctx", 5000, "--shallow", 100, "--threads", 200, "--quality", "1%").stderr
        for words in ("context 5000 is longer than the 2048", "100 shallow layers of 8", "200 threads on",
                      "exact, whatever may be lost"):
            self.assertIn(words, said)

    def test_a_profile_that_is_not_the_models_is_said_to_be_unused(self):
        model = self.folder / "a.gguf"
        model.write_bytes(TINY.read_bytes())
        (self.folder / "a.profile.json").write_text("{}")
        self.assertRegex(troupe("run", model, "-p", "a", "-n", 1, "--slots", 60).stderr, r"(?m)^warning: not used: .*profile")


class Interrupts(CommandLineTest):
    def test_ctrl_c_ends_the_answer_in_good_order(self):
        record = self.folder / "record.json"
        process = subprocess.Popen([TROUPE, "run", TINY, "--prompt", "One", "-n", "100000", "--ctx", "30000",
                                    "--ignore-eos", "--json", record],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(os.read(process.stdout.fileno(), 1))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGINT, said)
        self.assertIn(b"ended: cancelled", said)
        self.assertEqual(said.splitlines()[-1], b"troupe: interrupted")
        found = json.loads(record.read_text())
        self.assertEqual(found["finish"], "cancelled")
        self.assertLess(len(found["token_ids"]), 100000)

    def test_sigterm_and_sighup_end_as_ctrl_c_does(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            trace = self.folder / "a.trace"
            process = subprocess.Popen([TROUPE, "run", TINY, "--prompt", "One", "-n", "100000", "--ctx", "30000",
                                        "--ignore-eos", "--trace", trace],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            text = b""
            while len(text) <= len("One"):
                text += os.read(process.stdout.fileno(), 1)
            process.send_signal(number)
            _, said = process.communicate()
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertIn(b"ended: cancelled", said)
            self.assertIn("\n  whole\n", troupe("trace", "info", trace).stdout)

    def test_a_killed_run_leaves_a_trace_that_says_so(self):
        trace = self.folder / "a.trace"
        process = subprocess.Popen([TROUPE, "run", TINY, "--prompt", "One", "-n", "100000", "--ctx", "30000",
                                    "--ignore-eos", "--trace", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while trace.exists() is False or trace.stat().st_size < 100_000:
            self.assertIsNone(process.poll())
            os.read(process.stdout.fileno(), 1 << 16)
        process.kill()
        process.communicate()
        done = troupe("trace", "info", trace)
        self.assertIn("ends without its end mark: later tokens are missing", done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"^troupe: {trace}: damaged: [^\n]*ends without its end mark[^\n]*\n$")

    def test_what_a_runner_ignores_stays_ignored(self):
        process = subprocess.Popen([TROUPE, "run", TINY, "--prompt", "One", "-n", "300", "--ctx", "30000", "--ignore-eos"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate()
        self.assertEqual(process.returncode, 0, said)

    def test_ctrl_c_leaves_text_record_and_logits_of_the_same_tokens(self):
        record, logits = self.folder / "record.json", self.folder / "logits"
        process = subprocess.Popen([TROUPE, "run", TINY, "--prompt", "One", "-n", "100000", "--ctx", "30000",
                                    "--ignore-eos", "--json", record, "--logits", logits],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text = b""
        while len(text) <= len("One"):  # the prompt, which is printed first
            text += os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGINT, said)
        found = json.loads(record.read_text())
        self.assertGreater(len(found["token_ids"]), 0)
        self.assertEqual((text + rest).decode().strip(), ("One" + found["text"]).strip())
        raw = logits.read_bytes()
        rows = struct.unpack("<I", raw[-16:-12])[0]
        self.assertEqual(list(struct.unpack(f"<{rows}i", raw[-16 - 4 * rows:-16])), found["token_ids"])

    def test_ctrl_c_ends_a_prompt_that_is_being_read(self):
        record = self.folder / "record.json"
        process = subprocess.Popen([TROUPE, "run", TINY, "--prompt-ids", ",".join(map(str, range(20, 620))), *slow(),
                                    "--json", record], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until_it_catches(process, signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, said)
        self.assertIn(b"ended: cancelled", said)
        found = json.loads(record.read_text())
        self.assertEqual((found["finish"], found["token_ids"]), ("cancelled", []))

    def test_a_record_that_cannot_be_written_is_refused_before_the_run(self):
        path = self.folder / "none" / "record.json"
        self.assert_fails(2, ["--json", "there is no folder", str(path.parent)],
                          "run", TINY, "--prompt", "One", "--json", path)


if __name__ == "__main__":
    TROUPE = sys.argv.pop(1)
    unittest.main()
