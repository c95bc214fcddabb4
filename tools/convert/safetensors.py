"""Reads the safetensors files of a model without trusting them: which tensors there are, and their bytes
(docs/formats/safetensors.md). What the tensors are for is others' matter.
"""
import dataclasses
import json
import math
import pathlib
import struct

from refused import Refused

INDEX, ALONE = "model.safetensors.index.json", "model.safetensors"
SIZES = {"F32": 4, "F16": 2, "BF16": 2}  # bytes of a number, of the types that are read
_MOST_HEADER = 100 << 20  # what the format allows
_MOST_DIMENSIONS = 8


@dataclasses.dataclass(frozen=True)
class Tensor:
    name: str
    path: pathlib.Path
    type: str
    shape: tuple  # the slowest dimension first
    offset: int   # in the file
    size: int

    def read(self, begin=0, size=None):
        """Bytes of it, all unless told otherwise."""
        size = self.size - begin if size is None else size
        with open(self.path, "rb") as file:
            file.seek(self.offset + begin)
            data = file.read(size)
        if len(data) != size:
            raise Refused(f"{self.path}: tensor '{self.name}' ends at byte {len(data)} of {size}")
        return data

    def pieces(self, most=16 << 20):
        for begin in range(0, self.size, most):
            yield self.read(begin, min(most, self.size - begin))


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of UTF-8, too
        raise Refused(f"{path}: no JSON: {error}") from None


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _tensor(path, name, entry, begin, end):
    """`begin` and `end`: of the tensors' bytes in the file."""
    def refuse(what):
        return Refused(f"{path}: tensor '{name}': {what}")

    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise refuse("dtype, shape and data_offsets expected")
    type_, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(type_, str) or type_ not in SIZES:
        raise refuse(f"type {type_}, expected {', '.join(SIZES)}")
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS or not all(map(_is_whole, shape)):
        raise refuse(f"shape {shape}, expected at most {_MOST_DIMENSIONS} whole numbers")
    if not isinstance(place, list) or len(place) != 2 or not all(map(_is_whole, place)):
        raise refuse(f"data_offsets {place}, expected two whole numbers")
    size = math.prod(shape) * SIZES[type_]
    if place[1] - place[0] != size:
        raise refuse(f"bytes {place[0]} to {place[1]}, expected {size} for {type_} of shape {shape}")
    if begin + place[1] > end:
        raise refuse(f"it ends at byte {begin + place[1]}, the file has {end}")
    return Tensor(name, path, type_, tuple(shape), begin + place[0], size)


def tensors_of(path):
    """Name to Tensor, of one file."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
            if len(head) < 8:
                raise Refused(f"{path}: {len(head)} bytes, no safetensors file")
            length = struct.unpack("<Q", head)[0]
            end = file.seek(0, 2)
            if length > min(_MOST_HEADER, end - 8):
                raise Refused(f"{path}: a header of {length} bytes, at most {min(_MOST_HEADER, end - 8)} expected")
            file.seek(8)
            text = file.read(length)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise Refused(f"{path}: the header is no JSON object")
    return {name: _tensor(path, name, entry, 8 + length, end)
            for name, entry in header.items() if name != "__metadata__"}


def _of_index(folder):
    places = read_json(folder / INDEX)
    places = places.get("weight_map") if isinstance(places, dict) else None
    if not isinstance(places, dict) or not places:
        raise Refused(f"{folder / INDEX}: no weight_map")
    for file in places.values():
        if not isinstance(file, str) or not file.isprintable() or pathlib.PurePath(file).name != file:
            raise Refused(f"{folder / INDEX}: weight_map names the file {file!r}, expected one of this folder")
    files = {file: tensors_of(folder / file) for file in sorted(set(places.values()))}
    for name, file in places.items():
        if name not in files[file]:
            raise Refused(f"{folder / file}: no tensor '{name}', which {INDEX} says is there")
    return {name: files[file][name] for name, file in places.items()}


def tensors_of_folder(folder):
    """Name to Tensor, of a model in one file or in several with an index."""
    if (folder / INDEX).exists():
        return _of_index(folder)
    return tensors_of(folder / ALONE)
