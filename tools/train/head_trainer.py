"""The training of a head, step by step, apart from the command line: as trainer.py's, with a trunk that stays as it is."""
import math

import numpy as np
import torch

import optimiser
import token_files
import trainer
from head import Head

# Of the windows: what the model has written itself is what the head reads in a run.
SHARES = {"greedy": 0.35, "drawn": 0.2, "prose": 0.15, "python": 0.07, "c": 0.05, "german": 0.06, "french": 0.06,
          "questions": 0.04, "sums": 0.02}
ANSWERS = ("greedy", "drawn")


def tokens_for(training, count, vocabulary):
    """The ids that the model writes most, ascending; those of all texts where it has written none."""
    written = [training[domain] for domain in ANSWERS if domain in training] or list(training.values())
    counts = np.bincount(np.concatenate(written), minlength=vocabulary)[:vocabulary]
    return np.sort(np.argsort(-counts, kind="stable")[:count])


class HeadTrainer:
    """`preset`: a presets.Head."""

    def __init__(self, trunk, preset, training, held_out, seed, device):
        torch.manual_seed(seed)
        self.trunk, self.preset, self.device, self.held = trunk.to(device), preset, device, held_out
        tokens = tokens_for(training, preset.tokens, trunk.shape.vocabulary)
        self.head = Head(trunk.shape, tokens, preset.dense_width).begin_as(trunk).to(device)
        self.optimisers = optimiser.make(self.head, preset)
        self.mixture = token_files.Mixture(training, preset.context, preset.batch, seed, SHARES)
        self.step = self.tokens = 0
        self.seconds = 0.0  # of training, over all calls

    def train_step(self, progress):
        """Returns the loss, and the share of tokens guessed as the model answers them."""
        ids = torch.from_numpy(self.mixture.next(self.step)).to(self.device)
        optimiser.set_rate(self.optimisers, trainer.rate_factor(progress, self.step))
        loss, right = self.head.loss(self.trunk, ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.head.parameters(), trainer.CLIP)
        for each in self.optimisers:
            each.step()
            each.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += ids.numel()
        return loss.item(), right.item()

    @torch.no_grad()
    def held_out(self, windows):
        """By domain: the share of the tokens at which head and model have the same likeliest token."""
        shares = {}
        for domain, tokens in self.held.items():
            rows = token_files.held_out_windows(tokens, self.preset.context, windows)
            parts = np.array_split(rows, max(1, math.ceil(len(rows) / self.preset.batch)))
            shares[domain] = sum(self.head.loss(self.trunk, torch.from_numpy(part).to(self.device))[1].item() * len(part)
                                 for part in parts) / len(rows)
        return shares

    def state(self):
        return {"head": self.head.state_dict(), "optimisers": [each.state_dict() for each in self.optimisers],
                "taken": self.mixture.taken, "step": self.step, "tokens": self.tokens, "seconds": self.seconds}

    def restore(self, state):
        self.head.load_state_dict(state["head"])
        for each, saved in zip(self.optimisers, state["optimisers"]):
            each.load_state_dict(saved)
        self.mixture.taken = dict(state["taken"])
        self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]
