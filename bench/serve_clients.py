"""Clients of `troupe serve` for bench/serve: many at once on one thread, each a request at a time over a socket of
its own. What is made of the times is serve's part.
"""
import asyncio
import contextlib
import dataclasses
import itertools
import json
import re
import signal
import socket
import subprocess
import time


@dataclasses.dataclass
class Asked:
    """What a client saw of one answer. Seconds since the request was sent, and `sent` since all of them began."""
    status: int
    first: float = 0.0
    end: float = 0.0
    gaps: list = dataclasses.field(default_factory=list)  # between pieces
    usage: dict = dataclasses.field(default_factory=dict)
    finished: bool = False
    sent: float = 0.0

    def read_by(self, seconds):
        """Tokens of its prompt, if it was read by then."""
        return self.usage.get("prompt_tokens", 0) if self.first and self.sent + self.first <= seconds else 0

    def generated_by(self, seconds):
        """Tokens of the answer that had come by then: each piece has as many."""
        if not self.first:
            return 0
        times = list(itertools.accumulate([self.sent + self.first, *self.gaps]))
        return self.usage.get("completion_tokens", 0) * sum(time <= seconds for time in times) / len(times)


class ServerFailed(Exception):
    """One line: what the server said last."""


@contextlib.contextmanager
def serving(troupe, model, *options, wrap=list):
    """A server on a free port; gives the port and the process. `wrap` makes of its command what is run."""
    command = [str(troupe), "serve", str(model), "--port", "0", *map(str, options)]
    process = subprocess.Popen(wrap(command), stderr=subprocess.PIPE, text=True)
    said = ""
    try:
        for said in process.stderr:
            if found := re.search(r"at https?://[\d.]+:(\d+)", said):
                yield int(found[1]), process
                break
        else:
            raise ServerFailed(f"{' '.join(command)}: ended, said last: {said.strip()}")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate()


def bytes_of(path, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    head = (f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Length: {len(data)}\r\n\r\n")
    return head.encode() + data


async def ask(port, body):
    """Streams one completion. Whoever is not answered, or not to the end, has finished == False."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    start = last = time.monotonic()
    writer.write(bytes_of("/v1/completions",
                           {**body, "stream": True, "stream_options": {"include_usage": True}}))
    asked = Asked(int((await reader.readline()).split()[1]))
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        if line.strip() == b"data: [DONE]":
            asked.finished = True
            break
        event = json.loads(line[6:])
        if "error" in event:  # [DONE] comes behind it, too
            break
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


async def exchange(port, sent, tls=None):
    """All that comes back for these bytes, until the server closes. `tls`: an ssl.SSLContext."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    with contextlib.suppress(ConnectionError):  # it need not read to the end
        writer.write(sent)
        await writer.drain()
    got = b""
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(65536):
            got += part
    writer.close()
    return got


async def json_of(port, path, body=None):
    """What a path answers, not streamed, with the status."""
    head, _, got = (await exchange(port, bytes_of(path, body))).partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), json.loads(got)


async def metrics(port, tls=None):
    """The values of /metrics by name and labels, as they are written."""
    _, _, got = (await exchange(port, bytes_of("/metrics"), tls)).partition(b"\r\n\r\n")
    lines = (line.rsplit(" ", 1) for line in got.decode().splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


async def all_of(port, clients):
    """`clients`: for each its requests, which it sends one after the other. Gives all that was seen, and the seconds."""
    async def one(bodies):
        seen = []
        for body in bodies:
            sent = time.monotonic() - start
            seen.append(dataclasses.replace(await ask(port, body), sent=sent))
        return seen
    start = time.monotonic()
    seen = await asyncio.gather(*(one(bodies) for bodies in clients))
    return [asked for some in seen for asked in some], time.monotonic() - start


async def slow_reader(port, tokens, stream=True):
    """An answer that is asked for and read a byte at a time, in a second each: never done, cancel it. Its system
    takes little more than it reads. Who is told to come again does."""
    body = {"prompt": "a", "max_tokens": tokens, "stream": stream, "logprobs": 5, "ignore_eos": True}
    while True:
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=narrow, limit=1024)
        try:
            writer.write(bytes_of("/v1/completions", body))
            busy = int((await reader.readline()).split()[1]) == 429
            while not busy and await reader.read(1):
                await asyncio.sleep(1)
        except (ConnectionError, IndexError):
            return  # it was let go
        finally:
            writer.close()
        if not busy:
            return
        await asyncio.sleep(1)


async def slow_writer(port):
    """A request that comes a byte at a time, in a second each: never done, cancel it."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for byte in bytes_of("/v1/completions", {"prompt": "a" * 100000}):
            writer.write(bytes([byte]))
            await asyncio.sleep(1)
    except ConnectionError:
        pass  # it was let go
    finally:
        writer.close()


async def dripper(port, announced, piece, every):
    """A talk with a picture whose body comes in pieces, one each `every` seconds; let go of, or at its end, it begins
    anew: never done, cancel it."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * announced}}
    sent = bytes_of("/v1/chat/completions", {"messages": [{"role": "user", "content": [picture]}], "max_tokens": 1})
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        told = asyncio.ensure_future(reader.read(1))  # an answer, or the end: nothing more need be sent
        try:
            for at in range(0, len(sent), piece):
                writer.write(sent[at:at + piece])
                if (await asyncio.wait([told], timeout=every))[0]:
                    break
        finally:
            told.cancel()
            await asyncio.gather(told, return_exceptions=True)
            writer.close()
        await asyncio.sleep(every)


async def announcer(port):
    """A body of a mebibyte that is announced and never comes: never done, cancel it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (1 << 20))
        await reader.read()
    except ConnectionError:
        pass  # it was let go
    finally:
        writer.close()


async def silent(port, count, tls=None):
    """Connections that have a stream open and are sent nothing: gives their writers, to be closed."""
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        writer.write(bytes_of("/v1/completions", {"prompt": "a", "max_tokens": 100000, "stream": True}))
        opened.append((reader, writer))
    return opened
