"""Whether the tensor table of a GGUF file leaves gaps or overlaps: for scripts/trial."""
import struct

# Elements and bytes of a block of the types in the models here.
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
          12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2), 39: (32, 17)}
VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def table_fault(data):
    """What is wrong with where a GGUF's table puts its tensors; empty: nothing. Reads by itself, so that
    it shares no mistake with the program."""
    try:
        return _fault(data)
    except (struct.error, KeyError, ValueError, OverflowError) as error:
        return f"a table that cannot be read: {error!r}"


def _fault(data):
    at = 24

    def take(form):
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, data, at - struct.calcsize("<" + form))[0]

    def text():
        nonlocal at
        size = take("Q")
        at += size
        return bytes(data[at - size:at])

    def value(kind):
        nonlocal at
        if kind == 8:
            return text()
        if kind == 9:
            element, count = take("I"), take("Q")
            if element in (8, 9):
                for _ in range(count):
                    value(element)
            else:
                at += VALUE_BYTES[element] * count
            return None
        at += VALUE_BYTES[kind]
        return int.from_bytes(data[at - VALUE_BYTES[kind]:at], "little")

    tensors, keys = struct.unpack_from("<QQ", data, 8)
    alignment, places = 32, []
    for _ in range(keys):
        key, kind = text(), take("I")
        found = value(kind)
        alignment = found if key == b"general.alignment" else alignment
    for _ in range(tensors):
        text()
        elements = 1
        for _ in range(take("I")):
            elements *= take("Q")
        block, size = BLOCKS[take("I")]
        places.append((take("Q"), elements // block * size))
    begin, expected = -(-at // alignment) * alignment, 0
    for offset, size in sorted(places):
        if offset != expected:
            return f"a tensor at {offset} of the data, expected at {expected}"
        if begin + offset + size > len(data):
            return f"a tensor of {size} bytes at {offset} of the data, behind which the file ends"
        expected = -(-(offset + size) // alignment) * alignment
    return ""
