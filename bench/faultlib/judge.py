"""Runs one test, with a fault or without, and says what came of it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# Against one that hangs, not for slowness.
LIMIT_S = 300
# The exit code of Rust's test harness after a test that panicked.
FAILED = 101


@dataclass
class Ran:
    """The outcome of a run of a test."""
    code: int | None
    output: str
    took_s: float

    @property
    def skipped(self) -> str | None:
        """Why it was not tried, if it says so."""
        found = re.search(r"^skipped: (.*)", self.output, re.M)
        return found and found[1]

    def green(self) -> bool:
        """Whether the one test was run and passed."""
        return self.code == 0 and "test result: ok. 1 passed" in self.output and not self.skipped

    def red(self, says: str) -> bool:
        """Whether it failed by an assertion that says what it is meant to say."""
        _, panic, after = self.output.partition(" panicked at ")
        return self.code == FAILED and bool(panic) and bool(re.search(says, after))

    def why(self) -> str:
        """The first error, in one line; without one, how it ended."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        found = re.search(r" panicked at [^\n]*\n(.*)", self.output)
        if found:
            return " ".join(found[1].split())[:160]
        if self.code is None:
            return f"hung for {LIMIT_S} s"
        return f"ended with {self.code}"


def run(built, test, number: int) -> Ran:
    """Runs a test with this fault on; 0: with none."""
    program, folder = built.tests[test.crate, test.target]
    place = tempfile.mkdtemp(prefix="dwell-f")
    env = {**os.environ, "DWELL_FAULT": str(number), "DWELL_AGENT_SO": str(built.agent),
           "DWELL_EXPERIMENT_AGENT_SO": str(built.agent), "DWELL_TEST_JDKS": test.jdks,
           "DWELL_TEST_TURN": "0", "TMPDIR": place, "RUST_BACKTRACE": "0"}
    env.pop("DWELL_TEST_ALL", None)
    began = time.monotonic()
    process = subprocess.Popen([program, "--exact", test.name, "--nocapture"], cwd=folder, env=env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code = None
    shutil.rmtree(place, ignore_errors=True)
    return Ran(code, output.decode(errors="replace"), time.monotonic() - began)


def keep(folder: Path, name: str, ran: Ran) -> None:
    """Keeps an output for analysis."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.log").write_text(ran.output)
