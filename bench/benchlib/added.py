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
            without, during = [window(child.pid, [])[0]], []
            for _ in range(turns):
                with recording(jdk, name, child.pid, here):
                    time.sleep(BEGIN_S)
                    during.append(window(child.pid, own_threads(child.pid)))
                time.sleep(END_S)
                without.append(window(child.pid, [])[0])
        finally:
            child.kill()
            child.wait()
    added = [cpu - (before + after) / 2
             for (cpu, _), before, after in zip(during, without, without[1:])]
    row = {"jdk": jdk.major, "name": name, "population": population, "added": added,
           "own": [own for _, own in during], "without": stats.median(without)}
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
            early = command.poll() is not None
            command.send_signal(signal.SIGINT)
            if command.wait(timeout=proc.TIME_OUT_S) != 0 or early:
                raise SystemExit(f"recording ended early: {log.read_text()[-2000:]}")
        finally:
            command.kill()
            command.wait()
    path.unlink()


def window(pid: int, threads: list) -> tuple[float, float]:
    """CPU time of a process, and of these threads of it, in % of one processor."""
    clock = cpu_clock(pid)
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
    """The table: one line for each population, with the values of each JDK."""
    lines: dict = {}
    for row in rows:
        lines.setdefault((row["population"], row["name"]), []).append([
            row["jdk"], len(row["added"]), f"{row['without']:.1f}",
            f"{stats.median(row['added']):.1f}", f"{standard_error(row['added']):.1f}",
            f"{stats.median(row['own']):.1f}" if row["name"] == "dwell" else "-"])
    print(table.markdown(
        ["others", "profiler", "JDK", "n", "CPU without, %", "added, %", "standard error",
         "of this, own threads, %"],
        [[*key, *populations.together(values, len(values[0]))] for key, values in lines.items()]))


def standard_error(differences: list) -> float:
    """That of the median of the differences of turns."""
    if len(differences) < 2:
        return float("nan")
    return MEDIAN * SHARED * statistics.stdev(differences) / math.sqrt(len(differences))
