"""Reads what profilers wrote: JFR with the JDK's own reader, collapsed stacks line by line."""

import json
import re
import subprocess
from pathlib import Path

from . import jdks, tools


def reader() -> jdks.Jdk:
    """The JDK whose tools read all recordings: the newest released for long-term use, if there."""
    found = jdks.all_jdks()
    major = next((v for v in (25, 21, 17) if v in found), None) or max(found)
    return found[major]


def output(words: list) -> str:
    """The output of a tool; ends the program with its error if it fails."""
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode != 0:
        what = (out.stderr or out.stdout)[-2000:]
        raise SystemExit(f"{' '.join(map(str, words))}\nfailed: {what}")
    return out.stdout


class Roots:
    """Weight and number of the samples of some threads, by a frame on their stacks."""

    def __init__(self):
        self.weight: dict[str, int] = {}
        self.samples = 0
        # Sum of the squares of weights; each sample of an event is independent.
        self.squares = 0.0

    def add(self, name: str, weight: int, samples: int) -> None:
        """Adds samples with this frame."""
        self.weight[name] = self.weight.get(name, 0) + weight
        self.samples += samples


def jfr_roots(path: Path, threads: str, frame: str, event: str) -> Roots:
    """Samples in a JFR file by the outermost frame that matches; samples weigh 1 without weight."""
    text = output([reader().tool("java"), "-Xmx2g", "-jar", tools.java_program("dwell-verify.jar"),
                   str(path), "--event", event, "--top", "0", "--thread", threads,
                   "--under", frame])
    weighted = "\nweighted true" in "\n" + text
    roots, total, seen = Roots(), (0, 0), (0, 0)
    for line in text.splitlines():
        words = line.split()
        if words[0] == "total":
            total = (int(words[1]), int(words[2]))
        elif words[0] == "squares":
            roots.squares = float(words[1])
        elif words[0] == "under" and words[1] != "(none)":
            weight, samples = int(words[2]), int(words[3])
            seen = (seen[0] + weight, seen[1] + samples)
            name = re.search(frame, words[1]).group(1)
            roots.add(name, weight if weighted else samples, samples)
    rest = (total[0] - seen[0], total[1] - seen[1])
    roots.add("other", rest[0] if weighted else rest[1], rest[1])
    roots.squares = roots.squares if weighted else float(roots.samples)
    return roots


def collapsed_lines(path: Path):
    """Frames, outermost first, and the number of each line."""
    with open(path, errors="replace") as lines:
        for line in lines:
            stack, _, number = line.rstrip("\n").rpartition(" ")
            yield stack.split(";"), int(number)


def collapsed_roots(path: Path, threads: str, frame: str) -> Roots:
    """The same of collapsed stacks that begin with their thread."""
    roots = Roots()
    for frames, number in collapsed_lines(path):
        if re.search(threads, frames[0].lstrip("[")):
            found = next((f for f in map(re.compile(frame).search, frames[1:]) if f), None)
            roots.add(found.group(1) if found else "other", number, number)
    return roots


def event_counts(path: Path) -> dict[str, int]:
    """The number of events of each type."""
    text = output([reader().tool("jfr"), "summary", str(path)])
    return {m[1]: int(m[2]) for m in re.finditer(r"^ ([\w.]+) +(\d+) +\d+ *$", text, re.M)}


def events(path: Path, name: str) -> list[dict]:
    """The fields of all events of a type."""
    text = output([reader().tool("jfr"), "print", "--json", "--events", name, str(path)])
    return [event["values"] for event in json.loads(text)["recording"]["events"]]


def nanoseconds(text: str) -> int:
    """A duration as the JDK's tools write it: `PT1M2.5S`."""
    parts = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", text)
    hours, minutes, seconds = (float(part or 0) for part in parts.groups())
    return round((hours * 3600 + minutes * 60 + seconds) * 1e9)


def collapse(path: Path, *words) -> Path:
    """Our recording as collapsed stacks, beginning with their threads, counting samples; `words`
    select others."""
    target = path.with_suffix(".collapsed")
    output([tools.command(), "convert", str(path), "-o", str(target), "--threads", *words])
    return target
