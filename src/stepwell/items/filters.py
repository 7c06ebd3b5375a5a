"""Whether a value matches a search's filter. Keys and values are data: compared here, never part of a statement.

A filter can only narrow what a search finds: it is asked about each item alone, and all of its keys must match.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from stepwell.errors import InvalidItemError

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: Any) -> None:
    """Refuse, before anything is read, a filter that could not be asked."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidItemError(reason=f"a filter is a dict, not a {type(wanted).__name__}")
    for value in wanted.values():
        _check(value)


def _check(wanted: Any) -> None:
    if not isinstance(wanted, Mapping):
        return
    if _asks(wanted):
        unknown = [key for key in wanted if key not in _OPERATORS]
        if unknown:
            known = ", ".join(_OPERATORS)
            raise InvalidItemError(reason=f"the filter's operator {unknown[0]!r} is not one of {known}")
        return
    for value in wanted.values():
        _check(value)


def _asks(wanted: Mapping[Any, Any]) -> bool:
    """Tell whether a mapping in a filter holds operators, and is not a value to compare with."""
    return any(isinstance(key, str) and key.startswith("$") for key in wanted)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Tell whether an item's value is what a filter asks for. A key it does not have counts as None."""
    return not wanted or all(_matches(value.get(key), want) for key, want in wanted.items())


def _matches(found: Any, want: Any) -> bool:
    if isinstance(want, Mapping):
        if _asks(want):
            return all(_holds(name, found, operand) for name, operand in want.items())
        return isinstance(found, Mapping) and all(_matches(found.get(key), inner) for key, inner in want.items())
    if isinstance(want, list | tuple):
        same_length = isinstance(found, list | tuple) and len(found) == len(want)
        return same_length and all(map(_matches, found, want))
    return _holds("$eq", found, want)


def _holds(name: str, found: Any, operand: Any) -> bool:
    """Compare; what cannot be compared does not match."""
    try:
        return bool(_OPERATORS[name](found, operand))
    except (TypeError, ValueError):
        return False
