"""User code inspected once: how to call it, whether it is async, which of the engine's values it asks for.

Functions, methods, partials, objects with `__call__` and langchain Runnables all become a `UserCode`. The rule kept:
what could only fail when the node runs (a parameter nothing fills, a generator) is refused when the node is added.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stepwell.errors import InvalidGraphError
from stepwell.graph.injection import injection, renaming


@dataclass(frozen=True, slots=True)
class UserCode:
    """A callable as the user gave it (`source`) and as the engine calls it: `call(value, **injected)`."""

    source: Any
    call: Callable[..., Any]
    is_async: bool
    acall: Callable[..., Any] | None = None
    """The async way to call it, where there are both: a Runnable's `ainvoke`."""
    inject: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()


def user_code(source: Any, label: str) -> UserCode:
    """Inspect `source`; `label` names it in errors. Raises TypeError for what cannot be called at all."""
    if is_runnable(source):
        return _runnable(source)
    if not callable(source):
        raise TypeError(f"{label} needs a function, a callable object or a Runnable, not {type(source).__name__}")
    function = function_of(source)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidGraphError(
            f"{label} is a generator function. Return the update; to stream, take a `writer` parameter and call it."
        )
    wanted = injection(source, label)
    is_async = inspect.iscoroutinefunction(function)
    return UserCode(source, renaming(source, wanted), is_async, None, tuple(wanted.parameters), wanted.required)


def is_runnable(source: Any) -> bool:
    """Return whether `source` is called by `invoke` and `ainvoke`: a langchain Runnable, a compiled graph."""
    return not isinstance(source, type) and callable(getattr(source, "invoke", None))


def _runnable(source: Any) -> UserCode:
    inject = ("config",) if _takes(source.invoke, "config") else ()
    acall = getattr(source, "ainvoke", None)
    if not callable(acall):
        return UserCode(source, source.invoke, False, None, inject)
    if hasattr(source, "afunc") and not hasattr(source, "func"):  # a RunnableLambda of an async function
        return UserCode(source, acall, True, None, inject)
    return UserCode(source, source.invoke, False, acall, inject)


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (ValueError, TypeError):
        return False


def function_of(source: Any) -> Any:
    """Return the function a callable ends in: a partial's, or the `__call__` of an object."""
    while isinstance(source, functools.partial):
        source = source.func
    if inspect.isfunction(source) or inspect.ismethod(source) or inspect.isbuiltin(source) or isinstance(source, type):
        return source
    return getattr(source, "__call__", source)  # noqa: B004  the bound method is wanted, not whether there is one


def name_of(source: Any) -> str | None:
    """Return the name a callable goes by, or None for a lambda."""
    if is_runnable(source) and not hasattr(source, "__name__"):
        get_name = getattr(source, "get_name", None)
        name = get_name() if callable(get_name) else getattr(source, "name", None)
        return str(name or type(source).__name__)
    name = getattr(source, "__name__", None) or type(source).__name__
    return None if name == "<lambda>" else str(name)


def called_name(source: Any) -> str | None:
    """Return the name of what is called in the end: a partial goes by the name of its function."""
    while isinstance(source, functools.partial):
        source = source.func
    return name_of(source)


def hints_of(source: Any) -> dict[str, Any]:
    """Return the annotations of a callable that can be resolved; one that cannot does not hide the others."""
    function = function_of(source)
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # user code: an annotation may be any expression
        function = getattr(function, "__func__", function)
        annotations: Mapping[str, Any] = getattr(function, "__annotations__", {})
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        return {name: hint for name, text in annotations.items() for hint in _resolved(name, text, scope)}


def _resolved(name: str, annotation: Any, scope: dict[str, Any]) -> list[Any]:
    holder = type("Holder", (), {"__annotations__": {name: annotation}})
    try:
        return [typing.get_type_hints(holder, scope, include_extras=True)[name]]
    except Exception:  # user code: an annotation may be any expression
        return []
