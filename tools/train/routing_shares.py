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


def _of_choices(ids, experts):
    counts = np.array([np.bincount(layer.ravel(), minlength=experts) for layer in ids])
    return counts / counts.sum(1, keepdims=True)


def split_sequences(sequences):
    """A mask of the tokens of every other sequence; of the first half, if all are of one."""
    names, which = np.unique(sequences, return_inverse=True)
    return which % 2 == 0 if len(names) > 1 else np.arange(len(sequences)) < len(sequences) // 2


def shares_of(sequences, ids, experts):
    """[layer][expert]: of all choices in a layer, the share that fell on an expert; and the same of two
    halves, of sequences in turn. `ids`: [layer][token][chosen]."""
    if ids.shape[1] < 2:
        raise ValueError(f"{ids.shape[1]} tokens in the trace, expected at least 2")
    first = split_sequences(sequences)
    return _of_choices(ids, experts), (_of_choices(ids[:, first], experts), _of_choices(ids[:, ~first], experts))


def shares(path):
    """shares_of() a trace."""
    header, *chunks = _reader().read_trace(path)
    if not chunks:
        raise ValueError(f"{path}: no tokens in the trace")
    sequences = [np.repeat(segments["sequence"], segments["tokens"]) for segments, *_ in chunks]
    return shares_of(np.concatenate(sequences), np.concatenate([ids for _, ids, *_ in chunks], 1), header["experts"])


def entropy(share):
    """Bits, a layer; log2(experts) if all are used alike."""
    return -(share * np.log2(np.where(share > 0, share, 1))).sum(1)


def skew(share):
    """How many times more than an even share the most used expert gets, a layer."""
    return share.max(1) * share.shape[1]


def overlap(one, other):
    """1 if two domains use the experts alike, 0 if none is used by both; mean over layers."""
    return np.minimum(one, other).sum(1).mean()
