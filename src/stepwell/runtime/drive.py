"""The life of one run: load → decide → execute → merge → decide next → commit, until it ends.

The loop awaits nothing but the engine's own requests, so the same coroutine runs under `invoke` and `ainvoke`. How a
run ends (finished, paused, failed, out of steps, cancelled) is below the loop, one function each.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from stepwell import points
from stepwell.errors import (
    EmptyInputError,
    GraphRecursionError,
    InvalidUpdateError,
    JoinNotReleasedWarning,
    LeaseLostError,
    MergeError,
    NestedInterruptError,
    RunError,
    StateValidationError,
    StoreError,
    UnserializableValueError,
)
from stepwell.graph.types import Command
from stepwell.runtime.admission import admit
from stepwell.runtime.execute import execute
from stepwell.runtime.opening import pending_work
from stepwell.runtime.owning import own
from stepwell.runtime.requests import Blocking, Sleep
from stepwell.runtime.run import Run
from stepwell.runtime.stream.beginning import show_beginning
from stepwell.runtime.waiting import goes_on
from stepwell.superstep import lifecycle
from stepwell.superstep.decide import Decision, RunTasks, Stop, Wait, decide, ending, first_failure, standstill
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Awaited, Cancelled, Failed, Question, Succeeded, text_of
from stepwell.superstep.state import Base, merge_order

if TYPE_CHECKING:
    from stepwell.runtime.items import RunItems

JOIN_SECONDS = 0.05
"""How often a caller that joined a run by its id looks whether it is over."""


class Ending(NamedTuple):
    """How a run ended: where it stands, and what is to be raised to the caller."""

    base: Base
    status: str
    questions: tuple[Question, ...] = ()
    error: BaseException | None = None
    awaited: tuple[Awaited, ...] = ()


async def drive(run: Run) -> Ending:
    """Drive the run to its end. Returns where it finished or paused; raises what failed, with the thread told."""
    ending = await drive_to_ending(run)
    if ending.error is not None:
        raise ending.error
    return ending


async def drive_to_ending(run: Run) -> Ending:
    """Drive the run to its end. Returns also how it failed; raises what kept it from beginning, or stopped it."""
    if run.request.on_pending == "finish" and run.store is not None:
        await _finish_pending(run)
    ending = await _superstep_after_superstep(run)
    if run.tell is not None:
        run.tell.over(ending.base, ending.status, ending.error)
    return ending


async def _superstep_after_superstep(run: Run) -> Ending:
    try:
        decision = await _begin(run)
        while type(decision) is RunTasks:
            if (rest := execute(run, run.base, decision.indexes)) is not None:
                await rest
            if not _all_succeeded(run.base):
                if (stopped := await _stood_still(run, run.base)) is not None:
                    return stopped
                decision = decide(run.base, run.rules)
                continue
            changed = _advance(run, run.base)
            decision = decide(run.base, run.rules)
            if run.store is not None or run.items is not None:
                if (rest := _commit(run, run.base, decision)) is not None:
                    await rest
                points.reach(points.COMMITTED)
            if run.stream is not None or run.tell is not None:
                _publish(run, run.base, changed)
        return _ended(run, run.base, decision)
    except _FAULTS as error:
        if not run.admitted:
            raise
        return await _faulty(run, run.base, error)
    except BaseException as error:
        if run.admitted:
            await _cut_off(run, run.base, error)
        raise
    finally:
        _let_go(run)


async def _begin(run: Run) -> Decision:
    """Bring the run to its first decision. A call that repeats an ended run's id runs nothing: it is shown its end."""
    while not await Blocking(lambda: admit(run)):
        await Sleep(JOIN_SECONDS)
    if run.stream is not None:
        await show_beginning(run, run.stream)
    if run.ended_before and run.base.tasks:
        return standstill(run.base)
    decision = decide(run.base, run.rules)
    if isinstance(decision, Wait) and decision.awaited and run.ledger.run_row is not None:
        return RunTasks(())  # none is to be called yet: the run looks whether what they wait for has come
    return decision


def _let_go(run: Run) -> None:
    if run.leases is not None:
        run.leases.let_go(run)
    points.reach(points.ENDED)


_FAULTS = (MergeError, StateValidationError, UnserializableValueError, InvalidUpdateError)
"""What merging or storing a superstep can refuse. The run fails at its base and keeps what was not at fault."""


def _all_succeeded(base: Base) -> bool:
    outcomes = base.outcomes
    return type(outcomes[0]) is Succeeded if len(outcomes) == 1 else set(map(type, outcomes)) == {Succeeded}


def _advance(run: Run, base: Base) -> Sequence[str]:
    """Merge what the tasks came to into the run's next base, and leave this one; return the channels that changed."""
    own(run.ledger, base)
    merged = merge(run.plan, base.state, base.tasks, base.outcomes)  # type: ignore[arg-type]  # all succeeded
    run.base = run.ledger.advance(base, merged)
    points.reach(points.MERGED)
    return merged.changed


def _publish(run: Run, base: Base, changed: Sequence[str]) -> None:
    if run.stream is not None:
        run.stream.superstep(run, base, changed)
    if run.tell is not None:
        run.tell.publish()


def _commit(run: Run, base: Base, decision: Decision) -> Awaitable[None] | None:
    """Make a superstep durable; with the last one, the end of the run and the release of its lease. Return what is left
    to await for that, or None where it is done."""
    if run.items is not None:
        return _commit_with_items(run, run.items, base, decision)
    return _committed(run, base, decision)


async def _commit_with_items(run: Run, items: RunItems, base: Base, decision: Decision) -> None:
    await items.write_apart(run.port.leads)
    if run.store is not None and (rest := _committed(run, base, decision)) is not None:
        await rest


def _committed(run: Run, base: Base, decision: Decision) -> Awaitable[None] | None:
    status = ending(decision, run.request.on_limit == "raise")
    if status is None:
        return run.ledger.commit()
    if isinstance(decision, Stop) and status == lifecycle.FAILED:
        return run.ledger.end(base, status, text_of(_out_of_steps(decision, base)))
    return run.ledger.end(base, status)


def _out_of_steps(stop: Stop, base: Base) -> GraphRecursionError:
    thread_id = base.identity.thread_id or "-"
    return GraphRecursionError(limit=stop.limit, thread_id=thread_id, checkpoint_id=base.checkpoint_id)


async def _finish_pending(run: Run) -> None:
    """Bring what the thread was doing to its end, as a run of its own, before the new input begins."""
    if isinstance(run.request.input, Command) or await Blocking(lambda: _is_known(run)):
        return
    try:
        ended = await drive(run.continuation())
    except EmptyInputError:
        return
    if ended.status != lifecycle.FINISHED:
        raise pending_work(run.config.thread_id, ended.questions, ended.awaited, "stands at a breakpoint")


def _is_known(run: Run) -> bool:
    """Tell whether the call repeats a run id: then there is nothing to finish first."""
    assert run.store is not None
    if run.config.run_id is None:
        return False
    with run.store.reading() as reader:
        return reader.run(run.config.run_id) is not None


# -- how runs end -----------------------------------------------------------------------------------------------------


def _ended(run: Run, base: Base, decision: Decision) -> Ending:
    if isinstance(decision, Stop):
        if run.request.on_limit == "raise":
            return Ending(base, lifecycle.FAILED, error=_out_of_steps(decision, base))
        return Ending(base, lifecycle.PAUSED)
    if isinstance(decision, Wait):
        return _paused(run, base, decision)
    for join, arrived in base.state.barriers.items():
        missing = sorted(run.plan.joins[join].sources - arrived) if join in run.plan.joins else []
        text = f"the join {join!r} was never released: {', '.join(missing)} did not run"
        warnings.warn(JoinNotReleasedWarning(text), stacklevel=2)
    return Ending(base, lifecycle.FINISHED)


def _paused(run: Run, base: Base, stop: Wait) -> Ending:
    if stop.questions and run.store is None and run.asked_by is not None:
        return Ending(base, lifecycle.FAILED, error=NestedInterruptError(node=run.asked_by))
    if run.stream is not None:
        run.stream.paused(base, stop)
    return Ending(base, stop.status, stop.questions, awaited=stop.awaited)


async def _stood_still(run: Run, base: Base) -> Ending | None:
    """Some task failed, asks or waits: everything finished is kept, and the thread says so before anybody is told. None
    where what a task waited for has come: it goes on."""
    if await goes_on(run, base):
        return None
    run.ledger.stage_outcomes(base)
    failure = first_failure(base, merge_order(base.tasks))
    if failure is None:
        stop = standstill(base)
        await run.ledger.end(base, stop.status)
        return _paused(run, base, stop)
    outcome = base.outcomes[failure]
    assert isinstance(outcome, Failed | Cancelled)
    await run.ledger.end(base, lifecycle.FAILED, outcome.text)
    if run.stream is not None:
        run.stream.publish()
    error = outcome.error if isinstance(outcome, Failed) and outcome.error is not None else RunError(outcome.text)
    _explain(run, base, error, failure)
    return Ending(base, lifecycle.FAILED, error=error)


def _explain(run: Run, base: Base, error: BaseException, index: int | None) -> None:
    """Add to the exception which task it was, and where the thread stands."""
    if index is not None:
        task = base.tasks[index]
        error.add_note(f"During task with name '{task.node}' and id '{task.id}'")
    if run.store is not None:
        error.add_note(f"On thread '{base.identity.thread_id}', resumable from checkpoint '{base.checkpoint_id}'")


async def _faulty(run: Run, base: Base, error: BaseException) -> Ending:
    """A superstep could not be merged or stored: who wrote the value at fault fails, all others keep their outcomes."""
    culprits = _culprits(run, base, error)
    for index in culprits:
        base.outcomes[index] = Failed(text_of(error), error)
        if run.tell is not None:
            run.tell.refused(base, index)
        if index not in run.ledger.unrecorded:
            run.ledger.unrecorded.append(index)
    try:
        await run.ledger.end(base, lifecycle.FAILED, text_of(error))
    except UnserializableValueError:  # what a reducer made of storable writes: the thread stays where it was
        if run.stream is not None:
            run.stream.forget()
        await run.ledger.release(base, lifecycle.FAILED, text_of(error))
    if run.stream is not None:
        run.stream.publish()
    _explain(run, base, error, culprits[0] if culprits else None)
    return Ending(base, lifecycle.FAILED, error=error)


def _culprits(run: Run, base: Base, error: BaseException) -> list[int]:
    if isinstance(error, StateValidationError):
        field = getattr(error, "field", None)
        return [
            i for i, o in enumerate(base.outcomes) if isinstance(o, Succeeded) and any(k == field for k, _ in o.writes)
        ]
    if isinstance(error, UnserializableValueError):
        return [i for i in run.ledger.unrecorded if not run.ledger.storable(base, i)]
    return []


async def _cut_off(run: Run, base: Base, error: BaseException) -> None:
    """The run was stopped from outside, or the store failed: keep what is finished, free the thread."""
    try:
        failed = error if isinstance(error, StoreError) else await _last_write(run)
        if run.ledger.run_row is None or isinstance(failed, LeaseLostError):
            if run.tell is not None:
                run.tell.cut_off(base, error)
            return  # it ended before, keeps nothing, or lost the right to write
        if failed is not None:
            status = lifecycle.FAILED if failed is error else lifecycle.CANCELLED
            await run.ledger.release(base, status, text_of(error))
            return
        for index, outcome in enumerate(base.outcomes):
            if outcome is None:
                base.outcomes[index] = Cancelled(text_of(error))
                if run.tell is not None:
                    run.tell.refused(base, index)
                run.ledger.unrecorded.append(index)
        await run.ledger.end(base, lifecycle.CANCELLED, text_of(error))
    except StoreError as second:
        error.add_note(f"The end of the run could not be recorded: {second}")
    _explain(run, base, error, None)


async def _last_write(run: Run) -> StoreError | None:
    """Bring the write that an interruption struck to its end; return what it failed with, if it did."""
    try:
        await run.ledger.outbox.make_sure()
    except StoreError as error:
        return error
    return None
