"""Runs an example's program under `dwell record`, reads both outputs, and keeps rows for tables."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchlib import jdks, stats, tools

from .told import Told

JAR = "dwell-examples.jar"
TIME_OUT_S = 300


class Run:
    """A run: its output, the report of its recording, and the time from last line to end."""

    def __init__(self, output: str, told: Told, ending_s: float):
        self.output, self.told, self.ending_s = output, told, ending_s

    def number(self, name: str) -> float:
        """A number that the program prints after its name."""
        found = re.search(rf"^{re.escape(name)} ([\d.E-]+)$", self.output, re.M)
        if not found:
            raise SystemExit(f"the program printed no '{name}':\n{self.output}")
        return float(found.group(1))


def recorded(jdk, flags: list, program: str, arguments: list, options: list = ()) -> Run:
    """Runs a program from start to end under `dwell record`."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "example"
        words = [tools.command(), "record", *options, "-o", base, "--", jdk.tool("java"),
                 "-Xmx512m", *flags, "-cp", tools.java_program(JAR), program,
                 *map(str, arguments)]
        lines, last = [], time.monotonic()
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as child:
            for line in child.stdout:
                # Our own first line after the program's end is its last moment.
                if line.startswith("recorded "):
                    ending_s = time.monotonic() - last
                    break
                lines.append(line)
                last = time.monotonic()
            else:
                ending_s = time.monotonic() - last
            rest, errors = child.communicate(timeout=TIME_OUT_S)
        recording = base.with_suffix(".jfr")
        if child.returncode != 0 or not recording.exists():
            raise SystemExit(f"{' '.join(map(str, words))}\nfailed: {errors[-2000:]}{rest}")
        text = subprocess.run([tools.command(), "report", recording, "--text", "--safepoints"],
                              capture_output=True, text=True, check=True).stdout
        return Run("".join(lines), Told(text), ending_s)


def beside(jdk, flags: list, program: str, arguments: list, line: str, words: list) -> str:
    """Runs a command with the pid of a program that has printed a line; the command's output.

    The program is not recorded otherwise. It is killed when the command has ended.
    """
    java = [jdk.tool("java"), "-Xmx512m", *flags, "-cp", tools.java_program(JAR), program,
            *map(str, arguments)]
    with subprocess.Popen(java, stdout=subprocess.PIPE, text=True) as child:
        try:
            while line and child.stdout.readline().strip() != line:
                if child.poll() is not None:
                    raise SystemExit(f"{program} ended before it printed '{line}'")
            time.sleep(1)
            out = subprocess.run([tools.command(), *words, str(child.pid)], capture_output=True,
                                 text=True, timeout=TIME_OUT_S)
        finally:
            child.kill()
    if out.returncode != 0:
        raise SystemExit(f"dwell {' '.join(words)} failed: {out.stderr}")
    return out.stdout


class Rows:
    """Rows of an example: one for each run, medians for the table, all of them for plots."""

    def __init__(self, options):
        self.options, self.all = options, []

    def add(self, **row) -> None:
        """Keeps a row, in the file as well if there is one."""
        self.all.append(row)
        print("  " + " ".join(f"{name}={value:.6g}" if isinstance(value, float)
                              else f"{name}={value}" for name, value in row.items()),
              file=sys.stderr, flush=True)
        if self.options.rows:
            with open(self.options.rows, "a") as out:
                out.write(json.dumps(row) + "\n")

    def of(self, name: str, **key) -> list:
        """The values of all rows with this key."""
        return values(self.all, name, **key)

    def spread(self, name: str, digits: int = 1, **key) -> str:
        """Their median and range."""
        return spread(self.of(name, **key), digits)


def values(rows: list, name: str, **key) -> list:
    """The values of all rows with this key."""
    return [row[name] for row in rows
            if name in row and all(row.get(k) == v for k, v in key.items())]


def spread(found: list, digits: int = 1) -> str:
    """The median, with the lowest and highest value in brackets."""
    if not found:
        return "-"
    if len(found) == 1:
        return f"{found[0]:.{digits}f}"
    return (f"{stats.median(found):.{digits}f} "
            f"({min(found):.{digits}f} to {max(found):.{digits}f})")


def arguments(about: str, seconds: int) -> argparse.ArgumentParser:
    """The options that all examples have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--jdk", default="17,25", help="versions, or all (default 17,25)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each case (default 1)")
    parser.add_argument("--seconds", type=int, default=seconds,
                        help=f"of each run (default {seconds})")
    parser.add_argument("--rows", metavar="FILE", help="append a line of JSON for each run")
    return parser


def parsed(parser) -> tuple:
    """The options, the JDKs and a place for rows."""
    options = parser.parse_args()
    return options, jdks.chosen(options.jdk), Rows(options)


def show(title: str, text: str) -> None:
    """Prints a report without its head, below the command that prints it."""
    print(f"\n{title}\n$ dwell report example.jfr --text --safepoints")
    _, _, body = text.partition("\nsafepoints ")
    print("safepoints " + body if body else text, flush=True)
