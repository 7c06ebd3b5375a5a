"""Stable texts for what a user declared: types and functions, without addresses, spelled the same in every process.

Fingerprints and the stored declarations of channels are made of them. The rule kept: a text depends on names in the
user's code only, and metadata of `Annotated` is not part of a type.
"""

from __future__ import annotations

import functools
import types
from enum import Enum
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

_PLAIN = (str, int, bool, bytes, float, type(None))


def type_text(hint: Any) -> str:
    """Return the text of a type hint: qualified class names, arguments in order."""
    if hint is None or hint is type(None):
        return "None"
    if isinstance(hint, str):
        return hint
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    origin = get_origin(hint)
    if origin is Annotated:
        return type_text(get_args(hint)[0])
    if origin is Literal:
        return f"Literal[{', '.join(value_text(value) for value in get_args(hint))}]"
    if origin in (Union, types.UnionType):
        return " | ".join(type_text(arg) for arg in get_args(hint))
    if origin is not None:
        return f"{_name(origin)}[{', '.join(_argument(arg) for arg in get_args(hint))}]"
    if isinstance(hint, TypeVar):
        return hint.__name__
    return _name(hint)


def _argument(arg: Any) -> str:
    if arg is Ellipsis:
        return "..."
    return f"[{', '.join(map(type_text, arg))}]" if isinstance(arg, list) else type_text(arg)


def function_text(function: Any) -> str:
    """Return `module:qualname` of a callable, its class's where it is an object, with what a `partial` binds."""
    if isinstance(function, functools.partial):
        bound = [value_text(arg) for arg in function.args]
        bound += [f"{name}={value_text(arg)}" for name, arg in sorted(function.keywords.items())]
        return f"{function_text(function.func)}({', '.join(bound)})"
    if not hasattr(function, "__qualname__"):
        function = type(function)
    return f"{getattr(function, '__module__', None) or 'builtins'}:{function.__qualname__}"


def value_text(value: Any) -> str:
    """Return a stable text of a plain value, an enum member or a class; of anything else, its type."""
    if isinstance(value, Enum):
        return f"{_name(type(value))}.{value.name}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))})"
    if isinstance(value, type) or callable(value):
        return function_text(value)
    return f"<{_name(type(value))}>"


def _name(item: Any) -> str:
    name = getattr(item, "__qualname__", None) or getattr(item, "__name__", None) or getattr(item, "_name", None)
    if name is None:
        return value_text(item) if not callable(item) else repr(type(item))
    module = getattr(item, "__module__", None)
    return name if module in (None, "builtins") else f"{module}.{name}"
