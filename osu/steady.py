# SPDX-License-Identifier: BSD-3-Clause
"""
Runs that count: those in which the machine was as it mostly is. Where processors are somebody else's, as a virtual
machine's are, they move: for seconds or minutes the way between two of them is several times as long as before, or
half as long, and both sides of a comparison must be measured on the same machine.
"""
import statistics
import sys
import time

import launch
import output

WITHIN = 1.5      # times the lower quartile of what the probe has printed, or part of it
BEFORE = 20       # probes before the first run
TRIES = 20        # of a run; the last counts in any case
LONGEST_WAIT = 120  # seconds to wait before a run


class Probe:
    """
    A command that prints one latency. Without one every run counts.

    most    us: what it prints at most where a run counts; None: what it mostly prints
    """

    def __init__(self, command, timeout, most=None):
        self.command = command
        self.timeout = timeout
        self.most = most
        self.seen = []
        self.repeated = self.doubtful = 0
        for _ in range(BEFORE if command else 0):
            self.is_good()
            time.sleep(0.1)

    def is_good(self):
        if not self.command:
            return True
        said, _ = launch.run(self.command, self.timeout)
        latency = min(output.parse(said).values())
        self.seen.append(latency)
        if self.most is not None:
            return latency <= self.most
        usual = statistics.quantiles(self.seen)[0] if len(self.seen) > 1 else latency
        return usual / WITHIN <= latency <= usual * WITHIN

    def measure(self, run):
        """What run() returns, of a run that counts."""
        for _ in range(TRIES):
            until = time.monotonic() + LONGEST_WAIT
            while not self.is_good() and time.monotonic() < until:
                time.sleep(0.2)
            measured = run()
            if self.is_good():
                return measured
            self.repeated += 1
        self.doubtful += 1
        return measured

    def report(self):
        if self.seen:
            limit = "" if self.most is None else f"; runs count up to {self.most:.2f}"
            low, middle, high = min(self.seen), statistics.median(self.seen), max(self.seen)
            print(f"the probe: {middle:.2f} us, {low:.2f} to {high:.2f}{limit}\n", flush=True)
        if self.repeated:
            print(f"{self.repeated} runs were made again: the way between processors had changed; {self.doubtful} count "
                  "all the same", file=sys.stderr)
