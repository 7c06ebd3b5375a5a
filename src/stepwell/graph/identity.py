"""What tells one piece of user code from another, and from itself after an edit: for what outlives a deployment.

Counted are the code with all functions written in it, its defaults, and what it closes over, as these are when it is
declared; of an object, its class and its fields. What of these cannot be stored counts by its class.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from stepwell.codec.canonical import canonical
from stepwell.errors import CodecError
from stepwell.graph.callables import function_of
from stepwell.ids import home_of, structural_hash


def qualified_name(source: Any) -> str:
    """Return the module and qualified name of the function, or of the class, that is called."""
    function = function_of(source)
    named = function if hasattr(function, "__qualname__") else type(source)
    return f"{home_of(named)}.{named.__qualname__}"


def code_identity(source: Any) -> str:
    """Return a text that is another for other code, and the same in every process for the same."""
    return structural_hash("code", _code(source, frozenset()))


def code_version(function: Any) -> str:
    """Return a short text that is another once the code of a function is edited, or of one written in it; "" where it
    has none that can be seen."""
    code = getattr(function, "__code__", None)
    return "" if code is None else structural_hash("code", _bytecode(code))[:12]


def _code(source: Any, seen: frozenset[int]) -> tuple[Any, ...]:
    """Return what makes up a callable; `seen` ends circles, as a function that calls itself makes one."""
    if id(source) in seen:
        return ("again",)
    seen |= {id(source)}
    if isinstance(source, functools.partial):
        bound = tuple(_value(value, seen) for value in source.args)
        named = tuple((name, _value(value, seen)) for name, value in sorted(source.keywords.items()))
        return ("partial", _code(source.func, seen), bound, named)
    if isinstance(source, types.MethodType):
        return ("method", _code(source.__func__, seen), _value(source.__self__, seen))
    if isinstance(source, types.FunctionType):
        return _function(source, seen)
    if isinstance(source, type) or not hasattr(source, "__dict__"):
        return ("named", qualified_name(source))
    return ("object", _class(type(source), seen), _fields(source, seen))


def _function(function: types.FunctionType, seen: frozenset[int]) -> tuple[Any, ...]:
    defaults = tuple(_value(value, seen) for value in function.__defaults__ or ())
    keywords = tuple((name, _value(value, seen)) for name, value in sorted((function.__kwdefaults__ or {}).items()))
    cells = tuple(_cell(cell, seen) for cell in function.__closure__ or ())
    return ("function", qualified_name(function), _bytecode(function.__code__), defaults, keywords, cells)


def _bytecode(code: types.CodeType) -> tuple[Any, ...]:
    constants = tuple(_bytecode(c) if isinstance(c, types.CodeType) else _constant(c) for c in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars)


def _constant(value: Any) -> Any:
    try:
        return canonical(value)
    except CodecError:
        return repr(value)


def _cell(cell: types.CellType, seen: frozenset[int]) -> Any:
    try:
        return _value(cell.cell_contents, seen)
    except ValueError:  # nothing is in it yet
        return None


def _class(kind: type[Any], seen: frozenset[int]) -> tuple[Any, ...]:
    call = kind.__dict__.get("__call__")
    return (f"{home_of(kind)}.{kind.__qualname__}", _code(call, seen) if call is not None else None)


def _fields(source: Any, seen: frozenset[int]) -> tuple[Any, ...]:
    return tuple((name, _value(value, seen)) for name, value in sorted(vars(source).items()))


def _value(value: Any, seen: frozenset[int]) -> Any:
    if callable(value):
        return _code(value, seen)
    stored = _stored(value)
    if isinstance(stored, bytes) or not hasattr(value, "__dict__"):
        return stored
    return (*stored, tuple((name, _stored(field)) for name, field in sorted(vars(value).items())))


def _stored(value: Any) -> bytes | tuple[Any, ...]:
    try:
        return canonical(value)
    except CodecError:
        return ("of", f"{home_of(type(value))}.{type(value).__qualname__}")
