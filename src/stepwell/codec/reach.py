"""Which types a schema's annotations reach.

Here: the walk over TypedDicts, dataclasses, NamedTuples, attrs classes, pydantic models and enums through every typing
construct, and the tests that tell these families apart. Not here: the registry itself, and instances. Rule kept:
pydantic and attrs are recognised by what their classes carry and are never imported; an annotation that cannot be
resolved hides only itself.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable
from typing import Any

_Namespace = dict[str, Any]


def reachable(*schemas: Any) -> tuple[type[Any], ...]:
    """Return, in the order found, the classes values of these schemas may have and that need a registry entry."""
    found: dict[type[Any], None] = {}
    seen: set[int] = set()
    waiting: list[tuple[Any, _Namespace]] = [(schema, {}) for schema in reversed(schemas)]
    kept: list[Any] = []  # keeps temporary hints alive, so that the ids in `seen` stay theirs
    while waiting:
        hint, namespace = waiting.pop()
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        kept.append(hint)
        if isinstance(hint, type) and typing.get_origin(hint) is None:
            if needs_entry(hint):
                found[hint] = None
            waiting.extend(reversed(_fields(hint)))
        else:
            waiting.extend((inner, namespace) for inner in reversed(_inside(hint, namespace)))
    return tuple(found)


def needs_entry(cls: type[Any]) -> bool:
    """Whether instances of `cls` are written under the name of their class."""
    if is_model(cls):
        return not cls.__module__.startswith(("pydantic.", "langchain_core.messages.", "langchain_core.documents."))
    return (
        (issubclass(cls, enum.Enum) and bool(cls.__members__))
        or dataclasses.is_dataclass(cls)
        or is_attrs(cls)
        or is_named_tuple(cls)
        or cls is re.Pattern
        or (issubclass(cls, BaseException) and cls.__module__.partition(".")[0] not in ("builtins", "stepwell"))
    )


def is_model(cls: type[Any]) -> bool:
    """Whether `cls` is a pydantic (version 2) model."""
    return any(base.__name__ == "BaseModel" and base.__module__ == "pydantic.main" for base in cls.__mro__)


def is_attrs(cls: type[Any]) -> bool:
    """Whether `cls` was made by attrs, or is a subclass of such a class."""
    return isinstance(getattr(cls, "__attrs_attrs__", None), tuple)


def is_named_tuple(cls: type[Any]) -> bool:
    """Whether `cls` is a named tuple, typed or not."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def generic_parts(cls: type[Any]) -> tuple[type[Any], tuple[Any, ...]] | None:
    """Return origin and arguments of a parametrised pydantic model, a class of its own; None for other classes."""
    parts = cls.__dict__.get("__pydantic_generic_metadata__") or {}
    return (parts["origin"], parts["args"]) if parts.get("origin") else None


def _fields(cls: type[Any]) -> list[tuple[Any, _Namespace]]:
    """Return the annotations of a structured class, each with the names it may refer to."""
    if not (needs_entry(cls) or typing.is_typeddict(cls)) or issubclass(cls, enum.Enum):
        return []
    hints: list[tuple[Any, _Namespace]] = []
    if is_model(cls):
        hints += [(field.annotation, {}) for field in cls.model_fields.values()]
        hints += [(part, {}) for part in _generic_hints(cls)]
    try:
        hints += [(hint, {}) for hint in typing.get_type_hints(cls, include_extras=True).values()]
    except Exception:
        hints += _resolvable(cls)
    return hints


def _generic_hints(cls: type[Any]) -> tuple[Any, ...]:
    parts = generic_parts(cls)
    return () if parts is None else (parts[0], *parts[1])


def _resolvable(cls: type[Any]) -> list[tuple[Any, _Namespace]]:
    """Return the annotations that resolve one by one."""
    hints: list[tuple[Any, _Namespace]] = []
    for base in cls.__mro__:
        namespace = {**vars(sys.modules.get(base.__module__, typing)), **vars(base), base.__name__: base}
        try:
            annotations = inspect.get_annotations(base)
        except Exception:
            continue
        hints += [(hint, namespace) for hint in annotations.values()]
    return hints


def _inside(hint: Any, namespace: _Namespace) -> list[Any]:
    """Return what a typing construct is made of."""
    if isinstance(hint, str | typing.ForwardRef):
        return _resolved(hint if isinstance(hint, str) else hint.__forward_arg__, namespace)
    if isinstance(hint, typing.TypeVar):
        return [hint.__bound__, *hint.__constraints__]
    for attribute in ("__supertype__", "__value__"):  # NewType, and the aliases of a `type` statement
        if hasattr(hint, attribute):
            return [getattr(hint, attribute)]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return [type(arg) for arg in args]
    if origin is Callable or origin is typing.ClassVar:
        return []
    if origin is typing.Annotated:
        return [args[0]]
    return [*([] if origin is None else [origin]), *_flat(args)]


def _resolved(text: str, namespace: _Namespace) -> list[Any]:
    if not namespace:
        return []
    try:
        return [eval(text, namespace)]  # the graph author's own annotation, as get_type_hints would
    except Exception:
        return []


def _flat(args: Iterable[Any]) -> list[Any]:
    return [inner for arg in args for inner in (arg if isinstance(arg, list) else [arg])]
