"""Filters over what is encrypted: the store below applies what asks for columns that are shown, the rest is applied
here, to what was decrypted. The rule: a filter only narrows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from stepwell.store import CheckpointRow, HistoryQuery
from stepwell.stores.shared.filters import COLUMNS

Row = TypeVar("Row")
PAGE = 64
"""How many rows are looked through at once for those whose metadata a filter selects."""


def split(wanted: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return what of a filter the store can apply, and what only we can."""
    shown = {key: value for key, value in (wanted or {}).items() if key in COLUMNS}
    hidden = {key: value for key, value in (wanted or {}).items() if key not in COLUMNS}
    return shown or None, hidden or None


def told(row: CheckpointRow) -> tuple[Any, ...]:
    """Return what a filter compares of a checkpoint, its metadata last."""
    return row.source, row.step, row.run_id, row.lineage, row.metadata


def older(query: HistoryQuery, last: CheckpointRow) -> HistoryQuery:
    """Return the query for what is behind a checkpoint; along a line, that is behind its parent."""
    if query.line_from is None or last.parent_seq is None:
        return replace(query, before_seq=last.seq)
    return replace(query, line_from=last.parent_seq)


def looked_through(
    page: Callable[[Row | None], list[Row]], is_wanted: Callable[[Row], bool], limit: int | None
) -> list[Row]:
    """Return the rows that match, reading page after page until there are enough."""
    found: list[Row] = []
    last: Row | None = None
    while limit is None or len(found) < limit:
        rows = page(last)
        found += filter(is_wanted, rows)
        if len(rows) < PAGE:
            break
        last = rows[-1]
    return found if limit is None else found[:limit]
