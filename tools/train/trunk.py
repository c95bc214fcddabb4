"""A model of this project read back from its GGUF file, as a network that learns no more: the trunk that a head is trained
for. Its weights are the file's, and so is its vocabulary.
"""
import struct

import torch
from torch import nn
from torch.nn import functional as F

import gguf_model
import gguf_reader
import presets
from network import Network


def shape_of(file):
    """presets.Shape."""
    if file.architecture() != "qwen2moe":
        raise gguf_reader.NotReadable(f"{file.path}: architecture '{file.architecture()}', expected qwen2moe")
    if file.key("nextn_predict_layers", 0):
        raise gguf_reader.NotReadable(f"{file.path}: it has a head already")
    key = file.key
    return presets.Shape(
        vocabulary=len(file.metadata["tokenizer.ggml.tokens"]), width=key("embedding_length"), layers=key("block_count"),
        heads=key("attention.head_count"), kv_heads=key("attention.head_count_kv"), experts=key("expert_count"),
        top_k=key("expert_used_count"), expert_width=key("expert_feed_forward_length"),
        shared_width=key("expert_shared_feed_forward_length"), rope_base=key("rope.freq_base"),
        norm_epsilon=key("attention.layer_norm_rms_epsilon"))


class Trunk(nn.Module):
    """`file`: a gguf_reader.Gguf."""

    def __init__(self, file):
        super().__init__()
        self.network = Network(shape_of(file))
        state = self.network.state_dict()
        for ours, theirs, form in gguf_model.names(self.network.shape.layers):
            values = torch.from_numpy(file.floats(theirs))
            state[ours] = values.transpose(1, 2).contiguous() if form == "T" else values.reshape(state[ours].shape)
        self.network.load_state_dict(state)
        # In the file a matrix of its own, which may be rounded otherwise than the embedding.
        self.register_buffer("output", torch.from_numpy(file.floats("output.weight")))
        self.requires_grad_(False).eval()

    @property
    def shape(self):
        return self.network.shape

    @torch.no_grad()
    def read(self, ids):
        """(embeddings, rows of the stream behind the last layer, logits), by token."""
        rows = self.network.stream(ids)
        return self.network.embedding(ids), rows, F.linear(self.network.norm(rows), self.output)


def _varint(value):
    out = b""
    while value > 0x7f:
        out, value = out + bytes([value & 0x7f | 0x80]), value >> 7
    return out + bytes([value])


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _message(field, data):
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _float(field, value):
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def pieces_of(file):
    """The file's vocabulary as a SentencePieceProcessor, made of pieces, scores and kinds in SentencePiece's own format
    (a protocol buffer); how a text is cut is as tools/train/vocabulary asks for it."""
    import sentencepiece
    words, scores, kinds = (file.metadata[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type"))
    pieces = b"".join(_message(1, _message(1, word.encode()) + _float(2, score) + _number(3, kind))
                      for word, score, kind in zip(words, scores, kinds))
    pairs, bytes_for_the_rest = _number(3, 2), _number(35, 1)
    trainer = pairs + _number(4, len(words)) + bytes_for_the_rest
    blank_before, blanks_stay, blanks_are_seen = _number(3, 1), _number(4, 0), _number(5, 1)
    normaliser = _message(1, b"identity") + blank_before + blanks_stay + blanks_are_seen
    return sentencepiece.SentencePieceProcessor(
        model_proto=pieces + _message(2, trainer) + _message(3, normaliser))
