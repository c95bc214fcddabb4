"""The users of bench/cluster's part faults: one a node, who asks it for one answer after the other, compares each, and knows
what the death of its node takes with it."""
import asyncio
import contextlib
import threading
import time

from cluster_runs import ask

LONGEST = 180  # seconds until an answer counts as lost


class Users:
    """Who asks a node that is killed loses the connection, and asks for the same once more: by turns another node at once, and
    its own once that is back. All else that is not answered is lost."""

    def __init__(self, nodes, count, expected, tokens, sampled=()):
        self.nodes, self.expected, self.tokens = nodes, expected, tokens
        self.sampled = sampled  # prompts whose answers are drawn, from a seed; the others take the likeliest token
        self.asked = self.lost = self.wrong = self.broken = self.asked_again = 0
        self.came = []  # when each token did
        self.suffering = ""  # what is done to nodes just now
        self.deaths = [0] * count
        self.whys = {}  # by user's thread: why the last answer that did not come did not
        self.away = [False] * count
        self.changed = threading.Condition()
        self.done = threading.Event()
        self.threads = [threading.Thread(target=self.go_on, args=(i,)) for i in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        self.done.set()
        with self.changed:
            self.changed.notify_all()
        if kind is not None:
            return  # whatever has happened is to be seen
        assert all(thread.is_alive() for thread in self.threads), "a user has gone"
        for thread in self.threads:
            thread.join()

    @contextlib.contextmanager
    def without(self, i):
        """Node i is killed within, and is back at the end."""
        with self.changed:
            self.deaths[i] += 1
            self.away[i] = True
        yield
        with self.changed:
            self.away[i] = False
            self.changed.notify_all()

    def until_there(self, i):
        """How often node i has died so far; waits for it while it is away."""
        with self.changed:
            self.changed.wait_for(lambda: not self.away[i] or self.done.is_set())
            return self.deaths[i]

    def answer_of(self, i, prompt):
        """Nothing: whatever came instead."""
        async def one():
            body = {"prompt": prompt, "max_tokens": self.tokens, "ignore_eos": True,
                    **({"temperature": 0.8, "seed": 1} if prompt in self.sampled else {"temperature": 0})}
            return await asyncio.wait_for(ask(self.nodes[i].base, body, self.token_came), LONGEST)
        start, suffering = time.monotonic(), self.suffering
        try:
            text = asyncio.run(one())[2]
            why = "it ended before its end"
        except Exception as fault:
            text, why = None, repr(fault)
        if text is None:
            self.whys[threading.get_ident()] = f"node {i}, {time.monotonic() - start:.1f} s after it was asked for, the last fault before: '{suffering}': {why}"
        return text

    def token_came(self):
        self.came.append(time.monotonic())

    def next_to(self, i, turn):
        """A node that is there, in place of i."""
        others = [other for other in range(len(self.deaths)) if other != i and not self.away[other]]
        return others[turn % len(others)] if others else i

    def go_on(self, home):
        prompts = list(self.expected)
        turn = home
        while not self.done.is_set():
            turn += 1
            prompt = prompts[turn % len(prompts)]
            i, text, died = home, None, 0
            while text is None and not self.done.is_set():
                deaths = self.until_there(i)
                text = self.answer_of(i, prompt)
                if text is not None or self.deaths[i] == deaths:
                    break
                died += 1
                i = self.next_to(home, turn) if died % 2 == turn % 2 else home
            self.count(prompt, text, died)

    def count(self, prompt, text, died):
        with self.changed:
            self.broken += died > 0
            if text is None and died > 0 and self.done.is_set():
                self.broken -= 1  # nobody waits for it any more
                return
            self.asked += 1
            self.asked_again += died > 0 and text is not None
            self.lost += text is None
            if text is None:
                print(f"lost: {self.whys[threading.get_ident()]}", flush=True)
            self.wrong += text is not None and text != self.expected[prompt]

    def speed(self, first, last):
        """Tokens a second between two moments."""
        return sum(first <= at < last for at in list(self.came)) / (last - first)
