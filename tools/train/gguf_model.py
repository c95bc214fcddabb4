"""The network's weights and the vocabulary under GGUF's names for the family qwen2moe."""
import numpy as np

import gguf_file

_F16, _F32 = np.float16, np.float32


def model_metadata(shape, name, context):
    keys = {"block_count": shape.layers, "context_length": context, "embedding_length": shape.width,
            "feed_forward_length": shape.shared_width, "attention.head_count": shape.heads,
            "attention.head_count_kv": shape.kv_heads, "rope.freq_base": shape.rope_base,
            "attention.layer_norm_rms_epsilon": shape.norm_epsilon, "expert_used_count": shape.top_k,
            "expert_count": shape.experts, "expert_feed_forward_length": shape.expert_width,
            "expert_shared_feed_forward_length": shape.shared_width}
    return {"general.architecture": "qwen2moe", "general.name": name, "general.file_type": 1,
            "general.quantization_version": 2, **{f"qwen2moe.{key}": value for key, value in keys.items()}}


def vocabulary_metadata(pieces):
    """`pieces`: a SentencePieceProcessor."""
    def kind(i):
        if pieces.is_unknown(i):
            return 2
        return 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1
    count = range(pieces.get_piece_size())
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in count],
            "tokenizer.ggml.scores": np.array([pieces.get_score(i) for i in count], _F32),
            "tokenizer.ggml.token_type": np.array([kind(i) for i in count], np.int32),
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_eos_token": False}


# Ours -> GGUF's; what is multiplied "rows times matrix" is stored the other way round ('T').
_LAYER = (
    ("attention_norm.weight", "attn_norm.weight", _F32, ""),
    ("attention.q.weight", "attn_q.weight", _F16, ""),
    ("attention.q.bias", "attn_q.bias", _F32, ""),
    ("attention.k.weight", "attn_k.weight", _F16, ""),
    ("attention.k.bias", "attn_k.bias", _F32, ""),
    ("attention.v.weight", "attn_v.weight", _F16, ""),
    ("attention.v.bias", "attn_v.bias", _F32, ""),
    ("attention.out.weight", "attn_output.weight", _F16, ""),
    ("expert_norm.weight", "ffn_norm.weight", _F32, ""),
    ("experts.router", "ffn_gate_inp.weight", _F32, ""),
    ("experts.gate", "ffn_gate_exps.weight", _F16, "T"),
    ("experts.up", "ffn_up_exps.weight", _F16, "T"),
    ("experts.down", "ffn_down_exps.weight", _F16, "T"),
    ("shared.weigh.weight", "ffn_gate_inp_shexp.weight", _F32, "flat"),
    ("shared.gate.weight", "ffn_gate_shexp.weight", _F16, ""),
    ("shared.up.weight", "ffn_up_shexp.weight", _F16, ""),
    ("shared.down.weight", "ffn_down_shexp.weight", _F16, ""),
)


def names(layers):
    """[(ours, GGUF's, how ours is stored)] of the network's weights."""
    return [("embedding.weight", "token_embd.weight", ""), ("norm.weight", "output_norm.weight", "")] + [
        (f"layers.{layer}.{ours}", f"blk.{layer}.{theirs}", form)
        for layer in range(layers) for ours, theirs, _, form in _LAYER]


def tensors(state, layers):
    """`state`: the network's state_dict. The output matrix is the embedding, but llama.cpp wants
    one by name in this family; apart they may be quantized to different types."""
    def entry(name, dtype, tensor, form):
        tensor = tensor.flatten() if form == "flat" else tensor.transpose(1, 2) if form == "T" else tensor
        return name, dtype, tuple(tensor.shape), lambda: tensor.detach().float().cpu().numpy()
    found = [entry("token_embd.weight", _F16, state["embedding.weight"], ""),
             entry("output.weight", _F16, state["embedding.weight"], ""),
             entry("output_norm.weight", _F32, state["norm.weight"], "")]
    for layer in range(layers):
        found += [entry(f"blk.{layer}.{theirs}", dtype, state[f"layers.{layer}.{ours}"], form)
                  for ours, theirs, dtype, form in _LAYER]
    left_out = set(state) - {"embedding.weight", "norm.weight"} - {
        f"layers.{layer}.{ours}" for layer in range(layers) for ours, *_ in _LAYER}
    if left_out:
        raise ValueError(f"no GGUF name for {', '.join(sorted(left_out))}")
    return found


def write(path, name, shape, context, state, pieces):
    gguf_file.write(path, {**model_metadata(shape, name, context), **vocabulary_metadata(pieces)},
                    tensors(state, shape.layers))
