"""Actions on the running JVM from outside: commands, dumps of other tools, stops.

All answers of commands are kept, and wrong ones are reported.
"""

import os
import random
import re
import signal
import subprocess
import threading
import time

# Allowed messages of the command about a JVM that is busy, stopped, exiting, or in the other state.
FAIR = re.compile("already recording|not being recorded|nothing is being recorded|no process"
                  "|did not answer within|is stopped|exited while|has ended|not written within"
                  "|cannot create|No space|nothing was recorded|only permitted in the live phase"
                  "|offers no JVMTI environment|use 'dwell stop( [0-9]+)?' first")

# Its message about a JVM that is just ending, and only then.
LAST_WORDS = re.compile('not understood: ""')


class Storm:
    """Random commands at random moments, from two threads, until `stop`."""

    def __init__(self, plan, built, folder, child, walk_option: list):
        self.plan, self.built, self.folder, self.child = plan, built, folder, child
        self.walk_option = walk_option
        self.over = threading.Event()
        self.files = 0
        self.counts: dict[str, int] = {}
        self.odd: list[str] = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.blow, args=(random.Random(f"{plan.seed}-{n}"),
                                                                 n)) for n in range(2)]

    def start(self) -> None:
        """Begins."""
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Ends, after the commands that are under way."""
        self.over.set()
        for thread in self.threads:
            thread.join()

    def blow(self, draw: random.Random, lane: int) -> None:
        """One thread's commands; the second one does other things as well."""
        # Half of the storms begin before the JVM has, the others meet one that works.
        early = draw.random() < 0.5
        while not early and "ready" not in self.said() and not self.over.wait(0.05):
            pass
        if lane == 0:
            self.do("start", draw)
        while not self.over.wait(draw.random() * 0.7):
            kinds = ["start", "stop", "dump", "status", "start"]
            if self.plan.events:
                kinds += ["change", "change"]
            if lane == 1:
                kinds += ["pause", "threads", "histogram", "quit"]
                if self.plan.jdk.major >= 11:
                    kinds += ["jfr"]
            self.do(draw.choice(kinds), draw)

    def said(self) -> str:
        """The output of the program so far."""
        return (self.folder / "program.log").read_text(errors="replace")

    def do(self, kind: str, draw: random.Random) -> None:
        """One of them."""
        pid = str(self.child.pid)
        with self.lock:
            self.files += 1
            number = self.files
        command, jcmd = str(self.built.command), [self.plan.jdk.tool("jcmd"), pid]
        if kind == "start":
            file = self.folder / f"storm-{number}.jfr"
            bounded = ["--max-size", "1m"] if draw.random() < 0.3 else []
            events = ["-e", "cpu,wall,lock"] if self.plan.events and draw.random() < 0.5 else []
            self.ask(kind, [command, "start", "-i", self.plan.interval, "-o", file, *bounded,
                            *events, *self.walk_option, pid])
        elif kind == "change":
            # The recording that runs gets other events; where none does, one begins.
            names = [event.split("=")[0] for event in self.plan.events if draw.random() < 0.6]
            self.ask(kind, [command, "start", "-e", ",".join(["cpu", "wall", *names]), pid])
        elif kind == "dump":
            self.ask(kind, [command, "dump", "-o", self.folder / f"dump-{number}.jfr", pid])
        elif kind in ("stop", "status"):
            self.ask(kind, [command, kind, pid])
        elif kind == "pause":
            self.pause(draw.random() * 0.3)
        elif kind == "quit":
            self.signal(signal.SIGQUIT)
        else:
            words = {"threads": ["Thread.print"], "histogram": ["GC.class_histogram"],
                     "jfr": ["JFR.start", "duration=2s", f"filename={self.folder}/j{number}.other"]}
            # The answers of jcmd belong to the JDK.
            self.ask(kind, [*jcmd, *words[kind]], foreign=True)
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1

    def leaving(self) -> bool:
        """Whether the JVM is about to end."""
        return self.over.wait(2) or not os.path.exists(f"/proc/{self.child.pid}/maps")

    def signal(self, number: int) -> None:
        """A signal; the child's pid is its own until all this is over and it is waited for."""
        if not self.over.is_set():
            os.kill(self.child.pid, number)

    def pause(self, seconds: float) -> None:
        """Stops the whole process for a moment."""
        self.signal(signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.child.pid, signal.SIGCONT)

    def ask(self, kind: str, words: list, foreign: bool = False) -> None:
        """Runs a command and checks its answer."""
        try:
            out = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=60,
                                 errors="replace", cwd=self.folder, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            if not foreign:
                self.odd.append(f"{kind}: no answer within 60 s")
            return
        if foreign or out.returncode == 0:
            return
        text = (out.stderr or out.stdout).strip()
        with self.lock:
            self.counts[f"{kind} refused"] = self.counts.get(f"{kind} refused", 0) + 1
            leaving = LAST_WORDS.search(text) and self.leaving()
            if out.returncode != 1 or not (leaving or FAIR.search(text)):
                self.odd.append(f"{kind}: exit code {out.returncode}: {text[:300]}")
