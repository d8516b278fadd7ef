"""Five threads that measure themselves, among others: how right a wall-clock profile of them is."""

import sys
import tempfile
from pathlib import Path

from . import proc, recordings, stats, table, tools

# The others of each population (bench/java/WallOthers.java). The last one alone uses more than two
# processors, and is not in the default.
OTHERS = {
    "idle-50": "idle:50", "idle-500": "idle:500", "idle-2000": "idle:2000",
    "idle-10000": "idle:10000", "nap-50": "nap:50:100", "nap-500": "nap:500:100",
    "nap-2000": "nap:2000:100", "nap10ms-50": "nap:50:10",
    "nap10ms-500": "nap:500:10", "pool-200": "pool:200", "tenth-50": "tenth:50",
    "tenth-500": "tenth:500", "virtual-10000": "virtual:10000", "brief-200": "brief:200",
    "handover": "handover", "nap-10000": "nap:10000:100",
}
DEFAULT = tuple(OTHERS)[:-1]
QUICK = ("idle-50", "nap-500")
WORKERS = 5
HOLE_MS = 100
KINDS = ("kindRun", "kindSleep", "kindPark", "kindQueue", "kindMonitor", "kindLock", "kindWait",
         "kindSocket")
EVENTS = {"async-wall": ("profiler.WallClockSample",)}
OWN_EVENTS = ("dwell.WallSample", "jdk.ExecutionSample")
TICK_MS = 20


def runs_on(population: str, jdk) -> bool:
    """Whether a JVM has such threads."""
    return jdk.major >= 21 or not population.startswith("virtual")


def program(jdk, population: str, seconds: int, options: list) -> list:
    """The command line of the program with these others."""
    classes = [tools.compiled(jdk, source, 8) for source in ("WallOthers", "WallMix")][0]
    return [jdk.tool("java"), "-Xmx1g", *options, "-cp", classes, "WallMix", str(WORKERS),
            str(seconds), OTHERS[population]]


def one(jdk, name: str, population: str, seconds: int, option) -> dict:
    """One run; `option`: makes the JVM's options of a path."""
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary)
        path = here / "out.jfr"
        run = proc.run(program(jdk, population, seconds, option(name, path)), here)
        row = {"jdk": jdk.major, "name": name, "population": population,
               "kb": path.stat().st_size / 1000 * 60 / run.wall_s,
               **compared(run.output, name, path, seconds)}
        print(f"  {row}", file=sys.stderr)
        return row


def compared(output: str, name: str, path: Path, seconds: int) -> dict:
    """What the profile says of the five threads, beside what they say themselves."""
    told: dict[str, dict] = {f"mix-{number}": {} for number in range(WORKERS)}
    for words in map(str.split, output.splitlines()):
        if len(words) == 3 and words[0] == "info" and "." in words[1]:
            thread, kind = words[1].split(".")
            told[thread][kind] = int(words[2])
    jdk = recordings.reader()
    classes = tools.compiled(jdk, "WallSeen", 17)
    events = EVENTS.get(name, OWN_EVENTS)
    text = recordings.output([jdk.tool("java"), "-Xmx2g", "-cp", classes, "WallSeen", path,
                              r"mix-\d+", rf"WallMix\.({'|'.join(KINDS)})$",
                              r"(other|brief)-\d+", str(HOLE_MS), *events])
    seen: dict[str, dict] = {thread: {} for thread in told}
    holes, found = [], 0
    for words in map(str.split, text.splitlines()):
        if words[0] == "seen":
            seen[words[1]][words[2]] = int(words[3])
        elif words[0] == "hole":
            holes.append(int(words[2]) / max(int(words[3]), 1))
        elif words[0] == "others":
            found = int(words[1])
    ticks = seconds * 1000 // TICK_MS
    together = [merged(kinds.values()) for kinds in (told, seen)]
    beyond = [stats.distance(told[thread], known(seen[thread]))
              - stats.noise_floor(told[thread], ticks) for thread in told]
    accounted = [sum(seen[thread].values()) / sum(told[thread].values()) for thread in told]
    return {"distance": stats.distance(together[0], known(together[1])),
            "noise": stats.noise_floor(together[0], WORKERS * ticks), "worst": max(beyond),
            "accounted": [min(accounted), max(accounted)], "holes": max(holes, default=1.0),
            "found": found}


def known(kinds: dict) -> dict:
    """Without the time before and after the activities."""
    return {kind: weight for kind, weight in kinds.items() if kind in KINDS}


def merged(tables) -> dict:
    """The sums of several tables."""
    sums: dict[str, int] = {}
    for kinds in tables:
        for kind, weight in kinds.items():
            sums[kind] = sums.get(kind, 0) + weight
    return sums


def print_rows(rows: list) -> None:
    """The table: one line for each population, with the values of each JDK."""
    groups: dict = {}
    for row in rows:
        groups.setdefault((row["population"], row["jdk"], row["name"]), []).append(row)
    lines: dict = {}
    for (population, jdk, name), some in sorted(groups.items(), key=order):
        found = [row | {"gaps": 100 * row["holes"]} for row in some]
        line = lines.setdefault(population, {})
        if name == "async-wall":
            line.setdefault("async", []).append([spread(found, "distance", ".1f")])
            continue
        low, high = (pick(row["accounted"][at] for row in some) for at, pick in ((0, min), (1, max)))
        line.setdefault(name, []).append([
            jdk, len(some), spread(found, "distance", ".1f"), spread(found, "noise", ".1f"),
            spread(found, "worst", ".1f"), f"{low:.3f} to {high:.3f}", spread(found, "gaps", ".1f"),
            spread(found, "found", ".0f"), spread(found, "kb", ".0f")])
    joined = [[population, *together(line.get(name, []), 9), *together(line.get("async", []), 1)]
              for population, line in lines.items() for name in sorted(line) if name != "async"]
    print(table.markdown(
        ["others", "JDK", "n", "distance", "noise", "worst beyond noise", "time accounted",
         "% in holes over 100 ms", "others seen", "KB a minute", "async-profiler: distance"],
        joined))


def together(values: list, width: int) -> list:
    """The columns of some lines; values of several JDKs with a semicolon between them."""
    if not values:
        return ["-"] * width
    return [str(column[0]) if len(set(map(str, column))) == 1 else "; ".join(map(str, column))
            for column in zip(*values, strict=True)]


def order(item) -> tuple:
    """As the populations are listed."""
    (population, jdk, name), _ = item
    return list(OTHERS).index(population), jdk, name


def spread(rows: list, name: str, form: str) -> str:
    """Median and range; of one run, its value."""
    values = sorted(row[name] for row in rows)
    if len(values) == 1:
        return f"{values[0]:{form}}"
    return f"{stats.median(values):{form}} ({values[0]:{form}} to {values[-1]:{form}})"
