"""Runs the program once as planned, with a watchdog; leaves all that it wrote in a folder."""

import os
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

from benchlib import proc, tools

from .storm import Storm
from .verdict import Result


class Runner:
    """Runs plans with these programs, with the agent or without."""

    def __init__(self, built, with_agent: bool, patience_s: float):
        self.built, self.with_agent, self.patience_s = built, with_agent, patience_s
        self.walk_on_command = self.command_walks()
        self.tmpfs = self.can_mount()
        self.async_library = self.find_async()

    def command_walks(self) -> bool:
        """Whether the command can choose the vantage."""
        out = subprocess.run([self.built.command, "start", "--help"], capture_output=True,
                             text=True)
        return "--walk" in out.stdout

    def can_mount(self) -> bool:
        """Whether a small file system can be mounted; said aloud if not."""
        place = self.built.folder / "mount"
        place.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
        try:
            good = subprocess.run(words, capture_output=True).returncode == 0
        except FileNotFoundError:
            good = False
        if good:
            subprocess.run(["umount", str(place)], check=True)
        else:
            print("chaos: cannot mount a tmpfs; full disks are limits of file size", flush=True)
        return good

    def find_async(self):
        """async-profiler's library, or None, aloud."""
        try:
            return tools.async_profiler()
        except SystemExit as error:
            print(f"chaos: SKIPPED: no runs beside async-profiler: {error}"[:300], flush=True)
            return None

    def command_line(self, plan, folder: Path) -> list:
        """The JVM with everything."""
        flags = [*plan.flags, f"-XX:ErrorFile={folder}/hs_err.log"]
        # JDK 8 knows neither of these.
        if plan.form == "jfr" and plan.jdk.major >= 11:
            flags.append(f"-XX:StartFlightRecording=filename={folder}/beside.jfr,settings=profile")
        if plan.form == "async" and self.async_library:
            flags.append(f"-agentpath:{self.async_library}=start,event=cpu,interval=1ms,"
                         f"collapsed,file={folder}/beside.collapsed")
        if self.with_agent and not plan.attached:
            place = folder / "disk" if plan.form == "disk" else folder
            walk = "" if plan.vantage == "default" else f",walk={plan.vantage}"
            events = "".join(f",{event}" for event in plan.events)
            flags.append(f"-agentpath:{self.built.agent}=start,cpu={plan.interval},"
                         f"engine={plan.engine},file={place}/out.jfr{walk}{events}")
        return [plan.jdk.tool("java"), *flags, "-cp", str(self.built.classes[plan.jdk.major]),
                "io.dwell.chaos.Chaos", f"natives={self.built.folder}", *plan.words]

    def run(self, plan, folder: Path, result: Result) -> tuple[str, int]:
        """Runs it; its output and exit code. A hang is a fault of the result."""
        draw = random.Random(plan.seed + "-outside")
        # A limit of file size would be one of ZGC's heap, too, which is a file in memory.
        drawn = draw.random() < 0.7 or plan.collector == "Z"
        small_disk = plan.form == "disk" and self.tmpfs and drawn
        if plan.form == "disk":
            (folder / "disk").mkdir()
        if small_disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={plan.room}", "none",
                            str(folder / "disk")], check=True)
        try:
            return self.run_there(plan, folder, result, small_disk)
        finally:
            if small_disk:
                self.rescue(folder)

    @staticmethod
    def rescue(folder: Path) -> None:
        """Takes the files off the small disk and lets it go."""
        for file in (folder / "disk").iterdir():
            (folder / f"full-{file.name}").write_bytes(file.read_bytes())
        subprocess.run(["umount", str(folder / "disk")], check=True)

    def run_there(self, plan, folder: Path, result: Result,
                  small_disk: bool) -> tuple[str, int]:
        """The same, the disk being ready."""
        limit = None
        if plan.form == "memory":
            limit = (resource.RLIMIT_AS, plan.room)
        if plan.form == "disk" and not small_disk and plan.collector != "Z":
            limit = (resource.RLIMIT_FSIZE, plan.room)
        words = self.command_line(plan, folder)
        (folder / "command").write_text("\n".join(map(str, words)) + "\n")
        log, began = folder / "program.log", time.monotonic()
        environment = dict(os.environ, MALLOC_ARENA_MAX="2") if plan.form == "memory" else None
        with open(log, "wb") as out:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, env=environment,
                                     stderr=subprocess.STDOUT, cwd=folder,
                                     preexec_fn=lambda: limit and resource.setrlimit(
                                         limit[0], (limit[1], limit[1])))
        storm = None
        if plan.form == "storm" and self.with_agent:
            walk = ["--walk", plan.vantage] if self.walk_on_command else []
            storm = Storm(plan, self.built, folder, child, walk)
            storm.start()
        try:
            self.watch(plan, folder, result, child, began, storm)
        finally:
            # Nothing is left behind, should this program be interrupted.
            if not ended(child):
                os.kill(child.pid, signal.SIGKILL)
            if storm:
                storm.stop()
        if storm:
            result.storm = storm.counts
            for odd in storm.odd:
                result.fault("answer", odd)
        # Only now is the pid given back, so that no command can have met another process.
        proc.wait(child, time.monotonic() + 10)
        result.wall_s = round(time.monotonic() - began, 2)
        return log.read_text(errors="replace"), child.returncode

    def watch(self, plan, folder: Path, result: Result, child, began: float, storm) -> None:
        """Waits for the end, or brings it about."""
        draw = random.Random(plan.seed + "-end")
        end = began + plan.seconds + self.patience_s
        kill_at = began + 0.2 + draw.random() * plan.seconds
        while not ended(child):
            now = time.monotonic()
            if plan.form == "kill" and now > kill_at:
                os.kill(child.pid, signal.SIGKILL)
            if storm and now > began + plan.seconds:
                storm.over.set()
            if now > end:
                self.hanging(plan, folder, child)
                result.fault("hang", f"still there {self.patience_s} s after its time")
                end = float("inf")
            before = time.monotonic()
            time.sleep(0.02)
            result.late_ms = max(result.late_ms, round((time.monotonic() - before) * 1000) - 20)

    @staticmethod
    def hanging(plan, folder: Path, child) -> None:
        """Keeps what can be known of a JVM that hangs, and kills it."""
        # Popen's own kill() would wait for a child that has ended, and give its pid back.
        os.kill(child.pid, signal.SIGCONT)
        looks = {"jstack": [plan.jdk.tool("jstack"), str(child.pid)],
                 "gdb": ["gdb", "-p", str(child.pid), "-batch", "-ex", "thread apply all bt 40"]}
        for name, words in looks.items():
            with open(folder / f"hang-{name}.txt", "wb") as out:
                try:
                    subprocess.run(words, stdout=out, stderr=subprocess.STDOUT, timeout=60)
                except (subprocess.TimeoutExpired, FileNotFoundError) as error:
                    out.write(str(error).encode())
        os.kill(child.pid, signal.SIGKILL)


def ended(child) -> bool:
    """Whether a child has ended; it stays to be waited for."""
    found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return found is not None
