"""Files laid out as the most downloaded ones of their families are: names, shapes and types of all tensors, and
the keys, with the number of tensors and what `troupe inspect` says of them.

The numbers of tensors are those that loaders print for the published files; without a number, the
layout is what llama.cpp's loader asks of the family, in the sizes of the model's config.json.
"""
import array

F32, Q5_0, Q8_0, Q4_K, Q5_K, Q6_K, BF16, MXFP4 = 0, 6, 8, 12, 13, 14, 30, 39


def vocabulary(size, pre):
    """As many tokens as the model has: bytes, and names for the rest."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    characters = [chr(byte) for byte in shown] + [chr(256 + i) for i in range(len(hidden))]
    tokens = [*characters, "ab"]
    tokens += [f"<{i}>" for i in range(size - len(tokens))]
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.eos_token_id": size - 1}


def ranked_vocabulary(size):
    """As Gemma 4's: pieces with merges by rank, and a token that is there twice."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [3] * 4 + [6] * 256
    tokens += ["\u2581", "a", "b", "ab", "#", "#"]
    tokens += [f"<{i}>" for i in range(size - len(tokens))]
    types += [1] * (size - len(types))
    return {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.scores": array.array("f", [0.0] * size),
            "tokenizer.ggml.token_type": array.array("i", types),
            "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.unknown_token_id": 3,
            "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_space_prefix": False}


def keys(arch, **values):
    return {"general.architecture": arch,
            **{f"{arch}.{key.replace('__', '.')}": value for key, value in values.items()}}


def mlp(prefix, suffix, width, ff, gate_up, down, experts=()):
    return {f"{prefix}ffn_gate{suffix}.weight": ((width, ff, *experts), gate_up),
            f"{prefix}ffn_up{suffix}.weight": ((width, ff, *experts), gate_up),
            f"{prefix}ffn_down{suffix}.weight": ((ff, width, *experts), down)}


def gpt_oss(layers, experts):
    width, q, kv = 2880, 4096, 512
    tensors = {"token_embd.weight": ((width, 201088), BF16), "output_norm.weight": ((width,), F32),
               "output.weight": ((width, 201088), BF16)}
    for layer in range(layers):
        at = f"blk.{layer}."
        for name, inputs, outputs in (("q", width, q), ("k", width, kv), ("v", width, kv),
                                      ("output", q, width)):
            tensors[f"{at}attn_{name}.weight"] = ((inputs, outputs), BF16)
            tensors[f"{at}attn_{name}.bias"] = ((outputs,), F32)
        tensors |= {f"{at}attn_norm.weight": ((width,), F32), f"{at}attn_sinks.weight": ((64,), F32),
                    f"{at}post_attention_norm.weight": ((width,), F32),
                    f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                    f"{at}ffn_gate_inp.bias": ((experts,), F32)}
        tensors |= mlp(at, "_exps", width, 2880, MXFP4, MXFP4, (experts,))
        tensors |= {f"{at}ffn_{name}_exps.bias": ((2880, experts), F32)
                    for name in ("gate", "up", "down")}
    metadata = keys(
        "gpt-oss", block_count=layers, context_length=131072, embedding_length=width,
        feed_forward_length=2880, attention__head_count=64, attention__head_count_kv=8,
        rope__freq_base=150000.0, attention__layer_norm_rms_epsilon=1e-5, expert_count=experts,
        expert_used_count=4, attention__key_length=64, attention__value_length=64,
        attention__sliding_window=128, expert_feed_forward_length=2880, rope__scaling__type="yarn",
        rope__scaling__factor=32.0, rope__scaling__original_context_length=4096)
    return metadata | vocabulary(201088, "gpt-4o"), tensors


def glm_flash():
    width, heads, rank, experts = 2048, 20, 512, 64
    tensors = {"token_embd.weight": ((width, 154880), Q4_K), "output_norm.weight": ((width,), F32),
               "output.weight": ((width, 154880), Q6_K)}
    for layer in range(47):
        at = f"blk.{layer}."
        tensors |= {f"{at}attn_norm.weight": ((width,), F32), f"{at}ffn_norm.weight": ((width,), F32),
                    f"{at}attn_q_a.weight": ((width, 768), Q8_0),
                    f"{at}attn_q_a_norm.weight": ((768,), F32),
                    f"{at}attn_q_b.weight": ((768, heads * 256), Q8_0),
                    f"{at}attn_kv_a_mqa.weight": ((width, rank + 64), Q8_0),
                    f"{at}attn_kv_a_norm.weight": ((rank,), F32),
                    f"{at}attn_k_b.weight": ((192, rank, heads), Q8_0),
                    f"{at}attn_v_b.weight": ((rank, 256, heads), Q8_0),
                    f"{at}attn_output.weight": ((heads * 256, width), Q4_K)}
        if layer == 0:
            tensors |= mlp(at, "", width, 10240, Q4_K, Q6_K)
            continue
        tensors |= {f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                    f"{at}exp_probs_b.bias": ((experts,), F32)}
        tensors |= mlp(at, "_exps", width, 1536, Q4_K, Q6_K, (experts,))
        tensors |= mlp(at, "_shexp", width, 1536, Q8_0, Q8_0)
    metadata = keys(  # without expert_gating_func, as the first files were
        "deepseek2", block_count=47, context_length=202752, embedding_length=width,
        feed_forward_length=10240, attention__head_count=heads, attention__head_count_kv=1,
        rope__freq_base=1e6, attention__layer_norm_rms_epsilon=1e-5, expert_used_count=4,
        leading_dense_block_count=1, attention__q_lora_rank=768, attention__kv_lora_rank=rank,
        attention__key_length=576, attention__value_length=512, attention__key_length_mla=256,
        attention__value_length_mla=256, expert_feed_forward_length=1536, expert_count=experts,
        expert_shared_count=1, expert_weights_scale=1.8, expert_weights_norm=True,
        rope__dimension_count=64)
    return metadata | vocabulary(154880, "glm4"), tensors


def lfm2_moe():
    width, experts, attention = 2048, 32, (2, 6, 10, 14, 18, 21)
    tensors = {"token_embd.weight": ((width, 65536), Q6_K), "token_embd_norm.weight": ((width,), F32)}
    for layer in range(24):
        at = f"blk.{layer}."
        tensors |= {f"{at}attn_norm.weight": ((width,), F32), f"{at}ffn_norm.weight": ((width,), F32)}
        if layer in attention:
            for name, outputs in (("q", width), ("k", 512), ("v", 512), ("output", width)):
                tensors[f"{at}attn_{name}.weight"] = ((width, outputs), Q4_K)
            tensors |= {f"{at}attn_{name}_norm.weight": ((64,), F32) for name in ("q", "k")}
        else:
            tensors |= {f"{at}shortconv.in_proj.weight": ((width, 3 * width), Q4_K),
                        f"{at}shortconv.conv.weight": ((3, width), F32),
                        f"{at}shortconv.out_proj.weight": ((width, width), Q4_K)}
        if layer < 2:
            tensors |= mlp(at, "", width, 7168, Q4_K, Q6_K)
            continue
        tensors |= {f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                    f"{at}exp_probs_b.bias": ((experts,), F32)}
        tensors |= mlp(at, "_exps", width, 1792, Q4_K, Q6_K, (experts,))
    metadata = keys(
        "lfm2moe", block_count=24, context_length=128000, embedding_length=width,
        feed_forward_length=7168, attention__head_count=32,
        attention__head_count_kv=array.array("i", [8 * (i in attention) for i in range(24)]),
        rope__freq_base=1e6, attention__layer_norm_rms_epsilon=1e-5, expert_count=experts,
        expert_used_count=4, expert_feed_forward_length=1792, expert_gating_func=2,
        leading_dense_block_count=2, shortconv__l_cache=3, vocab_size=65536)
    return metadata | vocabulary(65536, "lfm2"), tensors


def glm_air():
    width, q, kv, experts = 4096, 96 * 128, 8 * 128, 128
    tensors = {"token_embd.weight": ((width, 151552), Q4_K), "output_norm.weight": ((width,), F32),
               "output.weight": ((width, 151552), Q6_K)}
    for layer in range(47):
        at = f"blk.{layer}."
        for name, outputs in (("q", q), ("k", kv), ("v", kv)):
            tensors |= {f"{at}attn_{name}.weight": ((width, outputs), Q4_K),
                        f"{at}attn_{name}.bias": ((outputs,), F32)}
        tensors |= {f"{at}attn_norm.weight": ((width,), F32),
                    f"{at}attn_output.weight": ((q, width), Q4_K),
                    f"{at}post_attention_norm.weight": ((width,), F32)}
        if layer == 0:
            tensors |= mlp(at, "", width, 10944, Q8_0, Q8_0)
            continue
        tensors |= {f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                    f"{at}exp_probs_b.bias": ((experts,), F32)}
        tensors |= mlp(at, "_exps", width, 1408, Q4_K, Q8_0, (experts,))
        tensors |= mlp(at, "_shexp", width, 1408, Q4_K, Q8_0)
    tensors |= {"blk.46.nextn.eh_proj.weight": ((2 * width, width), Q4_K),
                "blk.46.nextn.embed_tokens.weight": ((width, 151552), Q4_K),
                "blk.46.nextn.shared_head_head.weight": ((width, 151552), Q4_K)}
    tensors |= {f"blk.46.nextn.{name}.weight": ((width,), F32)
                for name in ("enorm", "hnorm", "shared_head_norm")}
    metadata = keys(
        "glm4moe", block_count=47, context_length=131072, embedding_length=width,
        feed_forward_length=10944, attention__head_count=96, attention__head_count_kv=8,
        rope__freq_base=1e6, attention__layer_norm_rms_epsilon=1e-5, expert_used_count=8,
        attention__key_length=128, attention__value_length=128, rope__dimension_count=64,
        expert_count=experts, expert_feed_forward_length=1408, expert_shared_count=1,
        leading_dense_block_count=1, expert_gating_func=2, expert_weights_scale=1.0,
        expert_weights_norm=True, nextn_predict_layers=1)
    return metadata | vocabulary(151552, "glm4"), tensors


def granite_moe():
    width, ff, experts = 1536, 512, 40
    tensors = {"token_embd.weight": ((width, 49155), Q6_K), "output_norm.weight": ((width,), F32)}
    for layer in range(32):
        at = f"blk.{layer}."
        tensors |= {f"{at}attn_norm.weight": ((width,), F32), f"{at}ffn_norm.weight": ((width,), F32),
                    f"{at}ffn_gate_inp.weight": ((width, experts), F32)}
        for name, outputs in (("q", width), ("k", 512), ("v", 512), ("output", width)):
            tensors[f"{at}attn_{name}.weight"] = ((width, outputs), Q4_K)
        tensors |= mlp(at, "_exps", width, ff, Q4_K, Q6_K, (experts,))
    metadata = keys(
        "granitemoe", block_count=32, context_length=131072, embedding_length=width,
        feed_forward_length=ff, attention__head_count=24, attention__head_count_kv=8,
        rope__freq_base=1e7, rope__dimension_count=64, attention__layer_norm_rms_epsilon=1e-6,
        expert_count=experts, expert_used_count=8, attention__scale=0.015625, embedding_scale=12.0,
        residual_scale=0.22, logit_scale=6.0, vocab_size=49155)
    return metadata | vocabulary(49155, "refact"), tensors


def granite_hybrid():
    """36 layers of Mamba-2 and 4 of attention without rotation; ssm_a and ssm_d are rows of one."""
    width, ff, experts, inner, heads, channels = 1536, 512, 64, 3072, 48, 3072 + 2 * 128
    attention = (5, 15, 25, 35)
    tensors = {"token_embd.weight": ((width, 100352), Q6_K), "output_norm.weight": ((width,), F32)}
    for layer in range(40):
        at = f"blk.{layer}."
        tensors |= {f"{at}attn_norm.weight": ((width,), F32), f"{at}ffn_norm.weight": ((width,), F32),
                    f"{at}ffn_gate_inp.weight": ((width, experts), F32)}
        if layer in attention:
            for name, outputs in (("q", width), ("k", 512), ("v", 512), ("output", width)):
                tensors[f"{at}attn_{name}.weight"] = ((width, outputs), Q4_K)
        else:
            tensors |= {f"{at}ssm_in.weight": ((width, 2 * inner + 2 * 128 + heads), Q4_K),
                        f"{at}ssm_conv1d.weight": ((4, channels), F32),
                        f"{at}ssm_conv1d.bias": ((channels,), F32),
                        f"{at}ssm_dt.bias": ((heads,), F32), f"{at}ssm_a": ((1, heads), F32),
                        f"{at}ssm_d": ((1, heads), F32), f"{at}ssm_norm.weight": ((inner,), F32),
                        f"{at}ssm_out.weight": ((inner, width), Q4_K)}
        tensors |= mlp(at, "_exps", width, ff, Q4_K, Q6_K, (experts,))
        tensors |= mlp(at, "_shexp", width, 1024, Q5_K, Q6_K)
    metadata = keys(
        "granitehybrid", block_count=40, context_length=131072, embedding_length=width,
        feed_forward_length=ff, attention__head_count=12,
        attention__head_count_kv=array.array("i", [4 * (i in attention) for i in range(40)]),
        rope__freq_base=1e4, rope__dimension_count=128, rope__scaling__finetuned=False,
        attention__layer_norm_rms_epsilon=1e-5, expert_count=experts, expert_used_count=6,
        expert_shared_feed_forward_length=1024, attention__scale=0.0078125, embedding_scale=12.0,
        residual_scale=0.22, logit_scale=6.0, vocab_size=100352, ssm__conv_kernel=4,
        ssm__state_size=128, ssm__group_count=1, ssm__inner_size=inner, ssm__time_step_rank=heads)
    return metadata | vocabulary(100352, "dbrx"), tensors


def nemotron_h_moe():
    """52 blocks of one part each. Rows of 2688 and of 1856 fit no type with blocks of 256."""
    blocks = "MEMEM*E" * 5 + "MEMEMEM*E" + "MEMEMEME"
    width, ff, experts, inner, heads, groups, state = 2688, 1856, 128, 4096, 64, 8, 128
    channels = inner + 2 * groups * state
    tensors = {"token_embd.weight": ((width, 131072), Q5_0), "output.weight": ((width, 131072), Q8_0),
               "output_norm.weight": ((width,), F32)}
    for block, part in enumerate(blocks):
        at = f"blk.{block}."
        tensors[f"{at}attn_norm.weight"] = ((width,), F32)
        if part == "M":
            tensors |= {f"{at}ssm_in.weight": ((width, inner + channels + heads), Q5_0),
                        f"{at}ssm_conv1d.weight": ((4, channels), F32),
                        f"{at}ssm_conv1d.bias": ((channels,), F32),
                        f"{at}ssm_dt.bias": ((heads,), F32), f"{at}ssm_a": ((1, heads), F32),
                        f"{at}ssm_d": ((1, heads), F32),
                        f"{at}ssm_norm.weight": ((inner // groups, groups), F32),
                        f"{at}ssm_out.weight": ((inner, width), Q4_K)}
        elif part == "*":
            tensors |= {f"{at}attn_q.weight": ((width, 4096), Q5_0), f"{at}attn_k.weight": ((width, 256), Q5_0),
                        f"{at}attn_v.weight": ((width, 256), Q8_0), f"{at}attn_output.weight": ((4096, width), Q4_K)}
        else:
            tensors |= {f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                        f"{at}exp_probs_b.bias": ((experts,), F32),
                        f"{at}ffn_up_exps.weight": ((width, ff, experts), Q5_0),
                        f"{at}ffn_down_exps.weight": ((ff, width, experts), Q8_0),
                        f"{at}ffn_up_shexp.weight": ((width, 3712), Q5_0),
                        f"{at}ffn_down_shexp.weight": ((3712, width), Q8_0)}
    metadata = keys(
        "nemotron_h_moe", block_count=52, context_length=1048576, embedding_length=width,
        feed_forward_length=array.array("i", [ff * (part == "E") for part in blocks]), attention__head_count=32,
        attention__head_count_kv=array.array("i", [2 * (part == "*") for part in blocks]),
        rope__freq_base=1e4, rope__dimension_count=84, rope__scaling__finetuned=False,
        attention__layer_norm_rms_epsilon=1e-5, attention__layer_norm_epsilon=1e-5,
        attention__key_length=128, attention__value_length=128, expert_count=experts,
        expert_used_count=6, expert_group_count=1, expert_group_used_count=1, expert_feed_forward_length=ff,
        expert_shared_feed_forward_length=3712, expert_shared_count=1, expert_weights_norm=True,
        expert_weights_scale=2.5, vocab_size=131072, ssm__conv_kernel=4, ssm__state_size=state,
        ssm__group_count=groups, ssm__inner_size=inner, ssm__time_step_rank=heads)
    return metadata | vocabulary(131072, "pixtral"), tensors


def gemma4():
    width, heads, experts = 2816, 16, 128
    full = [layer % 6 == 5 for layer in range(30)]
    tensors = {"token_embd.weight": ((width, 262144), Q6_K), "output_norm.weight": ((width,), F32),
               "rope_freqs.weight": ((256,), F32)}
    for layer in range(30):
        at, dim, kv = f"blk.{layer}.", *((512, 2 * 512) if full[layer] else (256, 8 * 256))
        tensors |= {f"{at}attn_q.weight": ((width, heads * dim), Q4_K),
                    f"{at}attn_k.weight": ((width, kv), Q4_K),
                    f"{at}attn_output.weight": ((heads * dim, width), Q4_K),
                    f"{at}attn_q_norm.weight": ((dim,), F32), f"{at}attn_k_norm.weight": ((dim,), F32),
                    f"{at}layer_output_scale.weight": ((1,), F32)}
        if not full[layer]:
            tensors[f"{at}attn_v.weight"] = ((width, kv), Q6_K)
        tensors |= {f"{at}{name}": ((width,), F32) for name in (
            "attn_norm.weight", "post_attention_norm.weight", "ffn_norm.weight",
            "post_ffw_norm.weight", "ffn_gate_inp.scale", "pre_ffw_norm_2.weight",
            "post_ffw_norm_1.weight", "post_ffw_norm_2.weight")}
        tensors |= mlp(at, "", width, 2112, Q8_0, Q8_0)
        tensors |= {f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                    f"{at}ffn_gate_up_exps.weight": ((width, 2 * 704, experts), Q4_K),
                    f"{at}ffn_down_exps.weight": ((704, width, experts), Q8_0),
                    f"{at}ffn_down_exps.scale": ((experts,), F32)}
    metadata = keys(
        "gemma4", block_count=30, context_length=262144, embedding_length=width,
        feed_forward_length=2112, attention__head_count=heads,
        attention__head_count_kv=array.array("i", [2 if whole else 8 for whole in full]),
        rope__freq_base=1e6, rope__freq_base_swa=1e4, attention__layer_norm_rms_epsilon=1e-6,
        expert_count=experts, expert_used_count=8, expert_feed_forward_length=704,
        attention__key_length=512, attention__value_length=512, attention__key_length_swa=256,
        attention__value_length_swa=256, rope__dimension_count=512, rope__dimension_count_swa=256,
        attention__sliding_window=1024, attention__shared_kv_layers=0,
        attention__sliding_window_pattern=[not whole for whole in full],
        embedding_length_per_layer_input=0, final_logit_softcapping=30.0)
    return metadata | ranked_vocabulary(262144), tensors


def qwen36():
    """With the layer that guesses a further token, as most uploads have it: 733 tensors, and 20."""
    width, heads, kv_heads, dim, experts, ff = 2048, 16, 2, 256, 256, 512
    tensors = {"token_embd.weight": ((width, 248320), Q4_K), "output_norm.weight": ((width,), F32),
               "output.weight": ((width, 248320), Q6_K)}
    for layer in range(41):
        at = f"blk.{layer}."
        tensors |= {f"{at}attn_norm.weight": ((width,), F32),
                    f"{at}post_attention_norm.weight": ((width,), F32),
                    f"{at}ffn_gate_inp.weight": ((width, experts), F32),
                    f"{at}ffn_gate_inp_shexp.weight": ((width,), F32)}
        tensors |= mlp(at, "_exps", width, ff, Q4_K, Q6_K, (experts,))
        tensors |= mlp(at, "_shexp", width, ff, Q4_K, Q6_K)
        if layer % 4 == 3 or layer == 40:
            tensors |= {f"{at}attn_q.weight": ((width, 2 * heads * dim), Q4_K),
                        f"{at}attn_k.weight": ((width, kv_heads * dim), Q4_K),
                        f"{at}attn_v.weight": ((width, kv_heads * dim), Q6_K),
                        f"{at}attn_q_norm.weight": ((dim,), F32),
                        f"{at}attn_k_norm.weight": ((dim,), F32),
                        f"{at}attn_output.weight": ((heads * dim, width), Q4_K)}
        else:
            tensors |= {f"{at}attn_qkv.weight": ((width, 8192), Q5_K),
                        f"{at}attn_gate.weight": ((width, 4096), Q4_K),
                        f"{at}ssm_alpha.weight": ((width, 32), Q4_K),
                        f"{at}ssm_beta.weight": ((width, 32), Q4_K),
                        f"{at}ssm_conv1d.weight": ((4, 8192), F32),
                        f"{at}ssm_dt.bias": ((32,), F32), f"{at}ssm_a": ((32,), F32),
                        f"{at}ssm_norm.weight": ((128,), F32),
                        f"{at}ssm_out.weight": ((4096, width), Q4_K)}
    tensors |= {"blk.40.nextn.eh_proj.weight": ((2 * width, width), Q4_K)}
    tensors |= {f"blk.40.nextn.{name}.weight": ((width,), F32)
                for name in ("enorm", "hnorm", "shared_head_norm")}
    metadata = keys(
        "qwen35moe", block_count=41, context_length=262144,
        embedding_length=width, attention__head_count=heads, attention__head_count_kv=kv_heads,
        attention__key_length=dim, attention__value_length=dim, rope__freq_base=1e7,
        rope__dimension_count=64, rope__dimension_sections=array.array("i", [11, 11, 10, 0]),
        attention__layer_norm_rms_epsilon=1e-6, expert_count=experts, expert_used_count=8,
        expert_feed_forward_length=ff, expert_shared_feed_forward_length=ff, ssm__conv_kernel=4,
        ssm__state_size=128, ssm__group_count=16, ssm__time_step_rank=32, ssm__inner_size=4096,
        full_attention_interval=4, nextn_predict_layers=1)
    return metadata | vocabulary(248320, "qwen35"), tensors


def with_experts(arch, pre, layers, width, heads, kv_heads, vocab, experts, top_k, ff, shared_ff,
                 dense_ff=0, lead=0, bias=True, fused=False, head_norms=True, tied=False, **more):
    """Plain attention with heads of 128, and experts beside a shared one."""
    q, kv = heads * 128, kv_heads * 128
    tensors = {"token_embd.weight": ((width, vocab), Q4_K), "output_norm.weight": ((width,), F32)}
    if not tied:
        tensors["output.weight"] = ((width, vocab), Q6_K)
    for layer in range(layers):
        at = f"blk.{layer}."
        tensors |= {f"{at}attn_norm.weight": ((width,), F32), f"{at}ffn_norm.weight": ((width,), F32),
                    f"{at}attn_output.weight": ((q, width), Q4_K)}
        parts = {"qkv": q + 2 * kv} if fused else {"q": q, "k": kv, "v": kv}
        tensors |= {f"{at}attn_{name}.weight": ((width, rows), Q4_K) for name, rows in parts.items()}
        if head_norms:
            tensors |= {f"{at}attn_{name}_norm.weight": ((128,), F32) for name in "qk"}
        if layer < lead:
            tensors |= mlp(at, "", width, dense_ff, Q4_K, Q8_0)
            continue
        tensors[f"{at}ffn_gate_inp.weight"] = ((width, experts), F32)
        if bias:
            tensors[f"{at}exp_probs_b.bias"] = ((experts,), F32)
        tensors |= mlp(at, "_exps", width, ff, Q4_K, Q8_0, (experts,))
        if shared_ff:
            tensors |= mlp(at, "_shexp", width, shared_ff, Q4_K, Q8_0)
    metadata = keys(
        arch, block_count=layers, context_length=32768, embedding_length=width,
        feed_forward_length=dense_ff or ff, attention__head_count=heads,
        attention__head_count_kv=kv_heads, attention__key_length=128, attention__value_length=128,
        rope__freq_base=1e6, attention__layer_norm_rms_epsilon=1e-6, expert_count=experts,
        expert_used_count=top_k, expert_feed_forward_length=ff, leading_dense_block_count=lead, **more)
    return metadata | vocabulary(vocab, pre), tensors


def further():
    """Name to the file, the count if known, and what is to be said of it."""
    return {
        "Qwen3-VL-30B-A3B": (with_experts(
            "qwen3vlmoe", "qwen2", 48, 2048, 32, 4, 151936, 128, 8, 768, 0, bias=False,
            rope__dimension_sections=array.array("i", [24, 20, 20, 0]), n_deepstack_layers=3),
            579, "128 of width 768, top 8 by softmax"),
        "dots.llm1": (with_experts(
            "dots1", "qwen2", 62, 4096, 32, 32, 152064, 128, 6, 1408, 2816, 10944, 1,
            expert_shared_count=2, expert_weights_scale=2.5, expert_weights_norm=True,
            expert_gating_func=2), None, "top 6 by sigmoid"),
        "ERNIE-4.5-21B-A3B": (with_experts(
            "ernie4_5-moe", "default", 28, 2560, 20, 4, 103424, 64, 6, 1536, 3072, 12288, 1,
            head_norms=False, tied=True, interleave_moe_layer_step=1, expert_shared_count=2,
            expert_shared_feed_forward_length=3072), None, "shared expert width 3072"),
        "Hunyuan-A13B": (with_experts(
            "hunyuan-moe", "hunyuan", 32, 4096, 32, 8, 128167, 64, 8, 3072, 3072, bias=False,
            tied=True, expert_shared_feed_forward_length=3072, expert_shared_count=1),
            None, "64 of width 3072, top 8 by softmax"),
        "Ling-mini-2.0": (with_experts(
            "bailingmoe2", "bailingmoe2", 20, 2048, 16, 4, 157184, 256, 8, 512, 512, 5120, 1,
            fused=True, expert_shared_count=1, expert_weights_scale=2.5, expert_weights_norm=True,
            expert_gating_func=2, expert_group_count=8, expert_group_used_count=4,
            rope__dimension_count=64), None, "from 4 of 8 groups")}


UPLOADS = {"gpt-oss-20b": (gpt_oss(24, 32), 459), "gpt-oss-120b": (gpt_oss(36, 128), 687),
           "GLM-4.7-Flash": (glm_flash(), 844), "LFM2-8B-A1B": (lfm2_moe(), 256),
           "GLM-4.5-Air": (glm_air(), 803), "granite-3.1-3b-a800m": (granite_moe(), 322),
           "granite-4.0-h-tiny": (granite_hybrid(), 666), "Nemotron-3-Nano-30B-A3B": (nemotron_h_moe(), 401),
           "gemma-4-26B-A4B": (gemma4(), 658),
           "Qwen3.6-35B-A3B": (qwen36(), 753)}
FACTS = {"gpt-oss-20b": ["128 positions in 12 of 24 layers", "top 4 by softmax",
                         "with biases, clamped", "by YaRN beyond 4096"],
         "gpt-oss-120b": ["128 of width 2880, top 4", "MXFP4"],
         "GLM-4.7-Flash": ["top 4 by sigmoid", "scaled by 1.8", "latent rows of 512 + 64"],
         "LFM2-8B-A1B": ["in 18 layers, over 3 tokens", "32 of width 1792, top 4 by sigmoid",
                         "2 of width 7168"],
         "GLM-4.5-Air": ["top 8 by sigmoid", "shared expert width 1408", "64 dimensions",
                         "1 layer behind the last one, which guesses further tokens"],
         "Qwen3.6-35B-A3B": ["256 of width 512, top 8 by softmax", "shared expert width 512",
                             "in 30 layers: 32 heads on 16 key heads of 128",
                             "1 layer behind the last one, which guesses further tokens"],
         "granite-3.1-3b-a800m": ["40 of width 512, top 8 by softmax", "scales"],
         "granite-4.0-h-tiny": ["in 36 layers: 48 heads of 64 on 1 key heads of 128",
                                "64 of width 512, top 6 by softmax", "shared expert width 1024",
                                "rotary        none"],
         "Nemotron-3-Nano-30B-A3B": ["23 of 52 blocks", "in 23 layers: 64 heads of 64 on 8 key heads of 128",
                                     "128 of width 1856, top 6 by sigmoid, weights normalised, scaled by 2.5",
                                     "shared expert width 3712", "rotary        none"],
         "gemma-4-26B-A4B": ["1024 positions in 25 of 30 layers, on 8 key heads of 256",
                             "16 heads on 2 key heads of 512", "beside a dense part",
                             "bent to stay within 30"]}


for _name, (_file, _count, _fact) in further().items():
    UPLOADS[_name] = (_file, _count or len(_file[1]))
    FACTS[_name] = [_fact]
