"""What reaches the terminal: JSON and tables on stdout, everything said beside them on stderr.

The rule: stdout holds nothing but the answer, and no stored text reaches a terminal with control characters in it. rich
draws tables where it is installed and stdout is a terminal; it is never imported otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

MOST_LETTERS = 160


def say(text: str) -> None:
    """Say something beside the answer."""
    click.echo(text, err=True)


def write(text: str) -> None:
    """Write a line of the answer."""
    click.echo(text)


def write_json(value: Any) -> None:
    """Write JSON, in the terminal's own letters where it has them."""
    text = json_text(value, 2)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, allow_nan=False)
    click.echo(text)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON without control characters: in ASCII where the letters alone would let one through."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return text if text.replace("\n", "").isprintable() else json.dumps(value, indent=indent, allow_nan=False)


def write_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table: drawn on a terminal, columns of text otherwise."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    if not (sys.stdout.isatty() and _draw(headers, clean)):
        widths = [max(map(len, column)) for column in zip(headers, *clean, strict=True)]
        for row in (headers, *clean):
            write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(*headers, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
    return True


def one_line(text: str) -> str:
    """Return text as one line without control characters: line breaks become spaces, the rest is escaped."""
    first, *more = text.splitlines() or [""]
    joined = " ".join([first.rstrip(), *map(str.strip, more)])
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in joined)


def readable(value: Any) -> str:
    """Return a value as a person reads it: text as text, a mapping key by key, anything else as JSON."""
    if isinstance(value, str):
        return "\n".join(map(one_line, value.splitlines()))
    if isinstance(value, dict) and any(isinstance(item, str) and "\n" in item for item in value.values()):
        return "\n".join(f"{one_line(key)}:\n{readable(item)}" for key, item in value.items())
    return json_text(value, 2)


def brief(value: Any) -> str:
    """Return a value as JSON on one line, cut where it is long."""
    return cut(json_text(value))


def cut(text: str) -> str:
    """Return text on one line, cut where it is long."""
    line = one_line(text)
    return line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}... ({len(line)} letters)"


def moment(microseconds: int) -> str:
    """Return a recorded time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="microseconds")


def short_moment(microseconds: int) -> str:
    """Return a recorded time as a person reads it."""
    return f"{datetime.fromtimestamp(microseconds / 1e6, UTC):%Y-%m-%d %H:%M:%S}Z"
