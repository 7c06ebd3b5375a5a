"""Rows in, base checkpoint out: the state with its values gathered, and everything recorded on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from stepwell.codec import Codec
from stepwell.errors import PendingWorkError
from stepwell.plan.tables import Plan
from stepwell.runtime.changes import Stored, as_of_today, rename_outcomes
from stepwell.runtime.holders import NO_RULES, Holders, Rules, row_name as row_name
from stepwell.store import CheckpointRow, Reader, RecordRow, RunRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.begin import initial_values
from stepwell.superstep.effects.told import Told, hear
from stepwell.superstep.outcome import Interrupted, Question
from stepwell.superstep.state import Base, Identity, State
from stepwell.superstep.step_body import decode_step, whole_step
from stepwell.superstep.waiting import decode_arrived, decode_wait, forget_late, register


class Loaded(NamedTuple):
    """A base checkpoint as stored and as values."""

    row: CheckpointRow
    opened: layout.Opened
    base: Base
    holds: dict[str, int]
    records: Sequence[RecordRow]
    chains: Mapping[str, layout.Chain] = {}
    """What the next deltas of its channels follow."""
    blobs: Iterable[bytes] = ()
    """Names of large values that the thread is known to have."""
    reading: Codec | None = None
    """Reads the records, with what they refer to."""


def superseded(crashed: RunRow | None, run_id: str, now: int) -> RunRow | None:
    """Return how the row of a dead process's run ends when something else takes its thread."""
    if crashed is None or crashed.run_id == run_id:
        return None
    error = f"its process died, and {'run ' + run_id if run_id else 'an edit'} took the thread"
    return crashed._replace(status=lifecycle.FAILED, finished_at=now, error=error)


def check_input_kept(crashed: RunRow | None) -> None:
    """Refuse to answer or edit past an input that a dead process's run holds in its row alone (`exit` durability)."""
    if crashed is not None and crashed.input:
        raise PendingWorkError(
            f"Thread {crashed.thread_id} has an input that run {crashed.run_id} was working on when its process died. "
            "Finish it with invoke(None, config), or drop it with a new input.",
            thread_id=crashed.thread_id,
            interrupts="",
            run_id=crashed.run_id,
        )


def load(
    reader: Reader,
    codec: Codec,
    plan: Plan,
    row: CheckpointRow,
    run_id: str = "",
    records: Sequence[RecordRow] | None = None,
) -> Loaded:
    """Return the base checkpoint in `row`, with all that is recorded on it, or these records of it. Attempts count only
    where `run_id` made them."""
    opened = layout.open_checkpoint(row.body, row_name(row))
    if records is None:
        reader.expect("records", row.thread_id, row.seq)
    if row.fingerprint != plan.fingerprint:
        reader.expect("shape", row.fingerprint)
    with layout.reading(row_name(row)):
        holders = gathered(reader, row, opened)
        stored = as_of_today(reader, plan, row, opened, values_of(holders, codec, row, plan.rules))
    stored = stored._replace(values={**initial_values(plan), **stored.values})
    found = reader.records(row.thread_id, row.seq) if records is None else records
    holders.fetch_referred(reader, row.seq, found)
    loaded = assemble(holders.reading(codec), plan, row, opened, stored, found, run_id)
    chains = holders.chains(stored.holds, plan) if plan.deltas else loaded.chains
    there = {name for name, value in holders.blobs.items() if value is not None}  # a lost one is to be written again
    return loaded._replace(chains=chains, blobs=there) if chains or there else loaded


def assemble(
    codec: Codec,
    plan: Plan,
    row: CheckpointRow,
    opened: layout.Opened,
    stored: Stored,
    records: Sequence[RecordRow],
    run_id: str = "",
) -> Loaded:
    """Return the base checkpoint that these parts are."""
    with layout.reading(row_name(row)):
        state = State(
            values=stored.values,
            next=layout.decode_next(codec, opened.next),
            barriers={join: frozenset(arrived) for join, arrived in stored.barriers.items()},
            deferred=frozenset(stored.deferred),
            activations=opened.activations,
            writers=tuple(stored.writers),
            step=row.step,
        )
    identity = Identity(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
    base = Base(state, identity, row.lineage, row.seq, row.digest)
    apply_records(codec, base, records, run_id)
    rename_outcomes(plan, base)
    return Loaded(row, opened, base, stored.holds, records, reading=codec)


def gathered(reader: Reader, row: CheckpointRow, opened: layout.Opened) -> Holders:
    """Return a checkpoint with every row that its values need."""
    holders = Holders(row.thread_id, [row])
    holders.know(row.seq, opened)
    holders.gather_all(reader, [row.seq])
    return holders


def values_of(holders: Holders, codec: Codec, row: CheckpointRow, rules: Rules = NO_RULES) -> dict[str, Any]:
    """Return every stored channel's value, each from the row that holds it."""
    held = layout.holds_of(holders[row.seq], row.seq)
    return {key: holders.value(codec, key, seq, rules) for key, seq in held.items()}


def decode_pause(codec: Codec, kind: str, body: bytes, name: str) -> Interrupted:
    """Return the outcome that an `interrupted` or a `wait` record says."""
    decode = decode_wait if kind == lifecycle.WAIT else layout.decode_interrupted
    return decode(codec, body, name)


def asked_questions(loaded: Loaded) -> dict[str, tuple[Question, ...]]:
    """Return every question recorded on the base, answered or not: task id → questions, each once."""
    found: dict[str, dict[str, Question]] = {}
    for record in loaded.records:
        if record.kind in lifecycle.PAUSES:
            assert loaded.reading is not None
            outcome = decode_pause(loaded.reading, record.kind, record.body, row_name(record))
            found.setdefault(record.task_id, {}).update({q.interrupt_id: q for q in outcome.questions})
    return {task_id: tuple(questions.values()) for task_id, questions in found.items()}


def apply_records(codec: Codec, base: Base, records: Sequence[RecordRow], run_id: str = "") -> None:
    """Lay the records over the base, oldest first: the newest outcome of a task is its outcome."""
    positions: Mapping[str, int] = {task.id: i for i, task in enumerate(base.tasks)} if records else {}
    base.records = len(records)
    told: dict[str, Told] = {}
    for record in records:
        index = positions.get(record.task_id)
        if record.kind in lifecycle.EFFECT_KINDS:
            told.update(hear(told, record.kind, record.seq, record.body, row_name(record)))
        elif index is not None:
            _apply(codec, base, index, record, run_id)
    if told:
        base.effects = told


_OVER = (lifecycle.FAILED, lifecycle.CANCELLED, lifecycle.ATTEMPT)
"""Records that end an attempt of a node: its steps that failed are called anew in the next one, and
what it waited for in vain is waited for again."""


def _apply(codec: Codec, base: Base, index: int, record: RecordRow, run_id: str) -> None:
    name = row_name(record)
    task_id = record.task_id
    if record.kind in _OVER:
        base.forget_failures(task_id)
        forget_late(base, task_id)
    if record.kind == lifecycle.SUCCEEDED:
        base.outcomes[index] = layout.decode_succeeded(codec, record.body, name)
    elif record.kind == lifecycle.FAILED:
        base.outcomes[index] = layout.decode_failed(codec, record.body, name)
    elif record.kind == lifecycle.CANCELLED:
        base.outcomes[index] = layout.decode_cancelled(codec, record.body, name)
    elif record.kind in lifecycle.PAUSES:
        base.outcomes[index] = pause = decode_pause(codec, record.kind, record.body, name)
        base.fresh -= {task_id}
        register(base, task_id, pause)
    elif record.kind == lifecycle.ARRIVED:
        call_id, _, arrived = decode_arrived(codec, record.body, name)
        base.answer(task_id, call_id, arrived)
        base.fresh |= {task_id}
    elif record.kind in lifecycle.ANSWERS:
        _, call_id, value = layout.decode_answer(codec, record.body, name)
        base.answer(task_id, call_id, value)
        outcome = base.outcomes[index]
        if isinstance(outcome, Interrupted) and any(q.call_id == call_id for q in outcome.questions):
            base.fresh |= {task_id}
    elif record.kind == lifecycle.STEP:
        base.stepped(task_id, whole_step(codec, decode_step(record.body, name)))
    elif record.kind == lifecycle.DISCARDED:
        base.discard(index)
    elif record.kind == lifecycle.ATTEMPT and record.run_id == run_id:
        _, attempts, first_at, next_at = layout.decode_attempt(record.body, name)
        base.attempted(task_id, attempts, first_at, next_at)
