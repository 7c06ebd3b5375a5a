"""Breakpoints that a thread keeps: placed by one call, they hold for later ones that place none of their own.

They are a record of the whole thread (base 0); the newest counts. It is written with the admission of the run that was
asked to keep them.
"""

from __future__ import annotations

from dataclasses import replace

import ormsgpack

from stepwell.errors import CorruptRecordError, NoCheckpointerError
from stepwell.runtime.run import Run
from stepwell.store import NO_DIGEST, Reader, RecordRow
from stepwell.superstep import lifecycle
from stepwell.superstep.formats import FORMAT, parts_of
from stepwell.superstep.state import Base, Identity, State


def follow_breakpoints(run: Run, reader: Reader) -> None:
    """Have the run stop where the thread keeps breakpoints, unless its call placed its own; keep those it was asked to
    keep."""
    request, thread_id = run.request, run.config.thread_id or ""
    if request.places_breakpoints and not request.keep_breakpoints:
        return
    records = reader.records(thread_id, 0)
    kept = next((row for row in reversed(records) if row.kind == lifecycle.BREAKPOINTS), None)
    if not request.keep_breakpoints:
        if kept is not None:
            before, after = _decode(kept)
            run.request = replace(request, before=before, after=after)
    elif kept is None or _decode(kept) != (request.before, request.after):
        identity = Identity(run.plan.graph_id, run.plan.version, thread_id, run.config.namespace, "")
        nowhere = Base(State({}), identity, 0, 0, NO_DIGEST)
        nowhere.records = len(records)
        body = ormsgpack.packb([FORMAT, sorted(request.before), sorted(request.after)])
        run.ledger.add_record(nowhere, "", lifecycle.BREAKPOINTS, body)


def refuse_to_keep(run: Run) -> None:
    """Raise NoCheckpointerError where breakpoints shall be kept and nothing keeps them."""
    if run.request.keep_breakpoints:
        raise NoCheckpointerError(operation="keep_breakpoints")


def _decode(row: RecordRow) -> tuple[frozenset[str], frozenset[str]]:
    record = f"breakpoints of thread {row.thread_id}"
    try:
        before, after = parts_of(row.body, record)
        fits = all(isinstance(name, str) for name in [*before, *after])
    except (TypeError, ValueError) as error:
        raise CorruptRecordError(record=record, reason=str(error)) from error
    if not fits:
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")
    return frozenset(before), frozenset(after)
