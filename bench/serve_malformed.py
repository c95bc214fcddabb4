"""Malformed requests for bench/serve: requests of every endpoint with one thing made wrong, those that llama.cpp's
own tests of its server send, bodies that are no JSON, and bytes that are no HTTP. Each knows what its answer must
name. Drawn from a seed; knows no sockets.
"""
import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Malformed:
    raw: bytes
    names: tuple = ()  # what the message of the answer has to hold
    field: str = ""  # what `param` begins with, in the APIs that have it

    def fault_of(self, answer):
        """None, or one line: why this answer is not the right one."""
        head, _, body = answer.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        if len(words) < 2 or not (words[1].isdigit() and words[1].startswith(b"4")):
            return f"{self.shown()}: answered {head[:40]!r}, expected a status of 400 to 499"
        try:
            error = json.loads(body)["error"]
            message = error["message"]
        except (ValueError, KeyError, TypeError):
            return f"{self.shown()}: no message in {body[:80]!r}"
        missing = [name for name in self.names if name not in message]
        if not missing and "param" in error and not (error["param"] or "").startswith(self.field):
            return f"{self.shown()}: param {error['param']!r}, expected {self.field!r}"
        return f"{self.shown()}: '{message}' does not name {', '.join(missing)}" if missing else None

    def shown(self):
        return repr(self.raw if len(self.raw) < 300 else self.raw[:120] + b" ... " + self.raw[-120:])


def _post(path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
            % (path.encode(), len(data), data))


# What is wrong for a field of each kind, whatever its range.
_WRONG = {
    "number": ["a", "", True, [], {}, [1]],
    "count": ["a", "", True, [], {}, 1.5, -2],
    "flag": ["true", 1, 0, [], {}],
    "text": [5, True, [], {}, 0.5],
    "texts": [5, True, {}, [5], [[]], ["a", {}], "", ["a", ""]],
    "object": [5, True, "a", [], [{}]],
    "array": [5, True, "a", {}],
}


def _out_of(least, most):
    return [least - 1, most + 1, least - 1e9, most * 1e6 + 1e9]


_BEYOND = 99_999_999  # a token's id: no vocabulary is so large
_COSTLY = "root ::= ([a-z]{0,50} [a-z]{0,50}){0,500}"  # more work to look a token ahead than there may be
_HELLO = [{"role": "user", "content": "a"}]
_FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}
_VALID = {
    "/v1/completions": {"prompt": "a", "max_tokens": 1},
    "/v1/chat/completions": {"messages": _HELLO, "max_tokens": 1},
    "/v1/responses": {"input": "a", "max_output_tokens": 1},
    "/v1/messages": {"messages": _HELLO, "max_tokens": 1},
    "/v1/messages/count_tokens": {"messages": _HELLO},
    "/v1/embeddings": {"input": "a"},
    "/completion": {"prompt": "a", "n_predict": 1},
    "/apply-template": {"messages": _HELLO},
    "/v1/responses/input_tokens": {"input": "a"},
    "/tokenize": {"content": "a"},
    "/detokenize": {"tokens": [1]},
}
_GENERATING = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/completion")
_SAMPLING = {
    "temperature": _WRONG["number"] + _out_of(0, 100), "top_p": _WRONG["number"] + _out_of(0, 1),
    "min_p": _WRONG["number"] + _out_of(0, 1), "presence_penalty": _WRONG["number"] + _out_of(-2, 2),
    "frequency_penalty": _WRONG["number"] + _out_of(-2, 2), "repeat_penalty": _WRONG["number"] + _out_of(0.01, 100),
    "repetition_penalty": _WRONG["number"] + _out_of(0.01, 100), "top_k": _WRONG["count"],
    "repeat_last_n": _WRONG["count"], "seed": _WRONG["count"] + [1 << 64],
    "logit_bias": _WRONG["object"] + [{"a": 1}, {"": 1}, {"1": "a"}, {"1": 101}, {"-1": 1}, {"1.5": 1}, {_BEYOND: 1}],
    "ignore_eos": _WRONG["flag"], "quality": _WRONG["text"] + ["lossy", ""], "timeout": _WRONG["number"] + [0, -1, 1e9],
    "stop": _WRONG["texts"] + [["a"] * 65], "stream": _WRONG["flag"],
    "grammar": _WRONG["text"] + ["root ::= (", "", "root ::= undefined", _COSTLY],
    "stop_token_ids": [5, True, "a", {}, ["a"], [-1], [1.5], [_BEYOND], [1, _BEYOND]],
    "bad_words": [["a"], "a"], "allowed_token_ids": [[1]],
    "cache_salt": _WRONG["text"] + ["", "a" * 257],
    "dry_multiplier": _WRONG["number"] + _out_of(0, 1e6), "dry_base": _WRONG["number"] + _out_of(1, 1e6),
    "dry_allowed_length": _WRONG["count"] + [0], "dry_penalty_last_n": _WRONG["count"],
    "dry_sequence_breakers": [5, True, {}, [], "a", [5], ["a", ""], ["a"] * 65, ["a" * 65]],
    "xtc_probability": _WRONG["number"] + _out_of(0, 1), "xtc_threshold": _WRONG["number"] + _out_of(0, 1),
    "samplers": [5, {}, ["sorcery"], ["temperature", "top_k"], "tk"],
    "chat_template": ["{{ messages }}"],
    "json_schema": _WRONG["object"] + [{"type": 123}, {"type": "hiccup"}, {"enum": []}, {"minimum": "a"}],
}
_OF_ENDPOINT = {
    "/v1/completions": {
        "prompt": [5, True, {}, [], [True], [1, "a"], [1.5], [-1], [{}], ["a", 5], [_BEYOND], [[1], [_BEYOND]]],
        "max_tokens": _WRONG["count"],
        "n": _WRONG["count"] + [0, 1000], "logprobs": _WRONG["count"] + [21], "best_of": _WRONG["count"] + [7],
        "echo": _WRONG["flag"], "suffix": _WRONG["text"], "stream_options": _WRONG["object"],
        "return_progress": _WRONG["flag"]},
    "/v1/chat/completions": {
        "messages": _WRONG["array"] + [[], [123], [{}]], "max_tokens": _WRONG["count"],
        "max_completion_tokens": _WRONG["count"], "n": _WRONG["count"] + [0, 1000], "logprobs": _WRONG["flag"],
        "top_logprobs": _WRONG["count"] + [3, 21], "tools": _WRONG["array"] + [[5], [{}], [{"type": 5}]],
        "tool_choice": [5, True, [], {}, "sometimes", "required"], "parallel_tool_calls": _WRONG["flag"],
        "functions": [[{"name": "f"}]], "function_call": [{"name": "f"}], "audio": [{}], "web_search_options": [{}],
        "chat_template_kwargs": _WRONG["object"] + [{"messages": []}], "reasoning_effort": _WRONG["text"] + ["much"],
        "stream_options": _WRONG["object"], "thinking": [5, "on", [], {}, {"type": "much"}], "documents": [[{}]],
        "echo": _WRONG["flag"] + [True], "parse_tool_calls": [False], "include_reasoning": [False]},
    "/v1/responses": {
        "input": [5, True, {}, [], [5], [{}]], "max_output_tokens": _WRONG["count"] + [0],
        "instructions": _WRONG["text"], "previous_response_id": ["resp_1", 5], "background": _WRONG["flag"] + [True],
        "tools": _WRONG["array"] + [[5], [{}], [{"type": 5}]], "tool_choice": [5, True, [], {}, "sometimes"],
        "reasoning": _WRONG["object"] + [{"effort": "much"}], "text": _WRONG["object"] + [{"format": 5}]},
    "/v1/messages": {
        "messages": _WRONG["array"] + [[], [123], [{}]], "max_tokens": _WRONG["count"] + [0],
        "system": [5, True, {}, [5], [{"type": "image"}]], "stop_sequences": [5, True, {}, [5], [""]],
        "tools": _WRONG["array"] + [[5], [{}], [{"type": "bash_20250124", "name": "bash"}]],
        "tool_choice": [5, "auto", [], {}, {"type": "sometimes"}], "thinking": [5, "on", [], {}, {"type": "much"}]},
    "/v1/messages/count_tokens": {"messages": _WRONG["array"] + [[], [123], [{}]], "system": [5, True, {}]},
    "/v1/embeddings": {"input": [5, True, {}, [], [True], [1.5], [{}], [_BEYOND]],
                       "encoding_format": _WRONG["text"] + ["int8"],
                       "dimensions": _WRONG["count"] + [1]},
    "/completion": {"prompt": [5, True, {}, [], [True], [1, "a"], [1.5], [1, _BEYOND]], "n_predict": _WRONG["count"],
                    "n_probs": _WRONG["count"] + [21], "return_tokens": _WRONG["flag"],
                    "t_max_predict_ms": [5, "a"], "post_sampling_probs": [True], "response_fields": [["content"]]},
    "/apply-template": {"messages": _WRONG["array"] + [[], [123], [{}]]},
    "/v1/responses/input_tokens": {"input": [5, True, {}, [], [5], [{}]], "instructions": _WRONG["text"]},
    "/tokenize": {"content": _WRONG["text"]},
    "/detokenize": {"tokens": _WRONG["array"] + [[True], ["a"], [-1], [1.5], [_BEYOND]]},
}
_REQUIRED = {"/v1/completions": ["prompt"], "/v1/chat/completions": ["messages"], "/v1/responses": ["input"],
             "/v1/messages": ["messages", "max_tokens"], "/v1/messages/count_tokens": ["messages"],
             "/v1/embeddings": ["input"], "/tokenize": ["content"], "/detokenize": ["tokens"],
             "/completion": ["prompt"], "/apply-template": ["messages"], "/v1/responses/input_tokens": ["input"]}

# A message, an item or a tool with one thing wrong: what stands in its place, and what is to be named.
_MESSAGES = [({}, "role"), ({"role": 123, "content": "a"}, "role"), ({"role": "cat", "content": "a"}, "role"),
             ({"role": "system", "content": 123}, "content"),
             ({"role": "system", "content": {"content_type": "text"}}, "content"),
             ({"role": "user", "content": [{"type": ["image_url"]}]}, "type"),
             ({"role": "user"}, "content"), ({"role": "user", "content": None}, "content"),
             ({"role": "user", "content": [{}]}, "type"), ({"role": "user", "content": [5]}, "content")]
_TOOLS = [({"type": "function"}, "function"), ({"type": "function", "function": {}}, "name"),
          ({"type": "function", "function": {"name": 5}}, "name"),
          ({"type": "function", "function": {**_FUNCTION, "parameters": 5}}, "parameters"),
          ({"type": "function", "function": {**_FUNCTION, "parameters": {"type": "hiccup"}}, "strict": True}, "")]
_FORMATS = [(5, ""), ({}, ""), ({"type": "sound"}, ".type"), ({"type": 5}, ".type"),
            ({"type": "json_schema", "json_schema": {"type": "hiccup"}}, ".json_schema"),
            ({"type": "json_schema", "json_schema": {"schema": {"type": "hiccup"}}}, ".json_schema.schema"),
            ({"type": "json_schema", "json_schema": {"schema": {"enum": []}}}, ".json_schema.schema"),
            ({"type": "json_object", "schema": {"type": 123}}, ".schema"),
            ({"type": "json_object", "schema": {"type": "hiccup"}}, ".schema")]


def _field(draw):
    """A valid request with one field made wrong."""
    path = draw.choice(list(_VALID))
    fields = {**_OF_ENDPOINT[path], **(_SAMPLING if path in _GENERATING else {})}
    field = draw.choice(list(fields))
    body = {**_VALID[path], field: draw.choice(fields[field])}
    if field == "top_logprobs" and body[field] == 21:
        body["logprobs"] = True
    return Malformed(_post(path, body), (field,), field)


def _missing(draw):
    path = draw.choice(list(_REQUIRED))
    field = draw.choice(_REQUIRED[path])
    body = {key: value for key, value in _VALID[path].items() if key != field}
    return Malformed(_post(path, body), (field,), field)


def _nested(draw):
    kind = draw.randrange(3)
    if kind == 0:
        message, name = draw.choice(_MESSAGES)
        path = draw.choice(["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"])
        before = _HELLO * draw.randrange(4)
        body = {**_VALID[path], "messages": before + [message]}
        if path != "/v1/chat/completions" and message.get("role") == "system" and name == "content":
            name = ""
        place = f"messages[{len(before)}]"
        return Malformed(_post(path, body), (place,) + ((name,) if name else ()), place)
    if kind == 1:
        tool, name = draw.choice(_TOOLS[:4])
        before = [{"type": "function", "function": {**_FUNCTION, "name": f"f{i}"}} for i in range(draw.randrange(3))]
        body = {**_VALID["/v1/chat/completions"], "tools": before + [tool]}
        place = f"tools[{len(before)}]"
        return Malformed(_post("/v1/chat/completions", body), (place, name), place)
    wanted, name = draw.choice(_FORMATS)
    path = draw.choice(["/v1/completions", "/v1/chat/completions"])
    place = "response_format" + name
    return Malformed(_post(path, {**_VALID[path], "response_format": wanted}), (place,), place)


def _no_json(draw):
    path = draw.choice(list(_VALID))
    text = json.dumps(_VALID[path]).encode()
    at = draw.randrange(len(text))
    broken = draw.choice([
        text[:at], text + b"}", b"}" + text, text.replace(b":", b"", 1), text.replace(b'"', b"", 1), b"\xff\xfe" + text,
        b"[" * draw.randrange(1, 3000), b'{"a":' * draw.randrange(1, 3000), b"[" + b"1," * 140000 + b"1]", b"null",
        b"5", b'"a"', b"[]", text.replace(b'"a"', b'"\xff"').replace(b"[1]", b"[\xff]"),
        text.replace(b'"a"', b'"\\ud800"').replace(b"[1]", b'["\\ud800"]'), b"\0" * draw.randrange(1, 100)])
    return Malformed(_post(path, broken), ("request",))


def _no_http(draw):
    host = b"Host: localhost\r\n"
    body = json.dumps(_VALID["/v1/completions"]).encode()
    begin = b"POST /v1/completions HTTP/1.1\r\n" + host
    garbage = bytes(draw.randrange(1, 256) for _ in range(draw.randrange(1, 60))).replace(b"\n", b"x")
    return Malformed(draw.choice([
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + garbage + b"\r\n\r\n",  # TLS where none is spoken
        garbage + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + host + b"\r\n",
        b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 70000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"no colon in this line\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"A\0B: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"BREW / HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n",
        b"DELETE /v1/models HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n",
        begin + b"Content-Length: -5\r\n\r\n" + body,
        begin + b"Content-Length: five\r\n\r\n" + body,
        begin + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + body,
        begin + b"Content-Length: 99999999999\r\nConnection: close\r\n\r\n",
        begin + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + body,
        begin + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body + b"\r\n0\r\n\r\n",
    ]))


def requests(draw, count):
    """`count` of them, each kind often; bytes that are no HTTP seldom, as they end a connection."""
    kinds = [_field] * 10 + [_missing] * 2 + [_nested] * 4 + [_no_json] * 3 + [_no_http]
    for _ in range(count):
        yield draw.choice(kinds)(draw)
