"""Edits and forks: supersteps with another source. Same merge, same rows, no lease left behind.

An edit acts as nodes that returned `values`: their routers run over the edited state, and what was planned is replaced
by where they lead. At a lineage's newest checkpoint the tasks that stay (same node, index and input) keep what is
recorded on them; a fork, and an edit at an older checkpoint, carry nothing. All supersteps of one call are one
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from stepwell.errors import (
    InvalidUpdateError,
    NestedThreadError,
    ThreadBusyError,
    ThreadExistsError,
)
from stepwell.graph.types import END, MISSING, START, StateUpdate
from stepwell.ids import structural_hash
from stepwell.runtime.admission import ATTEMPTS
from stepwell.runtime.answers import bring, open_lineage
from stepwell.runtime.changes import replaced_by_edit, require_item_store
from stepwell.runtime.draft import Draft
from stepwell.runtime.editing.origins import origin_record
from stepwell.runtime.editing.standing import Edit, Spot, Standing, stand
from stepwell.runtime.execute import execute
from stepwell.runtime.loading import superseded
from stepwell.runtime.opening import stage_input, validated_input
from stepwell.runtime.reading.unreadable import comparable, require_readable
from stepwell.runtime.requests import Blocking
from stepwell.runtime.run import Run
from stepwell.store import Claim, ShapeRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.begin import count, initial_values, start_outcome
from stepwell.superstep.carry import abandoned, carry
from stepwell.superstep.decide import Rules, first_failure, standstill
from stepwell.superstep.edit import (
    COPY,
    INPUT,
    Acting,
    Supersteps,
    acting,
    acting_base,
    checked,
    cleared,
    copied_updates,
    special,
)
from stepwell.superstep.given import merge_given
from stepwell.superstep.outcome import Failed, Returned, Succeeded, returned
from stepwell.superstep.state import Base, Identity, State, Task, merge_order


class Edited(NamedTuple):
    """The state a superstep of updates makes, what of it changed, and the outcomes that say so."""

    state: State
    source: str
    changed: tuple[str, ...] = ()
    outcomes: Sequence[layout.Source] = ()
    """In merge order."""
    dropped: tuple[Task, ...] | None = None
    """The tasks that end here; None: those that do not stay."""
    before: Mapping[str, Any] | None = None
    """The values that the outcomes were folded into, where they are those that the rows hold."""


async def edit(run: Run, change: Edit) -> dict[str, Any]:
    """Write the edit's checkpoints; return the config that addresses the last one. Durable on return."""
    supersteps = _checked(run, change)
    store = run.store
    assert store is not None
    for _ in range(ATTEMPTS):
        if run.items is not None:
            run.items.forget()
        standing: Standing = await Blocking(lambda: stand(run, change))
        spot = standing.spot
        if change.fork and not supersteps:
            spot = _add(run, spot, Edited(_next_step(run, spot), "fork", dropped=()))
        for updates in supersteps:
            spot = await _superstep(run, spot, updates, "fork" if change.fork else "update")
        if run.items is not None:
            await run.items.write_apart(run.port.leads)
        if await Blocking(partial(store.admit, _claim(run, standing, spot))) is not None:
            if run.tell is not None:
                run.tell.publish()
            return address(spot.base.identity)
        if change.into is not None:
            raise ThreadExistsError(thread_id=change.into)
    raise ThreadBusyError(thread_id=run.config.thread_id, holder="other callers", run_id="?", expires_in=0.0)


def address(identity: Identity) -> dict[str, Any]:
    """Return the config that addresses a checkpoint."""
    keys = {
        "thread_id": identity.thread_id,
        "checkpoint_ns": identity.namespace,
        "checkpoint_id": identity.checkpoint_id,
    }
    return {"configurable": keys}


def _checked(run: Run, change: Edit) -> Supersteps:
    if change.into is None and run.thread in run.driving:
        raise NestedThreadError(thread_id=run.config.thread_id)
    if change.fork and not change.supersteps:
        return ()
    supersteps = checked(run.plan, change.supersteps)
    if change.fork and special(supersteps[0][0]) == COPY:
        raise InvalidUpdateError("A fork is a copy already: leave as_node out", reason="fork as __copy__")
    return supersteps


# -- one superstep ----------------------------------------------------------------------------------------------------


async def _superstep(run: Run, spot: Spot, updates: Sequence[StateUpdate], source: str) -> Spot:
    """Stage the checkpoint of one superstep of updates; return where the next one is written."""
    kind = special(updates[0])
    if kind == INPUT:
        return _input(run, spot, updates[0].values)
    if kind == END:
        return _add(run, spot, _cleared(run, spot, source))
    if kind == COPY:
        copied = _copy(run, spot)
        following = [_moved(spot.base, copied.base, update) for update in copied_updates(updates[0])]
        return await _superstep(run, copied, following, source) if following else copied
    return _add(run, spot, await _acted(run, spot, acting(run.plan, spot.base, updates), source))


def _next_step(run: Run, spot: Spot) -> State:
    state = _fitting(run, spot, ()).state
    return state._replace(step=state.step + 1)


def _fitting(run: Run, spot: Spot, written: Sequence[str]) -> Base:
    """Return the base to edit: without the stored values that no longer fit and are written anew."""
    base = spot.base
    if spot.row is None or not spot.problems:
        return base
    replaced = replaced_by_edit(spot.row, run.plan, spot.problems, written)
    fresh = initial_values(run.plan)
    values = {key: fresh.get(key, MISSING) if key in replaced else value for key, value in base.state.values.items()}
    base.state = base.state._replace(values={key: value for key, value in values.items() if value is not MISSING})
    return base


def _copy(run: Run, spot: Spot) -> Spot:
    """Stage the same checkpoint once more: beside it, in a lineage of its own, with nothing recorded on it."""
    if not spot.base.checkpoint_id:
        raise InvalidUpdateError("Cannot copy a non-existent checkpoint", reason="nothing to copy")
    beside = spot._replace(follows=spot.parent, lineage=None)
    return _add(run, beside, Edited(_next_step(run, spot), "fork", dropped=()))


def _moved(old: Base, new: Base, update: StateUpdate) -> StateUpdate:
    """Return an update that named a task of the copied checkpoint for the copy."""
    index = old.task_index(update.task_id) if update.task_id is not None else None
    return update if index is None else update._replace(task_id=new.tasks[index].id)


def _input(run: Run, spot: Spot, raw: Any) -> Spot:
    lineage = spot.lineage if spot.lineage is not None else open_lineage(run.ledger)
    if not run.plan.is_workflow:
        start_outcome(run.plan, raw, run.ids.new)  # what START could not take is refused now, not when it runs
    base, _ = stage_input(run, _fitting(run, spot, ()), lineage, spot.follows, raw, drops=spot.lineage is not None)
    return Spot(base, (base.seq, base.digest), spot.follows, lineage)


def _cleared(run: Run, spot: Spot, source: str) -> Edited:
    if spot.lineage is not None:
        require_item_store(run, spot.base)
    left = cleared(run.plan, _fitting(run, spot, ()), spot.lineage is not None)
    outcomes = []
    for i in sorted(left.finished, key=merge_order(spot.base.tasks).index):
        outcome = spot.base.outcomes[i]
        assert isinstance(outcome, Succeeded)
        outcomes.append(layout.Source(spot.base.tasks[i], outcome, run.ledger.recorded.get(i)))
    return Edited(left.state, source, left.changed, outcomes, left.dropped, _stored_values(spot))


async def _acted(run: Run, spot: Spot, acts: Sequence[Acting], source: str) -> Edited:
    """Return the state after the updates, running the nodes' routers where they have some."""
    made = [_written(run, spot.base, act) for act in acts]
    base = _fitting(run, spot, [key for each in made for key, _ in each.writes])
    require_readable(run.plan, base.state.values, [write for each in made for write in each.writes])
    acted = acting_base(base, acts)
    outcomes = [await _routed(run, acted, i, act.node, made[i]) for i, act in enumerate(acts)]
    merged = merge_given(run.plan, acted.state, acted.tasks, outcomes)
    state = merged.state._replace(writers=base.state.writers)  # an edit makes nobody the last that ran
    sources = [layout.Source(act.place, outcome) for act, outcome in zip(acts, outcomes, strict=True)]
    return Edited(state, source, merged.changed, sources, before=_stored_values(spot))


def _stored_values(spot: Spot) -> Mapping[str, Any] | None:
    return None if spot.problems else spot.base.state.values


def _written(run: Run, base: Base, act: Acting) -> Returned:
    def edit_id() -> str:
        return structural_hash("edit", act.place.id, run.ids.new())

    if act.node == START and act.values is not None:
        return start_outcome(run.plan, validated_input(run.plan, base, act.values), edit_id)
    table = run.plan.start if act.node == START else run.plan.nodes[act.node]
    return returned(run.plan, table, act.values, edit_id)


async def _routed(run: Run, base: Base, index: int, node: str, made: Returned) -> Succeeded:
    if not (run.plan.start if node == START else run.plan.nodes[node]).branches:
        return Succeeded(*made)
    base.outcomes[index] = Failed("", None, made)
    run.rules = Rules(base.state.step + 1, run.config.recursion_limit)
    run.durability = "exit"  # nothing is written while routers run, attempts included
    try:
        rest = execute(run, base, (index,))
        if rest is not None:
            await rest
    finally:
        run.durability = "sync"
    run.ledger.unrecorded.clear()
    outcome = base.outcomes[index]
    if not isinstance(outcome, Succeeded):
        error = outcome.error if isinstance(outcome, Failed) else None
        raise error or InvalidUpdateError(f"A router of {node!r} did not say where to go: {outcome!r}", node=node)
    return outcome


# -- writing ----------------------------------------------------------------------------------------------------------


def _add(run: Run, spot: Spot, edited: Edited) -> Spot:
    """Stage a checkpoint and what it carries; return the place after it."""
    old, ledger = spot.base, run.ledger
    identity = old.identity.following(run.ids.new(), run.plan.version)
    planned = Base(edited.state, identity)

    def stays(before: Task, after: Task) -> bool:
        return edited.dropped is None and _same_input(run, old, before, planned, after)

    state, dropped = edited.state, edited.dropped
    if dropped is None:
        dropped = tuple(abandoned(old, planned, stays)) if spot.lineage is not None else ()
        state = state._replace(activations=count(state.activations, dropped))
    lineage = spot.lineage if spot.lineage is not None else open_lineage(ledger)
    base = ledger.add(
        Draft(identity, state, lineage, edited.source, *spot.follows, edited.outcomes, dropped, edited.before),
        edited.changed,
    )
    if run.items is not None:
        run.items.stage([task for task, *_ in edited.outcomes], [outcome for _, outcome, _ in edited.outcomes])
    kept = carry(old, base, spot.records, stays) if spot.lineage is not None else []
    if kept:
        bring(run, base, kept)
    return Spot(base, (base.seq, base.digest), spot.follows, lineage, kept)


def _same_input(run: Run, old: Base, before: Task, new: Base, after: Task) -> bool:
    inputs = (_input_of(run, old, before), _input_of(run, new, after))
    one, other = (run.digest(comparable(given)) for given in inputs)
    return one == other


def _input_of(run: Run, base: Base, task: Task) -> Any:
    if task.arg is not MISSING:
        return task.arg
    values = base.state.values
    node = run.plan.node_of(task.node)
    keys = node.reads.keys if node is not None else ()
    return {key: values[key] for key in keys if key in values}


def _claim(run: Run, standing: Standing, spot: Spot) -> Claim:
    thread_id, rows = spot.base.identity.thread_id, run.ledger.take_rows()
    if standing.origin is not None:
        assert run.store is not None
        record = origin_record(run.store.sealer, thread_id, rows.head_seq + 1, 0, standing.origin, run.clock.now())
        rows = rows._replace(head_seq=record.seq, head_digest=record.digest, records=[*rows.records, record])
    return Claim(
        thread_id=thread_id,
        graph_id=run.plan.graph_id,
        seen=standing.thread,
        run=None,
        rows=rows,
        lease_seconds=None,
        status=_status(spot.base),
        now=run.clock.now(),
        ended=superseded(standing.crashed, "", run.clock.now()),
        shape=ShapeRow(run.plan.fingerprint, run.plan.shape),
        items=run.items.take() if run.items is not None else (),
    )


def _status(base: Base) -> str:
    """Return the status of a thread that nobody drives and that stands here."""
    if not base.tasks:
        return lifecycle.FINISHED
    return standstill(base).status if first_failure(base, merge_order(base.tasks)) is None else lifecycle.FAILED
