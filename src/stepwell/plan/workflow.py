"""The tables of a workflow: a plan of one node, which takes a new input itself and writes what it returned.

Everything that runs a graph runs it too: the plan says by `entry` that its node, and not START, is planned by an input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from stepwell.errors import InvalidGraphError
from stepwell.graph.identity import code_identity
from stepwell.graph.policies import idle_needs_async
from stepwell.graph.types import END, START
from stepwell.graph.workflow import AnyValueSchema, Workflow
from stepwell.ids import fingerprint_of
from stepwell.plan.compile import callee
from stepwell.plan.drawing.graph import DrawnEdge, DrawnNode
from stepwell.plan.drawing.outline import Outline
from stepwell.plan.fingerprint import shape_of
from stepwell.plan.renaming import changed, stored_text
from stepwell.plan.tables import NodePlan, Plan


def workflow_plan(
    workflow: Workflow,
    *,
    name: str | None = None,
    version: str = "",
    aliases: Mapping[str, str] | None = None,
    migrate: Callable[[Any, str], Any] | None = None,
    on_change: str | Callable[[Any], None] = "warn",
) -> Plan:
    """Return the plan of a workflow. Raises InvalidGraphError."""
    _check_timeout(workflow)
    takes, returns = AnyValueSchema(workflow.takes, START), AnyValueSchema(workflow.returns, END)
    code, channels = callee(workflow.code), workflow.channels
    node = NodePlan(
        workflow.name,
        code,
        takes,
        retry=workflow.retry,
        timeout=workflow.timeout,
        cache=workflow.cache,
        code=code_identity(workflow.code.source) if workflow.cache is not None else "",
    )
    start = NodePlan(START, code, takes, edges=(workflow.name,))
    shape = shape_of((start, node), (), channels, {})
    return Plan(
        graph_id=stored_text("" if name is None else name, "name") or workflow.home,
        version=stored_text(version, "version"),
        fingerprint=fingerprint_of(shape),
        nodes=MappingProxyType({node.name: node}),
        start=start,
        channels=MappingProxyType(dict(channels)),
        managed=MappingProxyType({}),
        joins=MappingProxyType({}),
        state=returns,
        input=takes,
        output=returns,
        context=workflow.context_schema,
        interrupt_before=frozenset(),
        interrupt_after=frozenset(),
        schemas=(workflow.takes, workflow.returns, workflow.saves),
        entry=node.name,
        shape=shape,
        drawn=_drawn(workflow),
        changed=changed(aliases, migrate, on_change, version, (node.name,), channels),
        replaced=frozenset(channels),
    )


def _check_timeout(workflow: Workflow) -> None:
    idle = workflow.timeout is not None and workflow.timeout.idle_timeout is not None
    if idle and not workflow.code.is_async:
        raise InvalidGraphError(idle_needs_async(workflow.name), node=workflow.name)


def _drawn(workflow: Workflow) -> Outline:
    nodes = (
        DrawnNode(START, START),
        DrawnNode(workflow.name, workflow.name, workflow.code.source),
        DrawnNode(END, END),
    )
    return nodes, (DrawnEdge(START, workflow.name), DrawnEdge(workflow.name, END, None, True))
