"""The CPU time that a recording adds to a process: with and without one by turns, in one process.

Two processes that do the same differ by 2 to 10 % of one processor, more than what is measured.
"""

import contextlib
import ctypes
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import populations, proc, recordings, stats, table, tools

DEFAULT = ("idle-50", "idle-10000", "nap-2000", "tenth-500", "brief-200", "handover")
QUICK = ("idle-50",)
# Before the first window, as code is compiled; after the start of a recording, and after its end.
WARM_S, BEGIN_S, END_S = 6, 3, 1
WINDOW_S = 3.5
# The end of a recording if this program is killed before.
LIMIT = "60s"
# Of a median of normal values, relative to a mean; and since differences that follow each other
# share a window.
MEDIAN = math.sqrt(math.pi / 2)
SHARED = math.sqrt(4 / 3)


def one(jdk, name: str, population: str, turns: int) -> dict:
    """One process: the differences of its turns, in % of one processor."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        # More seconds than it needs: it is killed.
        words = populations.program(jdk, population, 60 * (turns + 1), [])
        log = here / "program.log"
        with open(log, "wb") as out:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, cwd=here)
        try:
            proc.until(log, "ready\n", child)
            time.sleep(WARM_S)
            without, during = [window(child.pid)], []
            for _ in range(turns):
                with recording(jdk, name, child.pid, here):
                    time.sleep(BEGIN_S)
                    during.append(window(child.pid))
                time.sleep(END_S)
                without.append(window(child.pid))
        finally:
            child.kill()
            child.wait()
    alone = [cpu for cpu, _ in without]
    added = [cpu - (before + after) / 2
             for (cpu, _), before, after in zip(during, alone, alone[1:])]
    row = {"jdk": jdk.major, "name": name, "population": population, "added": added,
           "own": [own for _, own in during], "without": stats.median(alone)}
    print(f"  added {row}", file=sys.stderr)
    return row


@contextlib.contextmanager
def recording(jdk, name: str, pid: int, here: Path):
    """A recording of a process, by attach."""
    path = here / "turn.jfr"
    if name == "async-wall":
        options = f"event=wall,interval={populations.TICK_MS}ms,jfr,file={path}"
        for words in (f"start,{options}", f"stop,file={path}"):
            recordings.output(tools.load(jdk, pid, tools.async_profiler(), words))
            if words.startswith("start"):
                yield
    else:
        log = here / "record.log"
        with open(log, "wb") as out:
            command = subprocess.Popen(
                [tools.command(), "record", str(pid), "-d", LIMIT, "-o", str(path)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        try:
            proc.until(log, "recording JVM", command)
            yield
            command.send_signal(signal.SIGINT)
            if command.wait(timeout=proc.TIME_OUT_S) != 0:
                raise SystemExit(f"recording failed: {log.read_text()[-2000:]}")
        finally:
            command.kill()
            command.wait()
    path.unlink()


def window(pid: int) -> tuple[float, float]:
    """CPU time of a process, and of the threads of dwell in it, in % of one processor."""
    clock, threads = cpu_clock(pid), own_threads(pid)
    own, cpu, began = own_s(threads), time.clock_gettime(clock), time.monotonic()
    time.sleep(WINDOW_S)
    cpu, passed = time.clock_gettime(clock) - cpu, time.monotonic() - began
    used = sum(late - own[task] for task, late in own_s(threads).items())
    return 100 * cpu / passed, 100 * used / passed


def cpu_clock(pid: int) -> int:
    """The clock of the CPU time of a process, with that of threads that have ended."""
    clock = ctypes.c_int()
    if ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)) != 0:
        raise SystemExit(f"no CPU time of process {pid}")
    return clock.value


def own_threads(pid: int) -> list:
    """The threads of dwell in a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith("dwell-"):
                found.append(task)
    return found


def own_s(threads: list) -> dict:
    """The CPU time of those of these threads that are still there."""
    found = {}
    for task in threads:
        with contextlib.suppress(OSError):
            found[task] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def print_rows(rows: list) -> None:
    """The table: the turns of all processes of a population together."""
    groups: dict = {}
    for row in rows:
        groups.setdefault((row["population"], row["jdk"], row["name"]), []).append(row)
    lines = []
    for (population, jdk, name), some in groups.items():
        added = [value for row in some for value in row["added"]]
        own = [value for row in some for value in row["own"]]
        without = stats.median(row["without"] for row in some)
        lines.append([population, jdk, name, len(added), f"{without:.1f}",
                      f"{stats.median(added):.1f}", f"{standard_error(added):.1f}",
                      f"{stats.median(own):.1f}" if name == "dwell" else "-"])
    print(table.markdown(
        ["others", "JDK", "profiler", "n", "CPU without, %", "added, %", "standard error",
         "of this, own threads, %"], lines))


def standard_error(differences: list) -> float:
    """That of the median of the differences of turns."""
    if len(differences) < 2:
        return float("nan")
    return MEDIAN * SHARED * statistics.stdev(differences) / math.sqrt(len(differences))
