"""The numbers of `dwell report --text --safepoints`. Pure: it reads text only."""

import re

NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
TIME = r"[\d.,]+ (?:ns|us|ms|s|min|h)"
HEAD = re.compile(rf"^safepoints ([\d,]+), ({TIME}) in all.*; time to safepoint ({TIME}), "
                  rf"max ({TIME})", re.M)
OPERATION = re.compile(rf"^ +([\d,]+) +([\d.,]+)" + rf" +({TIME})" * 6 + r"  (\S.*)$", re.M)
LATE = re.compile(rf"^ +({TIME}) +([\d.]+) % +([\d,]+) +({TIME})  (\S+(?: \S+)*?)  +(.+?) in (\S.*)$",
                  re.M)


def ns(text: str) -> float:
    """A time in ns."""
    number, unit = text.split()
    return float(number.replace(",", "")) * NS[unit]


def count(text: str) -> int:
    """A number with commas."""
    return int(text.replace(",", ""))


class Operation:
    """A row of the table of operations, in ns: three quantiles of each time."""

    def __init__(self, row: tuple):
        self.count, self.name = count(row[0]), row[8]
        times = [ns(one) for one in row[2:8]]
        self.reach_p50, self.reach_p99, self.reach_max = times[:3]
        self.at_p50, self.at_p99, self.at_max = times[3:]


class Late:
    """A row of the table of late threads."""

    def __init__(self, row: tuple):
        self.held, self.share, self.times = ns(row[0]), float(row[1]), count(row[2])
        self.latest, self.why, self.threads, self.method = ns(row[3]), *row[4:]


class Told:
    """A report of safepoints."""

    def __init__(self, text: str):
        self.text = text
        head = HEAD.search(text)
        self.count = count(head.group(1)) if head else 0
        self.all, self.reach, self.reach_max = (
            map(ns, head.groups()[1:]) if head else (0.0, 0.0, 0.0))
        self.operations = {row[8]: Operation(row) for row in OPERATION.findall(text)}
        self.late = [Late(row) for row in LATE.findall(text)]

    def operation(self, *names: str) -> Operation | None:
        """The first of these operations that the report has."""
        return next((self.operations[n] for n in names if n in self.operations), None)

    def share_of(self, why: str) -> float:
        """The percentage of the delay by late threads that has this reason."""
        return sum(late.share for late in self.late if late.why == why)

    @property
    def culprit(self) -> str:
        """The threads that delayed the others longest, and why, in words."""
        if not self.late:
            return "nobody"
        first = self.late[0]
        return f"{first.threads} in {first.method}, {first.why}, {first.share:.0f} %"
