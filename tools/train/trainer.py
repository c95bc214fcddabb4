"""The training itself, step by step, apart from the command line: what is random is decided by seed and
step, and all state that a step depends on goes into the checkpoint.
"""
import contextlib
import math

import numpy as np
import torch

import optimiser
import token_files
from network import Network

WARM_UP = 0.02  # of the training, at most 100 steps of it
LEAST_RATE = 0.05  # where the cosine ends
CLIP = 1.0


def rate_factor(progress, step):
    """`progress`: the share of the training that is over, by time or by steps."""
    warm = min(1.0, (step + 1) / 100, (progress + 1e-9) / WARM_UP if step >= 10 else (step + 1) / 10)
    return warm * (LEAST_RATE + (1 - LEAST_RATE) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


class Trainer:
    def __init__(self, preset, training, held_out, seed, device):
        torch.manual_seed(seed)
        self.preset, self.device, self.held_out = preset, device, held_out
        self.network = Network(preset.shape).to_device(device)
        self.optimisers = optimiser.make(self.network, preset)
        self.mixture = token_files.Mixture(training, preset.context, preset.batch, seed)
        self.step = self.tokens = 0
        self.seconds = 0.0  # of training, over all calls
        self.gradient_norm = 0.0

    def precision(self):
        if self.device.type == "cuda":
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def train_step(self, progress):
        """Returns the loss and the balance as tensors."""
        rows = self.mixture.next(self.step)
        ids = torch.from_numpy(rows).to(self.device, non_blocking=True)
        optimiser.set_rate(self.optimisers, rate_factor(progress, self.step))
        with self.precision():
            loss = self.network.loss(ids[:, :-1], ids[:, 1:])
        balance = self.network.balance()
        (loss + self.preset.balance * balance).backward()
        self.gradient_norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        for each in self.optimisers:
            each.step()
            each.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += ids[:, 1:].numel()
        return loss.detach(), balance.detach()

    @torch.no_grad()
    def held_out_loss(self, windows):
        """Nats a token, by domain."""
        losses = {}
        for domain, tokens in self.held_out.items():
            rows = token_files.held_out_windows(tokens, self.preset.context, windows)
            total = 0.0
            for part in np.array_split(rows, max(1, math.ceil(len(rows) / self.preset.batch))):
                ids = torch.from_numpy(part).to(self.device)
                with self.precision():
                    total += self.network.loss(ids[:, :-1], ids[:, 1:]).item() * len(part)
            losses[domain] = total / len(rows)
        return losses

    def state(self):
        return {"network": self.network.state_dict(),
                "optimisers": [each.state_dict() for each in self.optimisers],
                "taken": self.mixture.taken, "step": self.step, "tokens": self.tokens, "seconds": self.seconds}

    def restore(self, state):
        self.network.load_state_dict(state["network"])
        for each, saved in zip(self.optimisers, state["optimisers"]):
            each.load_state_dict(saved)
        self.mixture.taken = dict(state["taken"])
        self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]
