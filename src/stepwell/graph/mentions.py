"""Whether a piece of user code can be seen to use a class: what tells a node that may jump from one that cannot.

Functions are read by the names in their compiled code, and functions they name are read too, up to a bound. The rule
kept: "no" is answered only where all of that was read and found free of the class. A graph it calls may do anything.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from stepwell.graph.subgraph import is_subgraph

_MAX_READ = 200


def mentions(source: Any, cls: type[Any]) -> bool:
    """Return whether `source` may make or return an instance of `cls`, as far as its code shows."""
    seen: set[int] = set()
    waiting: list[Any] = [source]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if item is cls or isinstance(item, cls) or is_subgraph(item) or len(seen) > _MAX_READ:
            return True
        function = _function(item)
        if function is None:
            if item is source:
                return True
            continue
        names = set(_names(function.__code__))
        if cls.__name__ in names:
            return True
        waiting.extend(_reached(item, function, names))
    return False


def _function(item: Any) -> FunctionType | None:
    while isinstance(item, functools.partial):
        item = item.func
    if isinstance(item, MethodType):
        item = item.__func__
    if not isinstance(item, FunctionType) and not isinstance(item, type):
        call = inspect.getattr_static(type(item), "__call__", None)
        item = call if isinstance(call, FunctionType) else item
    item = inspect.unwrap(item) if callable(item) else item
    return item if isinstance(item, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _reached(item: Any, function: FunctionType, names: set[str]) -> Iterator[Any]:
    """Yield the functions and classes that the code of `function` can call by these names."""
    if isinstance(item, functools.partial):
        yield from (*item.args, *item.keywords.values())
    owners: list[Any] = [function.__globals__[name] for name in names if name in function.__globals__]
    owners += [content for cell in function.__closure__ or () for content in _contents(cell)]
    yield from owners
    if isinstance(item, MethodType):
        owners.append(item.__self__)
    elif not isinstance(item, FunctionType | functools.partial):
        owners.append(item)
    for owner in owners:
        if isinstance(owner, ModuleType):
            if owner.__name__.partition(".")[0] == (function.__module__ or "").partition(".")[0]:
                yield from (vars(owner)[name] for name in names if name in vars(owner))
        else:
            cls = owner if isinstance(owner, type) else type(owner)
            yield from (inspect.getattr_static(cls, name, None) for name in names if not name.startswith("__"))


def _contents(cell: Any) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not yet bound
        return []
