"""The logs of runs: events get their place and their seal here, inside the transaction of what they tell of.

The end of a log is read under the write lock, so that ordinals have no gaps and each event names the one before it,
whoever wrote that. Nothing here is called where no run keeps a log.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.store import NO_DIGEST, Counts, EventDraft, RunRow, digest_of
from stepwell.stores.shared.statements import Statements


def add_events(on: Statements, counts: Counts, thread_id: str, drafts: Sequence[EventDraft]) -> None:
    """Append each draft to the log of its run."""
    ends: dict[str, tuple[int, bytes]] = {}
    for run_id, kind, created_at, body in drafts:
        ordinal, previous = ends[run_id] if run_id in ends else _end(on, counts, run_id)
        columns = (run_id, thread_id, ordinal + 1, kind, created_at, previous, body)
        digest = digest_of("event", columns)
        counts.statements += 1
        counts.bytes += len(body)
        on.execute(on.query("insert_event"), (*columns, digest))
        ends[run_id] = (ordinal + 1, digest)


def counted(on: Statements, counts: Counts, run: RunRow) -> RunRow:
    """Return the run's row with the number of events its log holds now."""
    return run._replace(events=_end(on, counts, run.run_id)[0])


def _end(on: Statements, counts: Counts, run_id: str) -> tuple[int, bytes]:
    counts.statements += 1
    found = on.execute(on.query("last_event"), (run_id,)).fetchall()
    return found[0] if found else (0, NO_DIGEST)
