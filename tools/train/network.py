"""A Qwen2-MoE-shaped language model in torch: attention with rotary positions and biases on queries,
keys and values, RMS norms, routed experts (experts.py) beside a shared one with a sigmoid gate; the
token embedding is the output matrix, too.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

import experts


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotate(x, cosine, sine):
    """Pairs a dimension with the one half a head further on."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).to(x.dtype)


def attend(q, k, v):
    """Causal attention; torch before 2.0 has no function for it."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, -1e9).softmax(-1) @ v


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads, self.kv_heads, self.head = shape.heads, shape.kv_heads, shape.head_width
        self.q = nn.Linear(shape.width, self.heads * self.head)
        self.k = nn.Linear(shape.width, self.kv_heads * self.head)
        self.v = nn.Linear(shape.width, self.kv_heads * self.head)
        self.out = nn.Linear(self.heads * self.head, shape.width, bias=False)

    def forward(self, x, cosine, sine):
        batch, length, _ = x.shape
        split = lambda y, heads: y.view(batch, length, heads, self.head).transpose(1, 2)
        q = rotate(split(self.q(x), self.heads), cosine, sine)
        k = rotate(split(self.k(x), self.kv_heads), cosine, sine)
        v = split(self.v(x), self.kv_heads)
        copies = self.heads // self.kv_heads
        mixed = attend(q, k.repeat_interleave(copies, 1), v.repeat_interleave(copies, 1))
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class SharedExpert(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.shared_width, bias=False)
        self.up = nn.Linear(shape.width, shape.shared_width, bias=False)
        self.down = nn.Linear(shape.shared_width, shape.width, bias=False)
        self.weigh = nn.Linear(shape.width, 1, bias=False)

    def forward(self, x):
        return torch.sigmoid(self.weigh(x)) * self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.attention_norm = RmsNorm(shape.width, shape.norm_epsilon)
        self.attention = Attention(shape)
        self.expert_norm = RmsNorm(shape.width, shape.norm_epsilon)
        self.experts = experts.Experts(shape)
        self.shared = SharedExpert(shape)

    def forward(self, x, cosine, sine):
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        y = self.expert_norm(x)
        return x + self.experts(y.flatten(0, 1)).view_as(y) + self.shared(y)


class Network(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.width, shape.norm_epsilon)
        nn.init.normal_(self.embedding.weight, std=0.05)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.6 / math.sqrt(module.in_features))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def to_device(self, device):
        way = experts.best_way(device)
        for layer in self.layers:
            layer.experts.way = way
        return self.to(device)

    def angles(self, length, device):
        """(cosines, sines) of the rotations, by position."""
        half = torch.arange(0, self.shape.head_width, 2, device=device).float() / self.shape.head_width
        angle = torch.arange(length, device=device).float()[:, None] / self.shape.rope_base ** half
        return angle.cos(), angle.sin()

    def stream(self, ids):
        """Behind the last layer, before the last norm."""
        cosine, sine = self.angles(ids.shape[1], ids.device)
        x = self.embedding(ids).float()
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return x

    def hidden(self, ids):
        return self.norm(self.stream(ids))

    def forward(self, ids):
        return F.linear(self.hidden(ids), self.embedding.weight)

    def loss(self, ids, targets, rows=16384):
        """Mean cross entropy; logits are made for `rows` tokens at a time, they are what is largest."""
        hidden, targets = self.hidden(ids).flatten(0, 1), targets.flatten()
        total = sum(F.cross_entropy(F.linear(h, self.embedding.weight).float(), t, reduction="sum")
                    for h, t in zip(hidden.split(rows), targets.split(rows)))
        return total / len(targets)

    def balance(self):
        return sum(layer.experts.balance for layer in self.layers) / len(self.layers)
