"""The parts of bench/serve: what is started, asked and counted. Tables and bars are serve_figures.py's."""
import asyncio
import csv
import functools
import json
import os
import random
import ssl
import statistics
import subprocess
import tempfile
import time

import llamacpp
import measured_run
import offload_runs
import serve_clients
import serve_day
import serve_malformed
from offload_runs import memory_cgroup

ROOT = llamacpp.ROOT
SMALL = ("small-q4_0.gguf", ["--shape", "small", "--type", "Q4_0"])
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
CLIENTS, SEQUENCES, CONTEXT = 16, 16, 1024
PREFIX, IDLE, SLOW, SHORT = 2000, 1000, 100, 64
WHOLE = 512  # tokens of an answer that is not streamed: 100 of them are more than clients may have to read
# Characters of a picture, and the pieces in which it comes: half as fast as is spared where others need the room, and
# thirty times as fast as has to be.
DRIPPED, DRIP, DRIP_EVERY = 900_000, 8192, 0.25
LARGE = 900_000  # characters
# Lengths of recorded conversations, and the context of those that are drawn.
CONVERSATIONS, TALK_CONTEXT = ROOT / "tests/data/serving/azure_conv.csv.zst", 4096
# Seconds after which llama.cpp is stopped: in memory it comes to its end, behind a disk it would take hours.
PEER_ENDS, PEER_CUT, PEER_CUT_QUICK = 3600, 240, 60
_SPARE = 1 << 20  # of what a process finds itself to take, from one to the next


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def random_body(draw, prompt, answer):
    # Tokens and not a text: their number is then known, and no two prompts begin alike.
    return {"prompt": [draw.randrange(300, 20000) for _ in range(prompt)], "max_tokens": answer,
            "ignore_eos": True, "temperature": 0.8, "seed": draw.randrange(1 << 30)}


def recorded_lengths():
    """(prompt, answer) of the conversations that fit into the context."""
    text = subprocess.run(["zstd", "-dc", CONVERSATIONS], capture_output=True, text=True, check=True).stdout
    rows = ((int(row["ContextTokens"]), int(row["GeneratedTokens"])) for row in csv.DictReader(text.splitlines()))
    return [(prompt, answer) for prompt, answer in rows if answer > 0 and prompt + answer <= TALK_CONTEXT]


def own_certificate(folder):
    """A key and a certificate of it, as files."""
    key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    return key, certificate


class Runs:
    def __init__(self, options):
        self._options = options
        self._records = measured_run.Troupe(options.troupe, options.folder, "serve")
        self._draw = random.Random(options.seed)
        self._small = None

    def _model(self):
        if self._small is None:
            self._small = offload_runs.make_model(self._options.troupe, self._options.folder / SMALL[0], SMALL[1])
        return self._small

    def _serving(self, *more, **how):
        return serve_clients.serving(self._options.troupe, self._model()[0], *more, **how)

    def load(self):
        """Clients that ask one request after the other, beside what the engine and llama.cpp reach without a
        server."""
        each = 2 if self._options.quick else 8
        lengths = recorded_lengths()
        clients = [[random_body(self._draw, *self._draw.choice(lengths)) for _ in range(each)] for _ in range(CLIENTS)]
        bodies = [body for some in clients for body in some]
        middle = round(statistics.mean(len(body["prompt"]) + body["max_tokens"] / 2 for body in bodies))
        model, container = self._model()
        inspected = self._records.record("inspect", model)
        experts = sum(layer["expert_bytes"] > 0 for layer in inspected["layer_bytes"]) * inspected["experts"]
        half = ["--slots", round(0.5 * experts), "--experts", container]
        why_not = offload_runs.why_not_permitted()
        if why_not:
            self._records.say(f"without memory cgroups: {why_not}")
        self._records.say("a long prompt, for the speed of the processors")
        prompt = self._records.record("bench", model, "--prefill", 512, "--decode", 1, "--reps", 3,
                                      "--ctx", 1024)["prefill"][0]["median"]
        figures = {}
        for name, slots in (("in memory", []), ("50 %", half)):
            options = ["--parallel", SEQUENCES, "--ctx", TALK_CONTEXT, *slots]
            self._records.say(f"{CLIENTS} clients, {name}")
            budget = self._planned(options) + _SPARE if slots and not why_not else None
            row = self._limited_load(options, budget, clients)
            row["budget_bytes"] = budget
            # What the engine does with as many sequences, each in the middle of its answer.
            sequences = max(1, round(row["sequences_a_pass"]))
            self._records.say(f"{sequences} sequences without a server, {name}")
            together = self._records.record(
                "bench", model, "--prefill", middle, "--decode", 32, "--reps", 3,
                "--ctx", TALK_CONTEXT, "--together", sequences, *slots)["together"][0]
            # Prompts take the processors' time, answers their batch's.
            for figure, rate in (("limit", together["limit_tokens_per_s"]), ("limit_with_kv", together["limit_with_kv_tokens_per_s"]),
                                 ("engine", together["tokens_per_s"])):
                row[f"{figure}_tokens_per_s"] = row["generated"] / (row["generated"] / rate + row["read"] / prompt)
            if self._options.peer and not (slots and why_not):
                self._records.say(f"llama.cpp, {name}")
                row["peer"] = self._peer(clients, budget)
                row["over_peer"] = self._over_peer(row, row["peer"])
            figures[name] = row
        return figures

    def _planned(self, options):
        """Bytes that a server with these options plans to use."""
        with self._serving(*options) as (port, _):
            values = asyncio.run(serve_clients.metrics(port))
        return int(sum(value for name, value in values.items() if name.startswith("troupe_memory_plan_bytes")))

    def _limited_load(self, options, budget, clients):
        if budget is None:
            return self._one_load(options, clients)
        with memory_cgroup.MemoryCgroup(budget) as group:
            row = self._one_load([*options, "--memory", budget], clients, wrap=group.command)
            row["peak_bytes"], row["kills"] = group.peak_bytes(), group.kills()
        return row

    def _one_load(self, options, clients, **how):
        with self._serving(*options, **how) as (port, _):
            asyncio.run(serve_clients.ask(port, random_body(self._draw, 16, 8)))
            seen, seconds = asyncio.run(serve_clients.all_of(port, clients))
            values = asyncio.run(serve_clients.metrics(port))
        gaps = [gap for asked in seen for gap in asked.gaps]
        generated = sum(asked.usage.get("completion_tokens", 0) for asked in seen)
        cut = min(self._peer_cut(), seconds)
        return {"in_the_first": {"seconds": cut, "read": sum(asked.read_by(cut) for asked in seen),
                                 "generated": sum(asked.generated_by(cut) for asked in seen)},
                "generated": generated, "read": sum(asked.usage.get("prompt_tokens", 0) for asked in seen),
                "seconds": seconds, "tokens_per_s": generated / seconds,
                "in_passes": values["troupe_pass_seconds_total"] / seconds,
                "sequences_a_pass": generated / values["troupe_passes_total"],
                "gap_median_ms": 1e3 * percentile(gaps, 0.5), "gap_p99_ms": 1e3 * percentile(gaps, 0.99),
                "first_median_ms": 1e3 * percentile([asked.first for asked in seen], 0.5),
                "first_p99_ms": 1e3 * percentile([asked.first for asked in seen], 0.99),
                "lost": sum(not asked.finished or asked.usage.get("completion_tokens") != body["max_tokens"]
                            for asked, body in zip(seen, (body for some in clients for body in some)))}

    def _peer_cut(self):
        return PEER_CUT_QUICK if self._options.quick else PEER_CUT

    @staticmethod
    def _over_peer(row, peer):
        """How many times llama.cpp's tokens/s: both to their ends, or, where it was cut, both until then."""
        own = row if peer["finished"] else row["in_the_first"]
        return own["generated"] / own["seconds"] / peer["tokens_per_s"]

    def _peer(self, clients, budget):
        """llama.cpp's tokens/s in its best configuration: in memory to the end, behind a disk for as long as is
        worth waiting."""
        llamacpp.set_up()
        asked = self._options.folder / "serve-requests.json"
        asked.write_text(json.dumps({"clients": clients}), encoding="utf-8")
        seconds = PEER_ENDS if budget is None else self._peer_cut()
        best = None
        for name, environment in self._peers(budget is not None):
            command = list(map(str, ["node", llamacpp.BENCH / "serve_peer.mjs", self._model()[0], asked,
                                     os.cpu_count(), TALK_CONTEXT, seconds]))
            if budget is None:
                done = measured_run.run(command, environment)
            else:
                program = measured_run.run(["node", str(llamacpp.BENCH / "peer_offload.mjs"), "program",
                                            str(os.cpu_count())], environment)
                limit = budget + json.loads(program.stdout)["peak_rss_bytes"]
                done = offload_runs.run_limited(command, limit, environment)
            record = json.loads(done.stdout)
            row = {"name": name, "generated": record["generated"], "read": record["read"],
                   "seconds": record["seconds"], "finished": record["finished"],
                   "tokens_per_s": record["generated"] / record["seconds"],
                   "gap_median_ms": 1e3 * percentile(record["gaps"], 0.5),
                   "gap_p99_ms": 1e3 * percentile(record["gaps"], 0.99), "cpu_library": record["cpu_library"]}
            if best is None or row["tokens_per_s"] > best["tokens_per_s"]:
                best = row
        return best

    def _peers(self, limited):
        """Ways to run llama.cpp: with a limit its weights must be mapped as they are, or they need memory twice."""
        if limited:
            return [(peer.name, peer.environment()) for peer in offload_runs.peers(self._options.folder)]
        pinning = llamacpp.build_pinning_shim(self._options.folder)
        ways = [("threads as shipped", None)]
        return ways + [("threads pinned", {"LD_PRELOAD": str(pinning)})] if pinning else ways

    def prefix(self):
        """The same long beginning three times: the first reads it, the others find it."""
        beginning = random_body(self._draw, PREFIX, 8)
        firsts = []
        with self._serving("--parallel", 2, "--ctx", 4096) as (port, _):
            asyncio.run(serve_clients.ask(port, random_body(self._draw, 16, 8)))
            for _ in range(3):
                body = {**beginning, "prompt": beginning["prompt"] + [self._draw.randrange(300, 20000)] * 8}
                asked = asyncio.run(serve_clients.ask(port, body))
                firsts.append((asked.first, asked.usage["prompt_tokens_details"]["cached_tokens"]))
        return {"first_ms": 1e3 * firsts[0][0], "again_ms": [1e3 * first for first, _ in firsts[1:]],
                "cached_tokens": [cached for _, cached in firsts],
                "ratio": max(first for first, _ in firsts[1:]) / firsts[0][0]}

    def idle(self):
        """Streams that wait, plain and by TLS: what each adds to the server's memory."""
        async def hold(port, process, tls):
            # One answer as long as the context: what follows writes to the same pages of keys and values.
            whole = {"prompt": "a", "max_tokens": CONTEXT - 16, "ignore_eos": True}
            await serve_clients.exchange(port, serve_clients.bytes_of("/v1/completions", whole), tls)
            first = await serve_clients.silent(port, 8, tls)  # one runs, the others wait, as all that follow
            await asyncio.sleep(1)
            before = serve_day.resident(process)
            more = await serve_clients.silent(port, IDLE, tls)
            await asyncio.sleep(2)
            grown = serve_day.resident(process) - before
            waiting = (await serve_clients.metrics(port, tls))['troupe_requests_now{state="queued"}']
            for _, writer in first + more:
                writer.close()
            return {"connections": IDLE, "waiting": waiting, "bytes_each": grown / IDLE}

        options = ["--parallel", 1, "--queue", 2 * IDLE, "--connections", 2 * IDLE, "--ctx", CONTEXT,
                   "--no-prefix-cache"]
        figures = {}
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = own_certificate(folder)
            secure = ["--tls-certificate", certificate, "--tls-key", key]
            for kind, more, tls in (("plain", [], None),
                                    ("TLS", secure, ssl.create_default_context(cafile=certificate))):
                if tls:
                    tls.check_hostname = False  # it is asked by its address
                with self._serving(*options, *more) as (port, process):
                    figures[kind] = asyncio.run(hold(port, process, tls))
        return figures

    def slow(self):
        """Clients that ask one request after the other, without and beside those that read or write a byte a
        second, announce a body that does not come, or send a large one a little at a time. Readers are answered by the
        tiny model, which fills their buffers soon."""
        async def measure(port, body, beside, ends):
            tasks = [asyncio.ensure_future(one(port)) for one in beside]
            await asyncio.sleep(1)
            while ends:  # until the model has done with their answers, which the server then holds
                await asyncio.sleep(0.2)
                now = await serve_clients.metrics(port)
                ends = any(now[f'troupe_requests_now{{state="{state}"}}'] for state in ("queued", "reading", "decoding"))
            start, answered = time.monotonic(), []
            while time.monotonic() - start < 10:
                answered.append(await serve_clients.ask(port, body))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return answered, (await serve_clients.metrics(port))['troupe_http_ended_total{why="slow_body"}']

        body = {"prompt": "The kernel", "max_tokens": 32, "seed": 7, "ignore_eos": True}
        writers = [serve_clients.slow_writer] * SLOW
        announcers = [serve_clients.announcer] * SLOW
        drippers = [functools.partial(serve_clients.dripper, announced=DRIPPED, piece=DRIP, every=DRIP_EVERY)] * SLOW
        readers = [functools.partial(serve_clients.slow_reader, tokens=SHORT)] * SLOW
        whole = [functools.partial(serve_clients.slow_reader, tokens=WHOLE, stream=False)] * SLOW
        endless = [functools.partial(serve_clients.slow_reader, tokens=100000)] * 3
        figures, let_go = {}, 0
        with serve_clients.serving(self._options.troupe, TINY, "--parallel", 4, "--queue", 2 * SLOW,
                                   "--ctx", CONTEXT) as (port, _):
            for name, beside, ends in (("alone", [], False), ("beside slow writers", writers, False),
                                       ("beside announced bodies", announcers, False),
                                       ("beside dripping bodies", drippers, False),
                                       ("beside slow readers", readers, True),
                                       ("beside those of whole answers", whole, True),
                                       ("beside endless ones", endless, False)):
                before = let_go
                answered, let_go = asyncio.run(measure(port, body, beside, ends))
                figures[name] = {"answers": len(answered), "lost": sum(not asked.finished for asked in answered),
                                 "let_go": let_go - before,
                                 "median_ms": 1e3 * percentile([asked.end for asked in answered], 0.5),
                                 "longest_ms": 1e3 * max(asked.end for asked in answered)}
        return figures

    def large(self):
        """Small requests, alone and beside large ones, whose prompts take long to become tokens."""
        prose = (ROOT / "tests/data/prose/mixed.txt").read_text(encoding="utf-8")
        text = (prose * (LARGE // len(prose) + 1))[:LARGE]
        large = "/v1/messages/count_tokens", {"messages": [{"role": "user", "content": text}]}
        small = "/tokenize", {"content": "The kernel"}

        async def milliseconds(port, request):
            start = time.monotonic()
            status, _ = await serve_clients.json_of(port, *request)
            if status != 200:
                raise serve_clients.ServerFailed(f"{request[0]}: status {status}")
            return 1e3 * (time.monotonic() - start)

        async def measure(port):
            alone = [await milliseconds(port, small) for _ in range(100)]
            beside, each = [], []
            for _ in range(5):
                reads = asyncio.ensure_future(milliseconds(port, large))
                await asyncio.sleep(0.05)  # so that it is there
                while not reads.done():
                    beside.append(await milliseconds(port, small))
                each.append(await reads)
            return {"alone_ms": percentile(alone, 0.5), "beside_ms": percentile(beside, 0.5),
                    "longest_ms": max(beside), "asked": len(beside), "large_ms": percentile(each, 0.5)}

        with serve_clients.serving(self._options.troupe, TINY, "--ctx", CONTEXT) as (port, _):
            return asyncio.run(measure(port))

    def malformed(self):
        """Requests that are wrong, from a few clients at once."""
        wrong, held = [], []

        async def client(port, process, mine):
            for i, request in enumerate(mine):
                fault = request.fault_of(await serve_clients.exchange(port, request.raw))
                if fault:
                    wrong.append(fault)
                if i % 50 == 0:
                    held.append(serve_day.resident(process))

        async def all_of(port, process):
            sent = list(serve_malformed.requests(self._draw, self._options.requests))
            await asyncio.gather(*(client(port, process, sent[i::8]) for i in range(8)))
            return await serve_clients.ask(port, {"prompt": "a", "max_tokens": 4, "ignore_eos": True})

        with serve_clients.serving(self._options.troupe, TINY, "--ctx", CONTEXT, "--pooling", "mean") as (port, process):
            after = asyncio.run(all_of(port, process))
        # By the middle every kind of request has come from every client at once, and what is kept for them is allocated.
        return {"requests": self._options.requests, "wrong": wrong[:20], "wrong_count": len(wrong), "answers_after": after.finished,
                "held_early_bytes": max(held[4 * len(held) // 10:len(held) // 2]), "held_late_bytes": max(held[-len(held) // 10:])}

    def day(self):
        """Everybody at once for as long as was asked, under a memory cgroup of the budget."""
        seconds = 60 * self._options.minutes
        tiny = self._options.folder / TINY.name  # its container lies beside it
        if not tiny.exists():
            tiny.symlink_to(TINY)
        _, container = offload_runs.make_model(self._options.troupe, tiny, [])
        options = ["--parallel", 8, "--ctx", 2048, "--queue", 64, "--slots", 48, "--experts", container,
                   "--pooling", "mean"]  # so that malformed requests for embeddings are read, too
        with serve_clients.serving(self._options.troupe, TINY, *options) as (port, _):
            values = asyncio.run(serve_clients.metrics(port))
        budget = int(sum(v for name, v in values.items() if name.startswith("troupe_memory_plan_bytes"))) + _SPARE
        self._records.say(f"{self._options.minutes} minutes in {budget >> 20} MiB")
        with memory_cgroup.MemoryCgroup(budget) as group:
            with serve_clients.serving(self._options.troupe, TINY, *options, "--memory", budget,
                                       wrap=group.command) as (port, process):
                day = serve_day.Day(port, process, CLIENTS, self._options.seed)
                asyncio.run(day.run(seconds))
                values = asyncio.run(serve_clients.metrics(port))
            ended, peak, kills = process.returncode, group.peak_bytes(), group.kills()
        if day.wrong:
            raise measured_run.RunFailed("wrong answers:\n" + "\n".join(day.wrong))
        early = [held for at, held in day.held if 300 <= at < 360]
        if not early:
            raise measured_run.RunFailed("a day of less than six minutes says nothing of memory")
        return {"minutes": self._options.minutes, "requests": day.asked, "wrong": day.wrong, "exit_code": ended,
                "kills": kills, "budget_bytes": budget, "peak_bytes": peak, "early_bytes": max(early),
                "late_bytes": max(held for _, held in day.held[-60:]),
                "bytes_by_minute": list({at // 60: held for at, held in day.held}.values()),  # the last of each
                "tokens": values['troupe_tokens_total{kind="generated"}']}
