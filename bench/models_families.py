"""The published models that bench/models measures, and how their files are made: `troupe synth`
with their shape and the mix of types of the upload that people get. What is measured of them is
models_runs.py's.
"""
import dataclasses

import measured_run


@dataclasses.dataclass(frozen=True)
class Family:
    name: str      # of the model
    family: str    # what the file's general.architecture says
    shape: str     # of `troupe synth`
    mix: str       # the same
    whole: int     # layers that the model has
    layers: int    # that are measured: 5 to 7 GB, kinds of layers in the model's proportion
    quick: int     # with --quick

    def depth(self, quick=False, whole=False):
        return self.whole if whole else self.quick if quick else self.layers


# Every fourth layer of Qwen3.6 and every sixth of Gemma 4 sees everything, every other of gpt-oss.
FAMILIES = (
    Family("Qwen3.6-35B-A3B", "qwen35moe", "qwen3.6-35b-a3b", "Q4_K_M", 40, 12, 4),
    Family("gpt-oss-20b", "gpt-oss", "gpt-oss-20b", "MXFP4_MOE", 24, 12, 4),
    Family("gemma-4-26B-A4B", "gemma4", "gemma-4-26b-a4b", "Q4_K_M", 30, 12, 6),
    Family("LFM2-8B-A1B", "lfm2moe", "lfm2-8b-a1b", "Q4_K_M", 24, 24, 7),
)


def chosen(names):
    """Those whose model or family begins so; None where a name fits none."""
    found = [f for f in FAMILIES
             if any(f.name.lower().startswith(n.lower()) or f.family.startswith(n) for n in names)]
    fit = all(any(f.name.lower().startswith(n.lower()) or f.family.startswith(n) for f in FAMILIES)
              for n in names)
    return found if fit else None


class Files:
    """One family's files, gone at the end of a `with` unless they are to stay."""

    def __init__(self, troupe, family, layers, folder, keep):
        self._troupe, self._family, self._layers, self._keep = troupe, family, layers, keep
        stem = f"{family.shape}-{family.mix.lower()}-{layers}"
        self.model, self.container = folder / f"{stem}.gguf", folder / f"{stem}.experts"

    def __enter__(self):
        if not self.model.exists():
            measured_run.run([str(self._troupe), "synth", str(self.model), "--shape",
                              self._family.shape, "--mix", self._family.mix, "--layers",
                              str(self._layers)])
        return self

    def __exit__(self, *_):
        if not self._keep:
            for path in (self.model, self.container):
                path.unlink(missing_ok=True)

    def pack(self):
        if not self.container.exists():
            measured_run.run([str(self._troupe), "pack", str(self.model), "-o",
                              str(self.container)])
