"""Runs programs to their end, with their own CPU time; reads what test programs print."""

import os
import signal
import subprocess
import time
from pathlib import Path

from . import tools

TIME_OUT_S = 300
# When a program is first read from outside, and how often that is tried: a JVM has to come up.
BESIDE_AFTER_S, BESIDE_TRIES = 0.2, 100


class Run:
    """The resources and the output of a finished program."""

    def __init__(self, wall_s: float, usage, output: str):
        self.wall_s, self.output = wall_s, output
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.user_s, self.system_s = usage.ru_utime, usage.ru_stime
        self.rss_max_kb = usage.ru_maxrss
        self.beside_s = 0.0

    def truths(self) -> dict[str, int]:
        """CPU time in ns by name, as the program itself measured it."""
        words = (line.split() for line in self.output.splitlines())
        return {w[1]: int(w[2]) for w in words if len(w) == 3 and w[0] == "truth"}

    def info(self, name: str) -> list[int]:
        """All values of a fact."""
        words = (line.split() for line in self.output.splitlines())
        return [int(w[2]) for w in words if len(w) == 3 and w[:2] == ["info", name]]


class Beside:
    """A command that reads a running program from outside, from soon after its start on.

    It is asked again until it finds what it wants: until then it ends with an error.
    """

    def __init__(self, words_of, log: Path):
        self.words_of, self.log, self.child, self.tries, self.cpu_s = words_of, log, None, 0, 0.0

    def look(self, pid: int) -> None:
        """Starts it if it does not run, and notes its CPU time."""
        if self.child is None or self.child.poll() is not None:
            self.tries += 1
            if self.tries > BESIDE_TRIES:
                return
            with open(self.log, "wb") as out:
                self.child = subprocess.Popen(self.words_of(pid), stdin=subprocess.DEVNULL,
                                              stdout=out, stderr=subprocess.STDOUT)
            return
        try:
            fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return
        self.cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Waits for its end; ends ours if it failed."""
        if self.child is None or self.child.wait(timeout=TIME_OUT_S) != 0:
            said = self.log.read_text(errors="replace") if self.log.exists() else "nothing"
            raise SystemExit(f"what read the program from outside failed: {said[-2000:]}")


def run(words: list, folder: Path, success: tuple = (0,), beside=None) -> Run:
    """Runs a program to its end; ends this one with its output if it fails.

    The CPU time is that of this one process: `wait4` returns it for its child. With `beside`,
    which makes a command of the process's id, that of this command is added, up to the program's
    end: its later work costs the program nothing.
    """
    other = Beside(beside, folder / "beside.log") if beside else None
    log = folder / "program.log"
    began = time.monotonic()
    with open(log, "wb") as out:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, cwd=folder)
        usage = wait(child, began + TIME_OUT_S, other)
    wall_s = time.monotonic() - began
    if other:
        other.end()
    output = log.read_text(errors="replace")
    if child.returncode not in success:
        raise SystemExit(f"{' '.join(map(str, words))}\nended with {child.returncode}:\n"
                         + output[-2000:])
    done = Run(wall_s, usage, output)
    if other:
        done.beside_s = other.cpu_s
        done.cpu_s += other.cpu_s
    return done


def recorded(words: list, folder: Path, recorder) -> Run:
    """Runs a test program that waits at its gate while `recorder`, which makes a command of its
    id, records it from outside: its work begins when that records, and that ends with its work."""
    log, said = folder / "program.log", folder / "recorder.log"
    began = time.monotonic()
    with open(log, "wb") as out, open(said, "wb") as beside:
        child = subprocess.Popen([*words, "gate=1"], stdin=subprocess.PIPE, stdout=out,
                                 stderr=subprocess.STDOUT, cwd=folder)
        other = None
        try:
            until(log, "\nready\n", child)
            other = subprocess.Popen(recorder(child.pid), stdin=subprocess.DEVNULL,
                                     stdout=beside, stderr=subprocess.STDOUT)
            until(said, "recording JVM", other)
            child.stdin.write(b"\n")
            child.stdin.flush()
            until(log, "\ndone\n", child)
            other.send_signal(signal.SIGINT)
            if other.wait(timeout=TIME_OUT_S) != 0:
                raise SystemExit(f"recording from outside failed: {said.read_text()[-2000:]}")
            child.stdin.close()
            usage = wait(child, time.monotonic() + TIME_OUT_S)
        finally:
            for process in (child, other):
                if process is not None and process.returncode is None:
                    process.kill()
    return Run(time.monotonic() - began, usage, log.read_text(errors="replace"))


def until(log: Path, text: str, child: subprocess.Popen) -> None:
    """Waits until a program has written a text; ends ours if it ends before."""
    end = time.monotonic() + TIME_OUT_S
    while text not in "\n" + log.read_text(errors="replace"):
        if child.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{text.strip()} did not come: {log.read_text(errors='replace')}")
        time.sleep(0.01)


def wait(child: subprocess.Popen, end: float, other: Beside | None = None):
    """Waits for a child and gives its resource usage; kills it when its time is over."""
    look_at = time.monotonic() + BESIDE_AFTER_S
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > end:
            child.kill()
            end = float("inf")
        if other and time.monotonic() > look_at:
            other.look(child.pid)
            look_at = time.monotonic() + 0.05
        time.sleep(0.01)


def program(jdk, name: str, arguments: list, options: list = ()) -> list:
    """The command line of a test program."""
    jar = "dwell-testprograms-21.jar" if jdk.major >= 21 else "dwell-testprograms.jar"
    native = ["--enable-native-access=ALL-UNNAMED"] if jdk.major >= 21 else []
    return [jdk.tool("java"), *native, *options, "-cp", tools.java_program(jar),
            f"io.dwell.test.{name}", *arguments]
