"""Rows of one table out of one snapshot, verified: what every reader of rows does, whatever it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.stores.shared.foreseeing import foresee
from stepwell.stores.shared.rows import Row, Table, corrupt
from stepwell.stores.shared.source import Source


class Fetching:
    """A snapshot, and its rows by query."""

    __slots__ = ("_fetch", "_listed", "_source", "_stream")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._fetch = source.fetch
        self._stream = source.stream
        self._listed = source.listed

    def expect(self, asked: str, *of: Any) -> None:
        """Say that a method is about to be called with these arguments."""
        if self._source.far:
            foresee(self._source, asked, of)

    def _at(self, name: str, table: Table[Any], thread_id: str, seqs: Sequence[int]) -> list[Any]:
        wanted = set(seqs)
        found = self._rows(name, table, thread_id=thread_id, seqs=self._listed(sorted(wanted)))
        if len(found) != len(wanted):
            raise corrupt(table.name, thread_id, min(wanted - {row.seq for row in found}), "it is missing")
        return found

    def _rows(self, name: str, table: Table[Row], **where: Any) -> list[Row]:
        return table.all_verified(self._fetch(name, table, where))


def first(rows: list[Row]) -> Row | None:
    """Return the only row there may be."""
    return rows[0] if rows else None


def bound(limit: int | None) -> int:
    """Return a limit as queries take it: negative for none."""
    return -1 if limit is None else max(0, limit)
