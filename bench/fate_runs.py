"""The runs of bench/fate: several ways to have experts in time (fate_systems.py), links of several speeds. What is made
of the figures is fate_report.py's.
"""
import contextlib
import json
import pathlib
import shutil
import statistics
import typing

import disk_speed
import fate_pairs
import fate_systems
import measured_run
import offload_runs

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "tests/data/prose/mixed.txt"  # all figures are of it; on its first half the share of low copies is chosen
OTHER = ROOT / "tests/data/prose/questions.txt"  # calibrated on its first two thirds, settings chosen on the rest
MODEL = ("tiny-widened-q8_0.gguf",
         ["--widen", ROOT / "models/tiny-qwen2moe-q8_0.gguf", "--factor", 256])
PROMPT, DECODE = 128, 96
PREFILLS = (128, 256, 512)
BUDGETS = (25, 50, 75)  # % of the experts in memory
CHOSEN_WITH = (32, 48)  # tokens of prompt and answer that a setting is chosen with
PROMPT_CHOSEN_WITH = 256
SEED, OTHER_SEED = 1, 2
DISK = "this disk"
DISK_LAYER_TIMES = (2, 8)    # what an expert's load takes, in layer times, on links slower than the disk
TIER_LAYER_TIMES = (0.5, 2)  # the paper's two machines; of the medium that is held in memory


class Packed(typing.NamedTuple):
    model: pathlib.Path
    container: pathlib.Path
    profile: pathlib.Path


class Comparison:
    def __init__(self, troupe, folder, quick, memory_folder=pathlib.Path("/dev/shm")):
        self._memory_folder = memory_folder
        self._troupe = measured_run.Troupe(troupe, folder, "fate")
        self._binary, self._folder, self._quick = troupe, folder, quick
        # Systems take more rounds than the tables beside them, all of them the same: single runs vary by some percent.
        self._rounds, self._system_rounds = (1, 3) if quick else (2, 4)
        self._budgets, self._lengths = ((50,), (512,)) if quick else (BUDGETS, PREFILLS)
        name, arguments = MODEL
        model, container = offload_runs.make_model(troupe, folder / name, arguments)
        self._packed = Packed(model, container, folder / "fate.profile.json")
        self._calibrated_on, self._chosen_on = (folder / f"fate-{part}.txt" for part in ("calibrated", "chosen"))
        self._known_ids, self._prompts_differing, self._tokens = {}, 0, []

    def measure(self, tier_only=False, kept=None, keep=lambda figures: None):
        """Piece by piece; `keep` is told of the figures behind each. `kept`: those of a run that has ended early; its pieces
        are not measured again."""
        figures = kept or self._begin()
        self._tokens, self._prompts_differing = figures["token_ids"], figures["prompts_differing"]
        before = {count: figures[count] - getattr(self._troupe, count) for count in ("runs", "disturbed")}
        for name, piece in self._pieces(figures, tier_only):
            if name in figures["pieces"]:
                continue
            piece()
            figures["pieces"].append(name)
            figures["prompts_differing"] = self._prompts_differing
            figures |= {count: earlier + getattr(self._troupe, count) for count, earlier in before.items()}
            keep(figures)
        return figures

    def _pieces(self, figures, tier_only):
        """(name, what measures it): ratios are of systems within one piece, which meet the same machine."""
        pieces = [(f"held in memory, {times:g}", lambda times=times: self._measure_held(figures, times))
                  for times in TIER_LAYER_TIMES]
        if tier_only:
            return pieces
        links = {DISK: None} | {f"a link of {times:g} layer times an expert": self._bytes_per_s(figures, times)
                                for times in (() if self._quick else DISK_LAYER_TIMES)
                                if times not in figures["too_fast_for_the_disk"]}
        return [*((link, lambda link=link, rate=rate: self._measure_link(figures, link, rate))
                  for link, rate in links.items()), *pieces,
                ("one predictor", lambda: self._measure_caches(figures)),
                ("pairs", lambda: figures.update(pairs=self._pairs(figures["experts"] // 2)))]

    def _measure_caches(self, figures):
        self._troupe.say("one predictor with each cache")
        figures["same_predictor"] = self._decoded(fate_systems.SAME_PREDICTOR, figures["experts"] // 2, [], self._rounds)

    def _begin(self):
        """Calibrated, and with everything in memory: the answer, layers, experts in all, an expert's bytes and a
        layer's time."""
        lines = OTHER.read_text(encoding="utf-8").splitlines(keepends=True)
        parts = lines[:2 * len(lines) // 3], lines[2 * len(lines) // 3:]
        for path, text in zip((self._calibrated_on, self._chosen_on), parts):
            path.write_text("".join(text), encoding="utf-8")
        means = self._calibrate(self._packed)
        memory = self._generate(self._packed, self._ids(TEXT, PROMPT), DECODE, [])
        inspected = self._troupe.record("inspect", self._packed.model)
        layers = sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"])
        experts = layers * inspected["experts"]
        profile = json.loads(self._packed.profile.read_text(encoding="utf-8"))
        figures = {
            "calibration": {"means": means, "layers": profile["forecasts"]},
            "profile_keeps": [[share["share"], share["best"]] for share in profile["shallow"]],
            "layers": layers, "experts": experts,
            "expert_bytes": sum(l["expert_bytes"] for l in inspected["layer_bytes"]) // experts,
            "in_memory": memory["decode_tokens_per_s"], "layer_ms": 1e3 / memory["decode_tokens_per_s"] / layers,
            "rounds": self._rounds, "system_rounds": self._system_rounds,
            "links": {}, "decode": {}, "prefill": {}, "same_cache": {}, "keeping": {}, "chosen": {}, "tried": {},
            "token_ids": memory["token_ids"], "pieces": [], "prompts_differing": 0,
            "runs": self._troupe.runs, "disturbed": self._troupe.disturbed,
            "disk_bytes_per_s": disk_speed.sequential_bytes_per_s(self._packed.container, 1 << 30)}
        figures["too_fast_for_the_disk"] = [  # no link makes a disk faster
            times for times in (() if self._quick else DISK_LAYER_TIMES)
            if self._bytes_per_s(figures, times) > figures["disk_bytes_per_s"]]
        return figures

    def _calibrate(self, packed):
        self._troupe.say(f"calibrating {packed.model.name}")
        return self._troupe.record("calibrate", packed.model, "--text", self._calibrated_on, "-o", packed.profile)

    @staticmethod
    def _bytes_per_s(figures, layer_times):
        return 1e3 * figures["expert_bytes"] / (layer_times * figures["layer_ms"])

    def _measure_held(self, figures, times):
        """The experts held in memory, as the paper has them, behind a link of one of its two machines' speeds. Processors
        copy what is read there, so a link may be no faster than that."""
        with self._held_in_memory():
            if "copied_bytes_per_s" not in figures:
                figures["copied_bytes_per_s"] = disk_speed.copied_bytes_per_s(self._packed.container, 1 << 30)
            speed = figures["copied_bytes_per_s"]
            rate = self._bytes_per_s(figures, times)
            link = f"held in memory, {times:g} layer times an expert"
            self._measure_link(figures, link, rate if rate < speed else None)
            figures["links"][link] |= {"held": True, "wanted": times, "layer_times": times * max(1, rate / speed)}

    @contextlib.contextmanager
    def _held_in_memory(self):
        on_disk, copy = self._packed, self._memory_folder / "troupe-fate.experts"
        size = on_disk.container.stat().st_size
        if shutil.disk_usage(self._memory_folder).free < size:
            raise measured_run.RunFailed(f"{self._memory_folder}: no room for {size >> 20} MiB of experts; "
                                         "--memory-folder names another tmpfs")
        self._troupe.say(f"holding {size >> 20} MiB of experts in {self._memory_folder}")
        try:
            shutil.copyfile(on_disk.container, copy)
            self._packed = on_disk._replace(container=copy)
            yield
        finally:
            self._packed = on_disk
            copy.unlink(missing_ok=True)

    def _measure_link(self, figures, link, rate):
        """Both tables of decode for each budget, and prompts, behind a link of that many bytes a second, if any."""
        throttle = [] if rate is None else ["--link", str(int(rate))]
        figures["links"][link] = {"arguments": throttle, "held": False}
        decode, same, keeping, chosen, tried = {}, {}, {}, {}, {}
        for budget in self._budgets:
            slots = figures["experts"] * budget // 100
            self._troupe.say(f"{link}, {budget} %: choosing settings")
            chosen[budget], tried[budget] = self._choose(self._packed, slots, throttle, CHOSEN_WITH, "decode_tokens_per_s")
            self._troupe.say(f"{link}, {budget} %: decode")
            systems, settings = fate_systems.with_settings(chosen[budget])
            decode[budget] = self._decoded(systems, slots, throttle, self._system_rounds)
            for name, figure in decode[budget].items():
                figure["settings"] = settings[name]
            same[budget] = self._decoded(fate_systems.same_cache(self._quick), slots, throttle, self._rounds)
            keeping[budget] = self._decoded(fate_systems.KEEPING, slots, throttle, self._system_rounds)
        figures["decode"][link], figures["same_cache"][link], figures["keeping"][link] = decode, same, keeping
        figures["tried"][link] = tried
        figures["chosen"][link] = {budget: {name: str(setting) for name, setting in settings.items()}
                                   for budget, settings in chosen.items()}
        for_prompts = chosen[50]
        if not self._quick:
            for_prompts = self._choose_for_prompts(self._packed, figures["experts"] // 2, throttle, link)
        figures["prefill"][link] = self._prefill(self._packed, *fate_systems.for_prompts(for_prompts),
                                                 figures["experts"] // 2, throttle, link)

    def _choose_for_prompts(self, packed, slots, throttle, where):
        self._troupe.say(f"{where}: choosing settings for prompts")
        return self._choose(packed, slots, throttle, (PROMPT_CHOSEN_WITH, 1), "prefill_tokens_per_s")[0]

    def _choose(self, packed, slots, throttle, tokens, speed):
        """The fastest setting of each system that may choose, on another text with another seed; and all that were
        tried."""
        prompt, count = tokens
        chosen, tried = {}, {}
        for name, system in fate_systems.CHOOSING.items():
            tried[name] = {}
            best = -1.0
            for setting in fate_systems.grid(name, self._quick):
                record = self._limited(packed, self._ids(self._chosen_on, prompt, packed), count, slots,
                                       [*system, *setting.arguments()], throttle, OTHER_SEED)
                tried[name][str(setting)] = record[speed]
                if record[speed] > best:
                    best, chosen[name] = record[speed], setting
        return chosen, tried

    def _ids(self, text, count, packed=None):
        """A text's first tokens, as a model's own vocabulary has them."""
        model = (packed or self._packed).model
        if (model, text) not in self._known_ids:
            record = self._troupe.record("run", model, "--file", text, "-n", 1, "--ctx", 4096)
            self._known_ids[model, text] = record["prompt_ids"]
        ids = self._known_ids[model, text][:count]
        if len(ids) < count:
            raise measured_run.RunFailed(f"{text}: {len(ids)} tokens, {count} needed")
        return ids

    def _generate(self, packed, ids, count, arguments, seed=SEED):
        arguments = [part for a in arguments
                     for part in (["--profile", str(packed.profile)] if a == fate_systems.PROFILE else [a])]
        if "--profile" not in arguments:
            arguments += ["--profile", "none"]
        return self._troupe.record(
            "run", packed.model, "--prompt-ids", ",".join(map(str, ids)), "-n", count,
            "--ctx", 1024, "--temperature", 0.7, "--seed", seed, "--ignore-eos", "--speculate", "off",
            *arguments)

    def _limited(self, packed, ids, count, slots, system, link, seed=SEED):
        memory = [] if "--slots" in system else ["--slots", slots]
        return self._generate(packed, ids, count, ["--experts", packed.container, *memory, *system, *link], seed)

    @staticmethod
    def _in_turns(rounds, systems, run):
        """Records by system; what the machine does meanwhile meets all of them alike."""
        records = {name: [] for name in systems}
        for _ in range(rounds):
            for name, system in systems.items():
                records[name].append(run(system))
        return records

    def _decoded(self, systems, slots, link, rounds):
        records = self._in_turns(rounds, systems, lambda system: self._limited(
            self._packed, self._ids(TEXT, PROMPT), DECODE, slots, system, link))
        return with_ratios({name: decode_figures(runs, self._tokens) for name, runs in records.items()})

    def _prompt_figures(self, packed, length, systems, slots, link):
        """By system; counts the answers that differ from those with everything in memory."""
        ids = self._ids(TEXT, length, packed)
        first = self._generate(packed, ids, 1, [])["token_ids"]
        records = self._in_turns(self._system_rounds, systems, lambda system: self._limited(
            packed, ids, 1, slots, system, link))
        exact = [r for name, runs in records.items() for r in runs if name not in fate_systems.INEXACT]
        self._prompts_differing += sum(r["token_ids"] != first for r in exact)
        return with_ratios({name: prompt_figures(runs, length) for name, runs in records.items()})

    def _pairs(self, slots):
        """Prompts with the least popular experts in their low copy, against systems with the high ones alone."""
        self._troupe.say("a pair of precisions")
        high, container, said = fate_pairs.packed(self._troupe, self._binary, self._folder)
        packed = Packed(high, container, self._folder / "fate-pairs.profile.json")
        self._calibrate(packed)
        share, loss, all_low = fate_pairs.low_share(self._troupe, self._folder, TEXT, packed)
        systems, settings = fate_systems.for_prompts(self._choose_for_prompts(packed, slots, [], "pairs"))
        systems, settings = fate_systems.with_pairs(systems, settings, share)
        kept = ("high_type", "low_type", "matrices_in_fallback_types", "expert_bytes", "low_expert_bytes", "seconds")
        return {"share": share, "loss": loss, "all_low": all_low, "pack": {key: said[key] for key in kept},
                "prefill": self._prefill(packed, systems, settings, slots, [], "pairs")}

    def _prefill(self, packed, systems, settings, slots, link, where):
        table = {}
        for length in self._lengths:
            self._troupe.say(f"{where}: prefill of {length}")
            table[length] = self._prompt_figures(packed, length, systems, slots, link)
            for system, figure in table[length].items():
                figure["settings"] = settings[system]
        return table


def decode_figures(records, tokens):
    record = records[0]
    decode = record["decode"]
    asked = decode["expert_hits"] + decode["expert_misses"]
    speeds = [r["decode_tokens_per_s"] for r in records]
    result = {
        "tokens_per_s": statistics.median(speeds), "speeds": speeds,
        "hit_rate": decode["expert_hits"] / asked if asked else 1.0,
        "late": decode["prefetch_late"] / asked if asked else 0.0,
        "MiB_per_token": decode["bytes_read"] / 2**20 / max(1, record["decode_steps"]),
        "stall_ms": 1e3 * decode["stall_s"] / max(1, record["decode_steps"]),
        "gates_ms": statistics.median(1e3 * r["gate_s"] for r in records),  # of the whole run
        "layer_hits": [hits / asks for hits, asks in zip(decode["layer_hits"], decode["layer_asks"])
                       if asks],
        "differing": sum(r["token_ids"] != tokens for r in records)}
    if decode["experts_asked_for"]:
        # All asks count, those of the first layer too and while the governor rests.
        result["guessed"] = decode["experts_guessed"] / decode["experts_asked_for"]
        asks = [asks for asks in decode["layer_asks"] if asks]
        result["first_layer_asks"] = asks[0] / sum(asks) if asks else 0.0
    return result


def prompt_figures(records, length):
    speeds = [r["prefill_tokens_per_s"] for r in records]
    speed = statistics.median(speeds)
    return {"tokens_per_s": speed, "speeds": speeds, "MiB": statistics.median(r["bytes_read"] for r in records) / 2**20,
            "time_ms": 1e3 * length / speed, "stall_ms": statistics.median(1e3 * r["stall_s"] for r in records)}


def with_ratios(figures):
    """Of what is held to nothing read ahead: the ratio of its speed in each round."""
    nothing = figures.get(fate_systems.NOTHING)
    if nothing:
        for name in (*fate_systems.AS_USED, fate_systems.WRONG):
            if name in figures:
                figures[name]["over_nothing"] = [mine / its for mine, its in zip(figures[name]["speeds"], nothing["speeds"])]
    return figures
