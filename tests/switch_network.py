"""A Switch Transformer as its authors describe it, plainly and slowly: every row of every matrix in double
precision, no cache, the tensors under their published names. And tiny random ones, as folders that
tools/convert/convert takes.
"""
import json
import math
import struct

import numpy as np

CONFIG = {"model_type": "switch_transformers", "d_model": 64, "d_kv": 32, "d_ff": 96, "num_heads": 4,
          "num_layers": 4, "num_sparse_encoder_layers": 2, "num_decoder_layers": 4, "num_sparse_decoder_layers": 2,
          "num_experts": 4, "expert_capacity": 64, "relative_attention_num_buckets": 8,
          "relative_attention_max_distance": 20, "layer_norm_epsilon": 1e-6, "tie_word_embeddings": True,
          "vocab_size": 160, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "n_positions": 256}

# Pieces behind <pad>, </s> and <unk>, each worse than the one before.
PIECES = ["\u2581the", "\u2581park", "\u2581walks", "\u2581in", "walk", "ing", "\u2581", "s", "t", "h", "e", "p", "a", "r",
          "k", "w", "l", "i", "n", "."]


def _message(number, data):
    def varint(value):
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])
    return varint(number << 3 | 2) + varint(len(data)) + data


def spiece_model():
    """The bytes of a SentencePiece model: unigram, without a map of characters."""
    def piece(text, score, kind):
        return _message(1, _message(1, text.encode()) + struct.pack("<Bf", 2 << 3 | 5, score) + bytes([3 << 3, kind]))
    pieces = [piece("<pad>", 0, 3), piece("</s>", 0, 3), piece("<unk>", 0, 2)]
    pieces += [piece(text, -1.0 - i, 1) for i, text in enumerate(PIECES)]
    return b"".join(pieces) + _message(2, bytes([3 << 3, 1])) + _message(3, _message(1, b"identity"))


def random_tensors(config, rng):
    """Numbers of about the size that lets every part of the network have a say."""
    width, ff = config["d_model"], config["d_ff"]
    inner = config["num_heads"] * config["d_kv"]
    tensors = {"shared.weight": rng.normal(0, 1, (config["vocab_size"], width))}
    if not config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = rng.normal(0, width ** -0.5, (config["vocab_size"], width))

    def attention(prefix):
        for name in "qkv":
            tensors[f"{prefix}{name}.weight"] = rng.normal(0, (width ** -0.5) * (0.5 if name == "q" else 1), (inner, width))
        tensors[f"{prefix}o.weight"] = rng.normal(0, inner ** -0.5, (width, inner))

    for side, layers in (("encoder", config["num_layers"]), ("decoder", config["num_decoder_layers"])):
        for layer in range(layers):
            at = f"{side}.block.{layer}.layer."
            attention(f"{at}0.SelfAttention.")
            if layer == 0:
                tensors[f"{at}0.SelfAttention.relative_attention_bias.weight"] = rng.normal(
                    0, 1, (config["relative_attention_num_buckets"], config["num_heads"]))
            last = 1
            if side == "decoder":
                attention(f"{at}1.EncDecAttention.")
                last = 2
            for norm in range(last + 1):
                tensors[f"{at}{norm}.layer_norm.weight"] = rng.normal(1, 0.1, width)
            mlp = f"{at}{last}.mlp."
            if not is_sparse(config, side, layer):
                tensors[f"{mlp}wi.weight"] = rng.normal(0, width ** -0.5, (ff, width))
                tensors[f"{mlp}wo.weight"] = rng.normal(0, ff ** -0.5, (width, ff))
                continue
            tensors[f"{mlp}router.classifier.weight"] = rng.normal(0, 2 * width ** -0.5, (config["num_experts"], width))
            for e in range(config["num_experts"]):
                tensors[f"{mlp}experts.expert_{e}.wi.weight"] = rng.normal(0, width ** -0.5, (ff, width))
                tensors[f"{mlp}experts.expert_{e}.wo.weight"] = rng.normal(0, 2 * ff ** -0.5, (width, ff))
        tensors[f"{side}.final_layer_norm.weight"] = rng.normal(1, 0.1, width)
    return {name: values.astype(np.float32) for name, values in tensors.items()}


def write_folder(folder, config, tensors, parts=1):
    """As published: in one file, or in some parts and an index."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "spiece.model").write_bytes(spiece_model())

    def write(name, some):
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for tensor, values in some.items():
            header[tensor] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
            at += values.nbytes
        head = json.dumps(header).encode()
        (folder / name).write_bytes(struct.pack("<Q", len(head)) + head + b"".join(v.tobytes() for v in some.values()))

    if parts == 1:
        write("model.safetensors", tensors)
        return
    names, index = sorted(tensors), {}
    for part in range(parts):
        mine = names[part::parts]
        file = f"model-{part + 1:05}-of-{parts:05}.safetensors"
        write(file, {name: tensors[name] for name in mine})
        index.update(dict.fromkeys(mine, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def is_sparse(config, side, layer):
    layers = config["num_layers" if side == "encoder" else "num_decoder_layers"]
    sparse = config[f"num_sparse_{side}_layers"]
    step = layers // sparse if sparse > 0 else 0
    return step == 1 or (step > 0 and layer % step == 1)


def bucket(distance, both_ways, buckets, most):
    """Of a key that lies `distance` behind its query (before it: less than 0)."""
    first = 0
    if both_ways:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    ratio = np.log(np.float32(distance / exact)) / np.float32(math.log(most / exact)) * np.float32(buckets - exact)
    return first + min(exact + int(ratio), buckets - 1)


class Network:
    def __init__(self, config, tensors):
        self.config = config
        self.weights = {name: values.astype(np.float64) for name, values in tensors.items()}
        self.dropped = 0  # tokens that found their expert's places taken
        self.closest = math.inf  # of all tokens: by how much the best expert's logit beats the second's

    def norm(self, name, rows):
        length = np.sqrt((rows ** 2).mean(axis=1, keepdims=True) + self.config["layer_norm_epsilon"])
        return rows / length * self.weights[f"{name}.weight"]

    def attention(self, prefix, queries, keys, bias):
        heads, dim = self.config["num_heads"], self.config["d_kv"]
        q, k, v = (rows @ self.weights[f"{prefix}{name}.weight"].T
                   for name, rows in (("q", queries), ("k", keys), ("v", keys)))
        out = np.zeros((len(queries), heads * dim))
        for head in range(heads):
            part = slice(head * dim, (head + 1) * dim)
            scores = q[:, part] @ k[:, part].T + bias[head]
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, part] = chances / chances.sum(axis=1, keepdims=True) @ v[:, part]
        return out @ self.weights[f"{prefix}o.weight"].T

    def position_bias(self, side, length):
        table = self.weights[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        both_ways = side == "encoder"
        places = [[bucket(key - query, both_ways, self.config["relative_attention_num_buckets"],
                          self.config["relative_attention_max_distance"]) for key in range(length)]
                  for query in range(length)]
        bias = table[np.array(places)].transpose(2, 0, 1)
        if not both_ways:
            bias = bias + np.triu(np.full((length, length), -np.inf), 1)
        return bias

    def mlp(self, prefix, rows):
        return np.maximum(rows @ self.weights[f"{prefix}wi.weight"].T, 0) @ self.weights[f"{prefix}wo.weight"].T

    def experts(self, prefix, rows, capacity):
        logits = rows @ self.weights[f"{prefix}router.classifier.weight"].T
        best = np.sort(logits, axis=1)
        self.closest = min(self.closest, (best[:, -1] - best[:, -2]).min())
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        out, taken = np.zeros_like(rows), [0] * self.config["num_experts"]
        for row, expert in enumerate(chances.argmax(axis=1)):
            taken[expert] += 1
            if taken[expert] > capacity:
                self.dropped += 1
                continue
            out[row] = chances[row, expert] * self.mlp(f"{prefix}experts.expert_{expert}.", rows[row:row + 1])[0]
        return out

    def feed_forward(self, side, layer, prefix, stream):
        rows = self.norm(f"{prefix}layer_norm", stream)
        if not is_sparse(self.config, side, layer):
            return stream + self.mlp(f"{prefix}mlp.", rows)
        # The decoder reads token by token, so none of its experts ever has more than one.
        capacity = self.config["expert_capacity"] if side == "encoder" else math.inf
        return stream + self.experts(f"{prefix}mlp.", rows, capacity)

    def encode(self, ids):
        stream = self.weights["shared.weight"][ids]
        bias = self.position_bias("encoder", len(ids))
        for layer in range(self.config["num_layers"]):
            at = f"encoder.block.{layer}.layer."
            rows = self.norm(f"{at}0.layer_norm", stream)
            stream = stream + self.attention(f"{at}0.SelfAttention.", rows, rows, bias)
            stream = self.feed_forward("encoder", layer, f"{at}1.", stream)
        return self.norm("encoder.final_layer_norm", stream)

    def logits(self, encoded, ids):
        """A row for each of the decoder's tokens."""
        stream = self.weights["shared.weight"][ids]
        bias = self.position_bias("decoder", len(ids))
        none = np.zeros((self.config["num_heads"], 1, 1))
        for layer in range(self.config["num_decoder_layers"]):
            at = f"decoder.block.{layer}.layer."
            rows = self.norm(f"{at}0.layer_norm", stream)
            stream = stream + self.attention(f"{at}0.SelfAttention.", rows, rows, bias)
            rows = self.norm(f"{at}1.layer_norm", stream)
            stream = stream + self.attention(f"{at}1.EncDecAttention.", rows, encoded, none)
            stream = self.feed_forward("decoder", layer, f"{at}2.", stream)
        rows = self.norm("decoder.final_layer_norm", stream)
        if self.config["tie_word_embeddings"]:
            return rows * self.config["d_model"] ** -0.5 @ self.weights["shared.weight"].T
        return rows @ self.weights["lm_head.weight"].T
