"""What bench/endcloud adds to the namespaces of cluster_net: links with a round trip, which this process makes as the kernel here has
no netem, and with a changing speed; and its models.
"""
import asyncio
import json
import pathlib
import random
import subprocess
import threading

class Delay:
    """A relay on this machine: what comes is handed on half a round trip later, in order."""

    def __init__(self, host, target, round_trip_ms):
        self.host, self.target, self.half = host, target, round_trip_ms / 2000
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, self.host, 0))
        self.port = self.server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()
        self.server.close()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.run_until_complete(asyncio.sleep(0))  # transports close by callbacks
        self.loop.close()

    @property
    def address(self):
        return f"http://{self.host}:{self.port}"

    async def serve(self, reader, writer):
        # Two round trips of TCP and of the first byte are one here: the relay has accepted already.
        await asyncio.sleep(self.half * 2)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            return writer.close()
        try:
            await asyncio.gather(self.carry(reader, far_writer), self.carry(far_reader, writer))
        except asyncio.CancelledError:
            pass  # the relay is closed, and asyncio complains of connections that end so
        finally:
            far_writer.close()
            writer.close()

    async def carry(self, reader, writer):
        queue = asyncio.Queue()

        async def read():
            try:
                while data := await reader.read(65536):
                    queue.put_nowait((self.loop.time() + self.half, data))
            except OSError:
                pass
            queue.put_nowait((self.loop.time() + self.half, None))
        reading = asyncio.ensure_future(read())
        try:
            while True:
                at, data = await queue.get()
                await asyncio.sleep(max(0.0, at - self.loop.time()))
                if data is None:
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        reading.cancel()
        writer.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class Fluctuation:
    """The speed of all links changes every half a second, by up to a part of it, while this is open."""

    def __init__(self, machines, mbps, part, seed):
        self.machines, self.mbps, self.part = machines, mbps, part
        self.draw = random.Random(seed)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        if self.part > 0:
            self.thread.start()
        return self

    def run(self):
        while not self.over.wait(0.5):
            self.machines.limit(round(self.mbps * (1 + self.draw.uniform(-self.part, self.part)), 1))

    def __exit__(self, *_):
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
        self.machines.limit(self.mbps)


def synthesized(troupe, folder, experts):
    """A model of random weights with so many experts a layer, of which a token uses one, and its container."""
    folder.mkdir(parents=True, exist_ok=True)
    model, shape = folder / f"endcloud-{experts}.gguf", folder / f"endcloud-{experts}.json"
    if not model.exists():
        shape.write_text(json.dumps({
            "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "hidden_size": 512, "intermediate_size": 512,
            "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 8, "num_experts": experts,
            "num_experts_per_tok": 1, "vocab_size": 2048, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0, "norm_topk_prob": False, "tie_word_embeddings": False, "hidden_act": "silu"}))
        subprocess.run([troupe, "synth", model, "--shape", shape, "--type", "Q8_0"], check=True, capture_output=True)
        subprocess.run([troupe, "pack", model], check=True, capture_output=True)
    return model


def widened(troupe, folder, model, factor):
    """The model with experts `factor` times as wide, which chooses the same experts and tokens."""
    wide = folder / f"{model.stem.removesuffix('-q8_0')}-wide{factor}.gguf" if factor > 1 else model
    if not wide.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([troupe, "synth", wide, "--widen", model, "--factor", str(factor)], check=True, capture_output=True)
    return wide


def learned(troupe, model, name, text, options):
    """A file that `calibrate` makes of this model and a text. What else it learns lies beside a link of the model, so that the other
    ways do not use it."""
    folder = model.parent / f"{model.stem}-learned"
    folder.mkdir(exist_ok=True)
    link, made = folder / model.name, folder / f"{model.stem}.{name}.json"
    if not made.exists():
        if not link.exists():
            link.symlink_to(model.resolve())
        subprocess.run([troupe, "calibrate", link, "--text", text, *options], check=True, capture_output=True)
    return made


def gate_of_groups(troupe, model, text):
    """The file of a gate of four groups."""
    return learned(troupe, model, "groups", text, ["--tokens", "4096", "--groups", "4"])


def limit_of_loss(troupe, model, text):
    """1 % of perplexity, with what codes of rows that cross the cut in the middle of six layers lose, beside the model."""
    prices = learned(troupe, model, "cuts", text, ["--tokens", "64", "--cut", "3", "--cut-tokens", "1024"])
    (model.parent / prices.name).write_bytes(prices.read_bytes())
    return 1
