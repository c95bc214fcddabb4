"""Clients of `troupe serve` for bench/serve: many at once on one thread, each a request at a time over a socket of
its own. What is made of the times is serve's part.
"""
import asyncio
import contextlib
import dataclasses
import json
import re
import signal
import subprocess
import time


@dataclasses.dataclass
class Asked:
    """What a client saw of one answer. Seconds since the request was sent."""
    status: int
    first: float = 0.0
    end: float = 0.0
    gaps: list = dataclasses.field(default_factory=list)  # between pieces
    usage: dict = dataclasses.field(default_factory=dict)
    finished: bool = False


class ServerFailed(Exception):
    """One line: what the server said last."""


@contextlib.contextmanager
def serving(troupe, model, *options):
    """A server on a free port; gives the port and the process."""
    command = [str(troupe), "serve", str(model), "--port", "0", *map(str, options)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = ""
    try:
        for said in process.stderr:
            if found := re.search(r"at https?://[\d.]+:(\d+)", said):
                yield int(found[1]), process
                break
        else:
            raise ServerFailed(f"{' '.join(command)}: ended, said last: {said.strip()}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _bytes_of(path, body):
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def ask(port, body):
    """Streams one completion. Whoever is not answered, or not to the end, has finished == False."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    start = last = time.monotonic()
    writer.write(_bytes_of("/v1/completions",
                           {**body, "stream": True, "stream_options": {"include_usage": True}}))
    asked = Asked(int((await reader.readline()).split()[1]))
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        if line.strip() == b"data: [DONE]":
            asked.finished = True
            break
        event = json.loads(line[6:])
        asked.usage = event.get("usage") or asked.usage
        if any(choice["text"] for choice in event.get("choices", [])):
            now = time.monotonic()
            if asked.first:
                asked.gaps.append(now - last)
            else:
                asked.first = now - start
            last = now
    asked.end = time.monotonic() - start
    writer.close()
    return asked


async def all_of(port, clients):
    """`clients`: for each its requests, which it sends one after the other. Gives all that was seen, and the seconds."""
    async def one(bodies):
        return [await ask(port, body) for body in bodies]
    start = time.monotonic()
    seen = await asyncio.gather(*(one(bodies) for bodies in clients))
    return [asked for some in seen for asked in some], time.monotonic() - start


async def silent(port, count):
    """Connections that have a stream open and are sent nothing: gives their writers, to be closed."""
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_bytes_of("/v1/completions", {"prompt": "a", "max_tokens": 100000, "stream": True}))
        opened.append((reader, writer))
    return opened
