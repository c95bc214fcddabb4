"""Checkpoints that a kill at any moment leaves whole: written beside the old one, then renamed."""
import os
import pathlib

import torch


def save(path, state):
    part = pathlib.Path(f"{path}.part")
    with open(part, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def load(path, device="cpu"):
    """None if there is none."""
    if not pathlib.Path(path).exists():
        return None
    return torch.load(path, map_location=device)
