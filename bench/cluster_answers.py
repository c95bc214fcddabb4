"""The part of bench/cluster about peers that answer in fewer bits: what that saves on a slow link, and what it loses."""
import json
import math
import subprocess
import time

import cluster_net
from cluster_calls import EXPERTS, TOKENS
from cluster_runs import nodes_of, serve, wait_until_settled

FORMS = ("f32", "bf16", "q8")
SLOTS = 24          # of the node that asks: nearly all it lacks
DISK = "16MiB/5ms"  # peers are sooner
WINDOW = 800        # characters that are scored together
WINDOWS = 40


def windows(bench):
    """Text that nobody tunes anything on, in pieces."""
    text = subprocess.run(["zstd", "-dc", bench.options.data / "tasks" / "wikitext2_test.txt.zst"], check=True, capture_output=True,
                          text=True).stdout
    return [text[i * WINDOW:(i + 1) * WINDOW] for i in range(WINDOWS)]


def surprise(node, text):
    """-log p of each token of the text behind the first."""
    body = json.dumps({"prompt": text, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}).encode()
    logprobs = json.loads(node.post("/v1/completions", body))["choices"][0]["logprobs"]["token_logprobs"]
    return [-value for value in logprobs[1:-1]]  # the last one was generated


def paired(rounded, exact):
    """(mean, half of its 95 % interval) of how much more a token surprises, in nats."""
    more = [a - b for a, b in zip(rounded, exact)]
    middle = sum(more) / len(more)
    spread = math.sqrt(sum((value - middle) ** 2 for value in more) / (len(more) - 1))
    return middle, 1.96 * spread / math.sqrt(len(more))


def answers(bench):
    """One node that holds little beside one that holds all, by the form in which that one answers."""
    model = bench.model(stream=1, factor=1)
    texts = windows(bench)
    prompts = [prompt for task in bench.tasks([1, 1, 1]) for prompt in task.prompts[:4]]
    rows, exact = {}, None
    for form in FORMS:
        more = ["--peer-answers", form, *bench.common(DISK)]
        with cluster_net.machines(2, bench.options.mbps) as machines, nodes_of(machines, bench.troupe, model, [SLOTS, EXPERTS],
                                                                               more) as nodes:
            wait_until_settled(nodes)
            serve(nodes, [(0.0, 0, prompt) for prompt in prompts[:2]], TOKENS)
            before = nodes[0].metrics()
            start = time.monotonic()
            seen = serve(nodes, [(0.0, 0, prompt) for prompt in prompts], TOKENS)
            seconds = time.monotonic() - start
            assert all(one.text is not None for one in seen), "a request was lost"
            after = nodes[0].metrics()
            nats = [value for text in texts for value in surprise(nodes[0], text)]
            inexact = nodes[0].metrics()

        def grown(key):
            return after[key] - before[key]
        by_peers = grown('troupe_peer_experts_total{by="peer"}')
        size = grown('troupe_peer_bytes_total{way="received"}') / max(1, by_peers)
        counted = sum(inexact[f'troupe_inexact_total{{kind="peer_{kind}"}}'] for kind in FORMS[1:])
        exact = exact or nats
        more, interval = paired(nats, exact)
        rows[form] = {"tokens_per_s": len(seen) * TOKENS / seconds, "bytes_an_expert": size, "rounded": counted,
                      "perplexity": math.exp(sum(nats) / len(nats)), "more_nats": more, "interval": interval, "tokens": len(nats)}
        print(f"{form:>4}: {rows[form]['tokens_per_s']:6.1f} tokens/s, {size:6.0f} bytes received an expert, {counted:.0f} rows rounded; "
              f"perplexity {rows[form]['perplexity']:.4f}, {more:+.5f} ± {interval:.5f} nats a token over {len(nats)} tokens", flush=True)
    for form in FORMS[1:]:
        assert rows[form]["rounded"] > 0, f"{form}: nothing was rounded"
        bench.bar(f"perplexity with {form} over exact", rows[form]["perplexity"] / rows["f32"]["perplexity"], most=1.01)
    assert rows["f32"]["rounded"] == 0, "something was rounded unasked"
    bench.bar("bytes received an expert, q8 over f32", rows["q8"]["bytes_an_expert"] / rows["f32"]["bytes_an_expert"], most=0.5)
    return rows
