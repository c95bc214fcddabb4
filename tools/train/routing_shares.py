"""How a model spreads tokens over experts, domain by domain, out of routing traces: shares, entropy, skew,
overlap. Pure numpy on what examples/read_trace.py reads.
"""
import importlib.util
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def _reader():
    spec = importlib.util.spec_from_file_location("read_trace", ROOT / "examples/read_trace.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shares(path):
    """[layer][expert]: of all choices in a layer, the share that fell on an expert."""
    header, *chunks = _reader().blocks(path)
    layers, experts = len(header["moe_layers"]), header["experts"]
    counts = np.zeros((layers, experts))
    for _, ids, _ in chunks:
        for layer in range(layers):
            counts[layer] += np.bincount(ids[layer].ravel(), minlength=experts)
    if not counts.sum():
        raise ValueError(f"{path}: no tokens in the trace")
    return counts / counts.sum(1, keepdims=True)


def entropy(share):
    """Bits, a layer; log2(experts) if all are used alike."""
    return -(share * np.log2(np.where(share > 0, share, 1))).sum(1)


def skew(share):
    """How many times more than an even share the most used expert gets, a layer."""
    return share.max(1) * share.shape[1]


def overlap(one, other):
    """1 if two domains use the experts alike, 0 if none is used by both; mean over layers."""
    return np.minimum(one, other).sum(1).mean()
