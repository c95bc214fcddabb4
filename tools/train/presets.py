"""The shapes and batches that are trained, by name. What a preset says can be changed one by one on
the command line; a checkpoint keeps what it was trained with.

Rows of 256 columns are what K-quants want. In `cpu` only the experts' down matrices have shorter ones:
with 256-wide experts two cores would see too few tokens for as many weights.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    """Qwen2-MoE: gated shared expert, softmax over all experts, the chosen weights left as they are."""
    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    experts: int
    top_k: int
    expert_width: int
    shared_width: int
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-6

    @property
    def head_width(self):
        return self.width // self.heads


@dataclasses.dataclass(frozen=True)
class Preset:
    shape: Shape
    context: int  # tokens of a training window
    batch: int  # windows a step
    matrix_rate: float  # step size of Muon, for every matrix in the layers
    rate: float  # step size of Adam, for the rest
    balance: float = 0.01  # weight of the load-balancing loss


@dataclasses.dataclass(frozen=True)
class Head:
    """A head that guesses (head.py), and how it is trained."""
    tokens: int = 512  # that its output is of
    dense_width: int = 256
    context: int = 256
    batch: int = 8
    matrix_rate: float = 0.01
    rate: float = 3e-3


PRESETS = {
    # An hour or so on two cores: 16 million weights, 5 million of them used by a token. With four times the step for matrices
    # 4.8 million tokens came as far as 1.2 million do with this.
    "cpu": Preset(Shape(4096, 256, 8, 4, 2, 32, 4, 64, 128), context=512, batch=4,
                  matrix_rate=0.005, rate=3e-3),
    # An hour on one core: exercises (exercises.py), whose lines are short. The shared expert is small, so that
    # the answers depend on the routed ones.
    "exercises": Preset(Shape(1024, 128, 6, 4, 2, 16, 4, 64, 32), context=128, batch=16,
                        matrix_rate=0.01, rate=3e-3),
    # 20 minutes on an H100.
    "gpu": Preset(Shape(8192, 512, 12, 8, 4, 64, 6, 256, 256), context=1024, batch=48,
                  matrix_rate=0.006, rate=2e-3),
    # The same for a file that is quick to clone: below 60 MB as Q4_K.
    "gpu-small": Preset(Shape(8192, 256, 12, 4, 2, 40, 6, 256, 256), context=1024, batch=48,
                        matrix_rate=0.006, rate=2e-3),
    # For tests: seconds.
    "test": Preset(Shape(512, 64, 2, 2, 1, 8, 2, 32, 32), context=64, batch=4,
                   matrix_rate=0.02, rate=3e-3),
}
