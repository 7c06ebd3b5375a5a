"""A key of `configurable` that is meant to address a thread and does not: found by its likeness, so that a call with a
typo does not run somewhere else.

Every other key is the caller's own. So only what differs in case, in signs or by one letter counts, a plural does not,
and a key beside the one it looks like is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stepwell.errors import InvalidConfigError


def check_spelling(key: str, configurable: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse a key that is one of the known ones misspelt. InvalidConfigError names both."""
    meant = _meant(key, known)
    if meant is not None and meant not in configurable:
        reason = (
            f"configurable has {key!r}; did you mean {meant!r}? Known there: {', '.join(sorted(known))}. Other keys are"
            " handed to your nodes: give one of your own another name"
        )
        raise InvalidConfigError(reason=reason, key=key)


@lru_cache(maxsize=256)
def _meant(key: str, known: frozenset[str]) -> str | None:
    """Return the known key that this one is most likely meant to be."""
    letters = _letters(key)
    for name in sorted(known):
        wanted = _letters(name)
        if letters == wanted or (_one_slip(letters, wanted) and letters != f"{wanted}s"):
            return name
    return None


def _letters(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _one_slip(one: str, other: str) -> bool:
    """Tell whether a letter too many, too few or wrong, or two that have changed places, make the difference."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return one != other
    rest, wanted = one[start:], other[start:]
    swapped = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:] and len(wanted) > 1
    return swapped or rest[1:] == wanted[1:] or rest[1:] == wanted or rest == wanted[1:]
