"""Records of measurements: each table that a benchmark prints, as a JSON file.

A record has the question, the command, commit, date, machine, JDK, number of runs, columns and
rows. A value with a spread is a list: the median, the lower and the upper end. `bench/run
--publish` makes bench/RESULTS.md of the records in bench/records.
"""

import json
import re
import sys
from pathlib import Path

from . import jdks, store

# A number with the ends of its spread, as `table.spread` prints it.
NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")
SPREAD = re.compile(r"(-?\d[\d,.]*) \((-?\d[\d,.]*) to (-?\d[\d,.]*)\)")
# Options with the number of runs behind a value.
COUNTS = ("runs", "rounds", "blocks")
# Set by people, and kept when a record is replaced.
KEPT = ("section", "order", "question", "spread", "show", "published")


class Recorder:
    """Writes the tables of this process, if that was asked for."""

    folder: Path | None = None
    options = None
    about = ""
    tables = 0

    def parse(self, parser):
        """Parses the command line, with the option --record in addition."""
        parser.add_argument("--record", metavar="DIR", type=Path,
                            help="also write each table there as a JSON record (bench/records)")
        self.options = parser.parse_args()
        self.folder = self.options.record
        self.about = (parser.description or "").strip().split("\n")[0]
        return self.options

    def keep(self, head: list, rows: list) -> None:
        """Writes one table, if records are asked for."""
        if self.folder is None:
            return
        self.tables += 1
        name = Path(sys.argv[0]).name + (f"-{self.tables}" if self.tables > 1 else "")
        where = store.machine()
        record = {
            "section": "Other", "order": 1000, "question": self.about, "spread": "quartiles",
            "command": " ".join(["bench/" + Path(sys.argv[0]).name, *without_record(sys.argv[1:])]),
            "commit": where["commit"], "date": where["began"].split()[0],
            "machine": f"{where['cores']} cores, {where['cpu']}, Linux {where['kernel']}",
            "jdk": versions(head, rows), "n": self.count(head, rows),
            "columns": [str(cell) for cell in head],
            "rows": [[value(cell) for cell in row] for row in rows],
        }
        write(self.folder / f"{name}.json", record)

    def count(self, head: list, rows: list) -> str:
        """How many runs are behind a value: by a column, else by an option."""
        for name in ("n", *COUNTS):
            if name in head:
                numbers = sorted({int(row[head.index(name)]) for row in rows})
                return " to ".join(str(n) for n in sorted({numbers[0], numbers[-1]}))
        numbers = (getattr(self.options, name, None) for name in COUNTS)
        return str(next((n for n in numbers if n), 1))


RECORDER = Recorder()


def parse(parser):
    """The options of a benchmark."""
    return RECORDER.parse(parser)


def without_record(words: list) -> list:
    """A command line without the option of this module."""
    kept, skips = [], False
    for word in words:
        if not skips and not word.startswith("--record"):
            kept.append(word)
        skips = word == "--record"
    return kept


def versions(head: list, rows: list) -> list:
    """The full versions of the JDKs in the column `JDK`."""
    if "JDK" not in head:
        return []
    majors = {str(row[head.index("JDK")]) for row in rows}
    found = jdks.all_jdks()
    return [found[int(m)].full if m.isdigit() and int(m) in found else m
            for m in sorted(majors, key=lambda m: m.zfill(3))]


def value(cell):
    """A cell of a table as a value: a number, a list with its spread, or text."""
    if cell is None or isinstance(cell, (int, float)):
        return cell
    text = str(cell)
    if found := SPREAD.fullmatch(text):
        return [number(it) for it in found.groups()]
    return number(text) if NUMBER.fullmatch(text) else text


def number(text: str):
    """An int or a float; commas group digits."""
    digits = text.replace(",", "")
    return float(digits) if "." in digits else int(digits)


def write(path: Path, record: dict) -> None:
    """Writes a record. An earlier one of this name gives what people have set."""
    if path.exists():
        before = json.loads(path.read_text())
        record = {**record, **{key: before[key] for key in KEPT if key in before}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(record))


def text_of(record: dict) -> str:
    """JSON with one row of the table in a line."""
    rows = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    head = {key: it for key, it in record.items() if key != "rows"}
    text = json.dumps(head, indent=1)
    return f'{text[:-2]},\n "rows": [\n{rows}\n ]\n}}\n'


def read(folder: Path) -> list:
    """All records of a folder, in their order."""
    paths = sorted(folder.glob("*.json"))
    found = [{**json.loads(path.read_text()), "name": path.stem} for path in paths]
    return sorted(found, key=lambda record: (record.get("order", 0), record["name"]))

