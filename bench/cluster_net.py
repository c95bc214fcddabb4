"""Machines for bench/cluster: network namespaces on one bridge, each behind a link of limited speed both ways (tc tbf).
Needs root. What runs on them is cluster's part.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

BRIDGE = "troupe-bench"
NET = "10.77.0"
HOST = f"{NET}.254"  # this machine, beyond the limited links
NAMES = pathlib.Path("/etc/netns")  # what `ip netns exec` puts over /etc, by namespace


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"cluster: {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class Machines:
    """`count` namespaces; `address(i)` reaches one from all others and from this machine."""

    def __init__(self, count, mbps):
        if os.geteuid() != 0:
            raise SystemExit("cluster: network namespaces need root")
        self.count = count
        self.blackholes = set()  # (from, to)
        remove()
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "address", "add", f"{HOST}/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for i in range(count):
            space, inside, outside = self.space(i), f"tb-in{i}", f"tb-out{i}"
            run("ip", "netns", "add", space)
            run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", space)
            run("ip", "link", "set", outside, "master", BRIDGE, "up")
            for words in (["address", "add", f"{self.address(i)}/24", "dev", inside], ["link", "set", inside, "up"],
                          ["link", "set", "lo", "up"]):
                run("ip", "-n", space, *words)
        self.limit(mbps)

    def space(self, i):
        return f"troupe-bench-{i}"

    def address(self, i):
        return f"{NET}.{i + 1}"

    def name(self, names):
        """As /etc/hosts of each machine would have them: its own name there means its loopback, as Debian's installer writes it."""
        for i in range(self.count):
            folder = NAMES / self.space(i)
            folder.mkdir(parents=True, exist_ok=True)
            lines = ["127.0.0.1 localhost"] + [f"{'127.0.1.1' if other == i else self.address(other)} {name}"
                                               for other, name in enumerate(names)]
            (folder / "hosts").write_text("".join(f"{line}\n" for line in lines))

    def inside(self, i, command):
        """The command as it runs on machine i."""
        return ["ip", "netns", "exec", self.space(i), *map(str, command)]

    def limit(self, mbps, only=None):
        """The speed of every machine's link, or of one machine's, both ways."""
        for i in range(self.count) if only is None else [only]:
            for space, device in ((["-n", self.space(i)], f"tb-in{i}"), ([], f"tb-out{i}")):
                run("tc", *space, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{mbps}mbit", "burst", "16kb",
                    "latency", "200ms")

    def cut(self, i, way):
        """What machine i sends ("out") or gets ("in") is lost on its way, or nothing ("none"). If its own device
        dropped what it sends, its system would know, and give up the connections that suffer after 5 to 8 s."""
        outside = f"tb-out{i}"
        lost = "on" if way == "out" else "off"  # a locked port takes only from senders that the bridge knows to be there
        run("ip", "link", "set", "dev", outside, "type", "bridge_slave", "learning", "off" if way == "out" else "on", "locked", lost)
        if way == "out":
            subprocess.run(["bridge", "fdb", "del", self.hardware_address(i), "dev", outside, "master"], capture_output=True)
        subprocess.run(["tc", "qdisc", "del", "dev", outside, "root"], capture_output=True)
        if way == "in":
            run("tc", "qdisc", "add", "dev", outside, "root", "pfifo", "limit", "0")

    def hardware_address(self, i):
        return json.loads(run("ip", "-n", self.space(i), "-j", "link", "show", f"tb-in{i}"))[0]["address"]

    def blackhole(self, i, other, on):
        """What machine i sends to machine `other` is lost, or is not any more; all else reaches it as before."""
        if on != ((i, other) in self.blackholes):
            run("ip", "-n", self.space(i), "route", "add" if on else "delete", "blackhole", self.address(other))
        (self.blackholes.add if on else self.blackholes.discard)((i, other))

    def heal(self, mbps):
        """Nothing is cut any more, and every link has that speed."""
        for i, other in list(self.blackholes):
            self.blackhole(i, other, False)
        for i in range(self.count):
            self.cut(i, "none")
        self.limit(mbps)


def remove():
    """What an earlier run has left."""
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    for line in spaces.splitlines():
        if (space := line.split()[0]).startswith("troupe-bench-"):
            run("ip", "netns", "delete", space)
            shutil.rmtree(NAMES / space, ignore_errors=True)
    # A namespace takes its end of a pair away some time later: the other end takes both at once.
    links = subprocess.run(["ip", "-o", "link", "show"], capture_output=True, text=True).stdout
    for link in re.findall(r"\d+: (tb-out\d+)@", links) + [BRIDGE]:
        subprocess.run(["ip", "link", "delete", link], capture_output=True)


@contextlib.contextmanager
def machines(count, mbps):
    there = Machines(count, mbps)
    try:
        yield there
    finally:
        remove()
