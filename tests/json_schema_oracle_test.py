#!/usr/bin/env python3
"""Compiles 1,000 random JSON Schemas and holds the grammars to python3-jsonschema: every text of a random
walk through a grammar parses and validates; what does not validate is refused in its canonical form; and
values made to satisfy a schema are accepted in theirs.

usage: json_schema_oracle_test.py GRAMMAR_PROBE (src/text/grammar/grammar_probe.cc). TROUPE_SEED replays a run."""
import json
import os
import random
import subprocess
import sys

import jsonschema

from random_schemas import Schemas, closed

SCHEMAS = 150 if "TROUPE_SANITIZED" in os.environ else 1000
FORMATS = jsonschema.FormatChecker(formats=["date", "uuid"])


class Probe:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the probe ended at {request}"
        return json.loads(line)


def canonical(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main():
    seed = int(os.environ.get("TROUPE_SEED", "1"))
    print(f"TROUPE_SEED={seed}")
    probe = Probe(sys.argv[1])
    schemas = Schemas(random.Random(seed))
    counts = dict.fromkeys(["compiled", "empty", "refused", "walks", "long", "accepted", "invalid"], 0)
    for number in range(SCHEMAS):
        schema = schemas.document()
        answer = probe.ask({"schema": schema})
        validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
        closed_validator = jsonschema.Draft202012Validator(closed(schema), format_checker=FORMATS)
        samples = [schemas.sample(schema) for _ in range(12)]
        where = f"schema {number}: {json.dumps(schema, ensure_ascii=False)}"
        if "error" in answer:
            if "no value satisfies" in answer["error"]:
                counts["empty"] += 1
                for value in samples:
                    assert not closed_validator.is_valid(value), f"{where}\nis not empty: {canonical(value)}"
            else:
                counts["refused"] += 1
                known = ("cannot be told apart", "beside keywords")
                assert any(text in answer["error"] for text in known), f"{where}\n{answer['error']}"
            continue
        counts["compiled"] += 1
        for walk in range(6):
            answer = probe.ask({"walk": seed * 1000 + walk})
            if "text" not in answer:
                counts["long"] += 1
                continue
            counts["walks"] += 1
            try:
                validator.validate(json.loads(answer["text"]))
            except (ValueError, jsonschema.ValidationError) as error:
                sys.exit(f"{where}\ngives {answer['text']}\n{error}")
        for value in samples:
            if closed_validator.is_valid(value):
                counts["accepted"] += 1
                assert probe.ask({"text": canonical(value)})["accepted"], f"{where}\nrefuses {canonical(value)}"
            for other in (value, schemas.mutated(value)):
                if not validator.is_valid(other):
                    counts["invalid"] += 1
                    assert not probe.ask({"text": canonical(other)})["accepted"], \
                        f"{where}\naccepts {canonical(other)}"
    print(counts)
    # All sorts must have been put to the test.
    assert counts["compiled"] > 0.85 * SCHEMAS and counts["long"] < 0.02 * counts["walks"], counts
    assert counts["accepted"] > 3 * SCHEMAS and counts["invalid"] > 3 * SCHEMAS, counts


main()
