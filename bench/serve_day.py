"""A day's worth of clients for bench/serve, in less time: everybody who uses a server at once, again and again, and
what its process holds meanwhile. Whether that is flat is serve_runs.py's to say.
"""
import asyncio
import contextlib
import json
import random
import time

import serve_clients
import serve_malformed

WORDS = "the kernel of a memory is read by many and changed by few who wait for each other in turn".split()
SAME = {"prompt": "The kernel", "max_tokens": 12, "temperature": 0.8, "seed": 7, "ignore_eos": True}
_SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}, "name": {"type": "string", "maxLength": 9}},
           "required": ["size", "name"], "additionalProperties": False}
_NEW_RULES = 4000  # more than a server keeps
_TOOL = {"type": "function", "function": {"name": "paint", "parameters": _SCHEMA}}


def _text(draw, most):
    return " ".join(draw.choices(WORDS, k=draw.randrange(1, most)))


class Day:
    """Clients on one thread. `wrong` collects what should not have been, a line each."""

    def __init__(self, port, process, clients, seed):
        self._port, self._process, self._clients, self._seed = port, process, clients, seed
        self.wrong, self.asked, self.same = [], {}, None
        self.held = []  # (seconds since the start, bytes)

    async def run(self, seconds):
        _, answer = await serve_clients.json_of(self._port, "/v1/completions", SAME)
        self.same = answer["choices"][0]["text"]
        await self._fill_rules()
        start = time.monotonic()
        end = start + seconds
        await asyncio.gather(self._watch(start, end), *(self._client(i, end) for i in range(self._clients)))

    async def _fill_rules(self):
        """What the server keeps of rules fills within minutes here, not within hours, and with rules as the day
        brings them: then growth is growth."""
        async def ask(numbers):
            for number in numbers:
                await self._answer_by({**_SCHEMA, "title": f"rule {number}"}, 12, number)

        await asyncio.gather(*(ask(range(i, _NEW_RULES, self._clients)) for i in range(self._clients)))

    async def _answer_by(self, schema, tokens, seed):
        return await self._ask("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "a"}], "max_tokens": tokens, "seed": seed,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}})

    def _goes_on(self):
        return len(self.wrong) < 20

    async def _watch(self, start, end):
        while (now := time.monotonic()) < end and self._goes_on():
            self.held.append((now - start, resident(self._process)))
            await asyncio.sleep(1)

    async def _client(self, number, end):
        draw = random.Random(f"{self._seed} {number}")
        kinds = [self._completion] * 6 + [self._talk, self._leave, self._rule, self._tool, self._several,
                                          self._look, self._malformed, self._check]
        while time.monotonic() < end and self._goes_on():
            kind = draw.choice(kinds)
            self.asked[kind.__name__] = self.asked.get(kind.__name__, 0) + 1
            try:
                await kind(draw)
            except (OSError, ValueError, KeyError, IndexError) as error:
                self.wrong.append(f"{kind.__name__}: {type(error).__name__} {error}")

    async def _ask(self, path, body):
        status, answer = await serve_clients.json_of(self._port, path, body)
        if status == 429:  # the queue is full: come again
            await asyncio.sleep(0.2)
            return None
        if status != 200:
            self.wrong.append(f"{path}: {status} {json.dumps(answer)[:200]}")
            return None
        return answer

    async def _completion(self, draw):
        body = {"prompt": _text(draw, 60), "max_tokens": draw.randrange(1, 60), "seed": draw.randrange(1 << 30),
                "ignore_eos": True, "logprobs": draw.choice([None, 3])}
        asked = await serve_clients.ask(self._port, body)
        if asked.status not in (200, 429) or (asked.status == 200 and not asked.finished):
            self.wrong.append(f"a stream ended early: {asked.status}")

    async def _talk(self, draw):
        messages = []
        for _ in range(draw.randrange(1, 6)):
            messages.append({"role": "user", "content": _text(draw, 30)})
            answer = await self._ask("/v1/chat/completions", {"messages": messages, "max_tokens": 24})
            if answer is None:
                return
            messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})

    async def _leave(self, draw):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(serve_clients.bytes_of("/v1/completions", {"prompt": _text(draw, 90), "max_tokens": 400,
                                                                "stream": True, "ignore_eos": True}))
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(300), draw.random())
        writer.close()

    async def _rule(self, draw):
        schema = {**_SCHEMA, "title": _text(draw, 3) if draw.random() < 0.3 else "same"}
        answer = await self._answer_by(schema, 60, draw.randrange(1 << 30))
        if answer and answer["choices"][0]["finish_reason"] == "stop":
            json.loads(answer["choices"][0]["message"]["content"])

    async def _tool(self, draw):
        body = {"messages": [{"role": "user", "content": _text(draw, 9)}], "max_tokens": 60, "tools": [_TOOL],
                "tool_choice": "required", "seed": draw.randrange(1 << 30)}
        await self._ask("/v1/chat/completions", body)

    async def _several(self, draw):
        await self._ask("/v1/completions", {"prompt": [_text(draw, 9), _text(draw, 9)], "n": 2, "max_tokens": 9})

    async def _look(self, draw):
        path = draw.choice(["/metrics", "/health", "/v1/models", "/props", "/", "/live"])
        with contextlib.suppress(asyncio.TimeoutError):  # /live does not end
            await asyncio.wait_for(serve_clients.exchange(self._port, serve_clients.bytes_of(path)), 2)

    async def _malformed(self, draw):
        for request in serve_malformed.requests(draw, 5):
            fault = request.fault_of(await serve_clients.exchange(self._port, request.raw))
            if fault:
                self.wrong.append(fault)

    async def _check(self, _):
        answer = await self._ask("/v1/completions", SAME)
        if answer and answer["choices"][0]["text"] != self.same:
            self.wrong.append(f"'{answer['choices'][0]['text']}' where it was '{self.same}' before")


def resident(process):
    """Bytes of its own that a process holds: without pages of files, which the kernel may drop."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024
