"""What bench/vs_llamacpp makes of its measurements: medians, ratios, bars, the table.

Pure: measurements come in as the two programs' reports, text goes out.
"""
import dataclasses
import statistics

# What troupe has to reach: times llama.cpp's best tokens/s, times the size of the file.
DECODE_BAR, PREFILL_BAR, MEMORY_BAR = 2.0, 1.5, 1.1

# Another program that took more of a processor than this may have changed a figure.
DISTURBED = 0.1


@dataclasses.dataclass
class Measurements:
    """All runs of one program in one configuration."""
    prefill: list = dataclasses.field(default_factory=list)  # tokens/s
    decode: list = dataclasses.field(default_factory=list)   # tokens/s
    peak_rss: list = dataclasses.field(default_factory=list)  # bytes, as the kernel counted them
    others: list = dataclasses.field(default_factory=list)   # processors others kept busy

    def add(self, prefill, decode, peak_rss, others):
        self.prefill += prefill
        self.decode += decode
        self.peak_rss.append(peak_rss)
        self.others.append(others)

    def speed(self, phase):
        return statistics.median(getattr(self, phase))


class Comparison:
    """One model: troupe's runs, llama.cpp's runs by configuration, and how they relate."""

    def __init__(self, name, file_bytes):
        self.name = name
        self.file_bytes = file_bytes
        self.troupe = Measurements()
        self.llamacpp = {}
        self.bytes_per_token = 0
        self.bandwidths = []  # bytes/s that troupe's threads can read, once a run

    def add_troupe(self, report, run):
        self.troupe.add(report["prefill"][0]["tokens_per_s"], report["decode"][0]["tokens_per_s"],
                        report["peak_rss_bytes"], run.others)
        self.bytes_per_token = report["bytes_touched_per_token"]
        self.bandwidths.append(report["read_bandwidth_bytes_per_s"])

    def add_llamacpp(self, config, report, run):
        self.llamacpp.setdefault(config, Measurements()).add(
            report["prefill"], report["decode"], report["peak_rss_bytes"], run.others)

    def best(self, phase):
        """The configuration in which llama.cpp is fastest at `phase`."""
        return max(self.llamacpp, key=lambda config: self.llamacpp[config].speed(phase))

    def is_best_at_something(self, config):
        return config in (self.best("prefill"), self.best("decode"))

    def ratio(self, phase, config=None):
        """Troupe's speed over llama.cpp's, in its best configuration unless one is named."""
        return self.troupe.speed(phase) / self.llamacpp[config or self.best(phase)].speed(phase)

    def memory_over_file(self):
        return max(self.troupe.peak_rss) / self.file_bytes

    def bandwidth_share(self, decode_speed):
        return decode_speed * self.bytes_per_token / statistics.median(self.bandwidths)

    def missed_bars(self):
        missed = []
        for phase, bar in (("decode", DECODE_BAR), ("prefill", PREFILL_BAR)):
            if self.ratio(phase) < bar:
                missed.append(f"{self.name}: {phase} {self.ratio(phase):.2f}x, at least {bar}x")
        if self.memory_over_file() > MEMORY_BAR:
            missed.append(f"{self.name}: memory {self.memory_over_file():.2f}x the file, at most "
                          f"{MEMORY_BAR}x")
        return missed

    def disturbed_runs(self):
        everything = [self.troupe, *self.llamacpp.values()]
        return sum(others > DISTURBED for m in everything for others in m.others)

    def as_dict(self):
        return {
            "model": self.name,
            "file_bytes": self.file_bytes,
            "bytes_touched_per_token": self.bytes_per_token,
            "read_bandwidth_bytes_per_s": self.bandwidths,
            "troupe": dataclasses.asdict(self.troupe),
            "llamacpp": {c.name: dataclasses.asdict(m) for c, m in self.llamacpp.items()},
            "ratios": {
                "decode": self.ratio("decode"),
                "prefill": self.ratio("prefill"),
                "memory_over_file": self.memory_over_file(),
            },
            "missed_bars": self.missed_bars(),
        }


def missed_bars(comparisons):
    return [missed for c in comparisons for missed in c.missed_bars()]


def _row(cells):
    return "  ".join([f"{cells[0]:<32}"] + [f"{cell:>12}" for cell in cells[1:]])


def table(comparisons):
    lines = []
    for c in comparisons:
        lines += [
            f"{c.name}: file {c.file_bytes / 1e6:.0f} MB, {c.bytes_per_token / 1e6:.1f} MB touched "
            f"per token, threads read {statistics.median(c.bandwidths) / 1e9:.1f} GB/s",
            _row(["", "decode tok/s", "GB/s", "of bandwidth", "prefill t/s", "peak / file"])]
        for name, m in [("troupe", c.troupe),
                        *((f"llama.cpp {config.name}", m) for config, m in c.llamacpp.items())]:
            decode = m.speed("decode")
            lines.append(_row([
                name, f"{decode:.1f}", f"{decode * c.bytes_per_token / 1e9:.1f}",
                f"{c.bandwidth_share(decode):.0%}", f"{m.speed('prefill'):.1f}",
                f"{max(m.peak_rss) / c.file_bytes:.2f}"]))
        lines.append(_row(["troupe / best llama.cpp", f"{c.ratio('decode'):.2f}x", "", "",
                           f"{c.ratio('prefill'):.2f}x", ""]))
        shipped = next((config for config in c.llamacpp if config.as_shipped), None)
        lines.append(_row(["troupe / llama.cpp as shipped", f"{c.ratio('decode', shipped):.2f}x",
                           "", "", f"{c.ratio('prefill', shipped):.2f}x", ""]))
        if c.disturbed_runs():
            lines.append(f"warning: disturbed runs: {c.disturbed_runs()}; others kept more than "
                         f"{DISTURBED:.0%} of a processor busy, measure again on an idle machine")
        lines.append("")
    lines += [f"missed: {missed}" for missed in missed_bars(comparisons)]
    return "\n".join(lines)


def figures(comparisons):
    """The worst of each figure over the models, in one line."""
    shares = [c.bandwidth_share(c.troupe.speed("decode")) for c in comparisons]
    missed = len(missed_bars(comparisons))
    return (f"vs_llamacpp: {len(comparisons)} models, "
            f"decode {min(c.ratio('decode') for c in comparisons):.2f}x (bar {DECODE_BAR}x), "
            f"prefill {min(c.ratio('prefill') for c in comparisons):.2f}x (bar {PREFILL_BAR}x), "
            f"memory {max(c.memory_over_file() for c in comparisons):.2f}x file "
            f"(bar {MEMORY_BAR}x), {min(shares):.0%} of read bandwidth, "
            + (f"bars missed: {missed}" if missed else "all bars held"))
