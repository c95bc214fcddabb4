#!/usr/bin/env python3
"""Asks a live server for answers that follow random JSON Schemas, by each API that takes one, and holds every
answer that has ended to python3-jsonschema. What the grammars allow is json_schema_oracle_test.py's.

usage: schema_answers_test.py TROUPE. TROUPE_CASES says how many schemas, TROUPE_SEED which."""
import concurrent.futures
import json
import os
import random
import sys
import urllib.error

import jsonschema

import serve_test
from random_schemas import Schemas

CASES = int(os.environ.get("TROUPE_CASES", "300"))
SEED = int(os.environ.get("TROUPE_SEED", "1"))
FORMATS = jsonschema.FormatChecker(formats=["date", "uuid"])
TOKENS = 1000
NAMED = {"name": "answer", "strict": True}


def events(server, path, body):
    with server.open(path, {**body, "stream": True}) as response:
        for line in response:
            if line.startswith(b"data: ") and line != b"data: [DONE]\n":
                yield json.loads(line[6:])


# Each asks by one API for one schema, and gives the answer's text and whether it came to its end.


def completion(server, schema, common):
    choice = server.ask("/v1/completions", {**common, "prompt": "The answer is ", "json_schema": schema})["choices"][0]
    return choice["text"], choice["finish_reason"] == "stop"


def streamed_chat(server, schema, common):
    text, finish = "", None
    body = {**common, "messages": [{"role": "user", "content": "Answer!"}],
            "response_format": {"type": "json_schema", "json_schema": {**NAMED, "schema": schema}}}
    for event in events(server, "/v1/chat/completions", body):
        for choice in event["choices"]:
            text += choice["delta"].get("content") or ""
            finish = choice["finish_reason"] or finish
    return text, finish == "stop"


def response(server, schema, common):
    common = dict(common, max_output_tokens=common["max_tokens"])
    del common["max_tokens"]
    answer = server.ask("/v1/responses", {**common, "input": "Answer!",
                                          "text": {"format": {"type": "json_schema", **NAMED, "schema": schema}}})
    text = "".join(part["text"] for item in answer["output"] for part in item["content"])
    return text, answer["status"] == "completed"


def tool_call(server, schema, common):
    answer = server.ask("/v1/chat/completions", {
        **common, "messages": [{"role": "user", "content": "Answer!"}], "parallel_tool_calls": False,
        "tools": [{"type": "function", "function": {**NAMED, "parameters": schema}}], "tool_choice": "required"})
    choice = answer["choices"][0]
    if choice["finish_reason"] != "tool_calls":
        return choice["message"]["content"] or "", False
    return choice["message"]["tool_calls"][0]["function"]["arguments"], True


def message_tool_use(server, schema, common):
    answer = server.ask("/v1/messages", {
        **common, "messages": [{"role": "user", "content": "Answer!"}],
        "tools": [{"name": "answer", "input_schema": schema, "strict": True}],
        "tool_choice": {"type": "tool", "name": "answer", "disable_parallel_tool_use": True}})
    used = [block for block in answer["content"] if block["type"] == "tool_use"]
    return (json.dumps(used[0]["input"]), True) if answer["stop_reason"] == "tool_use" else ("", False)


WAYS = [completion, streamed_chat, response, tool_call, message_tool_use]


def as_parameters(schema):
    """An object, as a tool takes it, whose only property is the schema's."""
    inner = dict(schema)
    definitions = {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
    return {"type": "object", "properties": {"value": inner}, "required": ["value"], **definitions}


def follows(schema, text):
    """Nothing if the text is a value that the schema allows, or what is wrong."""
    try:
        jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return error
    return None


def judge(server, number, schema, way):
    """What became of one schema: 'ended', 'cut', 'empty' or 'refused'; fails if an answer does not follow it."""
    where = f"schema {number}, {way.__name__}: {json.dumps(schema, ensure_ascii=False)}"
    common = {"max_tokens": TOKENS, "temperature": 1.0, "seed": SEED * 10000 + number}
    try:
        text, ended = way(server, schema, common)
    except urllib.error.HTTPError as error:
        said = error.read().decode()
        if "no value satisfies" in said:
            return "empty"
        assert error.code == 400 and ("cannot be told apart" in said or "beside keywords" in said), f"{where}\n{said}"
        return "refused"
    if not ended:
        return "cut"
    wrong = follows(schema, text)
    assert wrong is None, f"{where}\nis answered {text}\n{wrong}"
    return "ended"


def main():
    serve_test.TROUPE = sys.argv[1]
    print(f"TROUPE_SEED={SEED} TROUPE_CASES={CASES}")
    schemas = Schemas(random.Random(SEED))
    asked = []
    for number in range(CASES):
        schema, way = schemas.document(), WAYS[number % len(WAYS)]
        if way in (tool_call, message_tool_use) and schema.get("type") != "object":
            schema = as_parameters(schema)
        asked.append((number, schema, way))
    counts = {}
    with serve_test.Server("--parallel", 8, "--queue", 100, "--ctx", 4096) as server:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            for (_, _, way), what in zip(asked, pool.map(lambda one: judge(server, *one), asked)):
                of_way = counts.setdefault(way.__name__, {})
                of_way[what] = of_way.get(what, 0) + 1
        # Nothing but the schema makes this model write JSON.
        free = [server.complete("The answer is ", 60, seed=number, ignore_eos=False) for number in range(10)]
        assert all(follows({"type": "object"}, text) for text in free), free
    for name, of_way in sorted(counts.items()):
        print(f"{name}: {of_way}")
    # Most answers must have come to their end, by each API, or nothing was tried.
    for name, of_way in counts.items():
        tried = sum(of_way.values()) - of_way.get("empty", 0) - of_way.get("refused", 0)
        assert of_way.get("ended", 0) >= 0.85 * tried > 0.6 * CASES / len(WAYS), name


main()
