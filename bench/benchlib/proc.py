"""Runs programs to their end, with their own CPU time; reads what test programs print."""

import os
import subprocess
import time
from pathlib import Path

from . import tools

TIME_OUT_S = 300


class Run:
    """What a finished program used and printed."""

    def __init__(self, wall_s: float, usage, output: str):
        self.wall_s, self.output = wall_s, output
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.user_s, self.system_s = usage.ru_utime, usage.ru_stime
        self.rss_max_kb = usage.ru_maxrss

    def truths(self) -> dict[str, int]:
        """CPU time in ns by name, as the program itself measured it."""
        words = (line.split() for line in self.output.splitlines())
        return {w[1]: int(w[2]) for w in words if len(w) == 3 and w[0] == "truth"}

    def info(self, name: str) -> list[int]:
        """All values of a fact."""
        words = (line.split() for line in self.output.splitlines())
        return [int(w[2]) for w in words if len(w) == 3 and w[:2] == ["info", name]]


def run(words: list, folder: Path, success: tuple = (0,)) -> Run:
    """Runs a program to its end; ends ours with its output if it fails.

    The CPU time is that of this one process: `wait4` tells it for whom it waits.
    """
    log = folder / "program.log"
    began = time.monotonic()
    with open(log, "wb") as out:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, cwd=folder)
        usage = wait(child, began + TIME_OUT_S)
    wall_s = time.monotonic() - began
    output = log.read_text(errors="replace")
    if child.returncode not in success:
        raise SystemExit(f"{' '.join(map(str, words))}\nended with {child.returncode}:\n"
                         + output[-2000:])
    return Run(wall_s, usage, output)


def wait(child: subprocess.Popen, end: float):
    """Waits for a child and gives its resource usage; kills it when its time is over."""
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > end:
            child.kill()
            end = float("inf")
        time.sleep(0.01)


def program(jdk, name: str, arguments: list, options: list = ()) -> list:
    """The command line of a test program."""
    jar = "dwell-testprograms-21.jar" if jdk.major >= 21 else "dwell-testprograms.jar"
    native = ["--enable-native-access=ALL-UNNAMED"] if jdk.major >= 21 else []
    return [jdk.tool("java"), *native, *options, "-cp", tools.java_program(jar),
            f"io.dwell.test.{name}", *arguments]
