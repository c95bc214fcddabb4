"""Writes small GGUF v3 files for tests, apart from the project's own writer: what troupe reads here
was not made by code that could share a mistake with its reader. Tensors are float32; or files of any
size without their data, which take no space.
"""
import array
import math
import struct
import sys

ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_F32_TENSOR = 0


def _string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _typed(value):
    """The type number and the bytes of a value; bool before int, which it also is."""
    if isinstance(value, bool):
        return _BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return _UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return _FLOAT32, struct.pack("<f", value)
    if isinstance(value, (str, bytes)):
        return _STRING, _string(value)
    if isinstance(value, array.array):
        element = {"i": _INT32, "f": _FLOAT32}[value.typecode]
        return _ARRAY, struct.pack("<IQ", element, len(value)) + value.tobytes()
    if all(isinstance(element, bool) for element in value):
        return _ARRAY, struct.pack("<IQ", _BOOL, len(value)) + bytes(value)
    body = b"".join(_string(element) for element in value)
    return _ARRAY, struct.pack("<IQ", _STRING, len(value)) + body


# Elements and bytes of a block, by the number of a type.
BLOCKS = {0: (1, 4), 30: (1, 2), 6: (32, 22), 8: (32, 34), 12: (256, 144), 13: (256, 176), 14: (256, 210), 39: (32, 17)}


def _head(metadata, tensors):
    """`tensors`: name, dimensions, type and bytes of each. Also gives the bytes of all data."""
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        type_, data = _typed(value)
        head += _string(key) + struct.pack("<I", type_) + data
    offset = 0
    for name, dimensions, type_, size in tensors:
        head += _string(name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        head += struct.pack("<IQ", type_, offset)
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    return head, offset


def read_metadata(data):
    """The keys and values of a file's bytes, as `write` takes them."""
    at = 24
    metadata = {}

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return bytes(data[at - size:at])

    def value(type_):
        if type_ == _STRING:
            return text()
        if type_ == _ARRAY:
            element, count = take("I"), take("Q")
            values = [value(element) for _ in range(count)]
            return values if element == _STRING else array.array(
                {_INT32: "i", _FLOAT32: "f"}[element], values)
        return take({_UINT32: "I", _INT32: "i", _FLOAT32: "f", _BOOL: "?"}[type_])

    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key = text().decode()
        metadata[key] = value(take("I"))
    return metadata


def write_without_data(path, metadata, tensors):
    """`tensors`: name to (dimensions, type). Where data would be, the file has a hole of zeros."""
    def size(dimensions, type_):
        elements, block = BLOCKS[type_]
        assert dimensions[0] % elements == 0
        return math.prod(dimensions) // elements * block

    head, data = _head(metadata, [(name, dimensions, type_, size(dimensions, type_))
                                  for name, (dimensions, type_) in tensors.items()])
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(-(-len(head) // ALIGNMENT) * ALIGNMENT + data)


def write(path, metadata, tensors):
    """`metadata`: key to int (uint32), float, bool, str, list of str, or array('i' | 'f').
    `tensors`: name to (dimensions, fastest first; array('f'))."""
    assert sys.byteorder == "little"  # arrays are written as they lie
    head, _ = _head(metadata, [(name, dimensions, _F32_TENSOR, 4 * len(values))
                               for name, (dimensions, values) in tensors.items()])
    with open(path, "wb") as file:
        for part in (head, *(values.tobytes() for _, values in tensors.values())):
            file.write(part + bytes(-len(part) % ALIGNMENT))
