"""The model and the questions of bench/answers, and its runs in which answers are given and scored (`troupe eval --tasks`). A row
is a way; its figures are, by exercise, which questions it answered rightly. The cache begins with the experts that the text
of the calibration used most: else a chain that answers any miss would load next to nothing, and less would be in memory than it says.
"""
import json
import pathlib
import shutil
import sys

import measured_run

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/train"))
import exercises  # noqa: E402

MODEL = ROOT / "models/exercises-qwen2moe-q8_0.gguf"
TASKS = ROOT / "models/exercises"
TEXT_SEED, TEXT_CHARACTERS = 20, 8000  # of each exercise, of what is calibrated on: no text of the training, and nothing held out
RESIDENT = (50, 25)  # % of the experts
LOW = "Q4_0"
FILLED = ["--fill", "on"]
# What --quality is measured with has to be what its answers are given with.
QUALITY_MEASURED = ["--shares", "50", "--quality-tokens", 4096, "--quality-window", 128, "--predict", "none", *FILLED]

ALPHAS, RHOS, SHARES = (0.2, 0.4, 0.6, 1), (1, 2, 4), (0.25, 0.5, 1)
# Where answers are given, by their flags.
CHAINS = {
    **{f"smoe, alpha {alpha:g}": f"smoe:alpha={alpha:g}" for alpha in ALPHAS},
    "bias 0.2": "bias:bonus=0.2",
    "bias 0.4": "bias:bonus=0.4",
    "buddies, all gates, rho 2": "buddies:tau=layers:gamma=0.2:beta=0.75:rho=2",
    **{f"buddies, open, rho {rho}": f"buddies:tau=-1:gamma=2:rho={rho}" for rho in RHOS},
    **{f"random, rho {rho}": f"random:rho={rho}" for rho in RHOS},
    **{f"drop, rho {rho}": f"drop:rho={rho}" for rho in RHOS},
    "drop, share 0.3": "drop:most-share=0.3",
    "low-bit": "low-bit",
}
# Which do not depend on what is missing, or only in prompts: with half of the experts in memory.
ONCE = {
    **{f"low copies, p {share:g}": ["--low-copy", f"prefill={share:g}"] for share in SHARES},
    "first 3 experts": ["--substitute", "top:keep=3"],
    "first 2 experts": ["--substitute", "top:keep=2"],
    "first expert": ["--substitute", "top:keep=1"],
    "gate of groups": ["--gate", "groups"],
}
GENERATED = ("smoe, alpha 0.4", "smoe, alpha 1", "bias 0.4", "buddies, all gates, rho 2", "buddies, open, rho 1",
             "buddies, open, rho 4", "random, rho 1", "random, rho 4", "drop, rho 1", "drop, rho 4", "drop, share 0.3", "low-bit")
QUALITIES = ("balanced", "fast")


def questions(name, items=None):
    """[(given, answer)], spread over the file as `troupe eval --items` does."""
    lines = (TASKS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    if items is not None and items < len(lines):
        lines = [lines[i * len(lines) // items] for i in range(items)]
    return [(each["context"], each["continuation"]) for each in map(json.loads, lines)]


def chance(name):
    lines = (TASKS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return sum(json.loads(line)["chance"] for line in lines) / len(lines)


def is_answer(said, answer):
    """Whether what was said begins with the answer's words: a model may go on after them."""
    words = answer.split()
    return said.split()[:len(words)] == words


class Answers:
    def __init__(self, troupe, folder):
        self.binary, self.folder = troupe, folder
        self._troupe = measured_run.Troupe(troupe, folder, "answers")
        self.say = self._troupe.say
        self.model = folder / "answers.gguf"
        self.names = [name for name in exercises.NAMES if (TASKS / f"{name}.jsonl").exists()]
        self.text = folder / "answers.txt"
        self._prepare()

    def _prepare(self):
        """The model with low copies, and what is calibrated: buddies, the gate of groups, the curve of `--quality`."""
        shutil.copy(MODEL, self.model)
        for path in self.folder.glob("answers.*"):
            if path != self.model:
                path.unlink()
        texts = [list(exercises.texts(name, TEXT_SEED, TEXT_CHARACTERS, held_out=False)) for name in self.names]
        self.text.write_text("\n".join(text for several in zip(*texts) for _, text in several) + "\n", encoding="utf-8")
        self.say("calibrating")
        run = measured_run.run
        run([str(word) for word in (self.binary, "pack", self.model, "--low", LOW)])
        self._troupe.record("calibrate", self.model, "--text", self.text)
        self._troupe.record("calibrate", self.model, "--text", self.text, "--groups", 4, "--ctx", 256)
        inspected = self._troupe.record("inspect", self.model)
        self.experts = inspected["experts"] * sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"])

    def fit_cut(self, layer):
        """Codecs of rows that cross before that layer; what each code loses is measured with them."""
        self.say("fitting codes of rows")
        self._troupe.record("calibrate", self.model, "--text", self.text, "--cut", layer, "--cut-window", 128)

    def slots(self, percent):
        return self.experts * percent // 100

    def _scored(self, items, *flags):
        files = [TASKS / f"{name}.jsonl" for name in self.names]
        record = self._troupe.record("eval", self.model, "--tasks", *files, "--items", items, "--threads", 1, "--predict", "none",
                                      *FILLED, *flags)
        changed = {key: record.get(key, 0) for key in ("substituted", "dropped", "low_assignments")}
        return {"right": {name: [answer["right"] for answer in task["answers"]] for name, task in zip(self.names, record["tasks"])},
                **changed, "grouped": record.get("grouped", 0), "chain": record["substitution"],
                "uses": record.get("use_hits", 0) + record.get("use_misses", 0) + changed["dropped"]}

    def given(self, items):
        """By share in memory, by way. Each token is computed by itself, as generated ones are; with low copies of prompts
        each question is one pass."""
        rows = {}
        for percent in RESIDENT:
            slots = ["--slots", self.slots(percent)]
            self.say(f"{percent} % of the experts in memory")
            rows[f"{percent}"] = {"exact": self._scored(items, *slots, "--together", 1)}
            for name, chain in CHAINS.items():
                rows[f"{percent}"][name] = self._scored(items, *slots, "--substitute", chain)
        half = ["--slots", self.slots(50)]
        for name, flags in ONCE.items():
            rows["50"][name] = self._scored(items, *half, *flags)
        self.say("the curve of --quality")
        self._troupe.record("calibrate", self.model, "--text", self.text, "--measure-quality", *QUALITY_MEASURED)
        for quality in QUALITIES:
            rows["50"][f"--quality {quality}"] = self._scored(items, *half, "--quality", quality)
        return {"chance": {name: chance(name) for name in self.names}, "rows": rows}
