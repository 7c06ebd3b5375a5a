"""Answers from outside: matched to questions, and made records of the base before anything runs on them.

At the newest checkpoint of a lineage an answer is a record on the base. At an older one, or beside an update or a jump,
a new checkpoint is written first and the rest of its superstep is carried over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError, InterruptAnsweredError, UnknownInterruptError
from stepwell.graph.approval import Decision
from stepwell.graph.types import Command
from stepwell.runtime.blobs import reading
from stepwell.runtime.changes import rename_outcomes
from stepwell.runtime.deciding import checked_decisions, refuse_again
from stepwell.runtime.draft import Draft
from stepwell.runtime.ledger import Ledger
from stepwell.runtime.loading import Loaded, apply_records, asked_questions, load, row_name
from stepwell.store import CheckpointRow, Reader, RecordRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.answer import Answered, Asked, id_map, match_answers, open_now
from stepwell.superstep.begin import commanded
from stepwell.superstep.blobs import may_refer
from stepwell.superstep.carry import Record, carry, earlier_answers
from stepwell.superstep.effects.approval import expired_now
from stepwell.superstep.outcome import Question
from stepwell.superstep.state import Base, Task, position_id

if TYPE_CHECKING:
    from stepwell.runtime.run import Run


def answer_base(run: Run, reader: Reader, loaded: Loaded, command: Command[Any], newest: bool) -> Base:
    """Return the base on which the answered tasks run, with everything it needs staged in the ledger."""
    askable = list(open_now(loaded.base)) if newest else _asked_then(run, loaded)
    known = _known_ids(run, reader, loaded, askable, command.resume)
    try:
        answers = match_answers(loaded.row.thread_id, askable, command.resume, *known)
    except (InterruptAnsweredError, UnknownInterruptError):
        refuse_again(run.codec, reader, loaded.row.thread_id, command.resume)
        raise
    answers = checked_decisions(loaded.row.thread_id, answers, run.clock.now())
    base = loaded.base
    if command.update is not None or command.goto:
        base = command_base(run, reader, loaded, command, newest)
    elif not newest:
        base = _forked_for_answers(run, reader, loaded, answers)
    for task, question, value in answers:
        now = next(t for t in base.tasks if (t.node, t.index) == (task.node, task.index))
        _record_answer(run, base, now, question, value)
    expire(run, base)
    return base


def expire(run: Run, base: Base) -> None:
    """Record of each approval for which it is too late that nobody decided: its task runs again, and is told so."""
    for (task, question), decision in list(expired_now(base, run.clock.now())):
        _record_answer(run, base, task, question, decision)


def _record_answer(run: Run, base: Base, task: Task, question: Question, value: Any) -> None:
    kind = lifecycle.DECISION if isinstance(value, Decision) else lifecycle.ANSWER
    body = layout.encode_answer(run.codec, question.interrupt_id, question.call_id, value)
    run.ledger.add_record(base, task.id, kind, body)
    base.answer(task.id, question.call_id, value)
    base.fresh |= {task.id}
    if run.tell is not None:
        run.tell.answered(base, task, question.interrupt_id)


def command_base(run: Run, reader: Reader, loaded: Loaded, command: Command[Any], newest: bool) -> Base:
    """Return the checkpoint after a command's update and jumps; every planned task stays, with its records."""
    ledger = run.ledger
    identity = loaded.base.identity.following(run.ids.new(), run.plan.version)
    state, changed = commanded(run.plan, loaded.base, command, identity)
    lineage = loaded.row.lineage if newest else open_lineage(ledger)
    base = ledger.add(Draft(identity, state, lineage, "update", loaded.row.seq, loaded.row.digest), changed)
    records = records_on(run, reader, loaded)
    bring(run, base, carry(loaded.base, base, records if newest else map(_forked, records), _always))
    return base


def _forked_for_answers(run: Run, reader: Reader, loaded: Loaded, answers: list[Answered]) -> Base:
    """Fork for answers at an older checkpoint: an answered task keeps its earlier answers, the others everything."""
    base = fork_base(run, loaded)
    asked = {answer.task.id: answer.question.call_id for answer in answers}
    records = records_on(run, reader, loaded)
    kept = [record for record in records if record.task_id not in asked]
    for task_id, call_id in asked.items():
        kept += earlier_answers(records, task_id, lambda record, call=call_id: _asks(record, call))  # type: ignore[misc]
    bring(run, base, carry(loaded.base, base, map(_forked, kept), _always))
    return base


def _forked(record: Record) -> Record:
    """Return a record as a fork keeps it: what it wrote to the item store was written in the lineage it was made in."""
    outcomes = (lifecycle.SUCCEEDED, lifecycle.FAILED, lifecycle.CANCELLED, *lifecycle.PAUSES)
    if record.kind not in outcomes:
        return record
    return record._replace(body=layout.without_items(record.kind, record.body))


def fork_base(run: Run, loaded: Loaded) -> Base:
    """Return a new checkpoint in a new lineage that stands where `loaded` stood."""
    identity = loaded.base.identity.following(run.ids.new(), run.plan.version)
    state = loaded.base.state._replace(step=loaded.base.state.step + 1)
    draft = Draft(identity, state, open_lineage(run.ledger), "fork", loaded.row.seq, loaded.row.digest)
    return run.ledger.add(draft, ())


def open_lineage(ledger: Ledger) -> int:
    """Return the number of a new lineage of the thread."""
    ledger.lineages += 1
    if ledger.run.tell is not None:
        ledger.run.tell.forking(ledger.lineages - 1)
    return ledger.lineages - 1


def records_on(run: Run, reader: Reader, loaded: Loaded) -> list[Record]:
    """Return everything recorded on a base, also the outcomes its next checkpoint holds inline. CorruptRecordError
    where that has counted more records than there are."""
    records = [Record(row.kind, row.task_id, row.body) for row in loaded.records]
    child = reader.child(loaded.row.thread_id, loaded.row.seq, loaded.row.lineage)
    if child is None:
        return records
    opened = layout.open_checkpoint(child.body, row_name(child))
    if opened.counted > len(records):
        _check_pruned(reader, loaded.row, f"{opened.counted} records stood on it, {len(records)} are there")
    if child.source == "loop":  # an edit's checkpoint holds what was edited, not what ran
        tasks = {(task.node, task.index): task for task in loaded.base.tasks}
        for node, index, body in layout.inline_outcomes(opened):
            if (task := tasks.get((node, index))) is not None:
                records.append(Record(lifecycle.SUCCEEDED, task.id, body))
    return records


def _check_pruned(reader: Reader, row: CheckpointRow, reason: str) -> None:
    """Raise CorruptRecordError where the records of a checkpoint were not pruned: they are lost."""
    if row.seq not in {anchor.seq for anchor in reader.anchors(row.thread_id)}:
        facts = {"table": "checkpoints", "thread_id": row.thread_id, "seq": row.seq}
        raise CorruptRecordError(record=row_name(row), reason=reason, **facts)


def bring(run: Run, base: Base, records: Iterable[Record]) -> None:
    """Record on a new base what it keeps of the old one."""
    records = list(records)
    rows = [run.ledger.add_record(base, r.task_id, r.kind, r.body)._replace(body=r.body) for r in records]
    apply_records(_reading(run, records), base, rows)
    rename_outcomes(run.plan, base)
    run.ledger.recorded = recorded_positions(base, rows)


def _reading(run: Run, records: Sequence[Record]) -> Codec:
    """Return a codec that reads records which stand in the thread already, with what they refer to."""
    bodies = [record.body for record in records]
    if not may_refer(bodies):
        return run.codec
    assert run.store is not None
    with run.store.reading() as reader:
        return reading(reader, run.codec, run.config.thread_id or "", bodies)


def recorded_positions(base: Base, rows: Iterable[RecordRow]) -> dict[int, int]:
    """Return, per position of the base whose success a record holds, the seq of that record."""
    positions = {task.id: i for i, task in enumerate(base.tasks)}
    found: dict[int, int] = {}
    for row in rows:
        if row.task_id not in positions:
            continue
        if row.kind == lifecycle.SUCCEEDED:
            found[positions[row.task_id]] = row.seq
        elif row.kind == lifecycle.DISCARDED:
            found.pop(positions[row.task_id], None)
    return found


def _always(old: Task, new: Task) -> bool:
    return True


def _asks(record: Record, call_id: str) -> bool:
    return any(call == call_id for _, call in layout.asked_ids(record.body, "question"))


def _asked_then(run: Run, loaded: Loaded) -> list[Asked]:
    """Return every question of a base, answered or not: at an older checkpoint each can be answered once more."""
    asked = asked_questions(loaded)
    return [(task, question) for task in loaded.base.tasks for question in asked.get(task.id, ())]


def _known_ids(
    run: Run, reader: Reader, loaded: Loaded, askable: Iterable[Asked], resume: Any
) -> tuple[dict[str, str], set[str]]:
    """Return aliases (ids from before an edit or fork → today's, by position) and the ids answered anywhere."""
    given = id_map(resume)
    today = {position_id(task, question.call_id): question.interrupt_id for task, question in askable}
    if given is None or set(given) <= set(today.values()):
        return {}, set()
    thread_id = loaded.row.thread_id
    answered = {
        layout.answered_id(row.body, row_name(row))
        for kind in lifecycle.ANSWERS
        for row in reader.records_of_kind(thread_id, kind)
    }
    aliases: dict[str, str] = {}
    for row in (row for kind in lifecycle.PAUSES for row in reader.records_of_kind(thread_id, kind)):
        for interrupt_id, position in _positions(run, reader, row).items():
            if position in today and interrupt_id not in answered:
                aliases[interrupt_id] = today[position]
    return aliases, answered


def _positions(run: Run, reader: Reader, row: RecordRow) -> dict[str, str]:
    """Return the questions a record asked: interrupt id → position."""
    (checkpoint,) = reader.checkpoints(row.thread_id, [row.base_seq])
    then = load(reader, run.codec, run.plan, checkpoint).base
    task = next((task for task in then.tasks if task.id == row.task_id), None)
    if task is None:
        return {}
    asked = layout.asked_ids(row.body, row_name(row))
    return {interrupt_id: position_id(task, call_id) for interrupt_id, call_id in asked}
