"""Edits and forks: supersteps with another source. Same merge, same rows, no lease left behind.

An edit acts as a node that returned `values`: its routers run over the edited state, and what was planned is replaced
by where they lead. At a lineage's newest checkpoint the tasks that stay (same node, index and input) keep what is
recorded on them; a fork, and an edit at an older checkpoint, carry nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from stepwell.errors import GraphMismatchError, InvalidUpdateError, ThreadBusyError, UnknownCheckpointError
from stepwell.graph.types import MISSING, START
from stepwell.ids import structural_hash
from stepwell.plan.compatibility import Problem
from stepwell.runtime.admission import ATTEMPTS
from stepwell.runtime.answers import bring, open_lineage, records_on
from stepwell.runtime.changes import in_the_way, replaced_by_edit
from stepwell.runtime.execute import execute
from stepwell.runtime.ledger import Draft, Ledger
from stepwell.runtime.loading import Loaded, check_input_kept, load, superseded
from stepwell.runtime.requests import Blocking
from stepwell.runtime.run import Run
from stepwell.store import NO_DIGEST, Claim, Reader, RunRow, ShapeRow, ThreadRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.begin import count, empty_state, initial_values, start_outcome
from stepwell.superstep.carry import Record, abandoned, carry
from stepwell.superstep.decide import Rules
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Failed, Outcome, Returned, Succeeded, returned
from stepwell.superstep.state import Base, Identity, Planned, State, Task


@dataclass(frozen=True, slots=True)
class Edit:
    """What to write, as whom."""

    values: Any
    as_node: str | None
    fork: bool = False


class Standing(NamedTuple):
    """The thread as one snapshot showed it, for an edit."""

    thread: ThreadRow | None
    loaded: Loaded | None
    newest: bool
    base: Base
    records: list[Record]
    crashed: RunRow | None
    """The run of a dead process that the edit leaves behind."""
    problems: Sequence[Problem] = ()
    """Stored values that do not fit this graph: the edit replaces them, or is refused."""


class Edited(NamedTuple):
    """The state an edit makes, what of it changed, and the outcome that says so."""

    state: State
    changed: tuple[str, ...]
    sources: tuple[layout.Source, ...]


async def edit(run: Run, change: Edit) -> dict[str, Any]:
    """Write the edit's checkpoint; return the config that addresses it. Durable on return."""
    store = run.store
    assert store is not None
    for _ in range(ATTEMPTS):
        standing: Standing = await Blocking(lambda: _stand(run, change))
        following = _stage(run, standing, change, await _edited(run, standing, change))
        claim = _claim(run, standing, following)
        if await Blocking(partial(store.admit, claim)) is not None:
            return address(following.identity)
    raise ThreadBusyError(thread_id=run.config.thread_id, holder="other callers", run_id="?", expires_in=0.0)


def address(identity: Identity) -> dict[str, Any]:
    """Return the config that addresses a checkpoint."""
    keys = {
        "thread_id": identity.thread_id,
        "checkpoint_ns": identity.namespace,
        "checkpoint_id": identity.checkpoint_id,
    }
    return {"configurable": keys}


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
    if row is None:
        identity = Identity(run.plan.graph_id, run.plan.version, thread_id, namespace, "")
        return Standing(thread, None, True, Base(empty_state(run.plan), identity), [], None)
    loaded = load(reader, run.codec, run.plan, row)
    run.ledger.stand_on(loaded.holds, {})
    newest = not change.fork and reader.newest(thread_id, namespace, row.lineage) == row
    records = records_on(run, reader, loaded) if newest else []
    crashed = reader.run(thread.run_id) if thread is not None and thread.run_id else None
    check_input_kept(crashed)
    unfit = in_the_way(reader, run.plan, loaded, keeps_tasks=False)
    return Standing(thread, loaded, newest, loaded.base, records, crashed, unfit)


# -- the edited state -------------------------------------------------------------------------------------------------


async def _edited(run: Run, standing: Standing, change: Edit) -> Edited:
    """Return the state after the edit, running the node's routers where it has some."""
    state = standing.base.state
    if change.fork and change.values is None and change.as_node is None:
        _fitting(run, standing, state, ())
        return Edited(state._replace(step=state.step + 1), (), ())
    node = _acting_node(run, state, change)
    base = Base(state._replace(next=(Planned(node),)), standing.base.identity)
    task = base.tasks[0]
    made = _written(run, task, node, change.values)
    state = _fitting(run, standing, state, [key for key, _ in made.writes])
    base.state = base.state._replace(values=state.values)
    run.rules = Rules(state.step + 1, run.config.recursion_limit)
    outcome: Outcome | None = Succeeded(*made)
    if (run.plan.start if node == START else run.plan.nodes[node]).branches:
        base.outcomes[0] = Failed("", None, made)
        await execute(run, base, (0,))
        run.ledger.unrecorded.clear()
        outcome = base.outcomes[0]
    if not isinstance(outcome, Succeeded):
        error = outcome.error if isinstance(outcome, Failed) else None
        raise error or InvalidUpdateError(f"A router of {node!r} did not say where to go: {outcome!r}", node=node)
    merged = merge(run.plan, base.state, base.tasks, [outcome])
    return Edited(merged.state, merged.changed, (layout.Source(task, outcome),))


def _fitting(run: Run, standing: Standing, state: State, written: Sequence[str]) -> State:
    """Return the state to edit: without the stored values that no longer fit and are written anew."""
    if standing.loaded is None or not standing.problems:
        return state
    replaced = replaced_by_edit(standing.loaded.row, run.plan, standing.problems, written)
    fresh = initial_values(run.plan)
    values = {key: fresh.get(key, MISSING) if key in replaced else value for key, value in state.values.items()}
    return state._replace(values={key: value for key, value in values.items() if value is not MISSING})


def _acting_node(run: Run, state: State, change: Edit) -> str:
    nodes = run.plan.nodes
    if change.as_node is not None:
        node = START if change.as_node == "__input__" else change.as_node
        node = run.plan.changed.nodes.get(node, node)
        if node != START and node not in nodes:
            raise InvalidUpdateError(f"Node {node} does not exist", reason="unknown as_node", node=node)
        return node
    if not state.writers:
        return START
    if len(nodes) == 1:
        return next(iter(nodes))
    if len(state.writers) > 1:
        who = ", ".join(state.writers)
        raise InvalidUpdateError(f"Ambiguous update, specify as_node: {who} wrote last, together", nodes=state.writers)
    return state.writers[0]


def _written(run: Run, task: Task, node: str, values: Any) -> Returned:
    def edit_id() -> str:
        return structural_hash("edit", task.id, run.ids.new())

    return (
        start_outcome(run.plan, values, edit_id)
        if node == START
        else returned(run.plan, run.plan.nodes[node], values, edit_id)
    )


# -- writing ----------------------------------------------------------------------------------------------------------


def _stage(run: Run, standing: Standing, change: Edit, edited: Edited) -> Base:
    """Stage the edit's checkpoint and what it carries; return the base it makes."""
    old, loaded, ledger = standing.base, standing.loaded, run.ledger
    identity = old.identity.following(run.ids.new(), run.plan.version)
    planned = Base(edited.state, identity)

    def stays(before: Task, after: Task) -> bool:
        return standing.newest and _same_input(run, old, before, planned, after)

    dropped = abandoned(old, planned, stays) if standing.newest else []  # an older lineage keeps its own tasks
    state = edited.state._replace(activations=count(edited.state.activations, dropped))
    lineage = old.lineage if standing.newest else open_lineage(ledger)
    parent_seq, parent_digest = (loaded.row.seq, loaded.row.digest) if loaded is not None else (None, NO_DIGEST)
    source = "fork" if change.fork else "update"
    draft = Draft(identity, state, lineage, source, parent_seq, parent_digest, edited.sources, tuple(dropped))
    following = ledger.add(draft, edited.changed)
    if standing.records:
        bring(run, following, carry(old, following, standing.records, stays))
    return following


def _same_input(run: Run, old: Base, before: Task, new: Base, after: Task) -> bool:
    return run.digest(_input_of(run, old, before)) == run.digest(_input_of(run, new, after))


def _input_of(run: Run, base: Base, task: Task) -> Any:
    if task.arg is not MISSING:
        return task.arg
    values = base.state.values
    node = run.plan.node_of(task.node)
    keys = node.reads.keys if node is not None else ()
    return {key: values[key] for key in keys if key in values}


def _claim(run: Run, standing: Standing, following: Base) -> Claim:
    return Claim(
        thread_id=following.identity.thread_id,
        graph_id=run.plan.graph_id,
        seen=standing.thread,
        run=None,
        rows=run.ledger.take_rows(),
        lease_seconds=None,
        status=lifecycle.PAUSED if following.tasks else lifecycle.FINISHED,
        now=run.clock.now(),
        ended=superseded(standing.crashed, "", run.clock.now()),
        shape=ShapeRow(run.plan.fingerprint, run.plan.shape),
    )
