"""Makes a GGUF of a llama2.c checkpoint (version 0, float32) and its tokenizer.

usage: llama2c_to_gguf.py CHECKPOINT.bin TOKENIZER.bin OUT.gguf
The layout of both inputs: data/stories260K/README.md.
"""
import array
import math
import struct
import sys

import gguf_writer

_UNKNOWN, _BEGIN, _END, _FIRST_BYTE = 0, 1, 2, 3  # ids of llama2.c's special tokens
_TYPE_NORMAL, _TYPE_UNKNOWN, _TYPE_CONTROL, _TYPE_BYTE = 1, 2, 3, 6


def read_vocabulary(path, size):
    """Tokens, scores and types as GGUF's tokenizer 'llama' wants them."""
    with open(path, "rb") as file:
        file.read(4)  # the longest token
        tokens, scores = [], array.array("f")
        for _ in range(size):
            score, length = struct.unpack("<fi", file.read(8))
            scores.append(score)
            tokens.append(file.read(length))
    types = array.array("i", [_TYPE_NORMAL] * size)
    types[_UNKNOWN], types[_BEGIN], types[_END] = _TYPE_UNKNOWN, _TYPE_CONTROL, _TYPE_CONTROL
    for byte in range(256):
        types[_FIRST_BYTE + byte] = _TYPE_BYTE
    # llama2.c undid SentencePiece's mark for a space, and put its special tokens on lines of their
    # own.
    tokens = [token.replace(b" ", "\u2581".encode()) for token in tokens]
    tokens[_UNKNOWN], tokens[_BEGIN], tokens[_END] = b"<unk>", b"<s>", b"</s>"
    return tokens, scores, types


def convert(checkpoint, tokenizer, out):
    with open(checkpoint, "rb") as file:
        dim, hidden, layers, heads, kv_heads, vocab, context = struct.unpack("<7i", file.read(28))
        assert vocab > 0, "only checkpoints that share embedding and output weights"
        kv_dim = dim // heads * kv_heads
        tensors = {}

        def take(name, *dimensions):
            values = array.array("f")
            values.fromfile(file, math.prod(dimensions))
            tensors[name] = (dimensions, values)

        def take_layers(name, *dimensions):
            for layer in range(layers):
                take(f"blk.{layer}.{name}.weight", *dimensions)

        take("token_embd.weight", dim, vocab)
        take_layers("attn_norm", dim)
        take_layers("attn_q", dim, dim)
        take_layers("attn_k", dim, kv_dim)
        take_layers("attn_v", dim, kv_dim)
        take_layers("attn_output", dim, dim)
        take_layers("ffn_norm", dim)
        take_layers("ffn_gate", dim, hidden)
        take_layers("ffn_down", hidden, dim)
        take_layers("ffn_up", dim, hidden)
        take("output_norm.weight", dim)
    tokens, scores, types = read_vocabulary(tokenizer, vocab)
    gguf_writer.write(out, {
        "general.architecture": "llama",
        "general.name": "stories260K",
        "general.file_type": 0,
        "llama.block_count": layers,
        "llama.context_length": context,
        "llama.embedding_length": dim,
        "llama.feed_forward_length": hidden,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": kv_heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": dim // heads,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.bos_token_id": _BEGIN,
        "tokenizer.ggml.eos_token_id": _END,
        "tokenizer.ggml.unknown_token_id": _UNKNOWN,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
    }, tensors)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    convert(*sys.argv[1:])
