"""Which random models troupe is compared with llama.cpp on, and how much the two may differ.

The bounds follow from what the engines round, not from what was seen:

Weights in blocks are multiplied with activations that are rounded to 8 bits, in groups of 32, or of
256 in llama.cpp where the weights' blocks are that long. The largest of 32 normal numbers is about
2.2 standard deviations (of 256: 2.9), a step of the rounding that over 127, its error step /
sqrt(12): 0.0050 standard deviations (0.0066). For BF16 weights llama.cpp rounds activations to 8
significant bits, at most 2^-9 of each number, sqrt(1/3) of that on average; for F16 weights to 11,
at most 2^-12. Whatever the weights are, keys and values are cached as float16, which is as much.

A logit depends on three such roundings in a row: of what a block reads, of what it computed in
between, and of what the output matrix reads; in deepseek2 and GLM-4.7-Flash on two more, since
their attention makes queries, and keys and values, of compressed forms. The errors of the two engines are independent
(when one number lands on the other side of a step, all that follows differs), so that logits differ
by sqrt(2 * 3), or sqrt(2 * 5), times the error of one rounding, relative to their own standard
deviation.
"""
import dataclasses
import math

# Each of these architectures in each of these types.
SHAPES = ["tiny-llama", "tiny-mixtral", "tiny-qwen2moe", "tiny-qwen3moe", "tiny-olmoe",
          "tiny-deepseek", "tiny-deepseek2"]
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K",
         "Q5_K", "Q6_K"]

# DeepSeek-V2-Lite's form of attention, which llama.cpp knows by its 27 layers alone: in float, as
# no bound for so deep a model follows from three roundings to 8 bits.
DEEP_SHAPE, DEEP_TYPE = "tiny-deepseek2-lite", "F32"

# Further types in one architecture, and further architectures in a type of each kind.
FURTHER = [("tiny-qwen3moe", type_) for type_ in (
    "MXFP4", "NVFP4", "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S")] + [
    ("tiny-qwen3moe-factors", type_) for type_ in ("F32", "NVFP4")] + [
    ("tiny-glm-flash", type_) for type_ in ("F32", "Q8_0", "Q4_K")] + [
    ("tiny-gpt-oss", type_) for type_ in ("F32", "Q8_0", "MXFP4")] + [
    ("tiny-minimax-m2", type_) for type_ in ("F32", "Q8_0")] + [
    ("tiny-lfm2moe", type_) for type_ in ("F32", "Q8_0", "Q4_K")] + [
    ("tiny-glm4moe", type_) for type_ in ("F32", "Q8_0", "Q4_K")] + [("tiny-glm4moe-norms", "F32")] + [
    ("tiny-granitemoe", type_) for type_ in ("F32", "Q8_0", "Q4_K")] + [
    ("tiny-granitemoe-shared", "F32")] + [
    ("tiny-granitehybrid", type_) for type_ in ("F32", "Q8_0", "Q4_K")] + [
    ("tiny-granitehybrid-dense", "F32")] + [
    ("tiny-nemotron_h_moe", type_) for type_ in ("F32", "Q8_0", "Q5_0")] + [
    ("tiny-nemotron_h", "F32")] + [
    ("tiny-gemma4", type_) for type_ in ("F32", "F16", "BF16")] + [
    (shape, type_) for shape in ("tiny-qwen3vlmoe", "tiny-dots1", "tiny-ernie4_5-moe",
                                 "tiny-hunyuan-moe", "tiny-bailingmoe2") for type_ in
    ("F32", "Q8_0")] + [
    # Their states carry what rounding did to earlier tokens, which the bound below does not count.
    (shape, type_) for shape in ("tiny-qwen3next", "tiny-qwen35moe") for type_ in
    ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "Q4_K")]

STEPS = 64  # of greedy decoding
PROMPT_TOKENS = 8
VOCABULARY = 512

_GROUP_OF_32 = 2.2 / 127 / math.sqrt(12)
_GROUP_OF_256 = 2.9 / 127 / math.sqrt(12)
_ROUNDING = {"F32": 2.0**-12, "F16": 2.0**-12, "BF16": 2.0**-9 / math.sqrt(3)}


@dataclasses.dataclass(frozen=True)
class Case:
    shape: str
    type: str

    @property
    def name(self):
        return f"{self.shape} {self.type}"

    @property
    def rounding(self):
        """The relative error of one rounding of activations, averaged over both engines."""
        if self.type in _ROUNDING:
            return _ROUNDING[self.type]
        long_blocks = self.type.endswith("_K") or (
            self.type.startswith("IQ") and self.type != "IQ4_NL")
        theirs = _GROUP_OF_256 if long_blocks else _GROUP_OF_32
        return math.hypot(_GROUP_OF_32, theirs) / math.sqrt(2)

    @property
    def noise(self):
        """How far two right engines' logits lie apart, in standard deviations of the logits."""
        latent = self.shape.startswith(("tiny-deepseek2", "tiny-glm-flash"))
        roundings = 5 if latent else 3
        return math.sqrt(2 * roundings) * self.rounding

    @property
    def margin(self):
        """What the largest logit must lead by, in the same unit, to be called no near tie: the
        difference of two logits is off by sqrt(2) times the noise, of which this is 1.8 times."""
        return 2.5 * self.noise


def all_cases():
    return [*(Case(shape, type_) for shape in SHAPES for type_ in TYPES),
            Case(DEEP_SHAPE, DEEP_TYPE), *(Case(*case) for case in FURTHER)]
