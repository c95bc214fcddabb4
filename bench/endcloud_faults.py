"""The part of bench/endcloud in which the cloud is killed and stopped, and links are cut and slowed down, while users ask three
ends: nothing may be lost or wrong."""
import contextlib
import dataclasses
import random
import signal
import time

import cluster_net
from cluster_runs import HTTP_PORT, Loopback, Node, wait_until
from cluster_users import Users
from endcloud_runs import CLOUD, CONTEXT, text_of
from processors import Confined, Processors

TOKENS, PROMPTS = 120, 12
CLOUD_PROCESSORS = 0.2  # a third of an end's: else no guess comes before the cloud's own token
# Of each end: where its answers are chosen. So answers move, drafts are checked and prompts are cut when things go wrong.
PLACES = ["auto", "drafts", "layers:3"]
# "cut": of all that the cloud gets or sends. "deaf" and "mute": an end hears nothing of the cloud, or the cloud nothing of it.
KINDS = ("kill", "hang", "cut in", "cut out", "deaf", "mute", "slow")
SLOWED = 50  # times
LONG = (6.5, 12.0)  # seconds: until connections are given up


class Hurt:
    """A cloud, its ends and their users, and what is done to them."""

    def __init__(self, bench, machines, setting, expected):
        self.bench, self.machines, self.setting = bench, machines, setting
        self.common = ["--ctx", CONTEXT, "--threads", 1, "--queue", 500]
        self.ends, self.groups = [], []
        self.users = Users(self.ends, len(PLACES), expected, TOKENS, sampled_of(list(expected)))
        self.kinds = dict.fromkeys(KINDS, 0)

    def confined(self, name, processors):
        self.groups.append(Processors(name, processors))
        return Confined(self.machines, self.groups[-1])

    def begin(self):
        self.cloud_machine = self.confined("cloud", self.setting.cloud_processors)
        self.start_cloud()
        for i, place in enumerate(PLACES):
            machine = self.confined(f"end{i}", self.setting.end_processors)
            self.ends.append(Node(machine, 1 + i, self.setting.troupe, self.setting.model,
                                  [*self.common, "--slots", self.setting.end_slots, "--place", place, "--cloud",
                                   f"http://{self.machines.address(CLOUD)}:{HTTP_PORT}"]))
        self.wait_for_cloud()

    def start_cloud(self):
        self.cloud = Node(self.cloud_machine, CLOUD, self.setting.troupe, self.setting.model,
                          [*self.common, "--for-ends", "--parallel", 8])

    def sums(self, name):
        found = [metrics[name] for end in self.ends if name in (metrics := end.metrics())]  # of cuts only one speaks
        assert found, f"no end counts {name}"
        return sum(found)

    def wait_for_cloud(self):
        try:
            wait_until(lambda: self.sums("troupe_split_cloud") == len(self.ends), "an end's way to its cloud")
        except SystemExit as late:
            raise SystemExit("\n".join([str(late), *(f"end {i}: {line}" for i, end in enumerate(self.ends) for line in end.said[-8:]),
                                        *(f"cloud: {line}" for line in self.cloud.said[-4:])]))

    @contextlib.contextmanager
    def hurt(self, draw, kind):
        what, _, way = kind.partition(" ")
        if kind == "kill":
            self.cloud.kill()
            yield
            self.start_cloud()
        elif kind == "hang":
            self.cloud.process.send_signal(signal.SIGSTOP)
            yield
            self.cloud.process.send_signal(signal.SIGCONT)
        elif kind == "slow":
            self.machines.limit(self.bench.options.mbps / SLOWED, only=CLOUD)
            yield
            self.machines.limit(self.bench.options.mbps, only=CLOUD)
        elif what == "cut":
            self.machines.cut(CLOUD, way)
            yield
            self.machines.cut(CLOUD, "none")
            self.machines.limit(self.bench.options.mbps, only=CLOUD)
        else:
            end = 1 + draw.randrange(len(self.ends))
            pair = (CLOUD, end) if kind == "deaf" else (end, CLOUD)
            self.machines.blackhole(*pair, True)
            yield
            self.machines.blackhole(*pair, False)

    def once(self, draw, kind, long):
        self.kinds[kind] += 1
        time.sleep(draw.uniform(0, 2))
        with self.hurt(draw, kind):
            time.sleep(draw.uniform(*LONG) if long else draw.uniform(0, 1.5))

    def end(self):
        for node in [*reversed(self.ends), self.cloud]:
            node.end()
        for group in self.groups:
            group.close()


def sampled_of(prompts):
    """Every other one's answer is drawn."""
    return prompts[1::2]


def answers_alone(setting):
    """What the model alone answers, by prompt."""
    draw = random.Random("faults")
    prompts = [text_of(draw) for _ in range(PROMPTS)]
    alone = Node(Loopback(1), 0, setting.troupe, setting.model, ["--ctx", CONTEXT, "--threads", 1])
    try:
        ask_alone = Users([alone], 1, {}, TOKENS, sampled_of(prompts))
        expected = {prompt: ask_alone.answer_of(0, prompt) for prompt in prompts}
    finally:
        alone.end()
    assert None not in expected.values(), "an answer of the model alone was lost"
    return expected


COUNTS = {"tokens chosen at ends": 'troupe_split_tokens_total{place="end"}', "in the cloud": 'troupe_split_tokens_total{place="cloud"}',
          "silences": "troupe_split_cloud_silences_total", "stalls": "troupe_split_cloud_stalls_total", "answers taken over by ends": 'troupe_split_taken_over_total{place="end"}',
          "by the cloud": 'troupe_split_taken_over_total{place="cloud"}',
          "guesses checked": 'troupe_split_draft_tokens_total{state="checked"}',
          "prompts cut": 'troupe_split_cut_prompts_total{state="answered"}',
          "cuts that failed": 'troupe_split_cut_prompts_total{state="failed"}'}


def faults(bench):
    """Each kind of fault in turn at first, then by chance; of each five one lasts until connections are given up."""
    draw = random.Random(bench.options.seed)
    with cluster_net.machines(1 + len(PLACES), bench.options.mbps) as machines, contextlib.ExitStack() as closing:
        setting = dataclasses.replace(bench.trained(machines, round_trip_ms=0), cloud_processors=CLOUD_PROCESSORS)
        hurt = Hurt(bench, machines, setting, answers_alone(setting))
        closing.callback(hurt.end)
        hurt.begin()
        with hurt.users as users:
            for n in range(bench.options.faults):
                hurt.once(draw, KINDS[n] if n < len(KINDS) else draw.choice(KINDS), draw.random() < 0.2)
            hurt.wait_for_cloud()
            before = hurt.sums(COUNTS["in the cloud"])
            wait_until(lambda: hurt.sums(COUNTS["in the cloud"]) > before + TOKENS, "the first answers of the cloud that is back")
        counts = {what: hurt.sums(name) for what, name in COUNTS.items()}
        print(f"faults: {hurt.kinds}: {users.asked} answers under them, {users.lost} lost, {users.wrong} wrong; "
              + ", ".join(f"{value:.0f} {what}" for what, value in counts.items()), flush=True)
        bench.bar("faults: lost or wrong answers", users.lost + users.wrong, most=0)
    return {"faults": hurt.kinds, "asked": users.asked, "lost": users.lost, "wrong": users.wrong, **counts}
