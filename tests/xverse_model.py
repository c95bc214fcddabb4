"""A small XVERSE-MoE model with random weights: its files as the authors publish theirs, and its logits by a
plain model in Python, which follows the authors' modeling_xverse.py and shares nothing with the converter.
"""
import json
import math
import operator
import random
import struct

BLANK = "\u2581"
SPECIAL = ["<sep>", "<pad>", "<|startoftext|>", "<|endoftext|>"]
LETTERS = "abcdefgh"
ALONE = "01.,!"  # a digit and a mark are words of their own
# Of each pair the result is a token; some within words, one of a digit and one across words, which texts
# never become.
MERGES = [("a", "b"), (BLANK, "c"), ("ab", "c"), ("d", "e"), (BLANK, "a"), ("de", "f"), ("b", "c"), ("e", "f"),
          (BLANK + "c", "d"), ("0", "1"), ("h", BLANK), ("g", "h"), ("gh", "gh"), ("d", "ef"), ("bc", "de")]


def tokenizer():
    """tokenizer.json, and as many tokens as there are."""
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), BLANK, *LETTERS, *ALONE]
    tokens += dict.fromkeys(left + right for left, right in MERGES if left + right not in tokens)
    added = [{"id": i, "content": token, "special": True} for i, token in enumerate(SPECIAL)]
    steps = [{"type": "Metaspace", "replacement": BLANK, "add_prefix_space": True},
             {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"}]
    return {"added_tokens": added, "normalizer": None, "post_processor": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": True,
                      "vocab": {token: i for i, token in enumerate(tokens)},
                      "merges": [f"{left} {right}" for left, right in MERGES]}}


def words(text):
    """As the pre-tokenizers of that file cut a text that does not begin with a blank."""
    found = []
    for character in BLANK + text.replace(" ", BLANK):
        begins = character == BLANK or character in ALONE or found[-1] in ALONE
        found = [*found, character] if not found or begins else [*found[:-1], found[-1] + character]
    return found


def tokens_of(text):
    """Ids of a text: merges in their order within each word, bytes for characters without a token."""
    ids, ranks, of_text = tokenizer()["model"]["vocab"], {pair: i for i, pair in enumerate(MERGES)}, []
    for word in words(text):
        symbols = list(word)
        while pairs := [(ranks[pair], i) for i, pair in enumerate(zip(symbols, symbols[1:])) if pair in ranks]:
            at = min(pairs)[1]
            symbols[at:at + 2] = [symbols[at] + symbols[at + 1]]
        for symbol in symbols:
            if symbol in ids:
                of_text.append(ids[symbol])
            else:
                of_text += [ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
    return of_text


def as_bfloat(number):
    return struct.unpack("<f", b"\0\0" + struct.pack("<f", number)[2:])[0]


def _dot(a, b):
    return sum(map(operator.mul, a, b))


class Model:
    """`key_heads`: None as in the published models, whose config does not name them."""

    def __init__(self, seed, key_heads=None, dtype="BF16"):
        self.dtype, random_ = dtype, random.Random(seed)
        self.heads, self.width, self.ff, self.experts, self.top_k, self.layers = 4, 128, 32, 8, 3, 2
        self.key_heads, vocabulary = key_heads or self.heads, len(tokenizer()["model"]["vocab"])
        self.config = {
            "architectures": ["XverseForCausalLM"], "model_type": "xverse", "hidden_act": "silu",
            "hidden_size": self.width, "intermediate_size": self.ff, "max_position_embeddings": 256,
            "num_attention_heads": self.heads, "num_hidden_layers": self.layers, "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False, "rope_theta": 500000, "moe_top_k": self.top_k,
            "num_experts": self.experts, "num_shared_experts": 2, "vocab_size": vocabulary,
            "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
        if key_heads is not None:
            self.config["num_key_value_heads"] = key_heads
        self.tensors = {}  # name to rows, or to one row
        self.least_lead = math.inf

        def make(name, rows, cols, gain=1.0):
            deviation = gain / math.sqrt(cols)
            self.tensors[name] = [[as_bfloat(random_.gauss(0, deviation)) for _ in range(cols)] for _ in range(rows)]

        def norm(name):
            self.tensors[name] = [as_bfloat(random_.gauss(1, 0.1)) for _ in range(self.width)]

        def mlp(name, ff):
            make(f"{name}.gate_proj.weight", ff, self.width)
            make(f"{name}.up_proj.weight", ff, self.width)
            make(f"{name}.down_proj.weight", self.width, ff, 2.0)

        make("model.embed_tokens.weight", vocabulary, self.width, 4 * math.sqrt(self.width))
        for layer in range(self.layers):
            at = f"model.layers.{layer}."
            norm(f"{at}input_layernorm.weight")
            of_keys = self.width // self.heads * self.key_heads
            make(f"{at}self_attn.q_proj.weight", self.width, self.width, 1.5)
            make(f"{at}self_attn.k_proj.weight", of_keys, self.width)
            make(f"{at}self_attn.v_proj.weight", of_keys, self.width)
            make(f"{at}self_attn.o_proj.weight", self.width, self.width)
            norm(f"{at}post_attention_layernorm.weight")
            make(f"{at}mlp.router.weight", self.experts, self.width, 2.0)
            for expert in range(self.experts):
                mlp(f"{at}mlp.experts.{expert}", self.ff)
            mlp(f"{at}mlp.shared_experts", 2 * self.ff)
        norm("model.norm.weight")
        make("lm_head.weight", vocabulary, self.width, 3.0)

    def _shape(self, name):
        values = self.tensors[name]
        return [len(values), len(values[0])] if isinstance(values[0], list) else [len(values)]

    def _bytes(self, name):
        values = self.tensors[name]
        flat = [x for row in values for x in row] if isinstance(values[0], list) else values
        if self.dtype == "F16":
            return struct.pack(f"<{len(flat)}e", *flat)
        floats = struct.pack(f"<{len(flat)}f", *flat)
        return floats if self.dtype == "F32" else b"".join(floats[i + 2:i + 4] for i in range(0, len(floats), 4))

    def write(self, folder, files=1):
        """One file, or several with an index: every n-th tensor in each."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer()), encoding="utf-8")
        names, places = list(self.tensors), {}
        for number in range(files):
            file = "model.safetensors" if files == 1 else f"model-{number + 1:05}-of-{files:05}.safetensors"
            header, data = {"__metadata__": {"format": "pt"}}, b""
            for name in names[number::files]:
                contents = self._bytes(name)
                header[name] = {"dtype": self.dtype, "shape": self._shape(name),
                                "data_offsets": [len(data), len(data) + len(contents)]}
                data += contents
                places[name] = file
            text = json.dumps(header).encode()
            (folder / file).write_bytes(struct.pack("<Q", len(text)) + text + data)
        if files > 1:
            (folder / "model.safetensors.index.json").write_text(
                json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8")

    def _times(self, name, x):
        return [_dot(row, x) for row in self.tensors[name]]

    def _normed(self, name, x):
        scale = 1 / math.sqrt(_dot(x, x) / len(x) + self.config["rms_norm_eps"])
        return [weight * (scale * value) for weight, value in zip(self.tensors[name], x)]

    def _rotated(self, heads, position):
        """Number i of a head with number i + half of it."""
        half, turned = self.width // self.heads // 2, []
        for begin in range(0, len(heads), 2 * half):
            head = heads[begin:begin + 2 * half]
            angles = [position / self.config["rope_theta"] ** (i / half) for i in range(half)]
            turned += [head[i] * math.cos(a) - head[i + half] * math.sin(a) for i, a in enumerate(angles)]
            turned += [head[i + half] * math.cos(a) + head[i] * math.sin(a) for i, a in enumerate(angles)]
        return turned

    def _attended(self, at, x, cache):
        dim, position = self.width // self.heads, len(cache)
        query = self._rotated(self._times(f"{at}self_attn.q_proj.weight", x), position)
        cache.append((self._rotated(self._times(f"{at}self_attn.k_proj.weight", x), position),
                      self._times(f"{at}self_attn.v_proj.weight", x)))
        out = []
        for head in range(self.heads):
            of, first = query[head * dim:(head + 1) * dim], head * self.key_heads // self.heads * dim
            scores = [_dot(of, keys[first:first + dim]) / math.sqrt(dim) for keys, _ in cache]
            shares = [math.exp(score - max(scores)) for score in scores]
            out += [sum(share * values[first + i] for share, (_, values) in zip(shares, cache)) / sum(shares)
                    for i in range(dim)]
        return self._times(f"{at}self_attn.o_proj.weight", out)

    def _mlp(self, name, x):
        gates, ups = self._times(f"{name}.gate_proj.weight", x), self._times(f"{name}.up_proj.weight", x)
        hidden = [gate / (1 + math.exp(-gate)) * up for gate, up in zip(gates, ups)]
        return self._times(f"{name}.down_proj.weight", hidden)

    def _fed_forward(self, at, x):
        logits = self._times(f"{at}mlp.router.weight", x)
        shares = [math.exp(logit - max(logits)) for logit in logits]
        shares = [share / sum(shares) for share in shares]
        ranked = sorted(range(self.experts), key=lambda e: -shares[e])
        self.least_lead = min(self.least_lead, logits[ranked[self.top_k - 1]] - logits[ranked[self.top_k]])
        chosen = ranked[:self.top_k]
        total = sum(shares[e] for e in chosen) + 1e-6
        out = self._mlp(f"{at}mlp.shared_experts", x)
        for expert in chosen:
            answer = self._mlp(f"{at}mlp.experts.{expert}", x)
            out = [o + shares[expert] / total * a for o, a in zip(out, answer)]
        return out

    def logits(self, ids):
        """A row a token. `least_lead`: by how much a chosen expert's logit led the next one's, at least."""
        self.least_lead, caches, rows = math.inf, [[] for _ in range(self.layers)], []
        for token in ids:
            stream = self.tensors["model.embed_tokens.weight"][token]
            for layer, cache in enumerate(caches):
                at = f"model.layers.{layer}."
                answer = self._attended(at, self._normed(f"{at}input_layernorm.weight", stream), cache)
                stream = list(map(operator.add, stream, answer))
                answer = self._fed_forward(at, self._normed(f"{at}post_attention_layernorm.weight", stream))
                stream = list(map(operator.add, stream, answer))
            rows.append(self._times("lm_head.weight", self._normed("model.norm.weight", stream)))
        return rows
