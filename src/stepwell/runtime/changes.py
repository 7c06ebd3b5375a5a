"""A checkpoint that other code stored, under this graph: read by today's names, converted, and judged.

What is compatible is decided by `plan.compatibility`; here a stored checkpoint is turned into what that relation asks
for, and its answer into an error or a warning. The rule kept: everything here is a function of what is stored and of
the graph, so that a look at the state and a run that goes on with it see the same. Names in `next` stay as they were
recorded: task ids are made of them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stepwell.errors import (
    CorruptRecordError,
    GraphChangedError,
    IncompatibleGraphError,
    InvalidConfigError,
    MigrationError,
)
from stepwell.graph.types import ROOT, Send
from stepwell.plan.compatibility import (
    GraphChange,
    Needs,
    Problem,
    differences,
    problems,
    renamed_join,
    ways_out,
)
from stepwell.plan.fingerprint import Shape, read_shape
from stepwell.plan.tables import Plan
from stepwell.store import CheckpointRow, EffectRow, EffectsQuery, Reader
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.effects.keys import compensation_key
from stepwell.superstep.outcome import Interrupted, Outcome, Returned, Route, Succeeded
from stepwell.superstep.state import Base

if TYPE_CHECKING:
    from stepwell.runtime.loading import Loaded
    from stepwell.runtime.run import Run

log = logging.getLogger("stepwell.run")


# -- reading ----------------------------------------------------------------------------------------------------------


class Shapes(Protocol):
    """What knows the shapes of graphs that wrote checkpoints: a `Reader`, or rows that were read with theirs."""

    def shape(self, fingerprint: str) -> str | None: ...


class Stored(NamedTuple):
    """The named parts of a checkpoint, as far as renaming and converting change them."""

    values: dict[str, Any]
    holds: dict[str, int]
    """Channel → seq of the row that holds its value; what was renamed or converted is held by none."""
    barriers: Mapping[str, list[str]]
    deferred: list[str]
    writers: list[str]


def as_of_today(
    reader: Shapes, plan: Plan, row: CheckpointRow, opened: layout.Opened, values: dict[str, Any]
) -> Stored:
    """Return a checkpoint's parts under today's names, with the values of this version."""
    stored = Stored(values, layout.holds_of(opened, row.seq), opened.barriers, opened.deferred, opened.writers)
    changed = plan.changed
    if changed.nodes:
        stored = _renamed_nodes(reader, plan, row, stored)
    if changed.channels:
        stored = _renamed_channels(plan, stored)
    if migrates(plan, row):
        stored = stored._replace(values=_migrated(plan, row, stored.values), holds={})
    return stored


def migrates(plan: Plan, row: CheckpointRow) -> bool:
    """Tell whether the values of a checkpoint are converted when it is read."""
    return plan.changed.migrate is not None and row.version != plan.version


def _renamed_nodes(reader: Shapes, plan: Plan, row: CheckpointRow, stored: Stored) -> Stored:
    names = plan.changed.nodes
    barriers = dict(stored.barriers)
    if any(join not in plan.joins for join in barriers) and (shape := shape_of(reader, plan, row)) is not None:
        barriers = {}
        for join, arrived in stored.barriers.items():
            today = renamed_join(plan, join, shape)
            barriers[today] = sorted({*barriers.get(today, ()), *(names.get(node, node) for node in arrived)})
    return stored._replace(
        barriers=barriers,
        deferred=[names.get(node, node) for node in stored.deferred],
        writers=[names.get(node, node) for node in stored.writers],
    )


def _renamed_channels(plan: Plan, stored: Stored) -> Stored:
    names = plan.changed.channels
    values = {names.get(key, key): value for key, value in stored.values.items() if names.get(key) not in stored.values}
    return stored._replace(values=values, holds={key: seq for key, seq in stored.holds.items() if key not in names})


def _migrated(plan: Plan, row: CheckpointRow, values: dict[str, Any]) -> dict[str, Any]:
    """Return what the user's `migrate` makes of the values."""
    migrate = plan.changed.migrate
    assert migrate is not None
    bare = ROOT in plan.channels  # a state without keys
    try:
        made = migrate(values.get(ROOT), row.version) if bare else migrate(values, row.version)
    except Exception as error:  # the edge to user code
        raise _refused(row, f"it raised {type(error).__name__}: {error}") from error
    if bare:
        return {ROOT: made}
    if not isinstance(made, Mapping):
        raise _refused(row, f"it returned a {type(made).__name__} instead of a dict of values")
    if unknown := sorted(str(key) for key in made if key not in plan.channels):
        raise _refused(row, f"it returned {', '.join(unknown)}, which the state does not have")
    return dict(made)


def _refused(row: CheckpointRow, reason: str) -> MigrationError:
    return MigrationError(
        thread_id=row.thread_id, checkpoint_id=row.checkpoint_id, from_version=row.version, reason=reason
    )


def rename_outcomes(plan: Plan, base: Base) -> None:
    """Let what finished tasks wrote, and where they led, bear today's names."""
    if plan.changed.nodes or plan.changed.channels:
        base.outcomes[:] = [_renamed(plan, outcome) for outcome in base.outcomes]


def _renamed(plan: Plan, outcome: Outcome | None) -> Outcome | None:
    if outcome is None:
        return None
    if isinstance(outcome, Succeeded):
        return Succeeded(*_renamed_return(plan, outcome.writes, outcome.routes), outcome.items)
    if outcome.kept is None:
        return outcome
    writes, routes, items = outcome.kept
    return outcome._replace(kept=Returned(*_renamed_return(plan, writes, routes), items))


def _renamed_return(plan: Plan, writes: Iterable[Any], routes: Iterable[Route]) -> tuple[Any, Any]:
    channels, nodes = plan.changed.channels, plan.changed.nodes
    led = [
        Send(nodes.get(route.node, route.node), route.arg, timeout=route.timeout)
        if isinstance(route, Send)
        else nodes.get(route, route)
        for route in routes
    ]
    return tuple((channels.get(key, key), value) for key, value in writes), tuple(led)


# -- judging ----------------------------------------------------------------------------------------------------------


def shape_of(reader: Shapes, plan: Plan, row: CheckpointRow) -> Shape | None:
    """Return the shape of the graph that wrote a checkpoint; None where it is this graph's."""
    if row.fingerprint == plan.fingerprint:
        return None
    stored = reader.shape(row.fingerprint)
    if stored is None:
        record = f"checkpoint {row.seq} of thread {row.thread_id}"
        raise CorruptRecordError(record=record, reason=f"the shape of its graph, {row.fingerprint}, is missing")
    return read_shape(stored)


def in_the_way(reader: Reader, plan: Plan, loaded: Loaded, *, keeps_tasks: bool) -> list[Problem]:
    """Return what keeps this graph from going on with a checkpoint. Planned tasks and joins count if they are kept."""
    needs = _needs(plan, loaded) if keeps_tasks else Needs()
    needs = needs._replace(channels=loaded.opened.channels)
    shape = shape_of(reader, plan, loaded.row)
    lacking = effects_lacking(reader, loaded) if keeps_tasks else []
    return [*problems(plan, needs, shape, migrates=migrates(plan, loaded.row)), *lacking]


def effects_lacking(reader: Reader, loaded: Loaded) -> list[Problem]:
    """Return the effects in doubt on this checkpoint that nothing declares here: a call in their place would be of
    something else."""
    if not any(record.kind == lifecycle.INTENT for record in loaded.records):
        return []
    from stepwell.runtime.effects.decorator import registered

    found = reader.effects(EffectsQuery(loaded.row.thread_id, in_doubt=True))
    return [
        Problem("effect", row.name, f"the effect {row.name!r}, of which a call is in doubt (key {row.key})")
        for row in found
        if row.lineage == loaded.row.lineage and row.name not in registered and not _undoes(row)
    ]


def _undoes(row: EffectRow) -> bool:
    """Tell whether it is a compensation: no node calls it, and its function need not be an effect."""
    return row.key == compensation_key(row.position)


def _needs(plan: Plan, loaded: Loaded) -> Needs:
    base = loaded.base
    nodes: dict[str, str] = dict.fromkeys(base.state.deferred, "waits until nothing else is left")
    writes: dict[str, str] = {}
    for task, outcome in zip(base.tasks, base.outcomes, strict=True):
        asks = isinstance(outcome, Interrupted) and task.id not in base.fresh
        if not isinstance(outcome, Succeeded):
            waits = isinstance(outcome, Interrupted) and not outcome.questions
            nodes[task.node] = ("waits" if waits else "asks an open question") if asks else "is next"
        made = outcome if isinstance(outcome, Succeeded) else outcome.kept if outcome is not None else None
        if made is not None:
            writes |= {key: task.node for key, _ in made.writes}
            led = [route.node if isinstance(route, Send) else route for route in made.routes]
            nodes |= {node: f"comes after {task.node!r}" for node in led if node not in nodes}
    return Needs(nodes, {join: sorted(seen) for join, seen in base.state.barriers.items()}, (), writes)


def require_compatible(plan: Plan, row: CheckpointRow, found: Sequence[Problem]) -> None:
    """Raise IncompatibleGraphError where anything is in the way."""
    if not found:
        return
    raise IncompatibleGraphError(
        thread_id=row.thread_id,
        checkpoint_id=row.checkpoint_id,
        missing=[problem.text for problem in found],
        names=[problem.name for problem in found],
        recorded_version=row.version,
        version=plan.version,
        ways=ways_out(found),
    )


def require_item_store(run: Run, base: Base) -> None:
    """Refuse to go on without one where a finished task has written to it: its writes would be lost."""
    if run.items is not None:
        return
    for task, outcome in zip(base.tasks, base.outcomes, strict=True):
        made = outcome if outcome is None or isinstance(outcome, Succeeded) else outcome.kept
        steps = base.steps.get(task.id, {}).values()
        if (made is not None and made.items) or any(step.items for step in steps):
            reason = f"task {task.id} of node {task.node!r} has written items that are not applied yet: compile the"
            reason += " graph with store= to go on, or drop what it did with a new input"
            raise InvalidConfigError(reason=reason, key="store", node=task.node, task_id=task.id)


def check_continued(run: Run, reader: Reader, loaded: Loaded, *, keeps_tasks: bool) -> None:
    """Refuse, before anything runs, to go on where the graph cannot; tell of a graph that has changed and can."""
    if keeps_tasks and loaded.records and run.items is None:
        require_item_store(run, loaded.base)
    require_compatible(run.plan, loaded.row, in_the_way(reader, run.plan, loaded, keeps_tasks=keeps_tasks))
    if loaded.row.fingerprint != run.plan.fingerprint and run.graph_changed is None:
        run.graph_changed = change = _change(reader, run.plan, loaded.row)
        _tell(change, run.plan.changed.on_change)


def _change(reader: Reader, plan: Plan, row: CheckpointRow) -> GraphChange:
    before = shape_of(reader, plan, row)
    assert before is not None
    return GraphChange(
        thread_id=row.thread_id,
        checkpoint_id=row.checkpoint_id,
        graph_id=row.graph_id,
        from_version=row.version,
        to_version=plan.version,
        from_fingerprint=row.fingerprint,
        to_fingerprint=plan.fingerprint,
        differences=differences(before, read_shape(plan.shape)),
    )


def _tell(change: GraphChange, on_change: Any) -> None:
    text = "; ".join(change.differences)
    if callable(on_change):
        on_change(change)
    elif on_change == "raise":
        raise GraphChangedError(thread_id=change.thread_id, checkpoint_id=change.checkpoint_id, changes=text)
    elif on_change == "warn":
        log.warning(
            "thread %s goes on from checkpoint %s with a graph that has changed since: %s",
            change.thread_id, change.checkpoint_id, text,
        )  # fmt: skip


def replaced_by_edit(row: CheckpointRow, plan: Plan, found: Sequence[Problem], written: Collection[str]) -> set[str]:
    """Return the channels that an edit gives a new value instead of the stored one, which no longer fits.

    IncompatibleGraphError where a stored value that does not fit would be left in the state.
    """
    replaced = {problem.name for problem in found if problem.retyped}
    replaced = {plan.changed.channels.get(name, name) for name in replaced} & set(written)
    left = [p for p in found if plan.changed.channels.get(p.name, p.name) not in replaced or not p.retyped]
    require_compatible(plan, row, left)
    return replaced
