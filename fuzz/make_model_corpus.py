#!/usr/bin/env python3
"""Makes the seeds in fuzz/corpus/model: whole models that open, of a few kilobytes.

Independent of the engine's own writer. Run it in this folder after changing it; the files are
committed so that fuzzing needs no Python.
"""
import pathlib

from make_gguf_corpus import ARRAY, F32, STRING, U32, gguf

I32 = 5
F32_TYPE, Q8_0_TYPE = 0, 8
WIDTH, HEADS, EXPERTS, TOP_K, FF, VOCABULARY = 32, 2, 4, 2, 32, 270


def tensor(name, *dims, kind=Q8_0_TYPE):
    elements = 1
    for dim in dims:
        elements *= dim
    size = elements // 32 * 34 if kind == Q8_0_TYPE else elements * 4
    return (name, dims, kind, size)


def vocabulary():
    special = ["<unk>", "<s>", "</s>"]
    tokens = special + [f"<0x{b:02X}>" for b in range(256)] + list("abcdefghijk")
    kinds = [2, 3, 3] + [6] * 256 + [1] * 11
    assert len(tokens) == VOCABULARY
    return [("tokenizer.ggml.model", STRING, "llama"),
            ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
            ("tokenizer.ggml.scores", ARRAY, (F32, [0.0] * VOCABULARY)),
            ("tokenizer.ggml.token_type", ARRAY, (I32, kinds)),
            ("tokenizer.ggml.bos_token_id", U32, 1), ("tokenizer.ggml.eos_token_id", U32, 2),
            ("tokenizer.ggml.unknown_token_id", U32, 0)]


def model(architecture, experts):
    a = architecture
    keys = [("general.architecture", STRING, a), (f"{a}.block_count", U32, 1),
            (f"{a}.context_length", U32, 64), (f"{a}.embedding_length", U32, WIDTH),
            (f"{a}.feed_forward_length", U32, FF), (f"{a}.attention.head_count", U32, HEADS),
            (f"{a}.attention.head_count_kv", U32, HEADS),
            (f"{a}.attention.layer_norm_rms_epsilon", F32, 1e-5),
            (f"{a}.rope.freq_base", F32, 10000.0)]
    if experts:
        keys += [(f"{a}.expert_count", U32, EXPERTS), (f"{a}.expert_used_count", U32, TOP_K),
                 (f"{a}.expert_feed_forward_length", U32, FF)]
    norm = lambda name, n=WIDTH: tensor(name, n, kind=F32_TYPE)
    tensors = [tensor("token_embd.weight", WIDTH, VOCABULARY), norm("output_norm.weight"),
               tensor("output.weight", WIDTH, VOCABULARY)]
    blk = "blk.0."
    tensors += [norm(blk + "attn_norm.weight"), norm(blk + "ffn_norm.weight")]
    tensors += [tensor(blk + f"attn_{n}.weight", WIDTH, WIDTH) for n in ("q", "k", "v", "output")]
    if a == "olmoe":
        tensors += [norm(blk + "attn_q_norm.weight"), norm(blk + "attn_k_norm.weight")]
    if experts:
        tensors += [tensor(blk + "ffn_gate_inp.weight", WIDTH, EXPERTS, kind=F32_TYPE)]
        tensors += [tensor(blk + f"ffn_{n}_exps.weight", WIDTH, FF, EXPERTS)
                    for n in ("gate", "up", "down")]
    else:
        tensors += [tensor(blk + f"ffn_{n}.weight", WIDTH, FF) for n in ("gate", "up", "down")]
    return gguf(keys + vocabulary(), tensors)


def main():
    folder = pathlib.Path("corpus/model")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "llama").write_bytes(model("llama", experts=False))
    (folder / "mixtral").write_bytes(model("llama", experts=True))
    (folder / "olmoe").write_bytes(model("olmoe", experts=True))


if __name__ == "__main__":
    main()
