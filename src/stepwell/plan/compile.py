"""From the graph as written to the tables a run reads.

`validate` has the reasons for refusing a graph, `tables` the result. The rule kept: a plan holds nothing that the
builder may still change, so a compiled graph stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from stepwell.graph.callables import UserCode
from stepwell.graph.identity import code_identity
from stepwell.graph.nodes import BranchSpec, NodeSpec
from stepwell.graph.schema import Schema
from stepwell.graph.state_graph import StateGraph, use_compiler
from stepwell.graph.subgraph import is_subgraph
from stepwell.graph.types import END, START
from stepwell.ids import fingerprint_of
from stepwell.plan.drawing.outline import outline
from stepwell.plan.fingerprint import shape_of
from stepwell.plan.renaming import changed, stored_text
from stepwell.plan.tables import BranchPlan, Callee, JoinPlan, NodePlan, Plan
from stepwell.plan.validate import validate

Builder = StateGraph[Any, Any, Any, Any]
Breakpoints = Literal["*"] | Sequence[str]


def compile_plan(
    builder: Builder,
    *,
    name: str | None = None,
    version: str = "",
    interrupt_before: Breakpoints | None = None,
    interrupt_after: Breakpoints | None = None,
    aliases: Mapping[str, str] | None = None,
    migrate: Callable[[Any, str], Any] | None = None,
    on_change: str | Callable[[Any], None] = "warn",
) -> Plan:
    """Check the graph and return its plan. Raises InvalidGraphError."""
    before, after = _breakpoints(builder, interrupt_before), _breakpoints(builder, interrupt_after)
    validate(builder, (*before, *after))
    schemas = {source: schema.over(builder.channels) for source, schema in builder.schemas.items()}
    joins = _joins(builder)
    nodes = {spec.name: _node(builder, spec, schemas, joins) for spec in builder.nodes.values()}
    start = _start(builder, schemas)
    shape = shape_of((start, *nodes.values()), joins.values(), builder.channels, builder.managed)
    rules = {key: rule for key, channel in builder.channels.items() if (rule := channel.delta_rule()) is not None}
    validates = schemas[builder.state_schema].validates  # what it makes of a value is not told by what was written
    plain = not (validates or any(c.settles for c in builder.channels.values()))
    return Plan(
        graph_id=stored_text("" if name is None else name, "name") or schemas[builder.state_schema].name,
        version=stored_text(version, "version"),
        fingerprint=fingerprint_of(shape),
        nodes=MappingProxyType(nodes),
        start=start,
        channels=MappingProxyType(dict(builder.channels)),
        managed=MappingProxyType(dict(builder.managed)),
        joins=MappingProxyType(joins),
        state=schemas[builder.state_schema],
        input=schemas[builder.input_schema],
        output=schemas[builder.output_schema],
        context=builder.context_schema,
        interrupt_before=frozenset(before),
        interrupt_after=frozenset(after),
        schemas=tuple(schemas),
        settling=tuple(key for key, channel in builder.channels.items() if channel.settles),
        inventive=frozenset(key for key, channel in builder.channels.items() if channel.invents_ids),
        shape=shape,
        drawn=outline(builder, before, after),
        changed=changed(aliases, migrate, on_change, version, builder.nodes, builder.channels),
        replaced=frozenset(key for key, channel in builder.channels.items() if plain and channel.single),
        deltas=MappingProxyType({} if validates else rules),
        rules=MappingProxyType({rule.name: rule for rule in rules.values()}),
    )


def _breakpoints(builder: Builder, given: Breakpoints | None) -> tuple[str, ...]:
    if given == "*":
        return tuple(builder.nodes)
    return (given,) if isinstance(given, str) else tuple(given or ())


def _joins(builder: Builder) -> dict[str, JoinPlan]:
    """Joins to END release nothing, so they are left out."""
    plans = [_join(starts, end) for starts, end in builder.waiting_edges if end != END]
    return {plan.id: plan for plan in plans}


def _join(starts: Sequence[str], end: str) -> JoinPlan:
    return JoinPlan(f"join:{'+'.join(sorted(starts))}:{end}", frozenset(starts), end)


def _node(builder: Builder, spec: NodeSpec, schemas: Mapping[Any, Schema], joins: Mapping[str, JoinPlan]) -> NodePlan:
    reads = schemas[spec.input_schema]
    source = spec.code.source
    return NodePlan(
        name=spec.name,
        callee=callee(spec.code),
        reads=reads,
        edges=_edges(builder, spec.name),
        joins=tuple(join.id for join in joins.values() if spec.name in join.sources),
        branches=_branches(builder, spec.name, reads, schemas),
        retry=spec.retry,
        timeout=spec.timeout,
        cache=spec.cache,
        code=code_identity(source) if spec.cache is not None else "",
        defer=spec.defer,
        metadata=MappingProxyType(dict(spec.metadata)),
        goto_replaces=spec.goto == "replace",
        subgraph=source if is_subgraph(source) else None,
    )


def _start(builder: Builder, schemas: Mapping[Any, Schema]) -> NodePlan:
    branches = _branches(builder, START, schemas[builder.state_schema], schemas)
    return NodePlan(
        START, Callee(_identity, False), schemas[builder.input_schema], _edges(builder, START), (), branches
    )


def _identity(value: Any) -> Any:
    return value


def _edges(builder: Builder, source: str) -> tuple[str, ...]:
    return tuple(end for start, end in builder.edges if start == source and end != END)


def _branches(builder: Builder, source: str, fallback: Schema, schemas: Mapping[Any, Schema]) -> tuple[BranchPlan, ...]:
    return tuple(_branch(spec, fallback, schemas) for spec in builder.branches.get(source, {}).values())


def _branch(spec: BranchSpec, fallback: Schema, schemas: Mapping[Any, Schema]) -> BranchPlan:
    reads = fallback if spec.input_schema is None else schemas[spec.input_schema]
    path_map = None if spec.path_map is None else MappingProxyType(dict(spec.path_map))
    return BranchPlan(spec.name, callee(spec.code), reads, path_map)


def callee(code: UserCode) -> Callee:
    """Return inspected user code as the plan's table row."""
    return Callee(code.call, code.is_async, code.inject, code.required, code.acall)


use_compiler(compile_plan)
