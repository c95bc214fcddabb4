"""Which tensors the file to come has, each made of those of the model as published: each of these is taken once,
and none may be left over. No bytes are read before the file is written.
"""
import struct

import safetensors
from refused import Refused


def as_floats(data, type_):
    """Bytes of numbers as bytes of float32, which has them all."""
    if type_ == "F32":
        return data
    if type_ == "F16":
        count = len(data) // 2
        return struct.pack(f"<{count}f", *struct.unpack(f"<{count}e", data))
    floats = bytearray(2 * len(data))  # bfloat16: the upper half of one
    floats[2::4], floats[3::4] = data[0::2], data[1::2]
    return bytes(floats)


class Layout:
    def __init__(self, folder, tensors):
        self._folder, self._left = folder, dict(tensors)
        self.made = []  # as gguf_stream.write takes them

    def has(self, source):
        return source in self._left

    def take(self, source, *shape):
        tensor = self._left.pop(source, None)
        if tensor is None:
            raise Refused(f"{self._folder}: tensor '{source}' is missing")
        if tensor.shape != shape:
            raise Refused(f"{tensor.path}: tensor '{source}' has shape {list(tensor.shape)}, expected {list(shape)}")
        return tensor

    def matrix(self, name, source, *shape):
        tensor = self.take(source, *shape)
        self.made.append((name, tensor.type, shape, tensor.size, tensor.pieces))

    def made_of(self, name, source, make, *shape):
        """A matrix of the same type and size whose bytes are make(tensor)."""
        tensor = self.take(source, *shape)
        self.made.append((name, tensor.type, shape, tensor.size, lambda: [make(tensor)]))

    def floats(self, name, source, *shape):
        """Of what is small, and read as F32."""
        tensor = self.take(source, *shape)
        size = tensor.size // safetensors.SIZES[tensor.type] * safetensors.SIZES["F32"]
        self.made.append((name, "F32", shape, size, lambda: [as_floats(tensor.read(), tensor.type)]))

    def stacked(self, name, sources, *shape):
        """One matrix of each expert, one behind the other."""
        tensors = [self.take(source, *shape) for source in sources]
        for tensor in tensors:
            if tensor.type != tensors[0].type:
                raise Refused(f"{tensor.path}: tensor '{tensor.name}' has type {tensor.type}, and "
                              f"'{tensors[0].name}' {tensors[0].type}")
        size = sum(tensor.size for tensor in tensors)
        self.made.append((name, tensors[0].type, (len(tensors), *shape), size,
                          lambda: (piece for tensor in tensors for piece in tensor.pieces())))

    def leave(self, *names):
        """Names of what is not read, or of the same numbers once more."""
        for name in names:
            self._left.pop(name, None)

    def check_nothing_left(self, is_unread=lambda name: False):
        for name, tensor in self._left.items():
            if not is_unread(name):
                raise Refused(f"{tensor.path}: tensor '{name}' is none that such a model has")
