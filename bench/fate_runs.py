"""The runs of bench/fate: one model, several ways to have its experts in time, links of several
speeds. What is made of the figures is fate_report.py's.
"""
import contextlib
import json
import pathlib
import shutil
import statistics

import disk_speed
import measured_run
import offload_runs

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "tests/data/prose/mixed.txt"
CALIBRATED_ON = ROOT / "tests/data/prose/questions.txt"  # other text than what is run
MODEL = ("tiny-widened-q8_0.gguf",
         ["--widen", ROOT / "models/tiny-qwen2moe-q8_0.gguf", "--factor", 256])
PROMPT, DECODE = 128, 96
PREFILLS = (128, 256, 512)
BUDGETS = (25, 50, 75)  # % of the experts in memory
# What one expert's load takes of a layer's time on the paper's two machines, and a slower one.
LAYER_TIMES = (0.5, 2, 8)
TIER_LAYER_TIMES = LAYER_TIMES[0]  # of the medium that is held in memory
SHALLOW = 3             # layers kept fully by Fate, as the paper has it for Qwen1.5-MoE

# What each system is made of; slots beside the budget's where it has no cache to speak of.
SYSTEMS = {
    "on demand, no cache": ["--predict", "none", "--cache", "lru", "--slots", "8"],
    "on demand": ["--predict", "none", "--cache", "lru"],
    "activation paths": ["--predict", "eap", "--ungoverned", "--cache", "arc",
                         "--shallow", str(SHALLOW), "PROFILE"],
    "Fate": ["--predict", "gate", "--ungoverned", "--cache", "arc", "--shallow", str(SHALLOW)],
    "troupe": [],
    "troupe, profile": ["PROFILE"],
    "troupe, wrong guesses": ["--predict", "wrong"],
}
# The pair of precisions, both made from the model above, and how much of perplexity it may cost.
HIGH, LOW, MOST_LOSS_PERCENT = "Q4_K", "Q2_K", 1
PAIRS = "troupe, pairs"
# Our parts one on top of the other, then each off by itself, at one budget.
ABLATION = {
    "on demand": ["--predict", "none", "--cache", "lru"],
    "+ reading ahead": ["--cache", "lru"],
    "+ keeping what comes back: all": [],
    "one layer ahead, uncorrected": ["--predict", "gate"],
    "nothing read ahead": ["--predict", "none"],
    "ARC": ["--cache", "arc"],
    "shallow layers kept fully": ["--shallow", str(SHALLOW)],
    "not governed": ["--ungoverned"],
}


class Comparison:
    def __init__(self, troupe, folder, quick, memory_folder=pathlib.Path("/dev/shm")):
        self._memory_folder = memory_folder
        self._troupe = measured_run.Troupe(troupe, folder, "fate")
        self._folder, self._quick = folder, quick
        self._rounds, self._prompt_rounds = (1, 1) if quick else (2, 5)  # a prompt takes about a second
        name, arguments = MODEL
        self._model, self._container = offload_runs.make_model(troupe, folder / name, arguments)
        self._profile = folder / "fate.profile.json"
        self._prompts_differing = 0

    def _look(self):
        """With everything in memory: the record, layers, experts in all, an expert's bytes and a layer's seconds."""
        self._ids = self._prompt_ids()
        memory = self._generate(self._ids[:PROMPT], DECODE, [])
        inspected = self._troupe.record("inspect", self._model)
        layers = sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"])
        experts = layers * inspected["experts"]
        expert_bytes = sum(l["expert_bytes"] for l in inspected["layer_bytes"]) // experts
        return memory, layers, experts, expert_bytes, 1 / memory["decode_tokens_per_s"] / layers

    def measure_tier(self):
        self._calibrate()
        memory, _, experts, expert_bytes, layer_s = self._look()
        tier = self._memory_tier(experts, expert_bytes, layer_s, memory["token_ids"])
        return {**tier, "prompts_differing": self._prompts_differing, "disturbed": self._troupe.disturbed}

    def _memory_tier(self, experts, expert_bytes, layer_s, tokens):
        """The experts held in memory, behind a link on which one takes half of a layer's time, if copying is so fast."""
        wanted = expert_bytes / (TIER_LAYER_TIMES * layer_s)
        with self._held_in_memory():
            speed = disk_speed.copied_bytes_per_s(self._container, 1 << 30)
            link = ["--link", str(int(wanted))] if speed > wanted else []
            return {"layer_times": max(TIER_LAYER_TIMES, expert_bytes / speed / layer_s), "bytes_per_s": speed,
                    "decode": self._decode(experts, link, tokens), "prefill": self._prefill(experts, link)}

    @contextlib.contextmanager
    def _held_in_memory(self):
        size, copy, on_disk = self._container.stat().st_size, self._memory_folder / "troupe-fate.experts", self._container
        if shutil.disk_usage(self._memory_folder).free < size:
            raise measured_run.RunFailed(f"{self._memory_folder}: no room for {size >> 20} MiB of experts; "
                                         "--memory-folder names another tmpfs")
        self._troupe.say(f"holding {size >> 20} MiB of experts in {self._memory_folder}")
        try:
            shutil.copyfile(on_disk, copy)
            self._container = copy
            yield
        finally:
            self._container = on_disk
            copy.unlink(missing_ok=True)

    def measure(self):
        calibration = self._calibrate()
        memory, layers, experts, expert_bytes, layer_s = self._look()
        links = {"this disk": []}
        disk = disk_speed.sequential_bytes_per_s(self._container, 1 << 30)
        too_fast = []
        for times in LAYER_TIMES:
            # Bytes a second at which one expert takes so many layers' time.
            rate = expert_bytes / (times * layer_s)
            if rate > disk:  # no link makes a disk faster
                too_fast.append(times)
                continue
            links[f"{times:g} layer times an expert"] = ["--link", str(int(rate))]
        figures = {"calibration": calibration, "layers": layers, "experts": experts,
                   "layer_ms": 1e3 * layer_s, "expert_bytes": expert_bytes,
                   "in_memory": memory["decode_tokens_per_s"],
                   "links": {name: link[1:] for name, link in links.items()},
                   "disk_bytes_per_s": disk, "too_fast_for_the_disk": too_fast,
                   "decode": {}, "prefill": {}, "ablation": {}}
        for link, arguments in links.items():
            figures["decode"][link] = self._decode(experts, arguments, memory["token_ids"])
            figures["prefill"][link] = self._prefill(experts, arguments)
        figures["tier"] = self._memory_tier(experts, expert_bytes, layer_s, memory["token_ids"])
        figures["ablation"] = self._ablation(experts, memory["token_ids"])
        figures["pairs"] = self._pairs(experts)
        figures["prompts_differing"] = self._prompts_differing
        figures["disturbed"] = self._troupe.disturbed
        return figures

    def _calibrate(self):
        self._troupe.say("calibrating")
        record = self._troupe.record("calibrate", self._model, "--text", CALIBRATED_ON, "-o", self._profile)
        profile = json.loads(self._profile.read_text(encoding="utf-8"))
        return {"means": record, "layers": profile["forecasts"]}

    def _prompt_ids(self):
        record = self._troupe.record("run", self._model, "--file", TEXT, "-n", 1)
        return record["prompt_ids"]

    def _generate(self, ids, count, arguments, model=None):
        arguments = ["--profile" if a == "PROFILE" else a for a in arguments]
        if "--profile" in arguments:
            arguments.insert(arguments.index("--profile") + 1, str(self._profile))
        else:
            arguments += ["--profile", "none"]
        return self._troupe.record(
            "run", model or self._model, "--prompt-ids", ",".join(map(str, ids)), "-n", count,
            "--ctx", 1024, "--temperature", 0.7, "--seed", 1, "--ignore-eos", "--speculate", "off",
            *arguments)

    def _limited(self, ids, count, slots, system, link):
        memory = [] if "--slots" in system else ["--slots", slots]
        return self._generate(ids, count, ["--experts", self._container, *memory, *system, *link])

    @staticmethod
    def _in_turns(rounds, systems, run):
        """Records by system; what the machine does meanwhile meets all of them alike."""
        records = {name: [] for name in systems}
        for _ in range(rounds):
            for name, system in systems.items():
                records[name].append(run(name, system))
        return records

    @staticmethod
    def _figures(records, tokens):
        record = records[0]
        decode = record["decode"]
        asked = decode["expert_hits"] + decode["expert_misses"]
        result = {
            "tokens_per_s": statistics.median(r["decode_tokens_per_s"] for r in records),
            "hit_rate": decode["expert_hits"] / asked if asked else 1.0,
            "late": decode["prefetch_late"] / asked if asked else 0.0,
            "MiB_per_token": decode["bytes_read"] / 2**20 / max(1, record["decode_steps"]),
            "stall_ms": 1e3 * decode["stall_s"] / max(1, record["decode_steps"]),
            "layer_hits": [hits / asks for hits, asks in zip(decode["layer_hits"], decode["layer_asks"])
                           if asks],
            "differing": sum(r["token_ids"] != tokens for r in records)}
        if decode["experts_asked_for"]:
            result["expected"] = decode["experts_expected"] / decode["experts_asked_for"]
            result["guessed"] = decode["experts_guessed"] / decode["experts_asked_for"]
        return result

    def _decoded(self, systems, slots, link, tokens):
        records = self._in_turns(self._rounds, systems, lambda _, system: self._limited(
            self._ids[:PROMPT], DECODE, slots, system, link))
        return {name: self._figures(runs, tokens) for name, runs in records.items()}

    def _decode(self, experts, link, tokens):
        table = {}
        for budget in (50,) if self._quick else BUDGETS:
            self._troupe.say(f"decode, {budget} % of the experts, link {link or 'this disk'}")
            table[budget] = self._decoded(SYSTEMS, experts * budget // 100, link, tokens)
        return table

    def _prompt_speeds(self, length, systems, run, model=None):
        """Tokens/s by system, and how many answers differ from those with everything in memory."""
        first = self._generate(self._ids[:length], 1, [], model)["token_ids"]
        records = self._in_turns(self._prompt_rounds, systems, run)
        exact = [r for name, runs in records.items() for r in runs if name != PAIRS]
        self._prompts_differing += sum(r["token_ids"] != first for r in exact)
        return {name: statistics.median(r["prefill_tokens_per_s"] for r in runs)
                for name, runs in records.items()}

    def _prefill(self, experts, link):
        table = {}
        for length in (512,) if self._quick else PREFILLS:
            self._troupe.say(f"prefill of {length}, link {link or 'this disk'}")
            table[length] = self._prompt_speeds(length, SYSTEMS, lambda _, system: self._limited(
                self._ids[:length], 1, experts // 2, system, link))
        return table

    def _pairs(self, experts):
        """Prompts with the least popular experts in their low copy, against systems with the high ones alone."""
        self._troupe.say("packing two precisions")
        high = self._model.with_name(f"{self._model.stem}-{HIGH.lower()}.gguf")
        container = high.with_suffix(".experts")
        made_of = self._model.stat().st_mtime
        if not all(path.exists() and path.stat().st_mtime > made_of for path in (high, container)):
            # Rounding that looks for the least error takes an hour on so many weights, most of which are zero.
            self._troupe.record("pack", self._model, "--high", HIGH, "--low", LOW,
                                "--rounding", "plain", "-o", container)
        share, loss = self._low_share(high, container, experts)
        # The profile is of the other model.
        systems = {name: [part for part in system if part != "PROFILE"]
                   for name, system in SYSTEMS.items() if system != ["PROFILE"]}
        systems[PAIRS] = ["--low-copy", f"prefill={share}"]
        table = {}
        for length in (512,) if self._quick else PREFILLS:
            self._troupe.say(f"prefill of {length} with a pair of precisions")

            def run(_, system):
                slots = [] if "--slots" in system else ["--slots", experts // 2]
                return self._generate(self._ids[:length], 1, ["--experts", container, *slots, *system], high)

            table[length] = self._prompt_speeds(length, systems, run, high)
        return {"share": share, "loss": loss, "prefill": table}

    def _low_share(self, model, container, experts):
        """The share whose loss is allowed on one half of the text, and its loss on the other."""
        lines = TEXT.read_text(encoding="utf-8").splitlines(keepends=True)
        halves = [self._folder / f"fate-text-{i}.txt" for i in (1, 2)]
        for i, half in enumerate(halves):
            half.write_text("".join(lines[i::2]), encoding="utf-8")
        common = ["--experts", container, "--slots", experts // 4, "--profile", "none"]
        found = self._troupe.record("eval", model, "--text", halves[0], *common,
                                    "--find-low-share", MOST_LOSS_PERCENT)
        logits = self._folder / "fate-exact.logits"
        self._troupe.record("eval", model, "--text", halves[1], *common, "--logits", logits)
        low = self._troupe.record("eval", model, "--text", halves[1], *common, "--reference", logits,
                                  "--low-copy", f"prefill={found['low_share']}")
        logits.unlink()
        return found["low_share"], {"ratio": low["perplexity_ratio"], "mean_kl": low["mean_kl"],
                                    "interval": low["perplexity_ratio_interval"]}

    def _ablation(self, experts, tokens):
        self._troupe.say("ablation")
        return self._decoded(ABLATION, experts // 2, [], tokens)
