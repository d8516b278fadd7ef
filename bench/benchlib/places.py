"""Groups of threads with exact times: how right a wall-clock profile is at each of their places."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from . import populations, proc, recordings, stats, table, tools
from .populations import spread

FRAME = re.compile(r"WallPlaces\.(place\w+)$")
# By place: true wall time and waits for a processor, and recorded ones.
TIMES = ("wall", "waited", "found", "runnable")
# Only places with so much of all time are compared one by one.
WORST_FROM = 0.02
# It ends with this program, also if that is killed.
HOG = f"import os\nwhile os.getppid() == {os.getpid()}: pass"


@contextlib.contextmanager
def busy(count: int):
    """So many busy processes."""
    children = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def one(jdk, name: str, load: int, seconds: int, option) -> dict:
    """One run; `option`: makes the JVM's options of a path."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        path = here / "out.jfr"
        # Places are frames of their own, also for a sample in the middle of compiled code.
        words = [jdk.tool("java"), *option(name, path), "-XX:CompileCommand=quiet",
                 "-XX:CompileCommand=dontinline,WallPlaces.place*", "-cp",
                 tools.compiled(jdk, "WallPlaces", 8), "WallPlaces", str(seconds)]
        with busy(load):
            run = proc.run(words, here)
        lines = [line.split() for line in run.output.splitlines() if line.startswith("place ")]
        wall, waited = ({words[1]: int(words[at]) for words in lines} for at in (2, 3))
        row = {"jdk": jdk.major, "name": name, "load": load, "wall": wall, "waited": waited,
               "found": by_place(path),
               "runnable": by_place(path, "--cause", "runnable,throttled")}
        row.update(compared(row))
        show(row)
        return row


def by_place(path: Path, *words) -> dict:
    """Recorded time by place and group."""
    sums: dict[str, int] = {}
    collapsed = recordings.collapse(path, "-e", "wall", "--unit", "ns", *words)
    for frames, nanos in recordings.collapsed_lines(collapsed):
        if found := next(filter(None, map(FRAME.search, frames)), None):
            place = f"{found[1]}@{frames[0].split('-')[0]}"
            sums[place] = sums.get(place, 0) + nanos
    return sums


def compared(row: dict) -> dict:
    """Recorded wall time and waits for a processor, in relation to the true ones.

    A recording also has operations that did not end, so its time is compared as parts of its sum.
    """
    wall, waited, found, runnable = (row[what] for what in TIMES)
    whole, recorded = sum(wall.values()), sum(found.values())
    ratios = {place: found.get(place, 0) / recorded / (wall[place] / whole) for place in wall}
    off = {place: 100 * (runnable.get(place, 0) / recorded - waited[place] / whole)
           for place in wall}
    tick = populations.TICK_MS * 1_000_000
    return {"ratios": ratios, "offs": off, "sum": recorded / whole,
            "distance": stats.distance(wall, found),
            "noise": stats.noise_floor(wall, whole // tick),
            "part waited": 100 * sum(waited.values()) / whole, "off": sum(off.values()),
            "waits distance": stats.distance(waited, runnable),
            "waits noise": stats.noise_floor(waited, sum(waited.values()) // tick)}


def show(row: dict) -> None:
    """All places of a run, as progress."""
    whole = sum(row["wall"].values())
    for place in sorted(row["wall"], key=row["wall"].get, reverse=True):
        print(f"    {place:32} {100 * row['wall'][place] / whole:5.1f} %, recorded / true "
              f"{row['ratios'][place]:.2f}, waited {100 * row['waited'][place] / whole:5.2f} % "
              f"{row['offs'][place]:+.2f}", file=sys.stderr)
    print(f"  places { {key: row[key] for key in row if not isinstance(row[key], dict)} }",
          file=sys.stderr)


def print_rows(rows: list) -> None:
    """The table: distances of single runs, and the worst places of all runs together."""
    groups: dict = {}
    for row in rows:
        groups.setdefault((row["load"], row["jdk"], row["name"]), []).append(row)
    lines = []
    for (load, jdk, name), some in sorted(groups.items()):
        together = {what: populations.merged(row[what] for row in some) for what in TIMES}
        ratios, offs = (compared(together)[what] for what in ("ratios", "offs"))
        wall = together["wall"]
        large = [place for place in wall if wall[place] >= WORST_FROM * sum(wall.values())]
        worst = max(large, key=lambda place: abs(ratios[place] - 1))
        worst_off = max(offs, key=lambda place: abs(offs[place]))
        lines.append([
            load, jdk, name, len(some), spread(some, "sum", ".3f"), spread(some, "distance", ".1f"),
            spread(some, "noise", ".1f"), f"{ratios[worst]:.2f} {worst}",
            spread(some, "part waited", ".1f"), spread(some, "off", ".1f"),
            spread(some, "waits distance", ".1f"), spread(some, "waits noise", ".1f"),
            f"{offs[worst_off]:+.1f} {worst_off}"])
    print(table.markdown(
        ["busy processes", "JDK", "profiler", "n", "recorded / true", "distance", "noise",
         "worst place, recorded / true", "waits for a processor, %", "off, % of all time",
         "waits: distance", "waits: noise", "worst place, % of all time"], lines))
