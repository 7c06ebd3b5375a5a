"""Whether a graph can go on with a checkpoint that other code stored: the relation, and what is in the way.

A graph is incompatible with a checkpoint where something the checkpoint needs is missing, under its own name and under
every alias: a planned node, a join that has seen some of its sources, a stored channel; or where a stored channel has
another kind or declared type now. Everything else is compatible. Names and declarations decide; no value is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from stepwell.graph.types import END
from stepwell.plan.fingerprint import Shape
from stepwell.plan.tables import Plan


class Needs(NamedTuple):
    """What a stored checkpoint needs of the graph that goes on with it, by the names it was stored with."""

    nodes: Mapping[str, str] = {}
    """Name → why it is needed, as in "is next"."""
    joins: Mapping[str, Sequence[str]] = {}
    """Join id → the sources it has seen."""
    channels: Iterable[str] = ()
    """Channels whose values are stored."""
    writes: Mapping[str, str] = {}
    """Channel → the node that has written it in the superstep that is not merged yet."""


class Problem(NamedTuple):
    """One thing that is in the way."""

    kind: Literal["node", "join", "channel", "write", "effect"]
    name: str
    text: str
    """What is missing or different, and what needs it."""
    retyped: bool = False
    """The channel is there, with another declaration."""


@dataclass(frozen=True, slots=True)
class GraphChange:
    """What a run finds where the graph that wrote its checkpoint had another fingerprint: passed to `on_change`."""

    thread_id: str
    checkpoint_id: str
    graph_id: str
    from_version: str
    to_version: str
    from_fingerprint: str
    to_fingerprint: str
    differences: tuple[str, ...]
    """One sentence each."""


def problems(plan: Plan, needs: Needs, stored: Shape | None, *, migrates: bool = False) -> list[Problem]:
    """Return everything that is in the way, or nothing where the graph can go on.

    `stored` is the shape of the graph that wrote the checkpoint, None where it is this one's. With `migrates` the
    values are the user's to convert, and only what finished tasks wrote must fit.
    """
    found = [*_nodes(plan, needs), *_joins(plan, needs)]
    if not migrates:
        found += (problem for key in needs.channels if (problem := _channel(plan, key, stored)) is not None)
    return [*found, *_writes(plan, needs, stored)]


def _nodes(plan: Plan, needs: Needs) -> Iterator[Problem]:
    for name, why in needs.nodes.items():
        if name != END and plan.node_of(name) is None:
            yield Problem("node", name, f"node {name!r}, which {why}")


def _joins(plan: Plan, needs: Needs) -> Iterator[Problem]:
    for join, arrived in needs.joins.items():
        if join not in plan.joins:
            yield Problem("join", join, f"the join {join!r}, which has seen {', '.join(sorted(arrived))}")


def _channel(plan: Plan, key: str, stored: Shape | None) -> Problem | None:
    now = key if key in plan.channels else plan.changed.channels.get(key, key)
    before = _spelled(stored["channels"][key]) if stored is not None and key in stored["channels"] else ""
    if now not in plan.channels:
        return Problem("channel", key, f"channel {key!r}{f', a {before}' if before else ''}, which holds a value")
    after = _spelled(plan.channels[now].declared())
    if before and before != after:
        renamed = "" if now == key else f" under the name {now!r}"
        return Problem(
            "channel", key, f"channel {key!r}, stored as {before} and declared{renamed} as {after} now", True
        )
    return None


def _writes(plan: Plan, needs: Needs, stored: Shape | None) -> Iterator[Problem]:
    for key, node in needs.writes.items():
        if (problem := _channel(plan, key, stored)) is not None:
            yield problem._replace(kind="write", text=f"{problem.text} (node {node!r} has just written it)")


def _spelled(declared: Sequence[str]) -> str:
    """Return kind and declared type: what is compared, and shown. A reducer may change."""
    return f"{declared[0]}({declared[1]})"


def renamed_join(plan: Plan, join: str, stored: Shape) -> str:
    """Return the id that a stored join has once its nodes bear the names of today."""
    if join in plan.joins or join not in stored["joins"]:
        return join
    target, sources = stored["joins"][join]
    names = plan.changed.nodes
    wanted = (names.get(target, target), frozenset(names.get(source, source) for source in sources))
    return next((known.id for known in plan.joins.values() if (known.target, known.sources) == wanted), join)


def ways_out(found: Iterable[Problem]) -> list[str]:
    """Return what a user can do about these problems, the mildest first."""
    kinds = {(problem.kind, problem.retyped) for problem in found}
    ways = []
    if ("effect", False) in kinds:
        ways.append("import what declares the effect, with name= what it was called where it was renamed")
        ways.append("resolve_effect(config, key, ...) to say what happened")
        kinds.discard(("effect", False))
    if any(not retyped for _, retyped in kinds):
        ways.append('compile(aliases={"old name": "new name"}) where something was renamed')
    if any(kind == "channel" for kind, _ in kinds):
        ways.append("compile(version=..., migrate=...) to convert the stored values")
    if ("channel", True) in kinds:
        ways.append("update_state(config, {...}) with a new value for each such channel")
    if any(kind in ("node", "join", "write") for kind, _ in kinds):
        ways.append("update_state(config, values, as_node=...) to plan anew")
    ways.append("fork(config) at an earlier checkpoint")
    ways.append("finish it with the code that wrote it")
    return ways


def differences(before: Shape, after: Shape) -> tuple[str, ...]:
    """Return what was added, removed and changed between two shapes, one sentence each."""
    return tuple(
        text
        for kind, label in (("nodes", "node"), ("joins", "join"), ("channels", "channel"), ("managed", "managed value"))
        for text in _compared(label, before[kind], after[kind])
    )


def _compared(label: str, before: Shape, after: Shape) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"{label} {name!r} is gone"
        elif name not in before:
            yield f"{label} {name!r} is new"
        elif before[name] != after[name]:
            yield f"{label} {name!r} {_difference(label, before[name], after[name])}"


def _difference(label: str, before: Any, after: Any) -> str:
    if label == "channel":
        return f"was {before[0]}({', '.join(before[1:])}), is {after[0]}({', '.join(after[1:])})"
    return "leads elsewhere" if label == "node" else "is another one"
