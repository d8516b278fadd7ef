"""The raw results of a long benchmark: rows as JSON lines in a folder, to be resumed and read.

The agents under test are copied there, so that a build during the run does not change the
measured library.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

from . import tools

ROWS, ABOUT, EXPERIMENT = "rows.jsonl", "about.json", "libdwell-experiment.so"


class Store:
    """A folder of results, which may be new."""

    def __init__(self, folder: Path, given: dict, defaults: dict, experiment: str | None = None):
        """`given` are the amounts common to all rows; None means the stored or default one."""
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / ABOUT
        if path.exists():
            self.about = json.loads(path.read_text())
            self.check(given)
        else:
            self.copy(tools.agent(), "libdwell.so")
            if experiment:
                self.copy(experiment, EXPERIMENT)
            amounts = {n: defaults[n] if v is None else v for n, v in given.items()}
            self.about = {"amounts": amounts, **machine(), "agent_sha256": self.sha("libdwell.so")}
            path.write_text(json.dumps(self.about, indent=1) + "\n")
        os.environ["DWELL_AGENT_SO"] = str(self.folder / "libdwell.so")
        self.rows = list(self.read())

    @property
    def amounts(self) -> dict:
        """The amounts common to all rows."""
        return self.about["amounts"]

    @property
    def experiment(self) -> str | None:
        """The agent built for experiments, if there is one."""
        path = self.folder / EXPERIMENT
        return str(path) if path.exists() else None

    def check(self, given: dict) -> None:
        """Ends the program if other amounts are asked for than were measured."""
        for name, value in given.items():
            if value is not None and value != self.amounts[name]:
                raise SystemExit(f"{self.folder} has rows of {name} {self.amounts[name]}, not "
                                 f"{value}; leave the option out, or take another folder")

    def copy(self, source: str, name: str) -> None:
        """Keeps a library."""
        shutil.copy2(source, self.folder / name)

    def sha(self, name: str) -> str:
        """The checksum of a library."""
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()

    def read(self):
        """All whole rows; the last one may be cut."""
        path = self.folder / ROWS
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def find(self, **key) -> dict | None:
        """The row with these values, if it was measured."""
        return next((r for r in self.rows if all(r.get(k) == v for k, v in key.items())), None)

    def add(self, row: dict) -> None:
        """Keeps a row at once. A line that was cut is ended first."""
        self.rows.append(row)
        path = self.folder / ROWS
        cut = path.exists() and (text := path.read_bytes()) and not text.endswith(b"\n")
        with open(path, "a") as out:
            out.write(("\n" if cut else "") + json.dumps(row) + "\n")


def machine() -> dict:
    """Where and when; nothing that names the machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines
                  if line.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "-C", tools.ROOT, "describe", "--always", "--dirty"],
                            capture_output=True, text=True).stdout.strip()
    return {"began": time.strftime("%Y-%m-%d %H:%M"), "cpu": model, "cores": os.cpu_count(),
            "kernel": platform.release(), "commit": commit}


def new_folder(name: str) -> Path:
    """A folder that is not there yet."""
    return tools.WORK / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
