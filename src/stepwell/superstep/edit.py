"""Edits as supersteps: which nodes the updates act as, which planned tasks they stand for, what clearing leaves.

Three names are no nodes: END (with no values) clears what is planned, INPUT begins as a new input does, COPY stands
beside the checkpoint as it is. The rule kept here: an update's outcome is stored in the place of the planned task it
stands for, or in a place that no task has, so that history shows it where it belongs and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from stepwell.errors import InvalidUpdateError, UnknownTaskError
from stepwell.graph.types import END, StateUpdate
from stepwell.plan.tables import Plan
from stepwell.superstep.begin import NOTHING_STEP, count
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import Base, Planned, State, Task, merge_order

INPUT = "__input__"
COPY = "__copy__"
_ALONE = {
    END: "Cannot apply multiple updates when clearing state",
    INPUT: "Cannot apply multiple updates when updating as input",
    COPY: "Cannot copy checkpoint with multiple updates",
}

Supersteps = Sequence[Sequence[StateUpdate]]


class Acting(NamedTuple):
    """An update, the node it acts as, and the task in whose place its outcome is stored."""

    node: str
    values: Any
    place: Task


class Cleared(NamedTuple):
    """The state without what was planned, and which of those tasks had finished."""

    state: State
    changed: tuple[str, ...]
    finished: tuple[int, ...]
    dropped: tuple[Task, ...]


# -- what was given ---------------------------------------------------------------------------------------------------


def checked(plan: Plan, supersteps: Any) -> Supersteps:
    """Return the updates as `StateUpdate`s. InvalidUpdateError where they cannot be carried out in any state."""
    given = [[_update(entry) for entry in updates] for updates in supersteps]
    if not given:
        raise InvalidUpdateError("No supersteps provided", reason="no supersteps")
    if not all(given):
        raise InvalidUpdateError("No updates provided", reason="a superstep without updates")
    for updates in given:
        _check_one(plan, updates)
    return given


def special(update: StateUpdate) -> str | None:
    """Return END, INPUT or COPY where the update is one of these, and None where it acts as a node."""
    if update.as_node == END:
        return END if update.values is None else None
    return update.as_node if update.as_node in (INPUT, COPY) else None


def copied_updates(update: StateUpdate) -> list[StateUpdate]:
    """Return the updates that a copy is to be followed by: those of one node together, nodes as they first come."""
    if not isinstance(update.values, list | tuple):
        if update.values is None:
            return []
        told = "A copy takes a list of (values, as_node) to copy and edit, or no values"
        raise InvalidUpdateError(f"{told}, not {update.values!r}", reason="values beside a copy")
    grouped: dict[str | None, list[StateUpdate]] = {}
    for item in update.values:
        if not isinstance(item, list | tuple) or not 2 <= len(item) <= 3:
            raise InvalidUpdateError(f"Invalid update item: {item} when copying checkpoint", reason="not an update")
        grouped.setdefault(item[1], []).append(StateUpdate(*item))
    return [update for group in grouped.values() for update in group]


def _update(given: Any) -> StateUpdate:
    if isinstance(given, StateUpdate):
        return given
    if isinstance(given, list | tuple) and 2 <= len(given) <= 3:
        return StateUpdate(*given)
    raise InvalidUpdateError(f"Expected a StateUpdate, got {given!r}", reason="not a StateUpdate")


def _check_one(plan: Plan, updates: Sequence[StateUpdate]) -> None:
    """Check the updates of one superstep."""
    kind = special(updates[0])
    if kind is not None and len(updates) > 1:
        raise InvalidUpdateError(_ALONE[kind], reason=f"{kind} beside other updates")
    if kind == INPUT and updates[0].values is None:
        raise InvalidUpdateError("Received no input writes for __start__", reason="no input")
    if kind is not None:
        updates = copied_updates(updates[0]) if kind == COPY else ()
    for update in updates:
        if update.as_node is None and len(updates) > 1:
            raise InvalidUpdateError("as_node is required when applying multiple updates", reason="no as_node")
        if update.as_node is not None:
            check_node(plan, update.as_node)


def check_node(plan: Plan, node: str) -> None:
    """Raise InvalidUpdateError where nobody can act as this node."""
    if node != plan.entry and _today(plan, node) not in plan.nodes:
        raise InvalidUpdateError(f"Node {node} does not exist", reason="unknown as_node", node=node)


# -- acting -----------------------------------------------------------------------------------------------------------


def acting(plan: Plan, base: Base, updates: Sequence[StateUpdate]) -> list[Acting]:
    """Return the nodes that the updates act as on this base, in the order given."""
    named = [(_node(plan, base, update), update) for update in updates]
    places = _places(plan, base, named)
    return [Acting(node, update.values, place) for (node, update), place in zip(named, places, strict=True)]


def acting_base(base: Base, acts: Iterable[Acting]) -> Base:
    """Return a base on which the acting nodes are the tasks, to be merged in the order given."""
    planned = tuple(Planned(act.node, i) for i, act in enumerate(acts))
    return Base(base.state._replace(next=planned, step=max(base.state.step, NOTHING_STEP + 1)), base.identity)


def _node(plan: Plan, base: Base, update: StateUpdate) -> str:
    """Return the node an update acts as: the one named, that of its task, or the last that ran."""
    if update.as_node is not None:
        return _today(plan, update.as_node)
    if update.task_id is not None:
        return _today(plan, _task(base, update.task_id).node)
    writers = base.state.writers
    if len(writers) > 1:
        told = f"Ambiguous update, specify as_node: {', '.join(writers)} wrote last, together"
        raise InvalidUpdateError(told, reason="ambiguous as_node", nodes=writers)
    node = writers[0] if writers else plan.entry
    check_node(plan, node)
    return node


def _today(plan: Plan, recorded: str) -> str:
    """Return the name that a node has now."""
    return plan.changed.nodes.get(recorded, recorded)


def _task(base: Base, task_id: str) -> Task:
    index = base.task_index(task_id)
    if index is None:
        raise unknown_tasks(base, [task_id])
    return base.tasks[index]


def unknown_tasks(base: Base, names: Iterable[str]) -> UnknownTaskError:
    """Return the error for tasks that are not planned on this base."""
    planned = ", ".join(f"{task.node} ({task.id})" for task in base.tasks) or "none"
    at = base.checkpoint_id or "(none yet)"
    return UnknownTaskError(
        thread_id=base.identity.thread_id, checkpoint_id=at, tasks=", ".join(names), planned=planned
    )


def _places(plan: Plan, base: Base, named: Sequence[tuple[str, StateUpdate]]) -> list[Task]:
    """Return the task each update stands for: the one it names, else the next of its node, else one that is not
    planned."""
    free = list(base.tasks)
    places: dict[int, Task] = {}
    for i, (node, update) in enumerate(named):
        if update.task_id is not None:
            task = _task(base, update.task_id)
            if _today(plan, task.node) != node:
                raise InvalidUpdateError(f"Task {task.id} is of node {task.node!r}, not of {node!r}", node=node)
            if task not in free:
                raise InvalidUpdateError(f"Two updates stand for task {task.id} of node {node!r}", node=node)
            free.remove(task)
            places[i] = task
    for i, (node, _) in enumerate(named):
        if i not in places:
            found = next((task for task in free if _today(plan, task.node) == node), None)
            if found is not None:
                free.remove(found)
            activation = base.state.activations.get(node, 0)
            places[i] = found if found is not None else Task(Planned(node, -1 - i), activation, base.identity)
    return [places[i] for i in range(len(named))]


# -- clearing ---------------------------------------------------------------------------------------------------------


def cleared(plan: Plan, base: Base, keeps: bool) -> Cleared:
    """Return the state without what is planned. Where the base `keeps` its outcomes, finished tasks are merged, routes
    and all; the others are dropped."""
    state, tasks = base.state, base.tasks
    if not tasks:
        return Cleared(state._replace(step=max(state.step, NOTHING_STEP + 1) + 1), (), (), ())
    done = {i: outcome for i, outcome in enumerate(base.outcomes) if keeps and isinstance(outcome, Succeeded)}
    merged = merge(plan, state, [tasks[i] for i in done], list(done.values()))
    dropped = tuple(task for i, task in enumerate(tasks) if i not in done)
    writers = tuple(dict.fromkeys(tasks[i].node for i in merge_order(tasks)))
    activations: Mapping[str, int] = count(merged.state.activations, dropped)
    following = merged.state._replace(writers=writers, activations=activations)
    return Cleared(following, merged.changed, tuple(done), dropped)
