"""A page of a journal: records as entries, with everything they refer to gathered in the page's snapshot.

An attempt of an effect has two records: its intent, and how it ended. The entry stands at the second; an intent is one
by itself only where nothing ended it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError
from stepwell.ids import TaskIds
from stepwell.runtime.blobs import BlobCodec, fetched
from stepwell.runtime.loading import row_name
from stepwell.runtime.reading.journal_answers import approval_entry, wait_entry
from stepwell.runtime.reading.journal_entry import JournalEntry
from stepwell.store import CheckpointRow, EffectRow, Reader, RecordRow, ThreadRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.blobs import names_in
from stepwell.superstep.effects.approval import APPROVED
from stepwell.superstep.effects.layout import Ended, Intent, decode_ended, decode_intent
from stepwell.superstep.effects.resolution import Resolved, decode_resolved
from stepwell.superstep.step_body import decode_step
from stepwell.superstep.steps import DONE

Said = Intent | Ended | Resolved

RUNNING = "running"
IN_DOUBT = "in doubt"
NOT_KNOWN = "its end is not known"


class Page:
    """Some records of one thread, newest first, and what else must be read to tell of them."""

    def __init__(self, reader: Reader, thread: ThreadRow | None, records: Sequence[RecordRow]) -> None:
        self.thread = thread
        seqs = sorted({row.base_seq for row in records} - {0})
        self.bases = {row.seq: row for row in reader.checkpoints(records[0].thread_id, seqs)} if seqs else {}
        self._nodes: dict[int, dict[str, str]] = {}
        self.said: dict[int, Said] = {}
        """Record → what it says of an effect."""
        self.intents: dict[int, Intent] = {}
        """Record → the intent it belongs to, where this thread has it."""
        self.effects: dict[int, EffectRow | None] = {}
        """Record → how its effect stands now, where the record does not tell its name or its end."""
        self.asked: dict[int, list[RecordRow]] = {}
        """Decision → the questions of its task."""
        self._questions_on: dict[int, list[RecordRow]] = {}
        self._bodies = [record.body for record in records]
        for record in records:
            self._check_base(record)
            if record.kind in lifecycle.EFFECT_KINDS:
                self._gather(reader, record)
            elif record.kind == lifecycle.DECISION:
                self.asked[record.seq] = self._questions(reader, record)
        self._thread_id = records[0].thread_id if records else ""
        self._values = fetched(reader, self._thread_id, set[bytes]().union(*map(names_in, self._bodies)))

    def reading(self, codec: Codec) -> Codec:
        """Return a codec that reads these records, with what they refer to."""
        return BlobCodec(codec, self._values, self._thread_id) if self._values else codec

    def _gather(self, reader: Reader, record: RecordRow) -> None:
        said = self.said[record.seq] = said_by(record)
        ended = said.ended if isinstance(said, Resolved) else said
        if isinstance(ended, Intent) or not record.task_id:
            self.effects[record.seq] = row_of(reader, ended.key, record.thread_id)
        if isinstance(ended, Intent):
            return
        if ended.intent_seq:
            intent = reader.record(record.thread_id, ended.intent_seq)
            self._bodies.append(intent.body)
            self.intents[record.seq] = decode_intent(intent.body, row_name(intent))
        elif isinstance(said, Ended):
            self.effects[record.seq] = row_of(reader, said.key, record.thread_id)

    def _questions(self, reader: Reader, decision: RecordRow) -> list[RecordRow]:
        base_seq = decision.base_seq
        if base_seq not in self._questions_on:
            found = reader.records(decision.thread_id, base_seq)
            self._questions_on[base_seq] = [record for record in found if record.kind in lifecycle.PAUSES]
            self._bodies += [record.body for record in self._questions_on[base_seq]]
        return [record for record in self._questions_on[base_seq] if record.task_id == decision.task_id]

    def _check_base(self, record: RecordRow) -> None:
        base = self.bases.get(record.base_seq)
        if base is not None and base.digest != record.base_digest:
            raise CorruptRecordError(
                record=row_name(record),
                reason=f"it does not stand on checkpoint {record.base_seq} as that is now",
                table="records",
                thread_id=record.thread_id,
                seq=record.seq,
            )

    def placed(self, record: RecordRow) -> dict[str, Any]:
        """Return where a record stands, as fields of its entry."""
        base, row = self.bases.get(record.base_seq), self.effects.get(record.seq)
        node = row.node if row is not None else ""
        return {
            "node": self._node(base, record.task_id) if base is not None and record.task_id else node,
            "task_id": record.task_id,
            "lineage": record.lineage,
            "run_id": record.run_id,
            "checkpoint_id": "" if base is None else base.checkpoint_id,
            "seq": record.seq,
            "recorded_at": time_of(record.created_at),
            "digest": record.digest.hex(),
        }

    def _node(self, base: CheckpointRow, task_id: str) -> str:
        """Return the node of a task; "" where the checkpoint plans no such task."""
        if base.seq not in self._nodes:
            self._nodes[base.seq] = nodes_of(base)
        return self._nodes[base.seq].get(task_id, "")

    def is_running(self, record: RecordRow) -> bool:
        """Tell whether the run that wrote an intent still holds the thread: whether it lives is not looked at here."""
        row, thread = self.effects.get(record.seq), self.thread
        if row is None or thread is None or row.seq != record.seq:
            return False
        return (row.epoch, row.run_id) == (thread.epoch, thread.run_id)


def row_of(reader: Reader, key: str, thread_id: str) -> EffectRow | None:
    """Return a thread's own row under a key."""
    return next((row for row in reader.effect(key) if row.thread_id == thread_id), None)


def said_by(record: RecordRow) -> Said:
    """Return what a record says of an effect."""
    name = row_name(record)
    if record.kind == lifecycle.INTENT:
        return decode_intent(record.body, name)
    if record.kind == lifecycle.RESOLVED:
        return decode_resolved(record.body, name)
    return decode_ended(record.body, name)


def nodes_of(row: CheckpointRow) -> dict[str, str]:
    """Return the node of each task that a checkpoint plans: task id → node. No value is decoded."""
    ids = TaskIds(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
    planned = layout.open_checkpoint(row.body, row_name(row)).next
    return {ids.of(node, index): node for node, index, *_ in planned}


def time_of(microseconds: int) -> datetime | None:
    """Return a recorded time; None where none was."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC) if microseconds else None


# -- entries ----------------------------------------------------------------------------------------------------------


def entry_of(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    """Return what a record says."""
    return _KINDS[record.kind](page.reading(codec), record, page)


def _step(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    step = decode_step(record.body, row_name(record))
    done = step.status == DONE
    return JournalEntry(
        kind="step",
        name=step.callee,
        step_id=step.call_id,
        status=step.status,
        planned_action=f"{step.callee}{step.shown}",
        inputs=step.shown,
        versions={"code": step.code} if step.code else {},
        approval_status=None,
        receipt=codec.loads(step.value, f"result of {step.callee}") if done else None,
        key=None,
        fingerprint=step.inputs,
        attempts=step.attempts,
        retry_count=max(0, step.attempts - 1),
        error_state=None if done else step.error,
        started_at=time_of(step.first_at),
        finished_at=time_of(record.created_at),
        **page.placed(record),
    )


def _intent(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    """Return an attempt whose end nobody has recorded."""
    intent = page.said[record.seq]
    assert isinstance(intent, Intent)
    running = page.is_running(record)
    return JournalEntry(
        kind="effect",
        status=RUNNING if running else IN_DOUBT,
        receipt=None,
        error_state=None if running else NOT_KNOWN,
        finished_at=None,
        attempts=intent.attempt,
        retry_count=intent.attempt - 1,
        **_called(codec, intent),
        **page.placed(record),
    )


_STATUSES = {lifecycle.RECEIPT: "done", lifecycle.EFFECT_FAILED: "failed", lifecycle.DOUBT: IN_DOUBT}
_DECIDED = {"receipt": "done", "failed": "failed", "retry": IN_DOUBT}


def _ended(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    ended, row = page.said[record.seq], page.effects.get(record.seq)
    assert isinstance(ended, Ended)
    intent = page.intents.get(record.seq)
    known = _called(codec, intent) if intent is not None else _unknown(ended.key, *_names(row))
    return JournalEntry(
        kind="effect", **known, **_outcome(codec, ended, _STATUSES[record.kind], known), **page.placed(record)
    )


def _resolved(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    resolved = page.said[record.seq]
    assert isinstance(resolved, Resolved)
    intent, ended = page.intents.get(record.seq), resolved.ended
    known = _called(codec, intent) if intent is not None else _unknown(ended.key, resolved.name, resolved.call_id)
    facts = _outcome(codec, ended, _DECIDED[resolved.choice], known)
    return JournalEntry(
        kind="effect",
        decision=resolved.choice,  # type: ignore[arg-type]  # the choices are its own
        decided_by=resolved.by,
        reason=resolved.reason or None,
        **known,
        **facts,
        **(page.placed(record) | {"node": resolved.node}),
    )


def _outcome(codec: Codec, ended: Ended, status: str, known: dict[str, Any]) -> dict[str, Any]:
    done = status == "done"
    return {
        "status": status,
        "receipt": codec.loads(ended.value, f"receipt of {known['name']}") if done else None,
        "error_state": None if done else ended.error or NOT_KNOWN,
        "finished_at": None if status == IN_DOUBT else time_of(ended.at),
        "attempts": ended.attempts,
        "retry_count": max(0, ended.attempts - 1),
    }


def _called(codec: Codec, intent: Intent) -> dict[str, Any]:
    """Return what an intent says of its call, as fields of an entry."""
    return {
        "name": intent.name,
        "step_id": intent.call_id,
        "planned_action": intent.planned_action,
        "inputs": codec.loads(intent.inputs, f"inputs of {intent.name}"),
        "versions": {**({"code": intent.code} if intent.code else {}), **intent.versions},
        "approval_status": APPROVED if intent.approval else None,
        "approval": codec.loads(intent.approval, f"approval of {intent.name}") if intent.approval else None,
        "key": intent.key,
        "fingerprint": intent.fingerprint,
        "started_at": time_of(intent.at),
    }


def _unknown(key: str, name: str, call_id: str) -> dict[str, Any]:
    """Return the same where the intent is another thread's."""
    return {
        "name": name,
        "step_id": call_id,
        "planned_action": name,
        "inputs": None,
        "versions": {},
        "approval_status": None,
        "key": key,
        "fingerprint": "",
        "started_at": None,
    }


def _names(row: EffectRow | None) -> tuple[str, str]:
    return ("", "") if row is None else (row.name, row.call_id)


_KINDS: dict[str, Callable[[Codec, RecordRow, Page], JournalEntry]] = {
    lifecycle.STEP: _step,
    lifecycle.INTENT: _intent,
    lifecycle.RECEIPT: _ended,
    lifecycle.EFFECT_FAILED: _ended,
    lifecycle.DOUBT: _ended,
    lifecycle.RESOLVED: _resolved,
    lifecycle.DECISION: approval_entry,
    lifecycle.ARRIVED: wait_entry,
}
