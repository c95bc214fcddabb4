"""The answers of bench/speculation: a server with drafts and one without, asked the same in turn."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request

import llamacpp
import measured_run

ROOT = pathlib.Path(__file__).resolve().parent.parent
_TRAINED = ROOT / "models/small-qwen2moe-q8_0.gguf"
HEAD = ROOT / "models/heads/small-qwen2moe.head.gguf"
_FACTOR = 64  # times as wide: the same text and routing, with an expert of 3 MB
_EXPERTS = 256
_LINK = "500MiB/100us"
_LONGEST = 600
# Guesses of llama.cpp's look-up at most: none, as it is shipped, and longer ones, which suit copies.
_PEER_MOST = (0, 3, 16)

# Texts of the project that no drafter and no governor was tuned on.
_CODE = ROOT / "src/text/stop_strings.cc"
_TEXT = ROOT / "docs/design/prefix-cache.md"
_PROSE = ROOT / "docs/design/placement.md"


def _edited_code():
    """A file, and the same with a name changed, a check added and a function left out."""
    code = _CODE.read_text(encoding="utf-8")
    code = code[code.index("StopMatcher::StopMatcher"):]
    edited = code.replace("held_", "kept_back_").replace("  Stop stop;", "  // One text.\n  Stop stop;")
    return f"Rename held_ in this file.\n\n{code}\n\nThe file with the new name:\n\n", edited


def _quoted_text():
    """A text, and an answer that quotes three passages of it between words of its own."""
    paragraphs = [p for p in _TEXT.read_text(encoding="utf-8").split("\n\n") if len(p) > 200][:4]
    whole = "\n\n".join(paragraphs)
    quotes = [paragraphs[i].replace("\n", " ")[:300] for i in (2, 0, 1)]
    answer = " It says two things. First: ".join(["They are alike. It says: " + quotes[0], quotes[1]])
    answer += " And then this: " + quotes[2]
    return whole.replace("\n", " ") + "\n\nWhat does the text say of prefixes?\n\n", answer


def _prose():
    """A text, and how it goes on."""
    text = _PROSE.read_text(encoding="utf-8")
    return text[2000:3200], text[3200:4000]


class _Server:
    def __init__(self, troupe, model, *arguments):
        command = [str(troupe), "serve", str(model), "--port", "0", "--parallel", "1", "--ctx", "2048",
                   *map(str, arguments)]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self._process.stderr:
            if found := re.search(r"at (http://[\d.]+:\d+)", line):
                self._address = found[1]
                return
        raise measured_run.RunFailed(f"{' '.join(command)}: it did not start")

    def close(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=_LONGEST)
        self._process.stderr.close()

    def draft_reads(self):
        """Begun by drafts so far, and of them those that the next pass asked for."""
        with urllib.request.urlopen(self._address + "/metrics", timeout=_LONGEST) as response:
            page = response.read().decode()
        used, unused = (int(re.search(rf'troupe_draft_reads_total{{end="{end}"}} (\d+)', page)[1])
                        for end in ("used", "unused"))
        return used + unused, used

    def ask(self, body):
        request = urllib.request.Request(self._address + "/v1/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=_LONGEST) as response:
            answer = json.load(response)
        tokens, troupe = answer["usage"]["completion_tokens"], answer["troupe"]
        return {"text": answer["choices"][0]["text"], "tokens": tokens,
                "tokens_per_s": (tokens - 1) / troupe["decode_s"], "bytes_read": troupe["bytes_read"],
                "drafted": troupe["drafted"], "accepted": troupe["draft_accepted"]}


class Runs:
    def __init__(self, troupe, folder, quick):
        self._troupe, self._quick = troupe, quick
        self._model = pathlib.Path(folder) / f"small-qwen2moe-wide{_FACTOR}.gguf"
        if not self._model.exists():
            measured_run.run([str(troupe), "synth", str(self._model), "--widen", str(_TRAINED),
                              "--factor", str(_FACTOR)])

    def copy(self, shares):
        """Code editing, and answers that quote: what an able model would write, token by token."""
        rounds = 3 if self._quick else 7
        for name, (prompt, answer) in (("edit", _edited_code()), ("quote", _quoted_text())):
            yield from self._cells_of(name, self._written(self._texts(prompt, answer), rounds), shares)

    def peer(self, _shares):
        """The same in memory, and prose, beside llama.cpp with its own look-up: the best of its ways."""
        llamacpp.set_up()
        for name, (prompt, answer) in (("edit", _edited_code()), ("quote", _quoted_text()), ("prose", _prose())):
            paths = self._texts(prompt, answer)
            cell = {"part": "peer", "drafter": "lookup", "share": 100, "text": name, "off": [], "on": []}
            for _ in range(2 if self._quick else 5):
                written = self._written(paths, 1, "percent:100/drafts:1")
                cell["on"] += next(self._cells_of(name, written, [100]))["on"]
                run = measured_run.run(
                    ["node", str(llamacpp.BENCH / "peer_lookup.mjs"), str(paths["MODEL"]), str(paths["PROMPT"]),
                     str(paths["ANSWER"]), str(len(os.sched_getaffinity(0))), ",".join(map(str, _PEER_MOST))])
                best = max(json.loads(run.stdout)["runs"], key=lambda run: run["tokens_per_s"])
                cell["off"].append(best | {"bytes_read": 0})
            yield cell

    def _texts(self, prompt, answer):
        """The model, and files of both texts."""
        paths = {"MODEL": self._model}
        for kind, text in (("PROMPT", prompt), ("ANSWER", answer)):
            paths[kind] = self._model.parent / f"speculation-{kind.lower()}.txt"
            paths[kind].write_text(text, encoding="utf-8")
        return paths

    def _written(self, paths, rounds, which="."):
        """What speculation_bench says of writing the answer behind the prompt."""
        binary = self._troupe.parent.parent.parent / "src/runtime/speculation_bench"
        if not binary.exists():
            raise measured_run.RunFailed(f"{binary}: no such file; `make benches` makes it")
        run = measured_run.run(
            [str(binary), f"--benchmark_repetitions={rounds}", "--benchmark_format=json",
             "--benchmark_enable_random_interleaving=true", f"--benchmark_filter={which}"],
            {f"TROUPE_BENCH_{kind}": str(path) for kind, path in paths.items()})
        return json.loads(run.stdout)["benchmarks"]

    @staticmethod
    def _cells_of(name, runs, shares):
        for share in shares:
            cell = {"part": "copy", "drafter": "lookup", "share": share, "text": name, "off": [], "on": []}
            for run in sorted((run for run in runs if run["run_type"] == "iteration"),
                              key=lambda run: run["repetition_index"]):
                if f"/percent:{share}/" not in run["name"]:
                    continue
                cell["on" if "/drafts:1/" in run["name"] else "off"].append(
                    {"tokens": 1, "tokens_per_s": run["tokens_per_s"], "bytes_read": 0,
                     "drafted": run["drafted_a_token"], "accepted": run["drafted_a_token"] * run["right"]})
            if cell["on"]:
                yield cell

    def prose(self, shares):
        asks = self._prose_asks()
        for share in shares:
            yield from self._compare("prose", "auto", share, asks, rounds=3 if self._quick else 7)

    def draft(self, shares):
        """By a small model that mostly agrees: the model itself, not widened and in fewer bits."""
        fewer_bits = self._model.parent / "small-qwen2moe-q4_0.gguf"
        if not fewer_bits.exists():
            measured_run.run([str(self._troupe), "quantize", str(_TRAINED), str(fewer_bits), "Q4_0"])
        for share in shares:
            yield from self._compare("draft", "model", share, self._prose_asks(), 3 if self._quick else 7,
                                     ("--speculate", "draft", "--draft", fewer_bits))

    def heads(self, _shares):
        """In memory, by a head that was trained for the model as it is, which is not widened."""
        if not HEAD.exists():
            raise measured_run.RunFailed(f"{HEAD}: no such file; tools/train/export_head makes it")
        model = self._model.parent / "small-qwen2moe-nextn-q8_0.gguf"
        measured_run.run([str(ROOT / "tools/train/join_head"), str(_TRAINED), str(HEAD), str(model)])
        yield from self._compare("heads", "heads", 100, self._prose_asks(), 3 if self._quick else 7, model=model)

    def resident(self, shares):
        """By the model itself, with the experts in memory alone: off where all of them are there."""
        for share in shares:
            if share < 100:
                yield from self._compare("resident", "resident", share, self._prose_asks(),
                                         3 if self._quick else 7)

    def adversary(self, shares):
        asks = self._prose_asks()[:1]
        for share in shares:
            for drafter in ("wrong", "random"):
                yield from self._compare("adversary", drafter, share, asks, rounds=3 if self._quick else 7)

    def _prose_asks(self):
        text = _PROSE.read_text(encoding="utf-8")[2000:3200]
        return [(f"temperature {t}", {"prompt": text, "max_tokens": 64 if self._quick else 128,
                                      "temperature": t, "seed": 7, "ignore_eos": True}) for t in (0.8, 0)]

    def _compare(self, part, drafter, share, asks, rounds, with_drafts=None, model=None):
        """Every ask in turn without drafts and with, on servers whose caches see the same answers."""
        memory = [] if share == 100 else ["--slots", _EXPERTS * share // 100, "--link", _LINK]
        with contextlib.ExitStack() as stack:
            sides = {}
            for side, options in (("off", ("--speculate", "off")), ("on", with_drafts or ("--speculate", drafter))):
                sides[side] = _Server(self._troupe, model or self._model, *memory, *options)
                stack.callback(sides[side].close)
            for name, body in asks:
                cell = {"part": part, "drafter": drafter, "share": share, "text": name, "off": [], "on": []}
                before = sides["on"].draft_reads()
                for _ in range(rounds + 1):  # the first one fills caches
                    for side, server in sides.items():
                        cell[side].append(server.ask(body))
                texts = {answer["text"] for side in sides for answer in cell[side]}
                if len(texts) != 1:
                    raise measured_run.RunFailed(f"{part}, {name}, {share} %: drafts have changed the answer")
                cell["draft_reads"] = [now - then for now, then in zip(sides["on"].draft_reads(), before)]
                for side in sides:
                    cell[side] = [{k: v for k, v in answer.items() if k != "text"}
                                  for answer in cell[side][1:]]
                print(f"speculation: {part} {name} {share} % {drafter}: done", file=sys.stderr)
                yield cell
