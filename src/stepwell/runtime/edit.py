"""Edits and forks: supersteps with another source. Same merge, same rows, no lease left behind.

An edit acts as nodes that returned `values`: their routers run over the edited state, and what was planned is replaced
by where they lead. At a lineage's newest checkpoint the tasks that stay (same node, index and input) keep what is
recorded on them; a fork, and an edit at an older checkpoint, carry nothing. All supersteps of one call are one
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from stepwell.errors import (
    GraphMismatchError,
    InvalidUpdateError,
    NestedThreadError,
    ThreadBusyError,
    UnknownCheckpointError,
)
from stepwell.graph.types import END, MISSING, START, StateUpdate
from stepwell.ids import structural_hash
from stepwell.plan.compatibility import Problem
from stepwell.runtime.admission import ATTEMPTS
from stepwell.runtime.answers import bring, open_lineage, recorded_positions, records_on
from stepwell.runtime.changes import in_the_way, replaced_by_edit
from stepwell.runtime.execute import execute
from stepwell.runtime.ledger import Draft, Ledger
from stepwell.runtime.loading import Loaded, check_input_kept, load, superseded
from stepwell.runtime.opening import stage_input, validated_input
from stepwell.runtime.requests import Blocking
from stepwell.runtime.run import Run
from stepwell.store import NO_DIGEST, CheckpointRow, Claim, Reader, RunRow, ShapeRow, ThreadRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.begin import count, empty_state, initial_values, start_outcome
from stepwell.superstep.carry import Record, abandoned, carry
from stepwell.superstep.decide import Rules, first_failure
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
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Failed, Returned, Succeeded, returned
from stepwell.superstep.state import Base, Identity, State, Task, merge_order

Parent = tuple[int | None, bytes]
"""Seq and digest of the row that a checkpoint follows."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What to write, superstep by superstep. A `fork` may have none, or one."""

    supersteps: Any
    fork: bool = False


class Spot(NamedTuple):
    """Where the next superstep of an edit is written."""

    base: Base
    follows: Parent
    """The row that the next checkpoint follows."""
    parent: Parent
    """The row that the base's own follows: a copy stands beside it."""
    lineage: int | None
    """The lineage that is continued; None: the next checkpoint opens one, and its base's tasks stay behind."""
    records: Sequence[Record] = ()
    row: CheckpointRow | None = None
    """The base's row, where it was read and not made by this edit."""
    problems: Sequence[Problem] = ()
    """Stored values that do not fit this graph: the first superstep replaces them, or is refused."""


class Standing(NamedTuple):
    """The thread as one snapshot showed it."""

    thread: ThreadRow | None
    spot: Spot
    crashed: RunRow | None
    """The run of a dead process that the edit leaves behind."""


class Edited(NamedTuple):
    """The state a superstep of updates makes, what of it changed, and the outcomes that say so."""

    state: State
    source: str
    changed: tuple[str, ...] = ()
    outcomes: Sequence[layout.Source] = ()
    dropped: tuple[Task, ...] | None = None
    """The tasks that end here; None: those that do not stay."""


async def edit(run: Run, change: Edit) -> dict[str, Any]:
    """Write the edit's checkpoints; return the config that addresses the last one. Durable on return."""
    supersteps = _checked(run, change)
    store = run.store
    assert store is not None
    for _ in range(ATTEMPTS):
        standing: Standing = await Blocking(lambda: _stand(run, change))
        spot = standing.spot
        if change.fork and not supersteps:
            spot = _add(run, spot, Edited(_next_step(run, spot), "fork", dropped=()))
        for updates in supersteps:
            spot = await _superstep(run, spot, updates, "fork" if change.fork else "update")
        if await Blocking(partial(store.admit, _claim(run, standing, spot))) is not None:
            if run.tell is not None:
                run.tell.publish()
            return address(spot.base.identity)
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
    if run.thread in run.driving:
        raise NestedThreadError(thread_id=run.config.thread_id)
    if change.fork and not change.supersteps:
        return ()
    supersteps = checked(run.plan, change.supersteps)
    if change.fork and special(supersteps[0][0]) == COPY:
        raise InvalidUpdateError("A fork is a copy already: leave as_node out", reason="fork as __copy__")
    return supersteps


# -- reading ----------------------------------------------------------------------------------------------------------


def _stand(run: Run, change: Edit) -> Standing:
    assert run.store is not None
    with run.store.reading() as reader:
        return _read(run, reader, change)


def _read(run: Run, reader: Reader, change: Edit) -> Standing:
    thread_id, namespace, wanted = run.config.thread_id or "", run.config.namespace, run.config.checkpoint_id
    thread = reader.thread(thread_id)
    if thread is not None and thread.graph_id != run.plan.graph_id:
        raise GraphMismatchError(thread_id=thread_id, recorded=thread.graph_id, attempted=run.plan.graph_id)
    row = None
    if thread is not None:
        row = reader.checkpoint(thread_id, namespace, wanted) if wanted else reader.newest(thread_id, namespace)
    if row is None and (wanted is not None or change.fork):
        raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=wanted or "(none yet)")
    run.ledger = Ledger(run)
    run.ledger.follow(thread)
    crashed = reader.run(thread.run_id) if thread is not None and thread.run_id else None
    check_input_kept(crashed)
    if row is None:
        identity = Identity(run.plan.graph_id, run.plan.version, thread_id, namespace, "")
        nothing: Parent = (None, NO_DIGEST)
        return Standing(thread, Spot(Base(empty_state(run.plan), identity), nothing, nothing, 0), crashed)
    loaded = load(reader, run.codec, run.plan, row)
    newest = not change.fork and reader.newest(thread_id, namespace, row.lineage) == row
    return Standing(thread, _spot(run, reader, loaded, newest), crashed)


def _spot(run: Run, reader: Reader, loaded: Loaded, newest: bool) -> Spot:
    row, base = loaded.row, loaded.base
    run.ledger.stand_on(loaded.holds, recorded_positions(base, loaded.records) if newest else {})
    records = records_on(run, reader, loaded) if newest else []
    parent = row.parent_seq, row.parent_digest
    problems = in_the_way(reader, run.plan, loaded, keeps_tasks=False)
    return Spot(base, (row.seq, row.digest), parent, row.lineage if newest else None, records, row, problems)


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
    start_outcome(run.plan, raw, run.ids.new)  # what START could not take is refused now, not when it runs
    base, _ = stage_input(run, _fitting(run, spot, ()), lineage, spot.follows, raw, drops=spot.lineage is not None)
    return Spot(base, (base.seq, base.digest), spot.follows, lineage)


def _cleared(run: Run, spot: Spot, source: str) -> Edited:
    left = cleared(run.plan, _fitting(run, spot, ()), spot.lineage is not None)
    outcomes = []
    for i in left.finished:
        outcome = spot.base.outcomes[i]
        assert isinstance(outcome, Succeeded)
        outcomes.append(layout.Source(spot.base.tasks[i], outcome, run.ledger.recorded.get(i)))
    return Edited(left.state, source, left.changed, outcomes, left.dropped)


async def _acted(run: Run, spot: Spot, acts: Sequence[Acting], source: str) -> Edited:
    """Return the state after the updates, running the nodes' routers where they have some."""
    made = [_written(run, spot.base, act) for act in acts]
    base = _fitting(run, spot, [key for each in made for key, _ in each.writes])
    acted = acting_base(base, acts)
    outcomes = [await _routed(run, acted, i, act.node, made[i]) for i, act in enumerate(acts)]
    merged = merge(run.plan, acted.state, acted.tasks, outcomes)
    state = merged.state._replace(writers=base.state.writers)  # an edit makes nobody the last that ran
    sources = [layout.Source(act.place, outcome) for act, outcome in zip(acts, outcomes, strict=True)]
    return Edited(state, source, merged.changed, sources)


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
        await execute(run, base, (index,))
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
        Draft(identity, state, lineage, edited.source, *spot.follows, edited.outcomes, dropped), edited.changed
    )
    kept = carry(old, base, spot.records, stays) if spot.lineage is not None else []
    if kept:
        bring(run, base, kept)
    return Spot(base, (base.seq, base.digest), spot.follows, lineage, kept)


def _same_input(run: Run, old: Base, before: Task, new: Base, after: Task) -> bool:
    return run.digest(_input_of(run, old, before)) == run.digest(_input_of(run, new, after))


def _input_of(run: Run, base: Base, task: Task) -> Any:
    if task.arg is not MISSING:
        return task.arg
    values = base.state.values
    node = run.plan.node_of(task.node)
    keys = node.reads.keys if node is not None else ()
    return {key: values[key] for key in keys if key in values}


def _claim(run: Run, standing: Standing, spot: Spot) -> Claim:
    return Claim(
        thread_id=spot.base.identity.thread_id,
        graph_id=run.plan.graph_id,
        seen=standing.thread,
        run=None,
        rows=run.ledger.take_rows(),
        lease_seconds=None,
        status=_status(spot.base),
        now=run.clock.now(),
        ended=superseded(standing.crashed, "", run.clock.now()),
        shape=ShapeRow(run.plan.fingerprint, run.plan.shape),
    )


def _status(base: Base) -> str:
    """Return the status of a thread that nobody drives and that stands here."""
    if not base.tasks:
        return lifecycle.FINISHED
    return lifecycle.PAUSED if first_failure(base, merge_order(base.tasks)) is None else lifecycle.FAILED
