"""Copies a GGUF file with another chat template, and with some tokens renamed to control tokens: a small
model that speaks to clients as a large one would.
"""
import io
import struct

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY, _CONTROL = 8, 9, 3


def _text(data):
    return struct.pack("<Q", len(data)) + data


def _read_text(file):
    return file.read(struct.unpack("<Q", file.read(8))[0])


def _read_value(file, kind):
    """The value's bytes; an array of texts as a list of them."""
    if kind == _STRING:
        return _text(_read_text(file))
    if kind != _ARRAY:
        return file.read(_SIZES[kind])
    element, count = struct.unpack("<IQ", file.read(12))
    if element == _STRING:
        return [_read_text(file) for _ in range(count)]
    return struct.pack("<IQ", element, count) + file.read(_SIZES[element] * count)


def _value_bytes(value):
    if isinstance(value, bytes):
        return value
    return struct.pack("<IQ", _STRING, len(value)) + b"".join(map(_text, value))


def copy(source, target, template, control_tokens=()):
    """Gives the ids of the control tokens."""
    data = source.read_bytes()
    file = io.BytesIO(data)
    magic, version, tensors, pairs = struct.unpack("<IIQQ", file.read(24))
    metadata = {}
    for _ in range(pairs):
        key = _read_text(file).decode()
        kind = struct.unpack("<I", file.read(4))[0]
        metadata[key] = [kind, _read_value(file, kind)]
    infos = file.tell()
    for _ in range(tensors):
        _read_text(file)
        file.read(8 * struct.unpack("<I", file.read(4))[0] + 12)
    alignment = struct.unpack("<I", metadata.get("general.alignment", [4, struct.pack("<I", 32)])[1])[0]
    end_of_infos = file.tell()
    begin = -(-end_of_infos // alignment) * alignment

    tokens = metadata["tokenizer.ggml.tokens"][1]
    types = metadata.setdefault("tokenizer.ggml.token_type",
                                [_ARRAY, struct.pack(f"<IQ{len(tokens)}i", 5, len(tokens), *[1] * len(tokens))])
    types[1] = bytearray(types[1])
    places = [len(tokens) - 9 - i for i in range(len(control_tokens))]
    for place, token in zip(places, control_tokens):
        tokens[place] = token.encode()
        struct.pack_into("<i", types[1], 12 + 4 * place, _CONTROL)
    types[1] = bytes(types[1])
    metadata["tokenizer.chat_template"] = [_STRING, _text(template.encode())]

    head = struct.pack("<IIQQ", magic, version, tensors, len(metadata))
    for key, (kind, value) in metadata.items():
        head += _text(key.encode()) + struct.pack("<I", kind) + _value_bytes(value)
    head += data[infos:end_of_infos]
    target.write_bytes(head + bytes(-len(head) % alignment) + data[begin:])
    return places
