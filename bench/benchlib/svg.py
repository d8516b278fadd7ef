"""Plots as SVG text, readable in light and dark. It computes nothing but places and scales."""

import math
from xml.sax.saxutils import escape

STYLE = """
svg { --page: #ffffff; --ink: #1f2328; --faint: #6b7280; --grid: #e2e5e9; --c0: #6b7280;
  --c1: #1f6feb; --c2: #8250df; --c3: #0e8a8a; --c4: #8a6d00; --c5: #c2410c; --c6: #c11574;
  --c7: #2a7d2e; }
@media (prefers-color-scheme: dark) {
  svg { --page: #14171c; --ink: #e6e9ee; --faint: #9aa3af; --grid: #323841; --c0: #a5adb8;
    --c1: #6cb0ff; --c2: #bb9bff; --c3: #4fd0d0; --c4: #e0bd4a; --c5: #ff9b66; --c6: #ff8fc4;
    --c7: #74d178; }
}
text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.page { fill: var(--page); } .grid { stroke: var(--grid); } .faint { fill: var(--faint); }
.head { font-size: 15px; font-weight: 600; } .panel { font-weight: 600; }
.one { stroke: var(--faint); stroke-dasharray: 4 3; }
.box { fill-opacity: .16; } .dot { fill-opacity: .75; } .line { fill: none; stroke-width: 1.6; }
"""
COLOURS = 8
LABEL_W, PANEL_W, ROW_H, GAP, HEAD_H = 120, 330, 24, 56, 74
LINES_H, LINES_LEFT, LINES_GAP = 230, 64, 78


class Page:
    """Shapes one after the other; its size is known at the end."""

    def __init__(self):
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> None:
        """Words, upright."""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">'
                          f"{escape(words)}</text>")

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line."""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'class="{kind}"/>')

    def box(self, x: float, y: float, width: float, height: float, colour: int) -> None:
        """A rectangle with a frame."""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                          f'height="{height:.1f}" class="box" fill="{ink(colour)}" '
                          f'stroke="{ink(colour)}"/>')

    def stroke(self, points: list, colour: int, dash: str = "") -> None:
        """A line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="line" stroke="{ink(colour)}" '
                          f'stroke-dasharray="{dash}"/>')

    def dot(self, x: float, y: float, colour: int, title: str, radius: float = 2.6) -> None:
        """A dot with its value as the title."""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="dot" '
                          f'fill="{ink(colour)}"><title>{escape(title)}</title></circle>')

    def svg(self, width: float, height: float) -> str:
        """The document."""
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
                f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">')
        page = f'<rect width="{width:.0f}" height="{height:.0f}" class="page"/>'
        return "\n".join([head, f"<style>{STYLE}</style>", page, *self.parts, "</svg>", ""])


def ink(colour: int) -> str:
    """One of the colours."""
    return f"var(--c{colour % COLOURS})"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that cover a range: one step below it to one step above at most."""
    raw = (high - low) / about or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * f for f in (1, 2, 5, 10) if power * f >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    count = math.ceil((high - first * step) / step - 1e-9)
    return [(first + i) * step for i in range(count + 1)]


def number(value: float) -> str:
    """A number on an axis."""
    return f"{value:.6g}" if abs(value) < 1e5 else f"{value:.1e}"


def dots(title: str, axis: str, columns: list, rows: list, colours: dict, spread,
         reference: float | None = None) -> str:
    """Values of several groups as dots over the box of their quartiles, in panels side by side.

    `rows` are a title and, for each column, the values by name; the panels of a row have one
    scale. `colours` are by name, in the order of the names. `spread` gives lower quartile,
    median and upper quartile.
    """
    page, top = Page(), HEAD_H
    page.text(12, 24, title, kind="head")
    page.text(12, 44, "a dot is a run, a box the quartiles with the median", kind="faint")
    for row_title, cells in rows:
        shown = [n for n in colours if any(cell.get(n) for cell in cells)]
        values = [v for cell in cells for group in cell.values() for v in group]
        values += [reference] if reference is not None and values else []
        if not values:
            continue
        marks = ticks(min(values), max(values))
        for number_of, (column, cell) in enumerate(zip(columns, cells)):
            left = LABEL_W + number_of * (PANEL_W + GAP)
            page.text(left, top - 8, f"{row_title}, {column}", kind="panel")
            scale = scale_of(marks, left)
            axis_below(page, marks, scale, top, top + ROW_H * len(shown), reference)
            for line, name in enumerate(shown):
                middle = top + ROW_H * (line + 0.5)
                if number_of == 0:
                    page.text(LABEL_W - 10, middle + 4, name, "end")
                group(page, cell.get(name, []), scale, middle, colours[name], spread, name)
            page.text(left + PANEL_W / 2, top + ROW_H * len(shown) + 33, axis, "middle", "faint")
        top += ROW_H * len(shown) + 76
    width = LABEL_W + len(columns) * (PANEL_W + GAP)
    return page.svg(width, top - 20)


def scale_of(marks: list, left: float):
    """From values to places in a panel."""
    return lambda v: left + (v - marks[0]) / ((marks[-1] - marks[0]) or 1) * PANEL_W


def axis_below(page: Page, marks: list, scale, top: float, bottom: float, reference) -> None:
    """Grid and numbers of a panel."""
    for mark in marks:
        page.line(scale(mark), top, scale(mark), bottom, "grid")
        page.text(scale(mark), bottom + 16, number(mark), "middle", "faint")
    if reference is not None:
        page.line(scale(reference), top, scale(reference), bottom, "one")


def group(page: Page, values: list, scale, middle: float, colour: int, spread, name: str) -> None:
    """A box and the dots of one group; the dots lie in the order of the runs, slightly apart."""
    if not values:
        return
    low, median, high = spread(values)
    page.box(scale(low), middle - 8, scale(high) - scale(low), 16, colour)
    for i, value in enumerate(values):
        up = (i - (len(values) - 1) / 2) * min(2.0, 12 / len(values))
        page.dot(scale(value), middle + up, colour, f"{name}: {number(value)}")
    page.stroke([(scale(median), middle - 8), (scale(median), middle + 8)], colour)


def lines(title: str, axis: str, columns: list, rows: list, colours: dict, dashes: dict) -> str:
    """Values over steps as lines, in panels side by side, on a logarithmic scale.

    `rows` are a title, what the steps are, the steps and, for each column, the values of each
    step by name and kind; `colours` are by name, `dashes` gives each kind its line.
    """
    page = Page()
    page.text(12, 24, title, kind="head")
    page.text(12, 44, axis, kind="faint")
    legend(page, colours, dashes)
    top = HEAD_H + 24
    for row_title, steps_are, steps, cells in rows:
        values = [v for c in cells for series in c.values() for v in series if v]
        if not values:
            continue
        low = math.floor(math.log10(min(values)))
        high = max(math.ceil(math.log10(max(values))), low + 1)
        for number_of, (column, cell) in enumerate(zip(columns, cells)):
            left = LINES_LEFT + number_of * (PANEL_W + LINES_GAP)
            page.text(left, top - 8, f"{row_title}, {column}", kind="panel")
            decades(page, left, top, low, high)
            places = [left + (i + 0.5) * PANEL_W / len(steps) for i in range(len(steps))]
            for place, step in zip(places, steps):
                page.text(place, top + LINES_H + 16, number(step), "middle", "faint")
            page.text(left + PANEL_W / 2, top + LINES_H + 32, steps_are, "middle", "faint")
            for (name, kind), series in cell.items():
                points = [(x, top + height(v, low, high)) for x, v in zip(places, series) if v]
                page.stroke(points, colours[name], dashes[kind])
                for (x, y), value in zip(points, [v for v in series if v]):
                    page.dot(x, y, colours[name], f"{name} {kind}: {value}", 2.2)
        top += LINES_H + 78
    return page.svg(LINES_LEFT + len(columns) * (PANEL_W + LINES_GAP), top - 30)


def height(value: float, low: int, high: int) -> float:
    """The place of a value below the top of a panel."""
    return LINES_H * (1 - (math.log10(value) - low) / (high - low))


def decades(page: Page, left: float, top: float, low: int, high: int) -> None:
    """Grid and times of a logarithmic panel."""
    units = {0: "1 ns", 3: "1 us", 6: "1 ms", 9: "1 s"}
    for power in range(low, high + 1):
        y = top + height(10.0 ** power, low, high)
        page.line(left, y, left + PANEL_W, y, "grid")
        unit = units[power - power % 3].split()[1] if power - power % 3 in units else "ns"
        page.text(left - 8, y + 4, f"{10 ** (power % 3)} {unit}", "end", "faint")


def legend(page: Page, colours: dict, dashes: dict) -> None:
    """Which colour is what, which line is what."""
    x, y = 12.0, 64.0
    for name in colours:
        page.dot(x + 6, y - 4, colours[name], name, 5)
        page.text(x + 16, y, name)
        x += 28 + 7.2 * len(name)
    x += 20
    for kind, dash in dashes.items():
        page.stroke([(x, y - 4), (x + 32, y - 4)], 0, dash)
        page.text(x + 38, y, kind)
        x += 54 + 7.2 * len(kind)
