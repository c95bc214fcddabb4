"""The head that guesses a further token (docs/formats/head.md) as a network: the embedding of a token beside the row of the
stream that the trunk has left of the token before it, joined; attention and a dense block as the trunk's layers
have them; a norm, and an output of the tokens that the trunk answers most. And its names in GGUF.

At a token it learns what the trunk itself says there: half the trunk's distribution, half its likeliest token.
"""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import gguf_file
from network import Attention, RmsNorm

HARD = 0.5  # the share of the trunk's likeliest token in what is learned


class Head(nn.Module):
    def __init__(self, shape, tokens, dense_width):
        """`tokens`: the ids that its output is of, ascending."""
        super().__init__()
        width = shape.width
        self.register_buffer("tokens", torch.as_tensor(tokens, dtype=torch.int64))
        self.token_norm, self.stream_norm = RmsNorm(width, shape.norm_epsilon), RmsNorm(width, shape.norm_epsilon)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.attention_norm, self.attention = RmsNorm(width, shape.norm_epsilon), Attention(shape)
        self.block_norm = RmsNorm(width, shape.norm_epsilon)
        self.gate = nn.Linear(width, dense_width, bias=False)
        self.up = nn.Linear(width, dense_width, bias=False)
        self.down = nn.Linear(dense_width, width, bias=False)
        self.norm = RmsNorm(width, shape.norm_epsilon)
        self.output = nn.Parameter(torch.zeros(len(tokens), width))
        for linear in (self.gate, self.up, self.down):
            nn.init.normal_(linear.weight, std=0.6 / math.sqrt(linear.in_features))

    @torch.no_grad()
    def begin_as(self, trunk):
        """With what the trunk has of the same kind: its last layer's attention, its norms, its output."""
        last = trunk.network.layers[-1]
        self.attention.load_state_dict(last.attention.state_dict())
        for ours, theirs in ((self.attention_norm, last.attention_norm), (self.block_norm, last.expert_norm),
                             (self.stream_norm, trunk.network.norm), (self.norm, trunk.network.norm)):
            ours.weight.copy_(theirs.weight)
        width = trunk.shape.width
        nn.init.normal_(self.join.weight, std=0.1 / math.sqrt(width))
        self.join.weight += 0.5 * torch.eye(width).repeat(1, 2)
        self.output.copy_(trunk.output[self.tokens])
        return self

    def forward(self, embeddings, rows, cosine, sine):
        """Its own rows of the stream; `rows` are of the tokens before."""
        x = self.join(torch.cat([self.token_norm(embeddings), self.stream_norm(rows)], -1))
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        y = self.block_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def logits(self, x):
        """Of its tokens, in their order."""
        return F.linear(self.norm(x), self.output)

    def says(self, trunk, ids):
        """(its logits, the trunk's of all tokens), from the second token of each row of `ids` on."""
        embeddings, rows, wanted = trunk.read(ids)
        angles = trunk.network.angles(ids.shape[1] - 1, ids.device)
        return self.logits(self(embeddings[:, 1:], rows[:, :-1], *angles)), wanted[:, 1:]

    def loss(self, trunk, ids):
        """(cross entropy, share of the tokens at which both have the same likeliest token)."""
        said, wanted = self.says(trunk, ids)
        best = wanted.argmax(-1)
        target = (1 - HARD) * wanted.softmax(-1)[..., self.tokens] + HARD * (best[..., None] == self.tokens).float()
        loss = -(target * said.log_softmax(-1)).sum(-1).mean()
        return loss, (self.tokens[said.argmax(-1)] == best).float().mean()


# Ours -> GGUF's. Matrices are stored in Q8_0.
_NAMES = (
    ("attention_norm.weight", "attn_norm.weight"), ("attention.q.weight", "attn_q.weight"),
    ("attention.q.bias", "attn_q.bias"), ("attention.k.weight", "attn_k.weight"), ("attention.k.bias", "attn_k.bias"),
    ("attention.v.weight", "attn_v.weight"), ("attention.v.bias", "attn_v.bias"),
    ("attention.out.weight", "attn_output.weight"), ("block_norm.weight", "ffn_norm.weight"),
    ("gate.weight", "ffn_gate.weight"), ("up.weight", "ffn_up.weight"), ("down.weight", "ffn_down.weight"),
    ("join.weight", "nextn.eh_proj.weight"), ("token_norm.weight", "nextn.enorm.weight"),
    ("stream_norm.weight", "nextn.hnorm.weight"), ("norm.weight", "nextn.shared_head_norm.weight"),
    ("output", "nextn.shared_head_head.weight"),
)


def write(path, state, file, name):
    """A part (docs/formats/head.md) of a Head's state_dict, for the model `file`, a gguf_reader.Gguf."""
    arch, layer = file.architecture(), file.key("block_count")
    left_out = set(state) - {ours for ours, _ in _NAMES} - {"tokens"}
    if left_out:
        raise ValueError(f"no GGUF name for {', '.join(sorted(left_out))}")

    def entry(ours, theirs):
        tensor = state[ours]
        return (f"blk.{layer}.{theirs}", gguf_file.Q8_0 if tensor.dim() == 2 else np.float32, tuple(tensor.shape),
                lambda: tensor.detach().float().cpu().numpy())
    gguf_file.write(path, {
        "general.architecture": arch, "general.type": "head", "general.name": name,
        "head.model.name": file.path.name, "head.model.sha256": file.sha256(),
        f"{arch}.nextn_predict_layers": 1, f"{arch}.nextn_tokens": state["tokens"].cpu().numpy().astype(np.int32),
    }, [entry(*names) for names in _NAMES])
