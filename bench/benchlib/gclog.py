"""Reads the JVM's unified log: safepoints and the pauses of its collectors, since JDK 11."""

import re
from pathlib import Path

# Z and parts of others log their pauses as phases only.
OPTION = "-Xlog:safepoint*,gc,gc+phases:file={}:uptime"
COLLECTORS = ("Serial", "Parallel", "G1", "Z", "Shenandoah")
# Asked for by the program, not by the collector.
PROVOKED = "FindDeadlocks"

AT = re.compile(r"\[(\d+[.,]\d+)s\] *(.*)")
# Since 13: all in one line; some versions have more parts between these.
SAFEPOINT = re.compile(r'Safepoint "(\w+)", .*Reaching safepoint: +(\d+) ns, .*'
                       r"At safepoint: +(\d+) ns, .*Total: +(\d+) ns")
# Up to 12: the operation in a line of its own, times in seconds, and only these two.
ENTERING = re.compile(r"Entering safepoint region: (\w+)")
STOPPED = re.compile(r"Total time for which application threads were stopped: (\d+[.,]\d+) "
                     r"seconds, Stopping threads took: (\d+[.,]\d+) seconds")
PAUSE = re.compile(r"(?:GC\(\d+\) )?(?:[YyOo]: )?(Pause [A-Z].*?) (\d+[.,]\d+)ms$")


def usable(jdk) -> list[str]:
    """The collectors that a JVM has."""
    return [name for name in COLLECTORS if jdk.accepts(flag(name))]


def flag(name: str) -> str:
    """The option that chooses a collector."""
    return f"-XX:+Use{name}GC"


class Log:
    """A log's data on the time between two moments, in ms since the JVM's start.

    Safepoints are (operation, reaching ns, at ns, total ns), pauses (name, ns).
    """

    def __init__(self, text: str, from_ms: float = 0, to_ms: float = float("inf")):
        self.safepoints: list[tuple] = []
        self.pauses: list[tuple] = []
        operation = ""
        for line in text.splitlines():
            found = AT.match(line)
            if not found:
                continue
            if entering := ENTERING.search(found[2]):
                operation = entering[1]
            if from_ms <= number(found[1]) * 1e3 <= to_ms:
                self.add(found[2].strip(), operation)

    @classmethod
    def read(cls, path: Path, from_ms: float, to_ms: float) -> "Log":
        """The log in a file."""
        return cls(path.read_text(errors="replace"), from_ms, to_ms)

    def add(self, line: str, operation: str) -> None:
        """Takes a line."""
        if found := SAFEPOINT.search(line):
            self.safepoints.append((found[1], *(int(found[i]) for i in (2, 3, 4))))
        elif found := STOPPED.search(line):
            total, reaching = (round(number(found[i]) * 1e9) for i in (1, 2))
            self.safepoints.append((operation, reaching, total - reaching, total))
        elif found := PAUSE.search(line):
            self.pauses.append((found[1], round(number(found[2]) * 1e6)))

    def times(self) -> dict[str, list[int]]:
        """Times in ns by what they are of; those at a safepoint without the provoked ones."""
        collector = [s for s in self.safepoints if s[0] != PROVOKED]
        return {"reach": [s[1] for s in self.safepoints], "at": [s[2] for s in collector],
                "total": [s[3] for s in collector], "pause": [p[1] for p in self.pauses]}


def number(text: str) -> float:
    """A number as the JVM's locale writes it."""
    return float(text.replace(",", "."))
