"""Runs commands of one troupe binary that need no idle machine, and reads what they print."""
import json

import measured_run


class Commands:
    def __init__(self, binary):
        self._binary = str(binary)

    def run(self, *arguments):
        """What it printed; raises measured_run.RunFailed unless it exits with 0."""
        return self._run(arguments).stdout

    def json(self, *arguments):
        """The record that `--json -` prints."""
        return json.loads(self.run(*arguments, "--json", "-"))

    def cpu_seconds(self, *arguments):
        return self._run(arguments).cpu_s

    def _run(self, arguments):
        return measured_run.run([self._binary, *map(str, arguments)])
