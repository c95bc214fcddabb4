"""The routed experts of one layer: router, choice, grouped products, balance loss.

Three ways to multiply each token by the weights of its experts, all with every assignment computed:
`by_expert` (one product an expert: best on a CPU), `padded` (one batched product, each expert's tokens
padded to the longest) and `grouped` (a grouped-matmul kernel, where torch has one for the device).
"""
import math

import torch
from torch import nn
from torch.nn import functional as F


def by_expert(x, counts, gate, up, down):
    """x: rows sorted by expert; counts: rows of each expert."""
    parts = []
    for expert, rows in enumerate(x.split(counts.tolist())):
        if len(rows):
            parts.append((F.silu(rows @ gate[expert]) * (rows @ up[expert])) @ down[expert])
    return torch.cat(parts)


def padded(x, counts, gate, up, down):
    expert = torch.repeat_interleave(torch.arange(len(counts), device=x.device), counts)
    place = torch.arange(len(x), device=x.device) - (counts.cumsum(0) - counts)[expert]
    longest = int(counts.max())
    slot = expert * longest + place
    rows = x.new_zeros(len(counts) * longest, x.shape[1]).index_copy(0, slot, x)
    rows = rows.view(len(counts), longest, -1)
    out = torch.bmm(F.silu(torch.bmm(rows, gate)) * torch.bmm(rows, up), down)
    return out.flatten(0, 1)[slot]


def grouped(x, counts, gate, up, down):
    ends = counts.cumsum(0).to(torch.int32)
    product = torch._grouped_mm  # bf16 on a GPU of 2022 or later, from torch 2.8 on
    return product(F.silu(product(x, gate, offs=ends)) * product(x, up, offs=ends), down, offs=ends)


def _grouped_works(device):
    """Tried on a small problem, gradients included, and held against `padded`."""
    if not hasattr(torch, "_grouped_mm"):
        return False
    torch_state = torch.random.get_rng_state()
    try:
        shape = {"dtype": torch.bfloat16, "device": device}
        counts = torch.tensor([16, 0, 40, 8], device=device)
        inputs = [torch.randn(64, 64, **shape), *(torch.randn(4, 64, 64, **shape) / 8 for _ in range(3))]
        gradients = []
        for way in (padded, grouped):
            leaves = [each.clone().requires_grad_() for each in inputs]
            way(leaves[0], counts, *leaves[1:]).float().square().sum().backward()
            gradients.append([leaf.grad.float() for leaf in leaves])
        return all((a - b).norm() <= 0.05 * a.norm() for a, b in zip(*gradients))
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    finally:
        torch.random.set_rng_state(torch_state)


def best_way(device):
    if device.type == "cpu":
        return by_expert
    return grouped if _grouped_works(device) else padded


class Experts(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.top_k = shape.top_k
        count, width, inner = shape.experts, shape.width, shape.expert_width
        self.router = nn.Parameter(torch.randn(count, width) / math.sqrt(width))
        # As they are multiplied: rows times matrix. The file wants them the other way round.
        self.gate = nn.Parameter(torch.randn(count, width, inner) / math.sqrt(width))
        self.up = nn.Parameter(torch.randn(count, width, inner) / math.sqrt(width))
        # A chosen expert weighs little more than 1 / count at first: made up for by half (in logarithms).
        self.down = nn.Parameter(torch.randn(count, inner, width) *
                                 (math.sqrt(count / shape.top_k) / math.sqrt(inner) * 0.5))
        self.way = by_expert
        self.balance = None  # of the last call: 1 if all experts are used alike, more if not
        self.chosen = None  # of the last call: [token][top_k]

    def forward(self, x):
        tokens, count = len(x), len(self.router)
        # Routing in float32 whatever the rest is: near ties decide which weights learn.
        with torch.autocast(x.device.type, enabled=False):
            probability = (x.float() @ self.router.t()).softmax(-1)
        weight, chosen = probability.topk(self.top_k, -1)
        expert, order = chosen.flatten().sort(stable=True)
        counts = torch.bincount(expert, minlength=count)
        self.chosen = chosen.detach()
        share = counts.to(probability.dtype) / (tokens * self.top_k)
        self.balance = count * (share * probability.mean(0)).sum()
        token = torch.div(order, self.top_k, rounding_mode="floor")
        kind = torch.bfloat16 if x.device.type == "cuda" else x.dtype
        out = self.way(x.to(kind)[token], counts, *(w.to(kind) for w in (self.gate, self.up, self.down)))
        out = out.to(x.dtype) * weight.flatten()[order].unsqueeze(-1).to(x.dtype)
        return torch.zeros_like(x).index_add(0, token, out)
