#!/usr/bin/env python3
"""Makes a GGUF (docs/formats/switch.md) of a Switch Transformer as its authors publish it.

usage: switch.py FOLDER OUT.gguf

FOLDER has config.json, spiece.model and model.safetensors or its parts. Matrices keep their type (F32,
F16 or BF16); `troupe quantize` makes others of them.
"""
import array
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gguf_out
import safetensors
import sentencepiece_model

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED = 1, 2, 3, 4, 5

# What a layer's tensors are called: here, there, and whether they are vectors.
_SELF = (("attn_norm", "layer.0.layer_norm", True), ("attn_q", "layer.0.SelfAttention.q", False),
         ("attn_k", "layer.0.SelfAttention.k", False), ("attn_v", "layer.0.SelfAttention.v", False),
         ("attn_output", "layer.0.SelfAttention.o", False))
_CROSS = (("cross_attn_norm", "layer.1.layer_norm", True), ("cross_attn_q", "layer.1.EncDecAttention.q", False),
          ("cross_attn_k", "layer.1.EncDecAttention.k", False), ("cross_attn_v", "layer.1.EncDecAttention.v", False),
          ("cross_attn_output", "layer.1.EncDecAttention.o", False))
# One matrix, of which files keep one name or several.
_EMBEDDINGS = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
# In some files, and the authors' own reader leaves it out.
_UNREAD = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
_RELATIVE_BIAS = "layer.0.SelfAttention.relative_attention_bias.weight"


def _refuse(message):
    raise ValueError(message)


def _floats(tensor):
    """The same tensor as F32: norms, biases and routers are small, and are read as such."""
    dtype, shape, data = tensor
    if dtype == "F32":
        return "F32", shape, [data]
    if dtype == "BF16":
        wide = array.array("I", (bits << 16 for bits in array.array("H", bytes(data))))
        return "F32", shape, [wide.tobytes()]
    if dtype == "F16":
        return "F32", shape, [array.array("f", struct.unpack(f"<{len(data) // 2}e", data)).tobytes()]
    return _refuse(f"type {dtype}, expected F32, F16 or BF16")


def _sparse_layers(layers, sparse):
    """The authors' rule: of every `step` layers the second one has experts, or each if there is no step."""
    step = layers // sparse if sparse > 0 else 0
    return [step == 1 or (step > 1 and layer % step == 1) for layer in range(layers)]


class Shape:
    """What config.json says, with the defaults of the authors' own reader, and what it may not say."""

    def __init__(self, config):
        if config.get("model_type") != "switch_transformers":
            _refuse(f"config.json: model_type is {config.get('model_type')!r}, expected 'switch_transformers'")
        if config.get("dense_act_fn", "relu") != "relu" or config.get("is_gated_act", False):
            _refuse("config.json: experts with a gate or another activation than relu are not known")
        if config.get("router_bias", False):
            _refuse("config.json: router_bias is true, expected false")
        self.encoder = config.get("num_layers", 12)
        self.decoder = config.get("num_decoder_layers") or self.encoder
        self.sparse = (_sparse_layers(self.encoder, config.get("num_sparse_encoder_layers", 3)) +
                       _sparse_layers(self.decoder, config.get("num_sparse_decoder_layers", 3)))
        self.width = config.get("d_model", 768)
        self.ff = config.get("d_ff", 2048)
        self.heads = config.get("num_heads", 12)
        self.head_dim = config.get("d_kv", 64)
        self.experts = config.get("num_experts", 8)
        self.capacity = config.get("expert_capacity", 64)
        self.buckets = config.get("relative_attention_num_buckets", 32)
        self.distance = config.get("relative_attention_max_distance", 128)
        self.epsilon = config.get("layer_norm_epsilon", 1e-6)
        self.vocabulary = config.get("vocab_size", 32128)
        self.tied = config.get("tie_word_embeddings", True)
        self.start = config.get("decoder_start_token_id", config.get("pad_token_id", 0))
        self.end = config.get("eos_token_id", 1)
        self.pad = config.get("pad_token_id", 0)
        self.positions = config.get("n_positions", 512)

    def metadata(self, name):
        keys = {
            "block_count": self.encoder + self.decoder, "encoder_block_count": self.encoder,
            "context_length": 2 * self.positions, "embedding_length": self.width, "feed_forward_length": self.ff,
            "attention.head_count": self.heads, "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim, "attention.layer_norm_rms_epsilon": float(self.epsilon),
            "attention.relative_buckets_count": self.buckets, "attention.relative_max_distance": self.distance,
            "expert_count": self.experts, "expert_used_count": 1, "expert_feed_forward_length": self.ff,
            "expert_capacity": self.capacity, "expert_layers": self.sparse,
            "decoder_start_token_id": self.start, "logit_scale": self.width ** -0.5 if self.tied else 1.0}
        return {"general.architecture": "switch", "general.name": name,
                **{f"switch.{key}": value for key, value in keys.items()}}


def vocabulary_metadata(pieces, shape):
    """`pieces`: a sentencepiece_model.Model. Its tokens, then the sentinels, the last of them first, then
    what only fills up the embedding."""
    if not pieces.is_unigram:
        _refuse("spiece.model: not a unigram model")
    tokens = [text for text, _, _ in pieces.pieces]
    scores = array.array("f", (score for _, score, _ in pieces.pieces))
    types = array.array("i", (kind for _, _, kind in pieces.pieces))
    sentinels = min(100, shape.vocabulary - len(tokens))
    if sentinels < 0:
        _refuse(f"spiece.model: {len(tokens)} pieces for a vocabulary of {shape.vocabulary}")
    tokens += [f"<extra_id_{i}>" for i in reversed(range(sentinels))]
    fill = shape.vocabulary - len(tokens)
    tokens += [f"<unused_{i}>" for i in range(fill)]
    scores.extend([0.0] * (sentinels + fill))
    types.extend([_USER_DEFINED] * sentinels + [_UNUSED] * fill)
    unknown = types.index(_UNKNOWN)
    return {"tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores,
            "tokenizer.ggml.token_type": types, "tokenizer.ggml.unknown_token_id": unknown,
            "tokenizer.ggml.eos_token_id": shape.end, "tokenizer.ggml.padding_token_id": shape.pad,
            "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": True,
            "tokenizer.ggml.add_space_prefix": pieces.add_dummy_prefix,
            "tokenizer.ggml.remove_extra_whitespaces": pieces.remove_extra_whitespaces,
            **({"tokenizer.ggml.precompiled_charsmap": pieces.charsmap} if pieces.charsmap else {})}


class _Tensors:
    """The published tensors under GGUF's names; each is taken once, and none may be left over."""

    def __init__(self, published, shape):
        self.published = dict(published)
        self.shape = shape
        self.out = {}

    def take(self, name, wanted):
        tensor = self.published.pop(name, None)
        if tensor is None:
            _refuse(f"tensor {name} is missing")
        if tensor[1] != wanted:
            _refuse(f"tensor {name} has shape {tensor[1]}, expected {wanted}")
        return tensor

    def vector(self, name, published, length):
        self.out[name] = _floats(self.take(published, (length,)))

    def matrix(self, name, published, rows, cols):
        dtype, shape, data = self.take(published, (rows, cols))
        if dtype not in gguf_out.TYPES:
            _refuse(f"tensor {published} has type {dtype}, expected one of {', '.join(gguf_out.TYPES)}")
        self.out[name] = dtype, shape, [data]

    def attention(self, prefix, published, names):
        inner = self.shape.heads * self.shape.head_dim
        for name, theirs, is_norm in names:
            if is_norm:
                self.vector(f"{prefix}{name}.weight", f"{published}{theirs}.weight", self.shape.width)
            elif name.endswith("output"):
                self.matrix(f"{prefix}{name}.weight", f"{published}{theirs}.weight", self.shape.width, inner)
            else:
                self.matrix(f"{prefix}{name}.weight", f"{published}{theirs}.weight", inner, self.shape.width)

    def experts(self, name, published, rows, cols):
        """One matrix of each expert, one after the other."""
        parts = [self.take(f"{published}experts.expert_{e}.{name}.weight", (rows, cols))
                 for e in range(self.shape.experts)]
        (dtype, *others) = {part[0] for part in parts}
        if others or dtype not in gguf_out.TYPES:
            _refuse(f"experts of {published} have types {dtype} {' '.join(others)}, expected one of F32, F16, BF16")
        return dtype, (len(parts), rows, cols), [part[2] for part in parts]

    def feed_forward(self, prefix, published, is_sparse):
        width, ff = self.shape.width, self.shape.ff
        self.vector(f"{prefix}ffn_norm.weight", f"{published}layer_norm.weight", width)
        if not is_sparse:
            self.matrix(f"{prefix}ffn_up.weight", f"{published}mlp.wi.weight", ff, width)
            self.matrix(f"{prefix}ffn_down.weight", f"{published}mlp.wo.weight", width, ff)
            return
        self.out[f"{prefix}ffn_gate_inp.weight"] = _floats(
            self.take(f"{published}mlp.router.classifier.weight", (self.shape.experts, width)))
        self.out[f"{prefix}ffn_up_exps.weight"] = self.experts("wi", f"{published}mlp.", ff, width)
        self.out[f"{prefix}ffn_down_exps.weight"] = self.experts("wo", f"{published}mlp.", width, ff)

    def stack(self, side, layers, first):
        names = (_SELF,) if side == "encoder" else (_SELF, _CROSS)
        for layer in range(layers):
            prefix, published = f"blk.{first + layer}.", f"{side}.block.{layer}."
            for part in names:
                self.attention(prefix, published, part)
            if layer == 0:
                self.out[f"{prefix}attn_rel_b.weight"] = _floats(
                    self.take(published + _RELATIVE_BIAS, (self.shape.buckets, self.shape.heads)))
            self.feed_forward(prefix, f"{published}layer.{len(names)}.", self.shape.sparse[first + layer])

    def all(self):
        shape = self.shape
        embeddings = _EMBEDDINGS if not shape.tied else (*_EMBEDDINGS, "lm_head.weight")
        found = next((name for name in embeddings if name in self.published), embeddings[0])
        self.matrix("token_embd.weight", found, shape.vocabulary, shape.width)
        for unread in (*embeddings, _UNREAD):
            self.published.pop(unread, None)
        if not shape.tied:
            self.matrix("output.weight", "lm_head.weight", shape.vocabulary, shape.width)
        self.stack("encoder", shape.encoder, 0)
        self.stack("decoder", shape.decoder, shape.encoder)
        self.vector("enc.output_norm.weight", "encoder.final_layer_norm.weight", shape.width)
        self.vector("output_norm.weight", "decoder.final_layer_norm.weight", shape.width)
        if self.published:
            _refuse(f"no name for tensor {min(self.published)}")
        return self.out


def convert(folder, out):
    folder = pathlib.Path(folder)
    shape = Shape(json.loads((folder / "config.json").read_text()))
    pieces = sentencepiece_model.parse((folder / "spiece.model").read_bytes())
    metadata = {**shape.metadata(folder.resolve().name), **vocabulary_metadata(pieces, shape)}
    gguf_out.write(out, metadata, _Tensors(safetensors.read_tensors(folder), shape).all())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        convert(*sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
