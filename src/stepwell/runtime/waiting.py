"""A run whose tasks wait: whether it goes on with them, waits in place, or ends as `waiting`.

A wait leaves its node by a pause, like a question. Once nothing else of the superstep runs, what has come is recorded
and consumed in one commit, before anything runs on it, and the task is called again. What is due within a moment is
waited for in place, with the waits already on disk: a process that dies there leaves the same deadline behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepwell import points
from stepwell.runtime.requests import Blocking, Sleep
from stepwell.store import MessageRow, Reader, RunRow
from stepwell.superstep import lifecycle
from stepwell.superstep.decide import first_failure
from stepwell.superstep.outcome import Interrupted
from stepwell.superstep.state import Base, merge_order
from stepwell.superstep.waiting import (
    CAME,
    LATE,
    TIMER,
    Letter,
    Over,
    decode_arrived,
    encode_arrived,
    next_deadline,
    open_waits,
    over_now,
    register,
)

if TYPE_CHECKING:
    from stepwell.runtime.run import Run

IN_PLACE_SECONDS = 1.0
"""How far ahead the end of a wait may be for the run to wait for it in place."""
LOOK_SECONDS = 0.05
"""How often a run that waits in place for a message looks into the inbox."""


async def goes_on(run: Run, base: Base) -> bool:
    """Tell whether a task whose superstep stands still goes on: what it waited for has come, and is durable."""
    if not any(isinstance(outcome, Interrupted) and outcome.awaited for outcome in base.outcomes):
        return False
    for task, outcome in zip(base.tasks, base.outcomes, strict=True):
        if isinstance(outcome, Interrupted):
            register(base, task.id, outcome)
    if first_failure(base, merge_order(base.tasks)) is not None:
        return False
    while not (over := await Blocking(lambda: _look(run, base))):
        ahead = _ahead(run, base)
        if ahead is None:
            return False
        await _write(run, _stage(run, base))
        points.reach(points.WAIT_DURABLE)
        await Sleep(ahead)
    await _take(run, base, over)
    return True


def stirs(run: Run, reader: Reader, base: Base) -> bool:
    """Tell whether a call that continues this base has anything to do for what waits: it has come, or is about to."""
    if not any(True for _ in open_waits(base)):
        return False
    return bool(_over(run, reader, base)) or _ahead(run, base) is not None


def _look(run: Run, base: Base) -> list[tuple[Over, MessageRow | None]]:
    assert run.store is not None
    with run.store.reading() as reader:
        return _over(run, reader, base)


def _over(run: Run, reader: Reader, base: Base) -> list[tuple[Over, MessageRow | None]]:
    """Return the waits that are over, each with the message that ends it."""
    timers_only = all(awaited.kind == TIMER for _, awaited in open_waits(base))
    rows = [] if timers_only else reader.inbox(base.identity.thread_id)
    by_id = {row.message_id: row for row in rows}
    letters = [Letter(row.message_id, row.kind, row.key, row.created_at) for row in rows]
    found = over_now(base, letters, run.clock.now())
    return [(over, by_id[over.letter.message_id] if over.letter is not None else None) for over in found]


def _ahead(run: Run, base: Base) -> float | None:
    """Return how many seconds to wait in place before looking again; None where nothing is due within a moment."""
    waits = [awaited for _, awaited in open_waits(base)]
    until = next_deadline(waits)
    if until is None:
        return None
    ahead = (until - run.clock.now()) / 1e6
    if ahead > IN_PLACE_SECONDS:
        return None
    return max(0.0, ahead if all(each.kind == TIMER for each in waits) else min(ahead, LOOK_SECONDS))


async def _take(run: Run, base: Base, found: Sequence[tuple[Over, MessageRow | None]]) -> None:
    """Record what ended these waits and consume the messages, in one commit; their tasks are to be called again.

    A timer that is due needs no record of its own: its deadline comes to disk with the next commit, if it is not there.
    """
    base.fresh |= {base.tasks[over.place].id for over, _ in found}
    told = [(over, row) for over, row in found if over.awaited.kind != TIMER]
    if not told:
        _keep_deadlines(run, base, {over.place for over, _ in found})
        return
    run_row, consumed = _stage(run, base), list[tuple[str, int]]()
    for (place, awaited, _), row in told:
        task = base.tasks[place]
        status, message_id, value = (LATE, "", b"") if row is None else (CAME, row.message_id, row.body)
        body = encode_arrived(awaited, message_id, status, value)
        record = run.ledger.add_record(base, task.id, lifecycle.ARRIVED, body)
        base.answer(task.id, awaited.call_id, decode_arrived(run.codec, body, "signal")[2])
        if row is not None:
            consumed.append((row.message_id, record.seq))
        if run.tell is not None:
            run.tell.wait_ended(base, task, awaited, message_id)
    await _write(run, run_row, consumed)
    points.reach(points.ARRIVED_DURABLE)


def _keep_deadlines(run: Run, base: Base, places: set[int]) -> None:
    """Have the outcomes of tasks that go on at once recorded; in `exit` mode, where nothing is, forget them."""
    ledger = run.ledger
    if run.durability == "exit":
        ledger.unrecorded = [place for place in ledger.unrecorded if place not in places]
    else:
        ledger.stage_outcomes(base)


def _stage(run: Run, base: Base) -> RunRow | None:
    """Stage what is known of the base and, in `exit` mode, the base itself. Return the run's row where that changes:
    the run is then gone on with from the base, and not from the input in its row."""
    ledger, changed = run.ledger, None
    if ledger.flush_base(base) and ledger.run_row is not None:
        checkpoint_id = ledger.staged[-1].checkpoint_id
        changed = ledger.run_row = ledger.run_row._replace(input=b"", checkpoint_id=checkpoint_id)
    ledger.stage_outcomes(base)
    return changed


async def _write(run: Run, run_row: RunRow | None, consumed: Sequence[tuple[str, int]] = ()) -> None:
    """Write what is staged and wait for it, whatever the mode."""
    ledger = run.ledger
    if not (ledger.staged or ledger.staged_records):
        return
    commit = ledger.commit_of(lifecycle.RUNNING, run_row)
    commit.consumed = consumed
    await ledger.outbox.write(commit)
    if run.stream is not None:
        run.stream.publish()
