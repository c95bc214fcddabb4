"""Makes GGUF's vocabulary of scored pieces ("llama") of a tokenizer.json that joins characters by ranked
merges, within words that begin at blanks and hold no digit and no punctuation beside others.

Both join the cheapest neighbours first. What a pair costs is its merge's rank there and the score of the
token it becomes here, so every token is joined alone once: the rank of the last merge is its score. Where
any two tokens make a third, that is the same order: whatever stands around a token, what happens within it
before it is whole is what happens to it alone. A token that merges alone cannot make, or that words cannot
hold, never comes of a text; it keeps its place under a name that no text has.
"""
import array
import re
import unicodedata

from refused import Refused

BLANK = "\u2581"
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 3, 4, 5, 6
_NO_RANK = 1 << 30
_BYTE_NAME = re.compile(r"<0x[0-9A-F]{2}>")
_ASCII_MARKS = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def _stands_alone(character):
    category = unicodedata.category(character)
    return category[0] in "NP" or character in _ASCII_MARKS


def _is_within_a_word(token):
    return BLANK not in token[1:] and not any(map(_stands_alone, token))


def _rank_alone(token, ranks):
    """Of the merge that makes it of its characters; None if none does."""
    symbols, rank = list(token), None
    while len(symbols) > 1:
        rank, at = min((ranks.get(pair, _NO_RANK), i) for i, pair in enumerate(zip(symbols, symbols[1:])))
        if rank == _NO_RANK:
            return None
        symbols[at:at + 2] = [symbols[at] + symbols[at + 1]]
    return rank


def _check_kind(path, tokenizer):
    """Everything that decides about tokens is as described above."""
    def check(what, found, expected):
        if found not in expected:
            raise Refused(f"{path}: {what} is {found!r}, expected {' or '.join(map(repr, expected))}")

    model, steps = tokenizer.get("model"), tokenizer.get("pre_tokenizer")
    if not isinstance(model, dict):
        raise Refused(f"{path}: no model")
    check("model.type", model.get("type", "BPE"), ["BPE"])
    check("model.byte_fallback", model.get("byte_fallback"), [True])
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        check(f"model.{key}", model.get(key) or None, [None])
    check("normalizer", tokenizer.get("normalizer"), [None])
    check("post_processor", tokenizer.get("post_processor"), [None])
    steps = steps.get("pretokenizers") if isinstance(steps, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise Refused(f"{path}: no sequence of pre-tokenizers")
    check("the sequence of pre-tokenizers", [step.get("type") for step in steps],
          [["Metaspace", "Digits", "Punctuation"]])
    check("Metaspace.replacement", steps[0].get("replacement"), [BLANK])
    check("Metaspace.prepend_scheme", steps[0].get("prepend_scheme", "always"), ["always"])
    check("Metaspace.add_prefix_space", steps[0].get("add_prefix_space", True), [True])
    check("Digits.individual_digits", steps[1].get("individual_digits"), [True])
    check("Punctuation.behavior", steps[2].get("behavior", "Isolated"), ["Isolated"])


def _ranks(path, merges):
    ranks = {}
    for number, merge in enumerate(merges):
        pair = tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) if isinstance(merge, list) else ()
        if len(pair) != 2 or not all(isinstance(part, str) and part for part in pair):
            raise Refused(f"{path}: merge {number} is {merge!r}, expected two tokens")
        ranks.setdefault(pair, number)
    return ranks


def _tokens(path, tokenizer, size):
    """Place to token, and to the entry of those that were added."""
    added = {}
    for entry in tokenizer.get("added_tokens") or []:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not isinstance(
                entry.get("id"), int):
            raise Refused(f"{path}: an added token without id and content")
        added[entry["id"]] = entry
    tokens = {}
    vocabulary = tokenizer["model"].get("vocab")
    if not isinstance(vocabulary, dict):
        raise Refused(f"{path}: no model.vocab")
    names = [*vocabulary.items(), *((entry["content"], place) for place, entry in added.items())]
    for token, place in names:
        if not isinstance(place, int) or not 0 <= place < size:
            raise Refused(f"{path}: token {token!r} has id {place}, expected less than vocab_size, {size}")
        if tokens.setdefault(place, token) != token:
            raise Refused(f"{path}: id {place} is of {tokens[place]!r} and of {token!r}")
    return tokens, added


def of_tokenizer(path, tokenizer, size):
    """The keys of a file with `size` tokens."""
    if not isinstance(tokenizer, dict):
        raise Refused(f"{path}: no JSON object")
    _check_kind(path, tokenizer)
    ranks = _ranks(path, tokenizer["model"].get("merges") or [])
    tokens, added = _tokens(path, tokenizer, size)
    names, scores, types = [], array.array("f"), array.array("i")
    for place in range(size):
        name, score, type_ = tokens.get(place), 0.0, _NORMAL
        if place in added:
            type_ = _CONTROL if added[place].get("special") else _USER_DEFINED
        elif name is not None and _BYTE_NAME.fullmatch(name):
            type_ = _BYTE
        elif name is None or len(name) > 1:
            rank = _rank_alone(name, ranks) if name is not None and _is_within_a_word(name) else None
            if rank is None:
                name, type_ = f"[unused {place}]", _UNUSED
            else:
                score = float(-1 - rank)
        names.append(name)
        scores.append(score)
        types.append(type_)
    known = set(names)
    for byte in range(256):
        if f"<0x{byte:02X}>" not in known:
            raise Refused(f"{path}: byte 0x{byte:02X} has no token")
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": names,
            "tokenizer.ggml.scores": scores, "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": False,
            "tokenizer.ggml.add_space_prefix": True}
