"""Writes a GGUF file a piece of a tensor at a time: it may be larger than memory."""
import gguf_head
from refused import Refused

TYPES = {"F32": 0, "F16": 1, "BF16": 30}


def _head(metadata, tensors):
    table, offset = [], 0
    for name, type_, shape, size, _ in tensors:
        table.append((name, shape, TYPES[type_], offset))
        offset += gguf_head.padded(size)
    try:
        return gguf_head.begin([(key, gguf_head.stored(value)) for key, value in metadata.items()], table)
    except UnicodeEncodeError as error:  # JSON can name halves of characters
        raise Refused(f"{error.object[:80]!r} is no text: {error.reason}") from None


def write(path, metadata, tensors):
    """`metadata`: key to what gguf_head stores. `tensors`: [(name, type, shape with the slowest dimension first, size in
    bytes, function that gives the bytes in pieces)]."""
    def file_pieces():
        yield _head(metadata, tensors)
        for name, _, _, size, pieces in tensors:
            written = 0
            for piece in pieces():
                written += len(piece)
                yield piece
            if written != size:
                raise Refused(f"{path}: tensor '{name}' has {written} bytes, declared {size}")
            yield bytes(-size % gguf_head.ALIGNMENT)
    gguf_head.write_whole(path, file_pieces())
