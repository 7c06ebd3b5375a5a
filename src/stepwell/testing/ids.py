"""Ids that a test can foresee."""

from __future__ import annotations

from itertools import count


class CountingIds:
    """Fresh ids that count from 1: 32 hex digits that sort by time of making, as the real ones do."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)

    def new(self) -> str:
        """Return the next id."""
        return f"{next(self._numbers):032x}"
