"""Markdown tables and numbers as they are read best."""

from . import records, stats


def markdown(head: list, rows: list) -> str:
    """A Markdown table; the first column is text, the rest numbers. It is recorded if asked for."""
    records.RECORDER.keep(head, rows)
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in cells]
    rule = ["-" * widths[0]] + ["-" * (w - 1) + ":" for w in widths[1:]]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    return "\n".join(lines)


def spread(values, digits: int = 2, unit: str = "") -> str:
    """The median with the quartiles: `1.02 (1.01 to 1.03)`."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    low, high = stats.quartiles(values)
    return f"{stats.median(values):.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f})"


def percent(part: float, whole: float, digits: int = 2) -> str:
    """A share as percentage."""
    return f"{100 * part / whole:.{digits}f} %" if whole else "-"
