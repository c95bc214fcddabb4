"""What bench/cluster runs: nodes on their machines, users that ask them, and what the users saw."""
import asyncio
import contextlib
import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

from processors import Confined, Processors

HTTP_PORT, PEER_PORT = 8080, 7070
KEY = "bench-cluster"  # orders from another machine need one
KEYS = {"TROUPE_API_KEY": KEY, "TROUPE_CLOUD_KEY": KEY}
LONGEST = 180  # seconds until a cluster must have settled


@dataclasses.dataclass
class Task:
    """What the users of one node ask."""
    name: str
    prompts: list
    per_second: float


class Loopback:
    """In place of machines of cluster_net: addresses of this machine's own, behind no limited link."""

    def __init__(self, count):
        self.count = count

    def address(self, i):
        return f"127.0.0.{i + 1}"

    def inside(self, i, command):
        return [str(word) for word in command]


class Node:
    """A `troupe serve` on machine i; `before` stands before its command, or `command` is all of it."""

    def __init__(self, machines, i, troupe, model, options, before=(), command=None):
        self.machines, self.i = machines, i
        self.base = f"http://{machines.address(i)}:{HTTP_PORT}"
        command = command or [*before, troupe, "serve", model, "--host", machines.address(i), "--port", HTTP_PORT, *options]
        self.process = subprocess.Popen(machines.inside(i, command), stderr=subprocess.PIPE, text=True, env=os.environ | KEYS)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            if re.search(r"at https?://", line):
                break
        else:
            raise SystemExit(f"cluster: node {i} did not start: {self.said[-1] if self.said else 'it said nothing'}")
        # A pipe that nobody reads is full before long, and then the node waits.
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip())

    def get(self, path):
        return self._ask(urllib.request.Request(self.base + path))

    def post(self, path, body=b""):
        return self._ask(urllib.request.Request(self.base + path, body, method="POST"))

    @staticmethod
    def _ask(request):
        request.add_header("Authorization", f"Bearer {KEY}")
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.read().decode()

    def cluster(self):
        return json.loads(self.get("/cluster"))

    def metrics(self):
        lines = (line.rsplit(" ", 1) for line in self.get("/metrics").splitlines() if line and line[0] != "#")
        return {name: float(value) for name, value in lines}

    def kill(self):
        """At once; it may have ended otherwise before."""
        self.process.kill()
        self.reap()

    def reap(self):
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def end(self):
        if self.process.stderr.closed:
            return  # it has ended before
        runs = self.process.poll() is None
        if runs:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
        self.reap()
        assert not runs or self.process.returncode == 0, f"node {self.i} ended with {self.process.returncode}: {self.said[-10:]}"


class Etcd:
    """On machine i, with what it knows in a folder that outlives its process."""

    def __init__(self, machines, i):
        self.folder = tempfile.TemporaryDirectory()
        self.address = f"{machines.address(i)}:2379"
        url, peer = f"http://{self.address}", "http://127.0.0.1:2380"
        self.command = machines.inside(i, ["etcd", "--name", "e", "--data-dir", self.folder.name, "--listen-client-urls", url,
                                           "--advertise-client-urls", url, "--listen-peer-urls", peer,
                                           "--initial-advertise-peer-urls", peer, "--initial-cluster", f"e={peer}"])
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.kill()
        self.folder.cleanup()


def list_of_peers(machines):
    return ",".join(f"{machines.address(i)}:{PEER_PORT}" for i in range(machines.count))


@contextlib.contextmanager
def nodes_of(machines, troupe, model, slots, common, together=True, processors=None):
    """One node on each machine, with `slots[i]` experts in its memory, as a cluster if `together`. Each may use `processors` of the
    machine's, or all if that is absent."""
    nodes, groups = [], []
    try:
        for i in range(machines.count):
            on = machines
            if processors is not None:
                groups.append(Processors(f"node{i}", processors))
                on = Confined(machines, groups[-1])
            peers = ["--peers", list_of_peers(machines), "--peer-address", f"{machines.address(i)}:{PEER_PORT}", "--node",
                     f"n{i}", "--peer-plain-text"] if together else []
            nodes.append(Node(on, i, troupe, model, ["--slots", slots[i], *peers, *common]))
        yield nodes
    finally:
        for node in nodes:
            node.end()
        for group in groups:
            group.close()


def wait_until(what, why):
    end = time.monotonic() + LONGEST
    while not what():
        if time.monotonic() > end:
            raise SystemExit(f"cluster: {why} took longer than {LONGEST} s")
        time.sleep(0.1)


def wait_until_settled(nodes, epoch=1):
    def settled(node):
        seen = node.cluster()
        return (seen["plan"] is not None and seen["plan"]["epoch"] >= epoch and seen["plan"]["settled"]
                and sum(peer["here"] for peer in seen["peers"]) == len(nodes) - 1)
    wait_until(lambda: all(settled(node) for node in nodes), "the plan")


@dataclasses.dataclass
class Seen:
    """One answer: of which task, when it was asked (seconds from the start), how long it took, and its text."""
    task: int
    at: float
    seconds: float = 0.0
    first: float = 0.0
    text: str = None  # absent: it was lost


async def ask(base, body, token_came=lambda: None, choice_came=lambda choice: None):
    """A streamed completion: seconds to the first token and to the end, and the text; none if it was lost or refused."""
    host, port = base.removeprefix("http://").split(":")
    start = time.monotonic()
    reader, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps({**body, "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nAuthorization: Bearer {KEY}\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    first, text, finished = 0.0, "", False
    try:
        while line := await reader.readline():
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                finished = True
                break
            event = json.loads(line[6:])
            if "error" in event:
                raise ConnectionError(event["error"]["message"])
            for choice in event.get("choices", []):
                if choice["text"]:
                    first = first or time.monotonic() - start
                    text += choice["text"]
                    token_came()
                    choice_came(choice)
    finally:
        writer.close()
    return first, time.monotonic() - start, text if finished else None


def planned(tasks, seconds, seed):
    """(when, task, prompt) of all requests: Poisson arrivals, the same for each seed."""
    requests = []
    for i, task in enumerate(tasks):
        draw = random.Random(f"{seed} {task.name}")
        at = draw.expovariate(task.per_second)
        while at < seconds:
            requests.append((at, i, draw.choice(task.prompts)))
            at += draw.expovariate(task.per_second)
    return sorted(requests)


async def _serve(nodes, requests, tokens, choose):
    seen, busy = [], [0] * len(nodes)

    async def one(at, task, prompt, start):
        await asyncio.sleep(max(0.0, start + at - time.monotonic()))
        entry = Seen(task, at)
        seen.append(entry)
        i = choose(task, busy)
        busy[i] += 1
        try:
            entry.first, _, entry.text = await ask(
                nodes[i].base, {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True})
            entry.seconds = time.monotonic() - start - at
        except (OSError, asyncio.IncompleteReadError, json.JSONDecodeError):
            pass  # lost
        finally:
            busy[i] -= 1
    start = time.monotonic()
    await asyncio.gather(*(one(at, task, prompt, start) for at, task, prompt in requests))
    return seen


def serve(nodes, requests, tokens, choose=lambda task, busy: task):
    """Asks node `choose(task, requests under way by node)` for each; its own by default."""
    return asyncio.run(_serve(nodes, requests, tokens, choose))


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")
