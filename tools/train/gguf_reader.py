"""Reads GGUF (docs/formats/gguf.md): keys, where tensors lie, and the floats of those in F32, F16 or Q8_0. For the files of
this project; troupe itself is what reads strangers'.
"""
import dataclasses
import hashlib
import pathlib
import struct

import numpy as np

import gguf_file

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
# Of a type's number: its name, bytes of a block, numbers in it.
_TYPES = {0: ("F32", 4, 1), 1: ("F16", 2, 1), 8: ("Q8_0", 34, 32)}


class NotReadable(Exception):
    """One line: which file, and what is wrong with it."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple  # the slowest dimension first
    kind: int  # number of its type
    offset: int  # in the data

    @property
    def size(self):
        _, block, numbers = _TYPES[self.kind]
        return int(np.prod(self.shape)) // numbers * block


class _Cursor:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, form):
        found = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found[0] if len(found) == 1 else found

    def text(self):
        length = self.take("<Q")
        self.at += length
        return bytes(self.data[self.at - length:self.at]).decode()

    def value(self, kind):
        if kind in _SCALARS:
            return self.take(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise ValueError(f"a value of type {kind}")
        of, count = self.take("<IQ")
        return [self.value(of) for _ in range(count)]


class Gguf:
    """`metadata`: key to value; `entries`: [(key, value as it is stored)]; `tensors`: by name, in the file's order."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            self.data = self.path.read_bytes()
        except OSError as failure:
            raise NotReadable(f"{path}: {failure.strerror}") from None
        try:
            self._read()
        except (ValueError, struct.error, UnicodeDecodeError, KeyError) as failure:
            raise NotReadable(f"{path}: no GGUF file that is read here ({failure})") from None

    def _read(self):
        if self.data[:4] != b"GGUF":
            raise ValueError("it begins otherwise")
        cursor = _Cursor(self.data, 4)
        version, tensors, keys = cursor.take("<IQQ")
        if version not in (2, 3):
            raise ValueError(f"version {version}")
        self.metadata, self.entries, self.tensors = {}, [], {}
        for _ in range(keys):
            key, begin = cursor.text(), cursor.at
            self.metadata[key] = cursor.value(cursor.take("<I"))
            self.entries.append((key, self.data[begin:cursor.at]))
        for _ in range(tensors):
            name, rank = cursor.text(), cursor.take("<I")
            shape = tuple(reversed([cursor.take("<Q") for _ in range(rank)]))
            kind, offset = cursor.take("<IQ")
            if kind not in _TYPES:
                raise ValueError(f"tensor '{name}' has type {kind}, expected one of F32, F16, Q8_0")
            self.tensors[name] = Tensor(name, shape, kind, offset)
        alignment = self.metadata.get("general.alignment", gguf_file.ALIGNMENT)
        if alignment != gguf_file.ALIGNMENT:
            raise ValueError(f"alignment {alignment}, expected {gguf_file.ALIGNMENT}")
        self.begin = -(-cursor.at // alignment) * alignment

    def sha256(self):
        return hashlib.sha256(self.data).hexdigest()

    def architecture(self):
        return self.metadata.get("general.architecture", "")

    def key(self, name, otherwise=None):
        """Of a key that begins with the architecture's name."""
        found = self.metadata.get(f"{self.architecture()}.{name}", otherwise)
        if found is None:
            raise NotReadable(f"{self.path}: key {self.architecture()}.{name} is missing")
        return found

    def stored(self, tensor):
        """Its bytes."""
        begin = self.begin + tensor.offset
        data = self.data[begin:begin + tensor.size]
        if len(data) != tensor.size:
            raise NotReadable(f"{self.path}: tensor '{tensor.name}' goes beyond the file's end")
        return data

    def floats(self, name):
        """A float32 array of its own."""
        if name not in self.tensors:
            raise NotReadable(f"{self.path}: tensor '{name}' is missing")
        tensor = self.tensors[name]
        data = self.stored(tensor)
        kind = _TYPES[tensor.kind][0]
        numbers = gguf_file.from_q8_0(data) if kind == "Q8_0" else np.frombuffer(
            data, "<f4" if kind == "F32" else "<f2").astype(np.float32)
        return numbers.reshape(tensor.shape)
