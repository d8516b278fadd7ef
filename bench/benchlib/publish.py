"""Makes bench/RESULTS.md of the records in bench/records: one table for each question."""

import argparse
import sys
import textwrap

from . import records, tools

FOLDER = tools.ROOT / "bench"
LINES_MAX = 300
COLUMNS = 100
NEEDED = ("section", "order", "question", "command", "commit", "date", "machine", "jdk", "n",
          "spread", "columns", "rows")
HEAD = """# Measured

The present figures, one table for each question. `bench/run --publish` makes this file from
[records](records) in JSON; do not edit it. [history](history) has earlier figures, also as data.
Ratios are relative to the same work without a profiler. {machines}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true",
                        help="fail if the file is not that of the records, and write nothing")
    options = parser.parse_args()
    path = FOLDER / "RESULTS.md"
    try:
        text = document(records.read(FOLDER / "records"))
    except ValueError as wrong:
        raise SystemExit(f"bench/run --publish: {wrong}")
    if not options.check:
        path.write_text(text)
        print(f"bench/RESULTS.md: {len(text.splitlines())} lines")
    elif path.read_text() != text:
        raise SystemExit("bench/RESULTS.md is not that of bench/records; run bench/run --publish")


def document(found: list) -> str:
    """The whole document.

    Raises ValueError for records that lack something, and for a document that is too long.
    """
    for record in found:
        check(record)
    hidden = [record for record in found if not record.get("published", True)]
    found = [record for record in found if record.get("published", True)]
    parts, section = [], None
    names = letters(found)
    for record in found:
        if record["section"] != section:
            section = record["section"]
            parts.append(f"## {section}\n")
        parts.append(of_record(record, names))
    list_of = "; ".join(f"{name}: {machine}" for machine, name in names.items())
    head = HEAD.format(machines=f"Machines: {list_of}." if names else "").strip()
    wrapped = "\n\n".join([head.split("\n\n")[0], fill(head.split("\n\n")[1])])
    if hidden:
        links = "; ".join(f"[{record['question']}](records/{record['name']}.json)"
                          for record in hidden)
        parts.append("## More records\n\n" + fill(f"Not shown here: {links}") + "\n")
    text = "\n".join([wrapped + "\n", *parts])
    if (lines := len(text.splitlines())) > LINES_MAX:
        raise ValueError(f"the document would have {lines} lines, at most {LINES_MAX}; leave out "
                         "columns or rows, or move a record to bench/history")
    return text


def letters(found: list) -> dict:
    """A short name for each machine, in the order of the records."""
    machines = dict.fromkeys(record.get("machine") for record in found)
    return {machine: chr(ord("A") + number) for number, machine in enumerate(machines)}


def check(record: dict) -> None:
    """Raises ValueError for a record that lacks something."""
    about = record.get("question", record)
    if missing := [key for key in NEEDED if key not in record]:
        raise ValueError(f"the record of {about} lacks {', '.join(missing)}")
    if not record["rows"] or any(len(row) != len(record["columns"]) for row in record["rows"]):
        raise ValueError(f"the record of {about} has rows that do not match its columns")


def of_record(record: dict, names: dict) -> str:
    """The question with its conditions, the table and the note."""
    spread = f", medians ({record['spread']})" if record["spread"] else ""
    jdk = f", JDK {', '.join(str(it) for it in record['jdk'])}" if record["jdk"] else ""
    commit = f"commit `{record['commit']}`" if record["commit"] else "commit not recorded"
    date = record["date"] or "date not recorded"
    conditions = (f"`{record['command']}`, {commit}, {date}. Machine "
                  f"{names[record['machine']]}{jdk}, n = {record['n']}{spread}.")
    shown = record.get("show") or record["columns"]
    places = [record["columns"].index(name) for name in shown]
    digits = [most_digits(row[place] for row in record["rows"]) for place in places]
    lines = [row_of(shown), row_of(["---", *["--:"] * (len(shown) - 1)])]
    lines += [row_of([cell(row[place], most) for place, most in zip(places, digits)])
              for row in record["rows"]]
    note = f" {record['note']}" if record.get("note") else ""
    return "\n".join([fill(f"**{record['question']}** {conditions}{note}"), "", *lines, ""])


def row_of(cells: list) -> str:
    return "| " + " | ".join(str(it) for it in cells) + " |"


def most_digits(values) -> int:
    """Digits behind the point, at most, of a column's numbers."""
    numbers = [it for value in values for it in (value if isinstance(value, list) else [value])]
    return max((len(str(it).split(".")[1]) for it in numbers if isinstance(it, float)), default=0)


def cell(value, digits: int) -> str:
    """A value as it is read best; floats of a column have the same digits."""
    if value is None:
        return ""
    if isinstance(value, list):
        middle, low, high = (number(it, digits) for it in value)
        return f"{middle} ({low} to {high})"
    return number(value, digits)


def number(value, digits: int) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def fill(text: str) -> str:
    """Wraps prose."""
    words = join_code(text.replace("\n", " "))
    wrapped = textwrap.fill(words, COLUMNS, break_long_words=False, break_on_hyphens=False)
    return wrapped.replace("\0", " ")


def join_code(text: str) -> str:
    """Short code with its blanks replaced, so that lines do not break in it."""
    parts = text.split("`")
    return "`".join(part.replace(" ", "\0") if place % 2 and len(part) < 60 else part
                    for place, part in enumerate(parts))


if __name__ == "__main__":
    sys.exit(main())
