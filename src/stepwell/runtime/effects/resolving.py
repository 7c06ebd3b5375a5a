"""What somebody decides about an effect in doubt: checked against what is known, and written in one transaction.

The decision takes the thread as an edit does, for its own transaction: nobody can be at work there meanwhile, and a run
whose process died is still there to be gone on with. Keys that other threads share are not fenced by that; there, the
decision lands only over the rows that were seen.
"""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import Any, NamedTuple

from stepwell import points
from stepwell.clock import Clock
from stepwell.codec import Codec
from stepwell.errors import (
    EffectBusyError,
    EffectNotInDoubtError,
    InvalidResolutionError,
    UnknownEffectError,
    UnknownThreadError,
)
from stepwell.graph.types import MISSING
from stepwell.ids import is_holdable
from stepwell.runtime.again import Moved, until_written
from stepwell.runtime.blobs import Shelf
from stepwell.store import (
    NO_DIGEST,
    BlobRow,
    Claim,
    EffectChange,
    EffectRow,
    Reader,
    RecordRow,
    Rows,
    Store,
    ThreadRow,
)
from stepwell.superstep import lifecycle
from stepwell.superstep.effects import rules
from stepwell.superstep.effects.keys import GLOBAL, compensation_key
from stepwell.superstep.effects.layout import Ended, decode_ended, decode_intent, encode_ended
from stepwell.superstep.effects.resolution import (
    ALLOWED,
    FAILED,
    RECEIPT,
    RESOLVED,
    RETRY,
    Resolved,
    decode_resolved,
    encode_resolved,
)

_STATUSES = {RECEIPT: rules.DONE, FAILED: rules.FAILED, RETRY: rules.DOUBT}


class Decision(NamedTuple):
    """What somebody states."""

    choice: str
    """receipt | failed | retry"""
    receipt: Any
    error: str
    by: str
    reason: str


def decision_of(
    key: str, receipt: Any, retry: bool, failed: str | bool | None, by: str | None, reason: str
) -> Decision:
    """Return the arguments as a decision. InvalidResolutionError where they are none, or say two things."""

    def refuse(why: str) -> InvalidResolutionError:
        return InvalidResolutionError(key=key, reason=why)

    given = [
        choice
        for choice, is_given in (
            (RECEIPT, receipt is not MISSING),
            (RETRY, retry is not False),
            (FAILED, failed is not None),
        )
        if is_given
    ]
    if len(given) != 1:
        what = " and ".join(given) if given else "nothing"
        raise refuse(f"it says {what}. Give one of receipt=..., retry=True and failed=...")
    if retry is not False and retry is not True:
        raise refuse(f"retry is True or left out, not {retry!r}")
    if failed is not None and failed is not True and not (isinstance(failed, str) and failed):
        raise refuse(f"failed is a text that says why it has not happened, or True, not {failed!r}")
    if not isinstance(reason, str):
        raise refuse(f"reason is a text, not {reason!r}")
    who = this_user() if by is None else by
    if not isinstance(who, str) or not who:
        raise refuse(f"by is a text that says who decides, not {by!r}")
    error = failed if isinstance(failed, str) else "it has not happened" if failed else ""
    for text in (who, reason, error):
        if not is_holdable(text):
            raise refuse(f"what is recorded of it is valid Unicode without NUL, not {text!r}")
    return Decision(given[0], None if receipt is MISSING else receipt, error, who, reason)


def this_user() -> str:
    """Return who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def resolve(store: Store, codec: Codec, clock: Clock, thread_id: str, key: str, decision: Decision) -> int:
    """Write a decision; return the seq of its record. Durable on return."""
    value = codec.dumps(decision.receipt, "receipt") if decision.choice == RECEIPT else b""

    def attempt() -> int:
        with store.reading() as reader:
            thread = reader.thread(thread_id)
            if thread is None:
                raise UnknownThreadError(
                    f'There is no thread {thread_id}. An effect of the scope "global" outlives its thread: '
                    "name another one, which shall hold the decision.",
                    thread_id=thread_id,
                )
            claim = _Composing(store, reader, thread, key).claim(decision, value, clock.now())
        points.reach(points.ADMISSION)
        if store.admit(claim) is None:
            raise Moved
        points.reach(points.EFFECT_RESOLVED)
        return claim.rows.head_seq

    return until_written(thread_id, attempt)


class _Place(NamedTuple):
    """Where a decision is recorded, and beside which attempt."""

    namespace: str
    lineage: int
    base_seq: int
    base_digest: bytes
    task_id: str
    intent_seq: int
    error: str


class _Composing:
    """One decision in one snapshot."""

    def __init__(self, store: Store, reader: Reader, thread: ThreadRow, key: str) -> None:
        self.store, self.reader, self.thread, self.key = store, reader, thread, key
        self.rows = reader.effect(key) if is_holdable(key) else []
        self.row = self._doubted()

    def _doubted(self) -> EffectRow:
        """Return the row to decide about. Raises where there is none, or nothing to decide."""
        thread_id = self.thread.thread_id
        mine = next((row for row in self.rows if row.thread_id == thread_id or row.scope == GLOBAL), None)
        if mine is None:
            raise UnknownEffectError(key=self.key, thread_id=thread_id)
        known = [
            rules.Known(row.key, row.thread_id, row.status, row.fingerprint, row.finished_at, self._is_running(row))
            for row in self.rows
        ]
        speaks = rules.spokesman(known, thread_id)
        facts = {"name": mine.name, "key": self.key, "thread_id": speaks.thread_id}
        if speaks.status not in (rules.INTENT, rules.DOUBT):
            raise EffectNotInDoubtError(status=speaks.status, **facts)
        if speaks.running and speaks.thread_id != thread_id:
            row = next(row for row in self.rows if row.thread_id == speaks.thread_id)
            raise EffectBusyError(run_id=row.run_id, **facts)
        return mine

    def _is_running(self, row: EffectRow) -> bool:
        return is_running(self.store, self.reader, row)

    def claim(self, decision: Decision, value: bytes, now: int) -> Claim:
        """Return the claim that writes it."""
        thread, row, place = self.thread, self.row, self._place()
        how = ALLOWED if decision.choice == RETRY else RESOLVED
        error = place.error if decision.choice == RETRY else decision.error
        ended = Ended(self.key, place.intent_seq, how, value, error, b"", False, row.attempts, now)
        body = encode_resolved(
            Resolved(decision.choice, decision.by, decision.reason, row.name, row.node, row.call_id, ended)
        )
        shelf = Shelf(self.store.sealer)
        seq, ordinal = thread.head_seq + 1, len(self.reader.records(thread.thread_id, place.base_seq))
        record = self.store.sealer.record(
            RecordRow(
                thread.thread_id,
                place.namespace,
                place.lineage,
                seq,
                place.base_seq,
                place.base_digest,
                ordinal,
                lifecycle.RESOLVED,
                place.task_id,
                "",
                now,
                shelf.apart(thread.thread_id, body),
                b"",
            )
        )
        status = _STATUSES[decision.choice]
        changes = [self._change(row, status, record, ended)]
        if status == rules.DONE:
            changes += self._undone(record)
        return claim_beside(thread, record, changes, now, shelf.take())

    def _place(self) -> _Place:
        """Return where to record it: beside the attempt, where this thread is sure to hold that."""
        row, thread_id = self.row, self.thread.thread_id
        if row.scope == GLOBAL or row.seq == 0:
            error = decode_ended(row.body, f"effect {row.key}").error if row.body else ""
            return _Place("", 0, 0, NO_DIGEST, "", 0, error)
        record = self.reader.record(thread_id, row.seq)
        name = f"record {row.seq} of thread {thread_id}"
        intent_seq, error = record.seq, ""
        if record.kind == lifecycle.INTENT:
            decode_intent(record.body, name)
        else:
            resolved = record.kind == lifecycle.RESOLVED
            said = decode_resolved(record.body, name).ended if resolved else decode_ended(record.body, name)
            intent_seq, error = said.intent_seq, said.error
        where = record.namespace, record.lineage, record.base_seq, record.base_digest, record.task_id
        return _Place(*where, intent_seq, error)

    def _change(self, row: EffectRow, status: str, record: RecordRow, ended: Ended) -> EffectChange:
        here = self.thread.thread_id
        kept = encode_ended(ended) if row.scope == GLOBAL else b""
        changed = row._replace(
            thread_id=here,
            status=status,
            epoch=self.thread.epoch + 1,
            run_id="",
            seq=record.seq,
            finished_at=0 if status == rules.DOUBT else record.created_at,
            body=kept,
            digest=b"",
        )
        return EffectChange(self.store.sealer.effect(changed), tuple(each.digest for each in self.rows))

    def _undone(self, record: RecordRow) -> list[EffectChange]:
        """Return the end of the effect that this one compensates, if it does."""
        original = self.row.position
        if compensation_key(original) != self.key:
            return []
        rows = self.reader.effect(original)
        mine = next((row for row in rows if row.thread_id == self.thread.thread_id or row.scope == GLOBAL), None)
        if mine is None or mine.status != rules.DONE:
            return []
        changed = mine._replace(status=rules.COMPENSATED, epoch=self.thread.epoch + 1, digest=b"")
        return [EffectChange(self.store.sealer.effect(changed), tuple(row.digest for row in rows))]


def claim_beside(
    thread: ThreadRow, record: RecordRow, changes: Sequence[EffectChange], now: int, blobs: Sequence[BlobRow]
) -> Claim:
    """Return the claim that writes one record, with what it refers to, into a thread and leaves it to whom it
    belongs."""
    return Claim(
        thread_id=thread.thread_id,
        graph_id=thread.graph_id,
        seen=thread,
        run=None,
        rows=Rows(record.seq, record.digest, thread.lineages, [], [record], (), changes, blobs),
        lease_seconds=None,
        status=thread.status,
        now=now,
        at_work=thread.run_id,
        whole=True,
    )


def is_running(store: Store, reader: Reader, row: EffectRow) -> bool:
    """Tell whether the run that wrote an intent still holds its thread, as far as can be seen from outside."""
    if row.status != rules.INTENT:
        return False
    thread = reader.thread(row.thread_id)
    if thread is None or not thread.run_id or (thread.epoch, thread.run_id) != (row.epoch, row.run_id):
        return False
    return store.is_held(thread)
