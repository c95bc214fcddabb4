"""Random JSON Schemas, values that satisfy them, and values that almost do: for tests of what follows schemas."""
WORDS = ["a", "b", "name", "née", "quote\"d", "back\\slash", "", "na", "zz", "x/y~z"]
PATTERNS = {
    "^[a-c]{2,4}$": ["ab", "abca"],
    r"^\d+-\w*$": ["12-", "0-a_9"],
    "foo|bar$": ["foo", "xfoo y", "a bar"],
    r"^(?:ab|c\.d)+e?$": ["ab", "c.dab", "abe"],
    '^[^"a-z]+$': ["ABC 1", "é\\"],
    r"^\S+\s\S+$": ["a b", "é ü"],
    "": ["", "anything"],
}
FORMAT_SAMPLES = {
    "date": ["2024-02-29", "0001-12-31", "1999-04-30"],
    "time": ["23:59:59Z", "00:00:00.123+01:30"],
    "date-time": ["2023-06-01T12:00:00Z", "2000-02-29T01:02:03.5-11:00"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
}


class Schemas:
    """Random schemas, and values that satisfy them, with properties in their order."""

    def __init__(self, rng):
        self.rng = rng

    def document(self):
        self.defs = {}
        schema = self.schema(3)
        if schema is True:
            schema = {}
        if self.rng.random() < 0.3:
            self.defs["node"] = {
                "type": "object",
                "properties": {"v": self.schema(1), "next": {"$ref": "#/$defs/node"},
                               "all": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}},
                "required": ["v"]}
            schema = {"anyOf": [schema, {"$ref": "#/$defs/node"}]}
        if self.defs:
            schema["$defs"] = self.defs
        if self.rng.random() < 0.5:
            schema["title"] = "not asked for"
        return schema

    def bounds(self, number):
        schema = {}
        low, high = sorted(number() for _ in range(2))
        for key, exclusive, value in (("minimum", "exclusiveMinimum", low), ("maximum", "exclusiveMaximum", high)):
            roll = self.rng.random()
            if roll < 0.4:
                schema[key] = value
            elif roll < 0.7:
                schema[exclusive] = value
        return schema

    def integer(self):
        return self.rng.choice([self.rng.randint(-12, 12), self.rng.randint(-2000, 2000), 10 ** self.rng.randint(0, 12)])

    def fraction(self):
        return self.rng.choice([self.integer(), round(self.rng.uniform(-3, 3), 2), 0.5, -0.25, 0.1])

    def value(self, depth):
        kinds = [lambda: None, lambda: True, lambda: False, self.integer, self.fraction,
                 lambda: self.rng.choice(WORDS)]
        if depth > 0:
            kinds += [lambda: [self.value(depth - 1) for _ in range(self.rng.randint(0, 2))],
                      lambda: {self.rng.choice(WORDS): self.value(depth - 1) for _ in range(self.rng.randint(0, 2))}]
        return self.rng.choice(kinds)()

    def schema(self, depth):
        kinds = ["null", "boolean", "integer", "integer", "number", "number", "string", "string", "pattern",
                 "format", "enum", "const", "types"]
        if depth > 0:
            kinds += ["object", "object", "object", "array", "array", "tuple", "anyOf", "oneOf", "tagged",
                      "allOf", "open", "any"]
        kind = self.rng.choice(kinds)
        if kind in ("null", "boolean"):
            return {"type": kind}
        if kind == "integer":
            return {"type": "integer", **self.bounds(self.rng.choice([self.integer, self.fraction]))}
        if kind == "number":
            return {"type": "number", **self.bounds(self.fraction)}
        if kind == "string":
            schema = {"type": "string"}
            if self.rng.random() < 0.5:
                schema["minLength"] = self.rng.randint(0, 4)
            if self.rng.random() < 0.5:
                schema["maxLength"] = self.rng.randint(3, 9)
            return schema
        if kind == "pattern":
            return {"type": "string", "pattern": self.rng.choice(list(PATTERNS))}
        if kind == "format":
            return {"type": "string", "format": self.rng.choice(list(FORMAT_SAMPLES))}
        if kind == "enum":
            schema = {"enum": [self.value(1) for _ in range(self.rng.randint(1, 5))]}
            return {**schema, "type": ["string", "null", "integer"]} if self.rng.random() < 0.3 else schema
        if kind == "const":
            return {"const": self.value(1)}
        if kind == "types":
            return {"type": self.rng.sample(["null", "boolean", "integer", "string", "number"], 2)}
        if kind == "object":
            return self.object(depth)
        if kind == "open":
            return {**self.object(depth), "additionalProperties": self.rng.choice([True, self.schema(0)])}
        if kind == "array":
            schema = {"type": "array", "items": self.schema(depth - 1)}
            if self.rng.random() < 0.5:
                schema["minItems"] = self.rng.randint(0, 3)
            if self.rng.random() < 0.5:
                schema["maxItems"] = self.rng.randint(2, 4)
            return schema
        if kind == "tuple":
            schema = {"type": "array", "prefixItems": [self.schema(depth - 1) for _ in range(self.rng.randint(1, 3))]}
            schema["items"] = self.rng.choice([False, self.schema(0)])
            schema["minItems"] = self.rng.randint(0, 3)
            return schema
        if kind == "anyOf":
            return {"anyOf": [self.schema(depth - 1) for _ in range(self.rng.randint(1, 3))]}
        if kind == "oneOf":
            branches = [{"type": "string", "maxLength": 5}, {"type": "integer", "minimum": 3},
                        {"type": "array", "items": self.schema(0)}, {"type": "null"}, self.object(depth)]
            return {"oneOf": self.rng.sample(branches, self.rng.randint(1, 4))}
        if kind == "tagged":
            branches = []
            for tag in ("circle", "square", "line"):
                branch = self.object(depth)
                branch["properties"] = {"kind": {"const": tag}, **branch["properties"]}
                branch["required"] = ["kind", *branch.get("required", [])]
                branches.append(branch)
            return {"oneOf": branches}
        if kind == "allOf":
            shared = {"type": "object", "properties": {"both": {"type": "integer", "maximum": self.integer()}}}
            extra = {"properties": {"both": {"minimum": self.integer()}, "last": self.schema(0)}}
            return {"allOf": [self.object(depth), shared, extra]}
        return self.rng.choice([True, {}])

    def object(self, depth):
        names = self.rng.sample(WORDS, self.rng.randint(0, 4))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        required = [name for name in names if self.rng.random() < 0.4]
        if required:
            schema["required"] = required
        if self.rng.random() < 0.5:
            schema["additionalProperties"] = False
        return schema

    def sample(self, schema, depth=0):
        """A value that probably satisfies the schema."""
        rng = self.rng
        if not isinstance(schema, dict) or not schema:
            return self.value(1)
        if "$ref" in schema:
            return self.sample(self.defs[schema["$ref"].split("/")[-1]], depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.sample(rng.choice(schema[key]), depth)
        if "allOf" in schema:
            merged = {}
            for part in schema["allOf"]:
                for name, value in self.sample({"type": "object", **part}, depth).items():
                    merged.setdefault(name, value)
            return merged
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            kind = rng.choice(kind)
        if kind == "null":
            return None
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "integer":
            near = [schema[k] for k in schema if "inimum" in k or "aximum" in k] or [0]
            return int(rng.choice(near)) + rng.randint(-2, 2)
        if kind == "number":
            near = [schema[k] for k in schema if "inimum" in k or "aximum" in k] or [0]
            return round(rng.choice(near) + rng.choice([0, 0.01, -0.01, 1, -1, 0.5]), 3)
        if kind == "string":
            if "pattern" in schema:
                return rng.choice(PATTERNS[schema["pattern"]])
            if "format" in schema:
                return rng.choice(FORMAT_SAMPLES[schema["format"]])
            least = schema.get("minLength", 0)
            length = rng.randint(least, max(least, schema.get("maxLength", 9)))
            return "".join(rng.choice("ab\"\\é\n\x01/😀 ") for _ in range(length))
        if kind == "array":
            prefix = schema.get("prefixItems", [])
            least = schema.get("minItems", 0)
            length = rng.randint(least, max(least, schema.get("maxItems", least + 3)))
            if schema.get("items") is False:
                length = min(length, len(prefix))
            if depth > 4:
                length = least
            return [self.sample(prefix[i] if i < len(prefix) else schema["items"], depth + 1) for i in range(length)]
        chosen = {}
        for name, value in schema.get("properties", {}).items():
            if name in schema.get("required", []) or (depth < 4 and rng.random() < 0.5):
                chosen[name] = self.sample(value, depth + 1)
        if schema.get("additionalProperties", False) is not False:
            for name in rng.sample(["other", "nam", "names", "q\"", ""], rng.randint(0, 2)):
                if name not in schema["properties"]:
                    chosen[name] = self.sample(schema["additionalProperties"], depth + 1)
        return chosen

    def mutated(self, value):
        """The value with one change somewhere."""
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.8:
            copy = dict(value)
            name = rng.choice(list(copy))
            roll = rng.random()
            if roll < 0.2:
                del copy[name]
            elif roll < 0.3:
                copy[rng.choice(WORDS)] = self.value(0)
            else:
                copy[name] = self.mutated(copy[name])
            return copy
        if isinstance(value, list) and value and rng.random() < 0.8:
            copy = list(value)
            i = rng.randrange(len(copy))
            roll = rng.random()
            if roll < 0.2:
                del copy[i]
            elif roll < 0.4:
                copy.append(self.value(0))
            else:
                copy[i] = self.mutated(copy[i])
            return copy
        if isinstance(value, str) and rng.random() < 0.6:
            return rng.choice([value + "x", value[1:], value[::-1], value.upper()])
        if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.7:
            return rng.choice([value + 1, value - 1, -value, value * 10, value + 0.5])
        return self.value(1)


def closed(schema, is_part=False):
    """The schema with additionalProperties as the compiler takes it where the schema says nothing."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            out[key] = {name: closed(item) for name, item in value.items()}
        elif key == "allOf":
            out[key] = [closed(part, is_part=True) for part in value]
            out["unevaluatedProperties"] = False
        else:
            out[key] = value if key in ("enum", "const") else closed(value)
    if schema.get("properties") and not is_part:
        out.setdefault("additionalProperties", False)
    return out
