"""A drawn graph as text: a box for each node, lines that turn in tracks between the layers, labels below the drawing.

Plain edges are drawn with | and -, conditional ones with : and dots. Lines that cross do not join: only + joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepwell.plan.drawing.graph import DrawnEdge, DrawnNode
from stepwell.plan.drawing.layout import Layout, Link, lay_out

BOX = 3
"""Rows of a box."""


def draw(nodes: Iterable[DrawnNode], edges: Iterable[DrawnEdge]) -> str:
    """Return the text, without trailing blanks, ending in a line break."""
    names = [node.id for node in nodes]
    all_edges = list(edges)
    widths = {name: (len(name) + 4) | 1 for name in names}
    layout = lay_out(widths, [(e.source, e.target, e.conditional) for e in all_edges if e.source != e.target])
    canvas = _Canvas()
    row = 0
    for depth, layer in enumerate(layout.layers):
        below = [link for link in layout.links if link[0] in layer]
        for name in layer:
            if name in widths:
                canvas.box(row, layout.middle[name], widths[name], name)
            else:
                canvas.pass_by(row, layout.middle[name], next(link for link in below if link[0] == name))
        row += BOX
        if depth < len(layout.layers) - 1:
            row = _gap(canvas, row, layout, below, widths.keys())
    notes = [_note(edge) for edge in all_edges if edge.data is not None or edge.source == edge.target]
    return "\n".join([*canvas.lines(), *([""] if notes else []), *notes]) + "\n"


def _note(edge: DrawnEdge) -> str:
    arrow = "..>" if edge.conditional else "-->"
    return f"{edge.source} {arrow} {edge.target}" + (f": {edge.data}" if edge.data is not None else "")


class _Canvas:
    """Characters by row and column."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], str] = {}

    def put(self, row: int, column: int, char: str) -> None:
        self._cells[row, column] = char

    def box(self, row: int, middle: int, width: int, name: str) -> None:
        left = middle - width // 2
        border = "+" + "-" * (width - 2) + "+"
        for at, text in enumerate((border, f"|{name.center(width - 2)}|", border)):
            for offset, char in enumerate(text):
                self.put(row + at, left + offset, char)

    def pass_by(self, row: int, column: int, link: Link) -> None:
        for at in range(BOX):
            self.put(row + at, column, _upright(link))

    def lines(self) -> list[str]:
        rows: dict[int, dict[int, str]] = {}
        for (row, column), char in self._cells.items():
            rows.setdefault(row, {})[column] = char
        return ["".join(rows[row].get(at, " ") for at in range(max(rows[row]) + 1)) for row in sorted(rows)]


def _upright(link: Link) -> str:
    return ":" if link[2] else "|"


def _gap(canvas: _Canvas, row: int, layout: Layout, links: Sequence[Link], boxes: Iterable[str]) -> int:
    """Draw the links between two layers; return the row where the next layer begins."""
    tracks = _tracks(layout, links)
    end = row + len(tracks) + 2
    dotted_last = sorted(links, key=lambda link: not link[2])  # where lines run together, the plain one is seen
    for upper, lower, conditional, _ in dotted_last:
        left, right = sorted((layout.middle[upper], layout.middle[lower]))
        for column in range(left, right + 1) if left != right else ():
            canvas.put(row + 1 + tracks.index(upper), column, "." if conditional else "-")
    for link in dotted_last:
        upper, lower = link[:2]
        turn = row + 1 + tracks.index(upper) if upper in tracks else end
        for at in range(row, min(turn, end)):
            canvas.put(at, layout.middle[upper], _upright(link))
        for at in range(turn, end):
            canvas.put(at, layout.middle[lower], _upright(link))
    for upper, lower, _, _ in links:
        if layout.middle[upper] != layout.middle[lower]:
            for end_of in (upper, lower):
                canvas.put(row + 1 + tracks.index(upper), layout.middle[end_of], "+")
    _heads(canvas, row, end, layout, links, set(boxes))
    return end


def _heads(canvas: _Canvas, row: int, end: int, layout: Layout, links: Sequence[Link], boxes: set[str]) -> None:
    for upper, lower, _, turned in links:
        if turned and upper in boxes:
            canvas.put(row, layout.middle[upper], "^")
        if not turned and lower in boxes:
            canvas.put(end - 1, layout.middle[lower], "v")


def _tracks(layout: Layout, links: Sequence[Link]) -> list[str]:
    """Return the upper ends whose lines turn, in the order of their tracks: one that stands where another's line goes
    down turns before it."""
    middle = layout.middle
    turning = list(dict.fromkeys(upper for upper, lower, *_ in links if middle[upper] != middle[lower]))
    down: dict[str, set[int]] = {}
    for upper, lower, *_ in links:
        down.setdefault(upper, set()).add(middle[lower])
    tracks: list[str] = []
    while turning:
        free = (
            name for name in turning if not any(middle[other] in down[name] for other in turning if other is not name)
        )
        tracks.append(next(free, turning[0]))
        turning.remove(tracks[-1])
    return tracks
