"""Services under load during a recording: starts them, sends requests, and reads dwell's output."""

import http.client
import json
import os
import subprocess
import threading
import time
from pathlib import Path

from benchlib import tools

TIME_OUT_S = 300


class Service:
    """A Java program that prints its port and ends when its standard input does."""

    def __init__(self, words: list, cpus: str, folder):
        on = ["taskset", "-c", cpus] if cpus else []
        self.child = subprocess.Popen([*on, *map(str, words)], cwd=folder, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        line = self.child.stdout.readline().split()
        if len(line) != 2 or line[0] != "port":
            self.child.kill()
            raise SystemExit(f"{' '.join(map(str, words))}\nprinted no port but {line}")
        self.port = int(line[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()

    def ask(self, path: str) -> float:
        """One request; how long it took, in s."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIME_OUT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            while answer.read(1 << 20):
                pass
        finally:
            connection.close()
        if answer.status != 200:
            raise SystemExit(f"GET {path} was answered with {answer.status}")
        return time.monotonic() - began


class Load:
    """Sends requests to a service, one after the other, until stopped."""

    def __init__(self, service: Service, path: str):
        self.service, self.path = service, path
        self.seconds, self.error, self.is_over = [], None, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self.is_over.is_set():
                self.seconds.append(self.service.ask(self.path))
        except (Exception, SystemExit) as error:
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        if self.error:
            raise SystemExit(f"the load failed: {self.error}")


def record(service: Service, seconds: int, base: Path) -> Path:
    """Records a service from outside while it works; the recording. Its page is next to it."""
    words = [tools.command(), "record", "-e", "cpu,wall", "-d", seconds, "-o", base,
             service.child.pid]
    run(words)
    return base.with_suffix(".jfr")


def run(words: list) -> str:
    """Runs a command; its output. Ends the program if the command fails."""
    out = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                         timeout=TIME_OUT_S)
    if out.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\nfailed: {out.stderr[-2000:]}")
    return out.stdout


def explained(recording: Path) -> list:
    """The findings of a recording, the gravest first."""
    return json.loads(run([tools.command(), "explain", recording, "--json"]))["findings"]


def told(findings: list, rule: str) -> str:
    """The texts and remedies of all findings of a rule; similar ones come in any order."""
    return "; ".join(f"{one['what']}; {one['remedy']}" for one in findings if one["rule"] == rule)


def wall_ns(recording: Path, *options: str) -> int:
    """The sum of the wall time that `dwell convert` writes with these options."""
    out = recording.with_suffix(".collapsed")
    run([tools.command(), "convert", recording, "-o", out, "-e", "wall", "--unit", "ns", *options])
    return sum(int(line.rsplit(" ", 1)[1]) for line in out.read_text().splitlines())


def show_findings(title: str, recording: Path, most: int = 12) -> None:
    """Prints the findings below the command that prints them."""
    text = run([tools.command(), "explain", recording])
    parts = text.split("\n\n")
    print(f"\n{title}\n$ dwell explain {recording.name}\n")
    print("\n\n".join(parts[:most]).rstrip() + "\n", flush=True)


def last_cpus(number: int) -> str:
    """The last `number` processors that this process may use, as a list for taskset."""
    ours = sorted(os.sched_getaffinity(0))
    return ",".join(map(str, ours[-number:]))
