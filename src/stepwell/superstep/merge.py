"""Base and outcomes in, next state out: how parallel writes combine and what runs next.

Writes are folded in merge order (pulls by node name, then sends by index), so completion order, worker and clock leave
no trace. Nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from stepwell.errors import InvalidUpdateError, MergeError, StateValidationError
from stepwell.graph.channel import unshared
from stepwell.graph.types import END, MISSING, START, Send
from stepwell.plan.tables import Plan
from stepwell.superstep.outcome import Route, Succeeded, Write, check_send
from stepwell.superstep.state import Planned, State, Task, merge_order, new

Barriers = Mapping[str, frozenset[str]]
"""Join id → sources that arrived."""
Ordered = Sequence[tuple[Task, Succeeded]]
"""Tasks with their outcomes, in merge order."""


Routed = tuple[tuple[Planned, ...], Barriers, frozenset[str]]
"""What is planned next, and the barriers and deferred nodes that are left."""


class Merged(NamedTuple):
    """The next state, and which channels differ from the last one."""

    state: State
    changed: tuple[str, ...]


def merge(plan: Plan, state: State, tasks: Sequence[Task], outcomes: Sequence[Succeeded]) -> Merged:
    """Fold the outcomes of a superstep's tasks into its state.

    Raises InvalidUpdateError where the writes break a channel's rule and MergeError where a reducer raises; both name
    channel and tasks, and neither loses an outcome.
    """
    if len(tasks) == 1:
        ordered: Ordered = ((tasks[0], outcomes[0]),)
        nodes: tuple[str, ...] = (tasks[0].node,)
        writers = nodes
        routes: tuple[Route, ...] = outcomes[0].routes
    else:
        ordered = [(tasks[i], outcomes[i]) for i in merge_order(tasks)]
        nodes = tuple([task.node for task, _ in ordered])
        writers = tuple(dict.fromkeys(nodes))
        routes = tuple([target for _, outcome in ordered for target in outcome.routes])
    values = {**state.values}
    changed = _fold(plan, values, ordered)
    activations = {**state.activations}
    for node in nodes:
        activations[node] = activations.get(node, 0) + 1
    following, barriers, deferred = route(plan, state.barriers, state.deferred, nodes, routes)
    after = new(State, (values, following, barriers, deferred, activations, writers, state.step + 1))
    return new(Merged, (after, changed))


def _fold(plan: Plan, values: dict[str, Any], ordered: Ordered) -> tuple[str, ...]:
    """Fold all writes into `values`; return the channels whose value may differ."""
    if len(ordered) == 1 and (written := _replacing(plan, ordered[0][1].writes)) is not None:
        values.update(written)
        return tuple(written)
    grouped: dict[str, list[Any]] = {}
    for _, outcome in ordered:
        for key, value in outcome.writes:
            if key in grouped:
                grouped[key].append(value)
            else:
                grouped[key] = [value]
    for key, writes in grouped.items():
        if len(writes) == 1 and plan.channels[key].single:
            values[key] = writes[0]
        else:
            _put(values, key, _fold_one(plan, key, values.get(key, MISSING), writes, ordered))
    changed = list(grouped)
    for key in plan.settling:
        if key not in grouped and key in values:
            before = values[key]
            after = plan.channels[key].settle(before)
            if after is not before:
                _put(values, key, after)
                changed.append(key)
    if plan.state.validates and ordered and ordered[0][0].node != START:  # the input was validated as a whole
        _validate(plan, values, grouped, ordered)
    return tuple(changed)


def _replacing(plan: Plan, writes: Sequence[Write]) -> dict[str, Any] | None:
    """Return what these writes leave, where each of them replaces a value and no channel has several."""
    if not plan.replaced:
        return None
    written = dict(writes)
    return written if len(written) == len(writes) and written.keys() <= plan.replaced else None


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    if value is MISSING:
        values.pop(key, None)
    else:
        values[key] = value


def _fold_one(plan: Plan, key: str, current: Any, writes: list[Any], ordered: Ordered) -> Any:
    try:
        return plan.channels[key].fold(current, writes, key)
    except InvalidUpdateError as error:
        raise _naming(error, key, _writers(key, ordered)) from None
    except Exception as error:
        who = _writers(key, ordered)
        raise MergeError(channel=key, tasks=who, reason=f"{type(error).__name__}: {error}") from error


def _naming(error: InvalidUpdateError, key: str, tasks: list[str]) -> InvalidUpdateError:
    by = f" Written by: {', '.join(tasks)}." if tasks else ""
    return InvalidUpdateError(f"{error}{by}", **error.fields(), channel=key, tasks=tasks)


def _writers(key: str, ordered: Ordered) -> list[str]:
    return list(dict.fromkeys(task.node for task, outcome in ordered if any(k == key for k, _ in outcome.writes)))


def _validate(plan: Plan, values: dict[str, Any], keys: Iterable[str], ordered: Ordered) -> None:
    for key in keys:
        if key not in values:
            continue
        try:
            values[key] = plan.state.validate(values, key, values[key])
        except ValueError as error:
            node = ", ".join(_writers(key, ordered))
            raise StateValidationError(node=node, field=key, reason=str(error)) from error


def route(
    plan: Plan,
    barriers: Barriers,
    deferred: frozenset[str],
    nodes: Iterable[str],
    routes: Sequence[Route],
) -> Routed:
    """Return what is planned after `nodes` went `routes`, with the barriers and deferred nodes that are left."""
    if len(routes) == 1 and not (plan.joins or deferred) and isinstance(target := routes[0], str):
        return _alone(target), barriers, deferred  # a deferred node has nobody to wait for
    pulls: set[str] = set()
    sends: list[Planned] = []
    for target in routes:
        if isinstance(target, Send):
            sends.append(Planned(target.node, len(sends), target.arg, target.timeout))
        elif target != END:
            pulls.add(target)
    if plan.joins:
        barriers = _arrive(plan, barriers, nodes, pulls)
    late = {node for node in pulls if (table := plan.nodes.get(node)) is not None and table.defer}
    if late:
        pulls -= late
        deferred |= late
    if not pulls and not sends and (deferred or barriers):
        pulls, barriers = _wake(plan, barriers, deferred)
        deferred = frozenset()
    return (*sends, *map(Planned, sorted(pulls))), barriers, deferred


@lru_cache(maxsize=4096)
def _alone(target: str) -> tuple[Planned, ...]:
    return () if target == END else (Planned(target),)


def _arrive(plan: Plan, barriers: Barriers, nodes: Iterable[str], pulls: set[str]) -> Barriers:
    """Note arrivals; a full join releases its target, a deferred one stays full until nothing else would run."""
    left = dict(barriers)
    for node in nodes:
        node = plan.changed.nodes.get(node, node)
        for join in joins_of(plan, node):
            left[join] = left.get(join, frozenset()) | {node}
    for join, arrived in list(left.items()):
        barrier = plan.joins.get(join)
        if barrier is not None and arrived == barrier.sources and not plan.nodes[barrier.target].defer:
            pulls.add(barrier.target)
            del left[join]
    return left


def joins_of(plan: Plan, node: str) -> tuple[str, ...]:
    """Return the joins a node is a source of; a node that is gone is a source of none."""
    table = plan.start if node == plan.start.name else plan.nodes.get(node)
    return table.joins if table is not None else ()


def _wake(plan: Plan, barriers: Barriers, deferred: frozenset[str]) -> tuple[set[str], Barriers]:
    full = {join for join, arrived in barriers.items() if join in plan.joins and arrived == plan.joins[join].sources}
    pulls = set(deferred) | {plan.joins[join].target for join in full}
    return pulls, {join: arrived for join, arrived in barriers.items() if join not in full}


def view(plan: Plan, state: State, writes: Sequence[Write]) -> Mapping[str, Any]:
    """Return the values a router sees: the base's, with its own node's writes folded in."""
    if (replacing := _replacing(plan, writes)) is not None:
        return {**state.values, **replacing}
    grouped: dict[str, list[Any]] = {}
    for key, value in writes:
        grouped.setdefault(key, []).append(value)
    values = dict(state.values)
    for key, written in grouped.items():
        if key in values and key not in plan.replaced:
            values[key] = unshared(values[key])
        _put(values, key, _fold_one(plan, key, values.get(key, MISSING), written, ()))
    return values


def branch_targets(plan: Plan, node: str, path_map: Mapping[Any, str] | None, result: Any) -> list[Route]:
    """Return where a router's result leads; anything that is no destination is an InvalidUpdateError."""
    if type(result) is str and path_map is None and result in plan.nodes:
        return [result]
    results = list(result) if isinstance(result, list | tuple) else [result]
    targets: list[Route] = []
    for entry in results:
        target = entry if isinstance(entry, Send) else _mapped(node, path_map, entry)
        name = target.node if isinstance(target, Send) else target
        if isinstance(target, Send) and name == END:
            raise InvalidUpdateError("Cannot send a packet to the END node", reason="Send(END)", node=node)
        if name == END:
            continue
        if name not in plan.nodes:
            raise InvalidUpdateError(
                f"The router of {node!r} names {name!r}, which is not a node", node=node, target=name
            )
        if isinstance(target, Send):
            check_send(plan, target)
        targets.append(target)
    return targets


def _mapped(node: str, path_map: Mapping[Any, str] | None, result: Any) -> str:
    try:
        if path_map is not None and result in path_map:
            return path_map[result]
    except TypeError:  # it has no hash, so it is no key of the map
        pass
    if isinstance(result, str) and result != "__start__" and (path_map is None or result == END):
        return str(result)
    known = "" if path_map is None else f". Its path map has {', '.join(map(repr, path_map))}"
    raise InvalidUpdateError(
        f"Branch did not return a valid destination: the router of {node!r} returned {result!r}{known}", node=node
    )
