"""What bench/offload makes of its measurements: medians, ratios, bounds, bars.

Pure: measurements come in as the two programs' records. How they are shown is offload_table.py's.
"""
import dataclasses
import statistics

# What has to be reached: times llama.cpp's tokens/s under the same memory limit, ...
DECODE_BAR, PREFILL_BAR = 10.0, 3.0
PREFILL_SHARE = 0.5  # of the experts in memory: where prefill is measured
DISK_BAR = 0.9       # of the speed of sequential reads, while at least one read is under way
BOUND_BAR = 1.25     # times the greater of computing and reading, per token
IN_MEMORY_BAR = 0.97  # with a budget that everything fits in, over without one
PEAK_BAR = 1.0       # times the budget

# Troupe's ways to read experts. Bars are for the first one; the second stands beside it. Through
# the third, a link that is slower than the disk and always equally fast, reading is held to its
# bars on machines whose disk has no speed that one could name.
PACKED, IN_PLACE, LINK = "packed", "GGUF in place", "packed, through a link"
HELD_STORE = PACKED


def median(values):
    return statistics.median(values) if values else 0.0


@dataclasses.dataclass
class TroupeRuns:
    """Runs of the same tokens with one budget out of one store."""
    records: list = dataclasses.field(default_factory=list)     # of `troupe run --json`, decoding
    prefills: list = dataclasses.field(default_factory=list)    # the same, of a long prompt
    disk: list = dataclasses.field(default_factory=list)        # bytes/s of sequential reads

    def decode_speed(self):
        return median([r["decode_tokens_per_s"] for r in self.records])

    def prefill_speed(self):
        return median([r["prefill_tokens_per_s"] for r in self.prefills])

    def _per_token(self, key):
        # The first token comes out of the prompt; each other one is a step of decoding.
        return median([r["decode"][key] / max(1, len(r["token_ids"]) - 1) for r in self.records])

    def bytes_per_token(self):
        return self._per_token("bytes_read")

    def loads_per_token(self):
        """Experts that a token needed and that were not in memory, read on demand or ahead."""
        return self._per_token("expert_misses") + self._per_token("prefetch_useful")

    def late_per_token(self):
        return self._per_token("prefetch_late")

    def stall_per_token(self):
        return self._per_token("stall_s")

    def where_time_goes(self):
        """What a missed bar is explained by."""
        return (f"hits {self.hit_rate():.1%}, {self.late_per_token():.1f} experts a token still on their way, "
                f"{self.bytes_per_token() / 2**20:.1f} MiB read a token, {1e3 * self.stall_per_token():.1f} of "
                f"{1e3 / self.decode_speed():.1f} ms waiting")

    def hit_rate(self):
        hits = sum(r["decode"]["expert_hits"] for r in self.records)
        asked = hits + sum(r["decode"]["expert_misses"] for r in self.records)
        return hits / asked if asked else 1.0

    def peak_over_budget(self):
        return max(r["peak_rss_bytes"] / r["memory_budget_bytes"]
                   for r in self.records + self.prefills)

    def disk_speed(self):
        return median(self.disk)

    def read_speed(self):
        """Bytes/s of decoding while at least one read was under way."""
        return median([r["decode"]["bytes_read"] / r["decode"]["reading_s"] for r in self.records
                       if r["decode"]["reading_s"] > 0])

    def disk_share(self):
        return self.read_speed() / self.disk_speed()

    def prefill_disk_share(self):
        """The same of long prompts."""
        return median([r["bytes_read"] / r["reading_s"] for r in self.prefills
                       if r["reading_s"] > 0]) / self.disk_speed()


@dataclasses.dataclass
class PeerRuns:
    """llama.cpp's runs in one configuration under one limit."""
    decode: list = dataclasses.field(default_factory=list)   # tokens/s
    prefill: list = dataclasses.field(default_factory=list)  # tokens/s
    tokens: list = dataclasses.field(default_factory=list)   # that its time has allowed in decode

    def take_decode(self, record):
        self.decode.append(record["decode_tokens_per_s"])
        self.tokens.append(record["decoded_tokens"])


@dataclasses.dataclass
class Budget:
    """One share of the experts in memory."""
    share: float
    budget_bytes: int = 0
    limit_bytes: int = 0  # of troupe's cgroup; llama.cpp's is larger by what runs it
    stores: dict = dataclasses.field(default_factory=dict)  # name -> TroupeRuns
    peers: dict = dataclasses.field(default_factory=dict)   # configuration -> PeerRuns

    def held(self):
        return self.stores[HELD_STORE]

    def best_peer(self, phase):
        return max(median(getattr(runs, phase)) for runs in self.peers.values())

    def decode_ratio(self, store=HELD_STORE):
        return self.stores[store].decode_speed() / self.best_peer("decode")

    def held_to_reading(self):
        """(name, runs) of the ways to read that have to keep their medium busy."""
        return [(name, runs) for name, runs in self.stores.items() if name != IN_PLACE]

    def has_prefill(self):
        return bool(self.held().prefills)

    def prefill_ratio(self, store=HELD_STORE):
        return self.stores[store].prefill_speed() / self.best_peer("prefill")


class Offload:
    """One model: what it does with everything in memory, and with less."""

    def __init__(self, name, routing, file_bytes, inspected):
        self.name = name
        self.routing = routing  # what its experts are chosen by, in words
        self.file_bytes = file_bytes
        self.expert_bytes = inspected["one_expert_bytes"]
        self.bytes_touched = inspected["bytes_per_token"]
        self.peer_program_bytes = 0  # of what runs llama.cpp, before it loads a model
        self.unlimited = []  # tokens/s, without --memory
        self.roomy = []      # tokens/s, with a budget that everything fits in
        self.budgets = []
        self.runs = 0
        self.disturbed = 0   # of them, during which others took more than a tenth of a processor
        self.differing = 0   # runs that gave other tokens than the one without limit

    def in_memory_ratio(self):
        return median(self.roomy) / median(self.unlimited)

    def compute_seconds(self):
        """Of a token, everything in memory."""
        return 1 / median(self.unlimited)

    def needed_seconds(self, runs):
        """Of a token, to read what it needs and has not in memory."""
        return runs.loads_per_token() * self.expert_bytes / runs.disk_speed()

    def bound_ratio(self, runs):
        """A token's time over the least that computing or reading what it needs would take."""
        return 1 / runs.decode_speed() / max(self.compute_seconds(), self.needed_seconds(runs))

    def missed_bars(self):
        missed = []

        def hold(value, bar, at_least, what, reason):
            if value < bar if at_least else value > bar:
                missed.append(f"{self.name}: {what} {value:.2f}, "
                              f"{'at least' if at_least else 'at most'} {bar}; {reason}")

        for budget in self.budgets:
            at, held = f"at {budget.share:.0%} of the experts", budget.held()
            hold(budget.decode_ratio(), DECODE_BAR, True, f"decode {at}",
                 f"{held.decode_speed():.1f} tokens/s against {budget.best_peer('decode'):.2f}, all in memory "
                 f"{median(self.unlimited):.1f}; {held.where_time_goes()}")
            if budget.has_prefill():
                hold(budget.prefill_ratio(), PREFILL_BAR, True, f"prefill {at}",
                     f"{held.prefill_speed():.1f} tokens/s against {budget.best_peer('prefill'):.1f}; "
                     f"{held.prefill_disk_share():.0%} of the disk's speed")
            for store, runs in budget.held_to_reading():
                hold(runs.disk_share(), DISK_BAR, True, f"share of the disk's speed {at}, {store}",
                     runs.where_time_goes())
                if runs.prefills:
                    hold(runs.prefill_disk_share(), DISK_BAR, True,
                         f"prefill's share of the disk's speed {at}, {store}",
                         f"{runs.prefill_speed():.1f} tokens/s, {median([r['bytes_read'] for r in runs.prefills]) / 2**20:.0f} MiB read")
                hold(self.bound_ratio(runs), BOUND_BAR, False, f"time over its bound {at}, {store}",
                     f"computing alone takes {1e3 * self.compute_seconds():.1f} ms, reading what is missing "
                     f"{1e3 * self.needed_seconds(runs):.1f}; {runs.where_time_goes()}")
            hold(max(r.peak_over_budget() for r in budget.stores.values()), PEAK_BAR, False,
                 f"peak over budget {at}", f"the budget is {budget.budget_bytes >> 20} MiB")
        hold(self.in_memory_ratio(), IN_MEMORY_BAR, True, "speed in memory with a budget",
             f"{median(self.roomy):.1f} against {median(self.unlimited):.1f} tokens/s")
        if self.differing:
            missed.append(f"{self.name}: {self.differing} runs gave other tokens than in memory")
        return missed

    def as_dict(self):
        return {
            "model": self.name,
            "routing": self.routing,
            "file_bytes": self.file_bytes,
            "one_expert_bytes": self.expert_bytes,
            "peer_program_bytes": self.peer_program_bytes,
            "unlimited_tokens_per_s": self.unlimited,
            "roomy_tokens_per_s": self.roomy,
            "in_memory_ratio": self.in_memory_ratio(),
            "runs": self.runs,
            "disturbed_runs": self.disturbed,
            "runs_with_other_tokens": self.differing,
            "budgets": [{
                **dataclasses.asdict(b),
                "ratios": {store: {
                    "decode": b.decode_ratio(store) if store != LINK else None,
                    "prefill": b.prefill_ratio(store) if runs.prefills else None,
                    "of_disk": runs.disk_share(),
                    "prefill_of_disk": runs.prefill_disk_share() if runs.prefills else None,
                    "time_over_bound": self.bound_ratio(runs),
                    "peak_over_budget": runs.peak_over_budget(),
                } for store, runs in b.stores.items()},
            } for b in self.budgets],
            "missed_bars": self.missed_bars(),
        }


def missed_bars(models):
    return [missed for model in models for missed in model.missed_bars()]
