"""Muon for the matrices of the layers, Adam for embedding, output, router, norms and biases.

Muon makes each matrix's momentum orthogonal before it is added, by Newton-Schulz iterations, so that all
its directions learn at one pace. In short trainings of models of this size it needs far fewer tokens
than Adam for the same loss. Experts are orthogonalised one by one, in a batch.
"""
import torch

# The quintic of Keller Jordan's Muon: singular values end between 0.7 and 1.2 after five rounds.
_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonalise(matrices, rounds=5):
    """[..., rows, columns]: the nearest matrices with all singular values about 1."""
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-1, -2)
    x = x / (x.flatten(-2).norm(dim=-1)[..., None, None] + 1e-7)
    for _ in range(rounds):
        square = x @ x.transpose(-1, -2)
        x = _A * x + (_B * square + _C * square @ square) @ x
    return (x.transpose(-1, -2) if tall else x).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    def __init__(self, matrices, rate, momentum=0.95, decay=0.01):
        super().__init__(matrices, {"lr": rate, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum"] = torch.zeros_like(matrix)
                momentum = state["momentum"]
                momentum.lerp_(matrix.grad, 1 - group["momentum"])
                update = orthogonalise(matrix.grad.lerp(momentum, group["momentum"]))
                # Sized by the longer side, so that a matrix of any form moves its outputs as far.
                size = max(matrix.shape[-2:]) ** 0.5 * 0.2
                matrix.mul_(1 - group["lr"] * group["decay"])
                matrix.add_(update, alpha=-group["lr"] * size)


def make(network, preset):
    """[Muon, Adam]; each group remembers its full step size as `base`."""
    matrices, others = [], []
    for name, parameter in network.named_parameters():
        matrix = (parameter.dim() >= 2 and min(parameter.shape[-2:]) > 1
                  and not any(each in name for each in ("embedding", "output", "router")))
        (matrices if matrix else others).append(parameter)
    # Adam in one kernel, where the weights are on a GPU.
    fused = {"fused": True} if others[0].is_cuda else {}
    optimisers = [Muon(matrices, preset.matrix_rate),
                  torch.optim.Adam(others, preset.rate, betas=(0.9, 0.95), **fused)]
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["base"] = group["lr"]
    return optimisers


def set_rate(optimisers, factor):
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = group["base"] * factor
