"""XVERSE-MoE as a GGUF of the family granitemoe, which is the same graph with other names and all of its
scales at 1 (docs/formats/safetensors.md says how they compare).
"""
import gguf_stream
import piece_vocabulary
import safetensors
from layout import Layout

_FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}


def rows_in_pairs(tensor, heads):
    """The matrix of queries or keys whose head rotates number i with number i + half of it, with its rows in
    the order in which number 2 i rotates with number 2 i + 1."""
    data, rows = tensor.read(), tensor.shape[0]
    row, half = tensor.size // rows, rows // heads // 2
    order = (2 * half * head + i + part for head in range(heads) for i in range(half) for part in (0, half))
    return b"".join(data[number * row:(number + 1) * row] for number in order)


def _keys(config, name, file_type):
    for key, value, otherwise in (("hidden_act", "silu", "silu"),
                                  ("attention_bias", False, False), ("rope_scaling", None, None)):
        config.expect(key, value, otherwise)
    heads, width = config.count("num_attention_heads"), config.count("hidden_size")
    key_heads = config.count("num_key_value_heads", heads)
    if width % (2 * heads) or heads % key_heads:
        raise config.refuse("num_attention_heads", f"a divisor of half of {width} and a multiple of {key_heads}")
    experts, ff = config.count("num_experts"), config.count("intermediate_size")
    keys = {"block_count": config.count("num_hidden_layers"), "embedding_length": width, "feed_forward_length": ff,
            "context_length": config.count("max_position_embeddings"), "vocab_size": config.count("vocab_size"),
            "attention.head_count": heads, "attention.head_count_kv": key_heads,
            "attention.layer_norm_rms_epsilon": config.number("rms_norm_eps", 1e-6),
            "rope.freq_base": config.number("rope_theta", 10000.0), "rope.dimension_count": width // heads,
            "expert_count": experts, "expert_used_count": config.count("moe_top_k"),
            "embedding_scale": 1.0, "residual_scale": 1.0, "logit_scale": 1.0}
    if config.get("num_shared_experts") is not None:
        keys["expert_shared_feed_forward_length"] = ff * config.count("num_shared_experts")
    return {"general.architecture": "granitemoe", "general.name": name, "general.file_type": file_type,
            "general.quantization_version": 2, **{f"granitemoe.{key}": value for key, value in keys.items()}}


def _tensors(layout, keys, tied):
    def key(name):
        return keys[f"granitemoe.{name}"]

    width, ff, vocabulary = key("embedding_length"), key("feed_forward_length"), key("vocab_size")
    heads, key_heads, experts = key("attention.head_count"), key("attention.head_count_kv"), key("expert_count")
    shared, of_keys = keys.get("granitemoe.expert_shared_feed_forward_length"), width // heads * key_heads
    layout.matrix("token_embd.weight", "model.embed_tokens.weight", vocabulary, width)
    layout.floats("output_norm.weight", "model.norm.weight", width)
    if not tied:
        layout.matrix("output.weight", "lm_head.weight", vocabulary, width)
    for number in range(key("block_count")):
        to, of = f"blk.{number}.", f"model.layers.{number}."
        layout.floats(f"{to}attn_norm.weight", f"{of}input_layernorm.weight", width)
        layout.made_of(f"{to}attn_q.weight", f"{of}self_attn.q_proj.weight",
                       lambda tensor: rows_in_pairs(tensor, heads), width, width)
        layout.made_of(f"{to}attn_k.weight", f"{of}self_attn.k_proj.weight",
                       lambda tensor: rows_in_pairs(tensor, key_heads), of_keys, width)
        layout.matrix(f"{to}attn_v.weight", f"{of}self_attn.v_proj.weight", of_keys, width)
        layout.matrix(f"{to}attn_output.weight", f"{of}self_attn.o_proj.weight", width, width)
        layout.floats(f"{to}ffn_norm.weight", f"{of}post_attention_layernorm.weight", width)
        layout.floats(f"{to}ffn_gate_inp.weight", f"{of}mlp.router.weight", experts, width)
        for part, shape in (("gate", (ff, width)), ("up", (ff, width)), ("down", (width, ff))):
            layout.stacked(f"{to}ffn_{part}_exps.weight",
                           (f"{of}mlp.experts.{e}.{part}_proj.weight" for e in range(experts)), *shape)
        for part, shape in (("gate", (shared, width)), ("up", (shared, width)), ("down", (width, shared))):
            if shared is not None:
                layout.matrix(f"{to}ffn_{part}_shexp.weight", f"{of}mlp.shared_experts.{part}_proj.weight", *shape)
    layout.check_nothing_left(lambda name: name.endswith("rotary_emb.inv_freq"))  # which follows from rope_theta


def _tokenizer(folder, config, size):
    path = folder / "tokenizer.json"
    keys = piece_vocabulary.of_tokenizer(path, safetensors.read_json(path), size)
    for key, name in (("bos_token_id", "bos"), ("eos_token_id", "eos"), ("pad_token_id", "padding")):
        if config.get(key) is not None:
            place = config.get(key)
            if not isinstance(place, int) or not 0 <= place < size:
                raise config.refuse(key, f"less than {size}")
            keys[f"tokenizer.ggml.{name}_token_id"] = place
    templates = folder / "tokenizer_config.json"
    if templates.exists():
        template = safetensors.read_json(templates)
        template = template.get("chat_template") if isinstance(template, dict) else None
        if isinstance(template, str):
            keys["tokenizer.chat_template"] = template
    return keys


def convert(folder, config, out, name):
    """Writes the model as one file; how many tensors it has."""
    tensors = safetensors.tensors_of_folder(folder)
    embedding = tensors.get("model.embed_tokens.weight")
    keys = _keys(config, name, _FILE_TYPES[embedding.type if embedding else "F32"])
    layout = Layout(folder, tensors)
    _tensors(layout, keys, config.get("tie_word_embeddings", False))
    keys.update(_tokenizer(folder, config, keys["granitemoe.vocab_size"]))
    gguf_stream.write(out, keys, layout.made)
    return len(layout.made)
