"""Whether a checkpoint matches a history filter.

Keys and values are data: compared, never spliced into a statement. Equality is JSON's: true is not 1, but 1 is 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stepwell.errors import InvalidConfigError

COLUMNS = ("source", "step", "run_id", "lineage")
"""Keys that ask for a column of the checkpoint, whatever its metadata holds."""
_ABSENT = object()


def filter_text(wanted: Mapping[str, Any] | None) -> str | None:
    """Return the filter as the text that `matches` takes; None where everything matches."""
    if not wanted:
        return None
    try:
        return json.dumps(dict(wanted))
    except (TypeError, ValueError) as error:
        raise InvalidConfigError(reason=f"a history filter compares JSON values only: {error}") from error


def matches(*columns: Any) -> bool:
    """Tell whether a checkpoint has every entry of a filter's text: the text, then source, step, run id, lineage and
    metadata of the checkpoint."""
    wanted, *own, metadata = columns
    try:
        given = json.loads(metadata) if metadata else {}
    except (TypeError, ValueError):
        given = None
    if not isinstance(given, dict):
        return True  # damaged: returned, for its digest to be found wrong
    given |= zip(COLUMNS, own, strict=True)
    return all(_equal(given.get(key, _ABSENT), value) for key, value in _parsed(wanted).items())


@lru_cache(maxsize=8)
def _parsed(wanted: str) -> dict[str, Any]:
    return dict(json.loads(wanted))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
