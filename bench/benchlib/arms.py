"""The profilers that are compared, by name: their options, and whether an agent knows them."""

import re
import subprocess
import tempfile
from pathlib import Path

from . import tools

NONE = "none"
# How dwell walks: options of the agent beyond interval and file.
VANTAGES = {
    "dwell-snapshot": "walk=snapshot",
    "dwell-handler": "walk=handler",
    "dwell-paused": "walk=paused",
}
# A handler that does nothing, at the same rate: only in builds for experiments.
EMPTY = "dwell-empty"
DEFAULT = "dwell"
# No signals for threads that only work: the kernel copies their stacks.
KERNEL = "dwell-kernel"
# Perf events for all threads, also for those that are switched often.
PERF = "dwell-perf"
# No perf events: they cost at each switch of a thread.
TIMER = "dwell-timer"
# No agent: a command that reads the process from outside.
OUTSIDE = "dwell-outside"
OURS = {DEFAULT: "", **VANTAGES, KERNEL: "engine=kernel",
        PERF: "engine=perf", TIMER: "engine=timer", EMPTY: "experiment=empty-handler"}
OTHERS = ("async-cpu", "async-wall", "jfr")
# The colour of each in plots: the same in all of them.
COLOURS = {EMPTY: 0, DEFAULT: 1, KERNEL: 2, PERF: 6, TIMER: 3, "dwell-snapshot": 1, "dwell-handler": 2, "dwell-paused": 3,
           OUTSIDE: 6, "async-cpu": 5, "async-wall": 4, "jfr": 7}
ALL = (NONE, *VANTAGES, OUTSIDE, EMPTY, *OTHERS)


def check_experiment(parser, options) -> None:
    """Ends the program if the agent for experiments cannot be the one that is named."""
    path = options.experiment_agent
    if path and options.resume:
        parser.error("--experiment-agent: --resume takes the one kept in its folder")
    if path and not Path(path).is_file():
        parser.error(f"--experiment-agent {path}: no such file")


def library(name: str, experiment: str | None) -> str:
    """The agent that one of ours is run with."""
    return experiment if name == EMPTY and experiment else tools.agent()


def dwell_words(name: str, path, interval: str) -> str:
    """The agent's options of one of ours."""
    return ",".join(filter(None, ["start", f"cpu={interval}", OURS[name], f"file={path}"]))


def options(name: str, jdk, path, interval: str, experiment: str | None = None) -> list:
    """The JVM's options that load a profiler; none for no profiler."""
    if name in (NONE, OUTSIDE):
        return []
    if name in OURS:
        return [f"-agentpath:{library(name, experiment)}={dwell_words(name, path, interval)}"]
    if name.startswith("async-"):
        return [tools.async_option(path, interval, "jfr", name.removeprefix("async-"))]
    event = "jdk.CPUTimeSample" if jdk.major >= 25 else "jdk.ExecutionSample"
    return tools.jfr_options(path, interval, event)


def beside(name: str, path, interval: str):
    """Makes the command that reads a process from outside; None for agents."""
    if name != OUTSIDE:
        return None
    return lambda pid: [tools.command(), "record", "--no-agent", "-e", "cpu", "-i", interval,
                        "-o", str(path), str(pid)]


def refusal(name: str, jdk, experiment: str | None = None) -> str | None:
    """Why the agent does not take one of ours, in its words; nothing if it records."""
    if name not in OURS:
        return None
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "probe.jfr"
        words = [jdk.tool("java"), *options(name, jdk, path, "10ms", experiment), "-version"]
        out = subprocess.run(words, capture_output=True, text=True)
        told = next((m[1] for line in (out.stdout + out.stderr).splitlines()
                     if (m := re.match(r"dwell: (.*)", line)) and "not recording" in line), None)
        if told:
            return told.split(": ")[0]
        if out.returncode or not path.exists():
            return f"nothing recorded (exit status {out.returncode})"
    return None


def usable(names: list, jdk, experiment: str | None = None) -> tuple[list, dict]:
    """Those the agent takes, and why not the others.

    If it has no vantages to choose from, the only one it has takes their place.
    """
    refused = {n: why for n in names if (why := refusal(n, jdk, experiment))}
    taken = [name for name in names if name not in refused]
    asked = [name for name in names if name in VANTAGES]
    if asked and not any(name in taken for name in asked) and DEFAULT not in taken:
        taken.insert(1 if taken[:1] == [NONE] else 0, DEFAULT)
    return taken, refused
