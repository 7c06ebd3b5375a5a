"""Text that PostgreSQL cannot hold, as text that it can: a NUL, which it refuses, is written as a pair of characters.

The pairs keep the order of texts, and no two texts become the same. Every other text stays as it is. A lone
surrogate is no Unicode: whoever brings one is refused above.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_ESCAPE = "\x01"
_WRITTEN = {"\x00": "\x01\x01", "\x01": "\x01\x02"}
_READ = {pair: character for character, pair in _WRITTEN.items()}
_SPECIAL = re.compile("[\x00\x01]")
_PAIR = re.compile("\x01[\x01\x02]")


def stored(text: str) -> str:
    """Return what a text is stored as."""
    if "\x00" not in text and _ESCAPE not in text:
        return text
    return _SPECIAL.sub(lambda found: _WRITTEN[found[0]], text)


def loaded(text: str) -> str:
    """Return the text that is stored as this one."""
    return _PAIR.sub(lambda found: _READ[found[0]], text) if _ESCAPE in text else text


def bound(where: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return bindings as they are looked for: texts, and lists of them, as stored."""
    return {name: _bound(value) for name, value in where.items()}


def _bound(value: Any) -> Any:
    if type(value) is str:
        return stored(value)
    if type(value) is list:
        return [_bound(each) for each in value]
    return value


def row_of(columns: Sequence[Any]) -> Sequence[Any]:
    """Return a row with its texts as they were written. Most rows are returned as they are."""
    for column in columns:
        if type(column) is str and _ESCAPE in column:
            return tuple(loaded(each) if type(each) is str else each for each in columns)
    return columns
