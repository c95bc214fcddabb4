#!/usr/bin/env python3
"""Embeds Troupe as a stranger would: installs it, builds examples/embed against what was installed,
by find_package and by pkg-config, with the shared library and the static one, and compares what
the programs write with `troupe run`.

    embed_test.py BUILD_FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODEL = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
EXAMPLE = ROOT / "examples/embed"
PROMPT, TOKENS = "The kernel", "24"
BUILD = None

# Every function that the headers declare and the library defines.
EVERYTHING = """
#include <troupe/model.h>
#include <troupe/version.h>

int main() {
  using namespace troupe;
  std::string words = std::string(CodeName(Code::kDataLoss)) + ToString(ParseBytes("3GiB").value()) + Describe(Plan()).at(0);
  words += std::string(Name(FinishReason::kLength)) + std::string(Version());
  words += Status(Code::kInternal, "x").WithRetryAfter(1).WithContext("y").ToString();
  if (Model::PlanFor("/nowhere").ok() || words.empty()) return 1;
  Result<std::unique_ptr<Model>> model = Model::Open("/nowhere");
  if (!model.ok()) return 0;
  Generation generation = (*model)->Start({.prompt = "a"}).value();
  generation = Generation(std::move(generation));
  generation.Cancel();
  (*model)->Close();
  (*model)->Detokenize((*model)->Tokenize("a").value()).value();
  generation = (*model)->Start({.prompt = "a"}, {.on_piece = [](const Piece&) { return true; }, .on_end = [](const Result<Answer>&) {}, .on_logits = [](TokenId, std::span<const float>) { return OkStatus(); }}).value();
  ExpertUsage used = generation.Wait().value().usage.experts;
  used = (used += used).Since(used);
  used -= (*model)->metrics().experts;
  return used.hits == 0 && generation.WaitFor(std::chrono::seconds(1)) && generation.Wait().ok() && generation.done() && (*model)->plan() == Plan() && (*model)->metrics().passes > 0 && (*model)->state(std::chrono::seconds(1)).requests.empty();
}
"""


def output_of(*command, **options):
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if run.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{run.stdout}\n{run.stderr}")
    return run.stdout


class Embed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        output_of("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.library = next(cls.prefix.rglob("libtroupe.so")).parent
        cls.expected = output_of(cls.prefix / "bin/troupe", "run", MODEL, "--prompt", PROMPT, "-n", TOKENS,
                                 "--temperature", "0").removeprefix(PROMPT).removesuffix("\n")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def answers_like_the_command_line(self, program, **environment):
        text = output_of(program, MODEL, PROMPT, TOKENS, env=os.environ | environment)
        self.assertGreater(len(text), 20)
        self.assertEqual(text, self.expected)

    def package(self, *words):
        return output_of("pkg-config", *words, "troupe",
                         env=os.environ | {"PKG_CONFIG_PATH": str(self.library / "pkgconfig")}).split()

    def test_find_package(self):
        build = pathlib.Path(self.folder.name) / "embed"
        output_of("cmake", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        output_of("cmake", "--build", build)
        self.answers_like_the_command_line(build / "embed")

    def test_pkg_config(self):
        program = pathlib.Path(self.folder.name) / "by_pkg_config"
        output_of("g++", "-std=c++20", EXAMPLE / "main.cc", "-o", program, *self.package("--cflags", "--libs"))
        self.answers_like_the_command_line(program, LD_LIBRARY_PATH=str(self.library))

    def test_the_static_library(self):
        program = pathlib.Path(self.folder.name) / "static"
        libraries = [str(self.library / "libtroupe.a") if word == "-ltroupe" else word
                     for word in self.package("--static", "--libs")]
        output_of("g++", "-std=c++20", EXAMPLE / "main.cc", "-o", program, *self.package("--cflags"), *libraries)
        self.answers_like_the_command_line(program)

    def compile(self, program, text):
        output_of("g++", "-std=c++20", "-O0", "-x", "c++", "-", "-o", program, *self.package("--cflags", "--libs"),
                  input=text)
        return output_of(program, env=os.environ | {"LD_LIBRARY_PATH": str(self.library)})

    def test_the_examples_of_the_readme_and_of_the_header_compile(self):
        section = README.split("## In your own program", 1)[1].split("\n\n`", 1)[0]
        example = [line[4:] for line in section.splitlines() if line.startswith("    ")]
        header = (self.prefix / "include/troupe/model.h").read_text(encoding="utf-8").split("#pragma once", 1)[0]
        shown = [line[7:] for line in header.splitlines() if line.startswith("//     ")]
        for lines in (example, shown):
            with self.subTest(lines[0]):
                self.assertTrue(any("_GiB" in line for line in lines) and any("Wait()" in line for line in lines))
                includes = [line for line in lines if line.startswith("#include")]
                body = "\n".join(line for line in lines if line not in includes)
                text = "\n".join(["#include <iostream>", *(includes or ["#include <troupe/model.h>"]),
                                  "int Fail(const std::string&) { return 0; }",
                                  f"int Run() {{\n{body}\nreturn 0;\n}}", "int main() { return 0; }\n"])
                self.compile(pathlib.Path(self.folder.name) / "example", text)

    def test_headers_library_and_package_are_of_one_version(self):
        text = "#include <troupe/version.h>\n#include <iostream>\n" \
               "int main() { std::cout << TROUPE_VERSION << ' ' << troupe::Version(); }\n"
        headers, library = self.compile(pathlib.Path(self.folder.name) / "version", text).split()
        self.assertEqual([headers], self.package("--modversion"))
        self.assertEqual(headers, library)

    def test_the_manual_page_and_the_completions_are_installed(self):
        share = self.prefix / "share"
        self.assertIn(".TH", (share / "man/man1/troupe.1").read_text(encoding="utf-8"))
        for file in ("bash-completion/completions/troupe", "zsh/site-functions/_troupe",
                     "fish/vendor_completions.d/troupe.fish"):
            self.assertTrue("memory" in (share / file).read_text(encoding="utf-8"), file)

    def test_each_header_compiles_alone(self):
        headers = sorted((self.prefix / "include/troupe").glob("*.h"))
        self.assertGreaterEqual(len(headers), 6)
        for header in headers:
            with self.subTest(header.name):
                output_of("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{self.prefix}/include",
                          "-x", "c++", "-", input=f"#include <troupe/{header.name}>\n")

    def test_everything_declared_is_exported(self):
        self.compile(pathlib.Path(self.folder.name) / "everything", EVERYTHING)

    def test_only_the_interface_is_exported(self):
        names = output_of("nm", "-DC", "--defined-only", "--format=just-symbols", self.library / "libtroupe.so").splitlines()
        ours = ("troupe::Model::", "troupe::ExpertUsage::", "troupe::Generation::", "troupe::Status::", "troupe::CodeName", "troupe::Describe",
                "troupe::Name", "troupe::ParseBytes", "troupe::ToString", "troupe::Version",
                "troupe::internal::CheckFailed")
        self.assertGreater(len(names), 10)
        for name in names:
            self.assertTrue(name.startswith(ours) and "Impl" not in name, name)


if __name__ == "__main__":
    BUILD = sys.argv.pop()
    unittest.main()
