"""Runs on a machine whose speed others change: which of them had the machine at its full speed.

A virtual processor whose sibling is busy runs at 60 % of its speed, for tenths of a second to
minutes. A fixed piece of work before and after each run shows it. So the selection of runs
does not depend on their results."""

import time

# A run counts if the work around it took no more than this times its minimum.
SLOWER = 1.08


def probe() -> float:
    """CPU time of a fixed piece of work of some 10 ms, in seconds."""
    began = time.process_time()
    total = 0
    for number in range(200_000):
        total += number & 7
    return time.process_time() - began


class Probes:
    """The machine's speed before and after each run."""

    def __init__(self):
        self.around = []

    def run(self, work):
        """The result of `work`."""
        before = probe()
        result = work()
        self.around.append(max(before, probe()))
        return result

    def calm(self):
        """For each run so far: was the machine at its full speed on both sides of it?"""
        limit = min(self.around) * SLOWER if self.around else 0.0
        return [time <= limit for time in self.around]
