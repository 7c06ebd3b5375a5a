"""What differs between two values given as JSON, path by path.

The rule: applied to the one, the changes make the other. Of two arrays, what they begin and end with alike is left out;
the items between are compared pair by pair where there are as many on both sides, else they are removed and added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

Path = tuple[str | int, ...]


class Change(NamedTuple):
    """One place at which two values differ."""

    path: Path
    """Keys and positions: in the old value for what is removed, in the new one otherwise."""
    kind: Literal["added", "removed", "changed"]
    old: Any
    new: Any


def changes(old: Any, new: Any, path: Path = ()) -> Iterator[Change]:
    """Yield what has to be changed in `old` to get `new`, in the order of `new`, with what is removed first."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _in_mapping(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _in_array(old, new, path)
    elif not _same(old, new):
        yield Change(path, "changed", old, new)


def _in_mapping(old: dict[str, Any], new: dict[str, Any], path: Path) -> Iterator[Change]:
    yield from (Change((*path, key), "removed", value, None) for key, value in old.items() if key not in new)
    for key, value in new.items():
        if key in old:
            yield from changes(old[key], value, (*path, key))
        else:
            yield Change((*path, key), "added", None, value)


def _in_array(old: Sequence[Any], new: Sequence[Any], path: Path) -> Iterator[Change]:
    alike = min(len(old), len(new))
    first = next((i for i in range(alike) if not _same(old[i], new[i])), alike)
    last = next((i for i in range(alike - first) if not _same(old[-1 - i], new[-1 - i])), alike - first)
    before, after = range(first, len(old) - last), range(first, len(new) - last)
    if len(before) == len(after):
        for i in after:
            yield from changes(old[i], new[i], (*path, i))
        return
    yield from (Change((*path, i), "removed", old[i], None) for i in before)
    yield from (Change((*path, i), "added", None, new[i]) for i in after)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON: true is not 1, and 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
