"""For tests of benches: a troupe that answers records at once. A test's own answers are methods, named as the commands."""


class FakeTroupe:
    """Remembers what was run."""
    def __init__(self, *_):
        self.calls, self.disturbed = [], 0

    @property
    def runs(self):
        return len(self.calls)

    def say(self, what):
        pass

    def record(self, command, *arguments):
        arguments = [str(a) for a in arguments]
        self.calls.append((command, arguments))
        return getattr(self, command)(arguments)
