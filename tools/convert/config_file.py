"""Reads a model's config.json without trusting it: numbers that are none, or that no model has, are refused."""
import safetensors
from refused import Refused

_MOST = 1 << 24  # of anything that is counted
_LEAST_FLOAT, _MOST_FLOAT = 2.0**-126, (2 - 2.0**-23) * 2.0**127  # of float32, in which the file to come has them


class ConfigFile:
    def __init__(self, path):
        self.path, self._values = path, safetensors.read_json(path)
        if not isinstance(self._values, dict):
            raise Refused(f"{path}: no JSON object")

    def refuse(self, key, expected):
        return Refused(f"{self.path}: {key} is {self._values.get(key)!r}, expected {expected}")

    def get(self, key, otherwise=None):
        value = self._values.get(key)
        return otherwise if value is None else value

    def expect(self, key, value, otherwise):
        if self.get(key, otherwise) != value:
            raise self.refuse(key, repr(value))

    def count(self, key, otherwise=None, least=1):
        value = self.get(key, otherwise)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _MOST:
            raise self.refuse(key, f"a whole number from {least} on")
        return value

    def number(self, key, otherwise):
        value = self.get(key, otherwise)
        if (isinstance(value, bool) or not isinstance(value, (int, float))
                or not _LEAST_FLOAT <= value <= _MOST_FLOAT):
            raise self.refuse(key, "a number above 0 that float32 has")
        return float(value)

    def flag(self, key, otherwise):
        value = self.get(key, otherwise)
        if not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value
