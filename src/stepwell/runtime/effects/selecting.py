"""Which effects of a thread compensating is about: those that its lineage has done, the last receipt first. Reads only.

An effect of another lineage is this one's too, where this one has gone by its place without performing it anew: its
receipt answered here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stepwell.errors import CannotCompensateError
from stepwell.runtime.blobs import whole_record
from stepwell.runtime.editing.origins import origins_of
from stepwell.runtime.effects.compensation import Compensation
from stepwell.runtime.effects.decorator import registered
from stepwell.runtime.effects.witness import check_brought, check_told, told_of_thread
from stepwell.runtime.reading.journal_page import nodes_of
from stepwell.store import CheckpointRow, EffectRow, EffectsQuery, Reader, RecordRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.effects import rules
from stepwell.superstep.effects.keys import BROUGHT, GLOBAL, compensation_key, lineages_to_search
from stepwell.superstep.effects.layout import Ended, Intent, decode_ended, decode_intent
from stepwell.superstep.effects.resolution import decode_resolved

PAGE = 256


class Done(NamedTuple):
    """An effect, and what there is to undo it by."""

    row: EffectRow
    siblings: Sequence[EffectRow]
    """All rows under its key, its own included."""
    status: str
    """compensated: it is to be; no compensation | in doubt | elsewhere: it is left as it is."""
    compensation: Compensation | None = None
    ended: Ended | None = None
    intent: Intent | None = None


def select(reader: Reader, head: CheckpointRow) -> list[Done]:
    """Return the effects of the lineage that ends here. CannotCompensateError where one is not to be undone here."""
    found = []
    for row in sorted(_of_lineage(reader, head), key=lambda row: row.seq, reverse=True):
        siblings = reader.effect(row.key)
        status = _status(row, siblings)
        if status == rules.DONE:
            found.append(_done(reader, row, siblings))
        elif status in (rules.INTENT, rules.DOUBT):
            found.append(Done(row, siblings, "in doubt"))
    return found


def _status(row: EffectRow, siblings: Sequence[EffectRow]) -> str:
    """Return how an effect stands by all that is known under its key: it is one, whoever did it."""
    known = [rules.Known(r.key, r.thread_id, r.status, r.fingerprint, r.finished_at) for r in siblings]
    return rules.spokesman(known, row.thread_id).status


def _done(reader: Reader, row: EffectRow, siblings: Sequence[EffectRow]) -> Done:
    if row.lineage == BROUGHT:
        return Done(row, siblings, "elsewhere")
    facts = {"name": row.name, "key": row.key, "thread_id": row.thread_id}
    if row.name not in registered:
        why = (
            "it is not declared in this process, so nobody can tell what undoes it. Import the module that declares it."
        )
        raise CannotCompensateError(reason=why, **facts)
    compensation = registered[row.name].declared.compensate
    if compensation is None:
        return Done(row, siblings, "no compensation")
    speaks = next(each for each in siblings if each.status in (rules.DONE, rules.COMPENSATED))
    ended, intent = _said(reader, row if row.status == rules.DONE else speaks)
    if compensation.takes and intent is None:
        why = f"what undoes it takes {', '.join(compensation.takes)}, and what it was called with is another thread's."
        raise CannotCompensateError(reason=why, **facts)
    return Done(row, siblings, "compensated", compensation, ended, intent)


def _said(reader: Reader, row: EffectRow) -> tuple[Ended, Intent | None]:
    """Return the receipt, and the intent where the thread is sure to hold it."""
    if row.body:
        return decode_ended(row.body, f"effect {row.key}"), None
    record = whole_record(reader, reader.record(row.thread_id, row.seq))
    name = f"record {row.seq} of thread {row.thread_id}"
    resolved = record.kind == lifecycle.RESOLVED
    ended = decode_resolved(record.body, name).ended if resolved else decode_ended(record.body, name)
    if not ended.intent_seq:
        return ended, None
    intent = whole_record(reader, reader.record(row.thread_id, ended.intent_seq))
    return ended, decode_intent(intent.body, f"record {intent.seq} of thread {intent.thread_id}")


# -- of which lineage -------------------------------------------------------------------------------------------------


def _of_lineage(reader: Reader, head: CheckpointRow) -> list[EffectRow]:
    rows = list(_all(reader, head.thread_id))
    _check_all(reader, head.thread_id, rows)
    undoing = {compensation_key(row.key) for row in rows}
    rows = [row for row in rows if row.key not in undoing]
    passed = _Passed(reader, head)
    found = [row for row in rows if row.lineage == head.lineage]
    places = {row.position for row in found}
    forks = [(row.lineage, row.parent_lineage, row.parent_seq) for row in reader.lineages(head.thread_id)]
    for lineage in lineages_to_search(head.lineage, forks):
        here = [row for row in rows if row.lineage == lineage and row.position not in places and passed.by(row)]
        found += here
        places |= {row.position for row in here}
    return found


def _all(reader: Reader, thread_id: str) -> Iterator[EffectRow]:
    after = None
    while True:
        page = reader.effects(EffectsQuery(thread_id, after=after, limit=PAGE))
        yield from page
        if len(page) < PAGE:
            return
        after = (page[-1].thread_id, page[-1].seq, page[-1].key)


def _check_all(reader: Reader, thread_id: str, rows: Sequence[EffectRow]) -> None:
    """Raise CorruptRecordError where the thread's records tell of an effect that has no row: it would be left out."""
    own = {row.key: row for row in rows}
    for key, told in told_of_thread(reader, thread_id).items():
        row = own.get(key)
        if row is None or row.seq < told.seq:
            check_told({key: told}, thread_id, key, reader.effect(key))
    for origin in origins_of(reader, thread_id):
        check_brought(origin, thread_id, (key for key, _ in origin.brought), own.__contains__)


class _Passed:
    """Which calls a lineage has gone by: of nodes that are done, and of those that have begun at its head."""

    def __init__(self, reader: Reader, head: CheckpointRow) -> None:
        opened = layout.open_checkpoint(head.body, f"checkpoint {head.seq} of thread {head.thread_id}")
        self._done = opened.activations
        records: Sequence[RecordRow] = reader.records(head.thread_id, head.seq)
        nodes, touched = nodes_of(head), {record.task_id for record in records}
        self._begun: dict[str, int] = {}
        for task_id, node in nodes.items():
            if task_id in touched:
                self._begun[node] = self._begun.get(node, 0) + 1

    def by(self, row: EffectRow) -> bool:
        done = self._done.get(row.node, 0)
        return row.scope == GLOBAL or row.activation < done + self._begun.get(row.node, 0)
