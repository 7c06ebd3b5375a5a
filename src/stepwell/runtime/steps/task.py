"""`@task`: a call inside a node as a durable step."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from stepwell.errors import InvalidGraphError
from stepwell.graph.callables import called_name, function_of
from stepwell.graph.identity import code_identity, code_version, qualified_name
from stepwell.graph.injection import fillable
from stepwell.graph.nodes import cache_policy, retry_policies
from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy, idle_needs_async
from stepwell.ids import is_holdable
from stepwell.runtime.scope import running
from stepwell.runtime.steps.calling import StepCode, call_step

if TYPE_CHECKING:
    from stepwell.store.cache import Cache

Params = ParamSpec("Params")
Result = TypeVar("Result")
Retry = RetryPolicy | Sequence[RetryPolicy] | None


class TaskFunction(Generic[Params, Result]):
    """A function whose calls inside a node are durable steps. Calling it returns a future: `.result()`, or `await`."""

    def __init__(self, function: Callable[Params, Any], declared: StepCode) -> None:
        self.func = function
        self.declared = declared
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.declared.name

    def __call__(self, *args: Params.args, **kwargs: Params.kwargs) -> Any:
        """Call it as a step of the running node; return the future of what it returns.

        The result is durable before the future has it (`durability="async"`: queued; "exit": kept until the run ends).
        Recorded already, it is not called again. Raises RuntimeError outside of a run, NonDeterminismError where this
        call was recorded with other arguments.
        """
        return call_step(running(f"task {self.name!r}"), self.declared, args, kwargs)

    def clear_cache(self, cache: Cache) -> None:
        """Forget what this cache keeps of the function, for whatever graph."""
        cache.clear(callee=self.declared.cached_as)

    async def aclear_cache(self, cache: Cache) -> None:
        """Do as `clear_cache`, without blocking the event loop."""
        if not cache.blocking:
            self.clear_cache(cache)
            return
        from stepwell.runtime.async_driver import on_pool

        await on_pool(functools.partial(self.clear_cache, cache))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<task {self.name}>"


@overload
def task(
    function: Callable[Params, Result],
    /,
    *,
    name: str | None = None,
    retry_policy: Retry = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
) -> TaskFunction[Params, Result]: ...
@overload
def task(
    *,
    name: str | None = None,
    retry_policy: Retry = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
) -> Callable[[Callable[Params, Result]], TaskFunction[Params, Result]]: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    retry_policy: Retry = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
) -> Any:
    """Make calls of a function durable steps of the node, or of the entrypoint, that makes them.

    A call returns a future at once and runs beside its caller; `.result()` or `await` gives what it returned, or raises
    what it raised. What a step returned is recorded before it is handed on, and a node that runs again (after a crash,
    a pause, a retry) gets it back instead of calling again. So a node must make the same calls with the same arguments
    each time; a call recorded with others is NonDeterminismError. An exception is recorded too and raised again, until
    the node has failed with it: the next attempt calls anew.

    `cache_policy`: what it returned may serve again, in a graph that has a cache; it is recorded all the same.
    `retry_policy`: as for nodes, on attempts of this call. `timeout`: seconds, a timedelta or a TimeoutPolicy for one
    attempt; an async function is cancelled, a sync one abandoned, and NodeTimeoutError raised.
    """
    retry = retry_policies(retry_policy)

    def decorate(source: Callable[..., Any]) -> TaskFunction[Any, Any]:
        return TaskFunction(source, declare(source, name, retry, timeout, cache_policy))

    return decorate if function is None else decorate(function)


def declare(
    source: Callable[..., Any],
    name: str | None,
    retry: tuple[RetryPolicy, ...],
    timeout: float | timedelta | TimeoutPolicy | None,
    cache: CachePolicy | None = None,
) -> StepCode:
    """Return a function as a step. InvalidGraphError for what cannot be one."""
    if not callable(source):
        raise InvalidGraphError(f"A step is a function, not {source!r}. Its options have names: @task(name=...).")
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidGraphError(f"The name of a step must be a text, not {name!r}.")
    function = function_of(source)
    called = name or called_name(source)
    if called is None:
        raise InvalidGraphError("A step is recorded by its name, and a lambda has none: give name=...")
    if not is_holdable(called):
        raise InvalidGraphError(f"The name of a step is valid Unicode without NUL, not {called!r}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidGraphError(f"task {called!r} is a generator function: return the values instead.")
    is_async = inspect.iscoroutinefunction(function)
    policy = TimeoutPolicy.coerce(timeout)
    if policy is not None and policy.idle_timeout is not None and not is_async:
        raise InvalidGraphError(idle_needs_async(called), node=called)
    code = code_version(inspect.unwrap(function))
    declared = StepCode(called, source, is_async, code, retry, policy, fillable(source))
    if cache_policy(cache) is None:
        return declared
    kept_as = f"task {called} ({qualified_name(source)})"
    return replace(declared, cache=cache, cached_as=kept_as, identity=code_identity(source))
