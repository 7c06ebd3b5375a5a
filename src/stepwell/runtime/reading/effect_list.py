"""The effects of a database as they stand, page by page: of a thread or of all, and those in doubt alone."""

from __future__ import annotations

from typing import NamedTuple

from stepwell.errors import CorruptRecordError
from stepwell.runtime.effects.resolving import is_running
from stepwell.store import DAMAGED, EffectRow, EffectsQuery, Reader, Store
from stepwell.superstep.effects import rules

PAGE = 256
RUNNING = "running"
IN_DOUBT = "in doubt"

Cursor = tuple[str, int, str]
"""Thread, seq and key of the effect behind which a list goes on."""


class EffectStanding(NamedTuple):
    """An effect, and how it stands: done | failed | compensated | running | in doubt; damaged where its row does not
    verify."""

    row: EffectRow
    status: str


def list_effects(
    store: Store, thread_id: str | None, in_doubt: bool, limit: int | None, after: Cursor | None
) -> tuple[list[EffectStanding], Cursor | None]:
    """Return effects by thread, seq and key, and where to go on: None where nothing is left.

    What is in doubt is not what a live run performs: so a page of rows may hold less than it has.
    """
    found: list[EffectStanding] = []
    while True:
        wanted = PAGE if limit is None else min(PAGE, limit - len(found))
        page, more = _page(store, EffectsQuery(thread_id, in_doubt, after, wanted + 1), wanted)
        found += [effect for effect in page if not in_doubt or effect.status in (IN_DOUBT, DAMAGED)]
        if more is None or len(found) == limit:
            return found, more
        after = more


def _page(store: Store, query: EffectsQuery, size: int) -> tuple[list[EffectStanding], Cursor | None]:
    with store.reading() as reader:
        rows = reader.effects(query)
        shown = rows[:size]
        page = [EffectStanding(row, _status(row, _is_running(store, reader, row))) for row in shown]
    last = shown[-1] if shown else None
    return page, None if last is None or len(rows) <= size else (last.thread_id, last.seq, last.key)


def _is_running(store: Store, reader: Reader, row: EffectRow) -> bool:
    try:
        return is_running(store, reader, row)
    except CorruptRecordError:  # nobody runs a thread whose row does not verify
        return False


def _status(row: EffectRow, running: bool) -> str:
    if row.status in (rules.INTENT, rules.DOUBT):
        return RUNNING if running else IN_DOUBT
    return row.status
