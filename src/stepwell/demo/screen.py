"""What the demo shows: lines, a table, a question; with rich where it is installed, else as plain text.

The rule: the plain form says everything the coloured one says.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol

from stepwell.demo.step_log import Tally

HEADERS = ("step", "started", "finished", "reused")
Row = tuple[str, str, str, str]


class Console(Protocol):
    """What the demo needs of a `rich.console.Console`."""

    def print(
        self, *objects: Any, markup: bool | None = None, highlight: bool | None = None, soft_wrap: bool | None = None
    ) -> None: ...


class PlainConsole:
    """Prints where rich is not installed."""

    def print(
        self, *objects: Any, markup: bool | None = None, highlight: bool | None = None, soft_wrap: bool | None = None
    ) -> None:
        """Write the objects on one line."""
        sys.stdout.write(" ".join(map(str, objects)) + "\n")
        sys.stdout.flush()


def open_console() -> Console:
    """Return a rich console if there is one."""
    try:
        from rich.console import Console as RichConsole
    except ImportError:
        return PlainConsole()
    return RichConsole()


def say(console: Console, text: str = "") -> None:
    """Print `text` as it is: nothing in it is taken for markup, and no path is broken in two."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def ask(console: Console, question: str) -> bool:
    """Ask for a yes or no on the terminal. The end of the input is a no."""
    say(console, f"{question} [y/N]")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def show_tallies(console: Console, tallies: Sequence[Tally]) -> None:
    """Print the table of every step."""
    rows = rows_of(tallies)
    if isinstance(console, PlainConsole):
        for row in (HEADERS, *rows):
            say(console, f"  {row[0]:<28}" + "".join(f"{cell:>10}" for cell in row[1:]))
        return
    from rich.table import Table

    table = Table(*HEADERS)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def rows_of(tallies: Sequence[Tally]) -> list[Row]:
    """Make a row of each step; neighbours of the fan-out that went the same way share one."""
    rows: list[Row] = []
    for (_, *counts), alike in groupby(sorted(tallies, key=_place), key=_way):
        steps = [each.step for each in alike]
        name = steps[0] if len(steps) == 1 else f"{steps[0]} to {steps[-1].split()[-1]}"
        rows.append((name, *(str(count) for count in counts)))  # type: ignore[arg-type]
    return rows


_ORDER = ("collect", "condense", "draft", "approve", "publish")


def _place(tally: Tally) -> tuple[int, int]:
    node, _, number = tally.step.partition(" ")
    return _ORDER.index(node), int(number or 0)


def _way(tally: Tally) -> tuple[str, int, int, int]:
    return tally.step.partition(" ")[0], tally.started, tally.finished, tally.reused
