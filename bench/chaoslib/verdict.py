"""Judges what a run has left: how the JVM ended, what it said, what is in the recordings."""

import json
import re
import subprocess
from pathlib import Path

from benchlib import recordings

# CPU time told without a stack, because there was no sample to walk.
NO_WALK = ("thread_ended_unsampled", "recording_ended_unsampled")
EVENTS = "dwell.Failures,dwell.Lost,dwell.Self,dwell.CpuLoad,dwell.Gap"
# How far the weights may be from the CPU time: the moments before the recording's first and after
# its last reading are in one of them only.
SHARE, REST_NS = 0.03, 150_000_000
# Of a file with so many walks no larger part fails; mostly it is a hundredth of that.
WALKS_LEAST, FAILED_MOST = 1000, 0.05


class Result:
    """The outcome of a run. `faults` is empty if all was well."""

    def __init__(self):
        self.faults: list[str] = []
        self.kinds: set[str] = set()
        self.walks = self.samples = self.files = 0
        self.failed: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.storm: dict[str, int] = {}
        self.cpu_share = None
        self.wall_s = 0.0
        self.rounds = self.checks = self.disturbed = 0
        self.kept = ""
        # Times without data by cause, in ms.
        self.gaps: dict[str, list[int]] = {}
        # The maximum delay of this program itself: the machine stood still, or was that busy.
        self.late_ms = 0
        # Ends that are the JVM's own and would be without us, such as that for lack of memory.
        self.notes: list[str] = []

    def fault(self, kind: str, text: str) -> None:
        """Something that must not be: crash, hang, wrong, output or answer."""
        self.kinds.add(kind)
        self.faults.append(f"{kind}: {text}")

    def told(self) -> dict:
        """As it is stored."""
        values = dict(self.__dict__)
        values["kinds"] = sorted(self.kinds)
        return values


def judge(plan, built, folder: Path, output: str, code: int, result: Result) -> None:
    """Checks all files in the run's folder."""
    the_end(plan, folder, output, code, result)
    for file in sorted(folder.rglob("*.jfr")):
        if file.name != "beside.jfr":
            recording(plan, built, file, result)
    if plan.form == "calm" and not result.kinds and (folder / "out.jfr").exists():
        weights(built, folder / "out.jfr", output, result)


def the_end(plan, folder: Path, output: str, code: int, result: Result) -> None:
    """Exit code, crash files and the program's last word."""
    for file in [*folder.rglob("hs_err*"), *folder.rglob("core*")]:
        if plan.form == "memory" and lacked_memory(file):
            result.notes.append("the JVM ended itself for lack of memory")
            continue
        result.fault("crash", f"{file.name}: {problem(file)}")
    # Not HotSpot's end but that of Rust's library.
    found = re.search(r"^memory allocation of \d+ bytes failed(.*\n){1,12}", output, re.M)
    if found:
        result.fault("crash", found[0])
    wanted = {"exit": (0, 42), "halt": (0, 42), "kill": (0, -9)}.get(plan.form, (0,))
    last = re.search(r"^chaos (ok|wrong|stuck).*", output, re.M)
    if last and last[1] == "wrong":
        result.fault("wrong", last[0][:300])
    elif last and last[1] == "stuck":
        result.fault("hang", last[0][:300])
    elif result.notes and code in (1, -6):
        pass
    elif code not in wanted and "crash" not in result.kinds and "hang" not in result.kinds:
        result.fault("crash", f"exit code {code}: ...{output[-300:]}")
    elif code == 0 and not last:
        result.fault("wrong", "exit code 0 without `chaos ok`")
    found = re.search(r"^chaos ok rounds (\d+) checks (\d+) disturbed (\d+)", output, re.M)
    if found:
        result.rounds, result.checks, result.disturbed = map(int, found.groups())
    for text in re.findall(r"^dwell: .*(?:internal error|panick).*", output, re.M):
        result.fault("answer", text[:300])


def lacked_memory(file: Path) -> bool:
    """Whether HotSpot ended the process because it had no memory itself."""
    return "insufficient memory for the Java Runtime" in file.read_text(errors="replace")[:2000]


def problem(file: Path) -> str:
    """Signal and frame of a crash file."""
    lines = file.read_text(errors="replace").splitlines()[:40] if file.name.endswith(".log") else []
    found = [line.lstrip("# ") for line in lines
             if re.match(r"#\s+(SIG\w+|Internal Error|[CVJv]\s+\[)", line)]
    return "; ".join(found) or "no words"


def recording(plan, built, file: Path, result: Result) -> None:
    """Checks that both readers accept one recording, and counts its content."""
    size = file.stat().st_size
    # A JVM that left at once, or a disk that was full at once, may have nothing to read.
    if size == 0 and plan.form in ("kill", "exit", "halt", "disk", "storm"):
        return
    result.files += 1
    for words in ([built.command, "report", file, "--text"],
                  [recordings.reader().tool("jfr"), "summary", file]):
        out = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                             errors="replace")
        text = (out.stderr or out.stdout).strip()
        empty = re.search("no samples|nothing", text) and words[1] == "report"
        if out.returncode != 0 and not empty:
            result.fault("output", f"{file.name} ({size} bytes): {words[1]}: {text[-300:]}")
            return
    count(file, result)


def count(file: Path, result: Result) -> None:
    """Adds up what the agent says of itself."""
    words = [recordings.reader().tool("jfr"), "print", "--json", "--events", EVENTS, str(file)]
    out = subprocess.run(words, capture_output=True, text=True, errors="replace")
    if out.returncode != 0:
        result.fault("output", f"{file.name}: print: {(out.stderr or out.stdout)[-300:]}")
        return
    walks = samples = 0
    failed: dict[str, int] = {}
    for event in json.loads(out.stdout)["recording"]["events"]:
        values = event["values"]
        if event["type"] == "dwell.Self":
            walks, samples = max(walks, values["walks"]), max(samples, values["samples"])
        elif event["type"] == "dwell.Gap":
            gaps = result.gaps.setdefault(values["cause"], [])
            gaps.append(recordings.nanoseconds(values["duration"]) // 1_000_000)
        elif event["type"] == "dwell.Failures":
            cause = values["cause"]
            failed[cause] = failed.get(cause, 0) + values["samples"]
            result.failed[cause] = result.failed.get(cause, 0) + values["samples"]
        elif event["type"] == "dwell.Lost":
            cause = values["cause"]
            result.lost[cause] = result.lost.get(cause, 0) + values["samples"]
    if walks >= WALKS_LEAST and failed_walks(failed) > FAILED_MOST * walks:
        most = max(failed, key=failed.get)
        result.fault("walks", f"{file.name}: {failed_walks(failed)} of {walks} failed, mostly {most}")
    # A dump is a copy: its walks are in the file that it was copied from, or in a later one.
    if not file.name.startswith("dump-"):
        result.walks, result.samples = result.walks + walks, result.samples + samples


def weights(built, file: Path, output: str, result: Result) -> None:
    """The sum of all weights against the CPU time that the program itself has read."""
    target = file.with_suffix(".collapsed")
    subprocess.run([built.command, "convert", file, "-o", target, "--unit", "ns"], check=True,
                   capture_output=True)
    total = sum(number for _, number in recordings.collapsed_lines(target))
    target.unlink()
    found = re.search(r"^cpu (\d+)$", output, re.M)
    # A calm program may stand still only with the machine. The weights must be right anyway.
    wrong = {cause: gaps for cause, gaps in result.gaps.items()
             if cause != "stopped" or max(gaps) > 2 * result.late_ms}
    if wrong:
        result.fault("output", f"gaps of {wrong} ms in a calm run; the machine stood still for "
                     f"at most {result.late_ms} ms")
    if not found:
        result.fault("output", "the program did not tell its CPU time")
        return
    cpu = int(found[1])
    result.cpu_share = round(total / cpu, 4)
    if abs(total - cpu) > SHARE * cpu + REST_NS:
        result.fault("weights", f"{total} ns in samples, {cpu} ns on the process's clock")


def failed_walks(causes: dict[str, int]) -> int:
    """Walks that failed, without what was never walked."""
    return sum(n for cause, n in causes.items() if cause not in NO_WALK)
