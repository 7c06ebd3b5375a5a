"""`entrypoint`: a function as a graph. It makes a `CompiledGraph` of one node; what that can do is told there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from stepwell.engine.compiled import CompiledGraph
from stepwell.errors import InvalidGraphError
from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy
from stepwell.graph.workflow import Final, workflow_of
from stepwell.plan.workflow import workflow_plan
from stepwell.store.cache import Cache


class entrypoint:
    """Make a graph of one function: `@entrypoint(checkpointer=saver)` above it, then `invoke` it as any graph.

    The function takes the input, of any type, as its first parameter, and may take `previous` (what the thread's last
    run saved, or None), `config`, `runtime`, `writer` and `store`. What it returns is the output and, on the same
    thread, the next run's `previous`; `entrypoint.final(value=, save=)` tells the two apart. Both are durable with the
    end of the run, in the same transaction. The whole function is one superstep: after a crash, a failure or a pause it
    runs again from its start, with the answers it got and what its `task` calls returned.

    `name` becomes the graph id under which threads are stored, else the function's module and qualified name. The
    options after it are those of `StateGraph.compile`; `migrate` gets the values `__end__` and `__previous__`. Raises
    InvalidGraphError, a ValueError, for a function without a parameter for the input, and GeneratorEntrypointError for
    a generator.
    """

    final: TypeAlias = Final

    def __init__(
        self,
        checkpointer: Any = None,
        store: Any = None,
        cache: Cache | None = None,
        context_schema: Any = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        *,
        name: str | None = None,
        version: str = "",
        aliases: Mapping[str, str] | None = None,
        migrate: Callable[[Any, str], Any] | None = None,
        on_change: str | Callable[[Any], None] = "warn",
        listeners: Sequence[Any] = (),
        events: bool = False,
    ) -> None:
        if inspect.isroutine(checkpointer):
            raise InvalidGraphError(f"Write @entrypoint() above `{checkpointer.__name__}`, with the parentheses.")
        self._wiring: dict[str, Any] = {"checkpointer": checkpointer, "store": store, "cache": cache}
        self._wiring |= {"listeners": listeners, "events": events}
        self._declared: dict[str, Any] = {"context_schema": context_schema, "cache_policy": cache_policy}
        self._declared |= {"retry_policy": retry_policy, "timeout": timeout}
        self._stored: dict[str, Any] = {"version": version, "aliases": aliases}
        self._stored |= {"migrate": migrate, "on_change": on_change}
        self._name = name

    def __call__(self, function: Callable[..., Any]) -> CompiledGraph:
        """Return the graph that the function is."""
        workflow = workflow_of(function, **self._declared)
        plan = workflow_plan(workflow, name=self._name, **self._stored)
        return CompiledGraph(workflow, plan, name=self._name, **self._wiring)
