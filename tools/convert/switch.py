"""Switch Transformers as GGUF (docs/formats/switch.md), of the files that their authors publish."""
import array

import gguf_stream
import safetensors
import sentencepiece_model
from layout import Layout
from refused import Refused

_UNKNOWN, _USER_DEFINED, _UNUSED = 2, 4, 5

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


def _sparse_layers(layers, sparse):
    """The authors' rule: of every `step` layers the second one has experts, or each if there is no step."""
    step = layers // sparse if sparse > 0 else 0
    return [step == 1 or (step > 1 and layer % step == 1) for layer in range(layers)]


class Shape:
    """What config.json says, with the defaults of the authors' own reader, and what it may not say."""

    def __init__(self, config):
        config.expect("dense_act_fn", "relu", "relu")
        config.expect("is_gated_act", False, False)
        config.expect("router_bias", False, False)
        self.encoder = config.count("num_layers", 12)
        self.decoder = config.count("num_decoder_layers", self.encoder)
        self.sparse = (_sparse_layers(self.encoder, config.count("num_sparse_encoder_layers", 3, least=0)) +
                       _sparse_layers(self.decoder, config.count("num_sparse_decoder_layers", 3, least=0)))
        self.width = config.count("d_model", 768)
        self.ff = config.count("d_ff", 2048)
        self.heads = config.count("num_heads", 12)
        self.head_dim = config.count("d_kv", 64)
        self.experts = config.count("num_experts", 8)
        self.capacity = config.count("expert_capacity", 64)
        self.buckets = config.count("relative_attention_num_buckets", 32)
        self.distance = config.count("relative_attention_max_distance", 128)
        self.epsilon = config.number("layer_norm_epsilon", 1e-6)
        self.vocabulary = config.count("vocab_size", 32128)
        self.tied = config.flag("tie_word_embeddings", True)
        self.pad = config.count("pad_token_id", 0, least=0)
        self.start = config.count("decoder_start_token_id", self.pad, least=0)
        self.end = config.count("eos_token_id", 1, least=0)
        self.positions = config.count("n_positions", 512)

    def metadata(self, name):
        keys = {
            "block_count": self.encoder + self.decoder, "encoder_block_count": self.encoder,
            "context_length": 2 * self.positions, "embedding_length": self.width, "feed_forward_length": self.ff,
            "attention.head_count": self.heads, "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim, "attention.layer_norm_rms_epsilon": self.epsilon,
            "attention.relative_buckets_count": self.buckets, "attention.relative_max_distance": self.distance,
            "expert_count": self.experts, "expert_used_count": 1, "expert_feed_forward_length": self.ff,
            "expert_capacity": self.capacity, "expert_layers": self.sparse,
            "decoder_start_token_id": self.start, "logit_scale": self.width ** -0.5 if self.tied else 1.0}
        return {"general.architecture": "switch", "general.name": name,
                **{f"switch.{key}": value for key, value in keys.items()}}


def _vocabulary_keys(path, shape):
    """The pieces of spiece.model, then the sentinels, the last of them first, then what only fills up the
    embedding."""
    pieces = sentencepiece_model.read(path)
    if not pieces.is_unigram:
        raise Refused(f"{path}: no unigram model")
    tokens = [text for text, _, _ in pieces.pieces]
    scores = array.array("f", (score for _, score, _ in pieces.pieces))
    types = array.array("i", (kind for _, _, kind in pieces.pieces))
    sentinels = min(100, shape.vocabulary - len(tokens))
    if sentinels < 0:
        raise Refused(f"{path}: {len(tokens)} pieces, expected at most vocab_size, {shape.vocabulary}")
    tokens += [f"<extra_id_{i}>" for i in reversed(range(sentinels))]
    fill = shape.vocabulary - len(tokens)
    tokens += [f"<unused_{i}>" for i in range(fill)]
    scores.extend([0.0] * (sentinels + fill))
    types.extend([_USER_DEFINED] * sentinels + [_UNUSED] * fill)
    if _UNKNOWN not in types:
        raise Refused(f"{path}: no piece is the unknown one")
    return {"tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores,
            "tokenizer.ggml.token_type": types, "tokenizer.ggml.unknown_token_id": types.index(_UNKNOWN),
            "tokenizer.ggml.eos_token_id": shape.end, "tokenizer.ggml.padding_token_id": shape.pad,
            "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": True,
            "tokenizer.ggml.add_space_prefix": pieces.add_dummy_prefix,
            "tokenizer.ggml.remove_extra_whitespaces": pieces.remove_extra_whitespaces,
            **({"tokenizer.ggml.precompiled_charsmap": pieces.charsmap} if pieces.charsmap else {})}


class _Tensors:
    def __init__(self, layout, shape):
        self._layout, self._shape = layout, shape

    def _attention(self, prefix, published, names):
        width, inner = self._shape.width, self._shape.heads * self._shape.head_dim
        for name, theirs, is_norm in names:
            to, of = f"{prefix}{name}.weight", f"{published}{theirs}.weight"
            if is_norm:
                self._layout.floats(to, of, width)
            elif name.endswith("output"):
                self._layout.matrix(to, of, width, inner)
            else:
                self._layout.matrix(to, of, inner, width)

    def _feed_forward(self, prefix, published, is_sparse):
        width, ff, experts = self._shape.width, self._shape.ff, self._shape.experts
        self._layout.floats(f"{prefix}ffn_norm.weight", f"{published}layer_norm.weight", width)
        if is_sparse:
            self._layout.floats(f"{prefix}ffn_gate_inp.weight", f"{published}mlp.router.classifier.weight",
                                experts, width)
        for to, of, shape in (("ffn_up", "wi", (ff, width)), ("ffn_down", "wo", (width, ff))):
            if is_sparse:
                self._layout.stacked(f"{prefix}{to}_exps.weight",
                                     (f"{published}mlp.experts.expert_{e}.{of}.weight" for e in range(experts)), *shape)
            else:
                self._layout.matrix(f"{prefix}{to}.weight", f"{published}mlp.{of}.weight", *shape)

    def _stack(self, side, layers, first):
        names = (_SELF,) if side == "encoder" else (_SELF, _CROSS)
        for layer in range(layers):
            prefix, published = f"blk.{first + layer}.", f"{side}.block.{layer}."
            for part in names:
                self._attention(prefix, published, part)
            if layer == 0:
                self._layout.floats(f"{prefix}attn_rel_b.weight", published + _RELATIVE_BIAS, self._shape.buckets,
                                    self._shape.heads)
            self._feed_forward(prefix, f"{published}layer.{len(names)}.", self._shape.sparse[first + layer])

    def place(self):
        shape, layout = self._shape, self._layout
        embeddings = _EMBEDDINGS if not shape.tied else (*_EMBEDDINGS, "lm_head.weight")
        found = next((name for name in embeddings if layout.has(name)), embeddings[0])
        layout.matrix("token_embd.weight", found, shape.vocabulary, shape.width)
        layout.leave(*embeddings, _UNREAD)
        if not shape.tied:
            layout.matrix("output.weight", "lm_head.weight", shape.vocabulary, shape.width)
        self._stack("encoder", shape.encoder, 0)
        self._stack("decoder", shape.decoder, shape.encoder)
        layout.floats("enc.output_norm.weight", "encoder.final_layer_norm.weight", shape.width)
        layout.floats("output_norm.weight", "decoder.final_layer_norm.weight", shape.width)
        layout.check_nothing_left()


def convert(folder, config, out, name):
    """Writes the model as one file; how many tensors it has."""
    shape = Shape(config)
    layout = Layout(folder, safetensors.tensors_of_folder(folder))
    _Tensors(layout, shape).place()
    gguf_stream.write(out, {**shape.metadata(name), **_vocabulary_keys(folder / "spiece.model", shape)}, layout.made)
    return len(layout.made)
