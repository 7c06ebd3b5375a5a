"""Which of the engine's values a function asks for: `config`, `runtime`, `writer`, `store`, `previous`.

Only signatures are read here; the values are made by the runtime. A parameter asks by its name, unless its annotation
says that it is something else, or by its annotation, whatever its name. The first parameter always receives the state.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stepwell.errors import InvalidGraphError

INJECTED = ("config", "runtime", "writer", "store", "previous")
"""Parameters the engine fills, by name."""

_ANNOTATED_AS = {"RunnableConfig": "config", "Runtime": "runtime", "BaseStore": "store"}
_ACCEPTED = {
    "config": ("RunnableConfig", "dict", "Dict", "Mapping", "Any", "object"),
    "store": ("Store", "Any", "object"),
    "writer": ("StreamWriter", "Callable", "Any", "object"),
}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Injection:
    """What a function asks for: engine value → parameter name, and which of them have no default."""

    parameters: Mapping[str, str]
    required: frozenset[str]


def injection(source: Any, label: str) -> Injection:
    """Return what `source` asks for. Raises InvalidGraphError for a parameter that nothing would fill."""
    parameters = _parameters(source)
    if not parameters:
        _check_takes_state(source, label)
        return Injection({}, frozenset())
    bound = source.keywords if isinstance(source, functools.partial) else {}
    first = first_parameter(source)
    fills: dict[str, str] = {}
    required: set[str] = set()
    for parameter in parameters:
        if parameter.name == first or parameter.name in bound or parameter.kind in _VARIADIC:
            continue
        name = _engine_value(parameter)
        optional = parameter.default is not inspect.Parameter.empty
        if name is not None and name not in fills and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            fills[name] = parameter.name
            required |= set() if optional else {name}
        elif not optional:
            raise InvalidGraphError(
                f"{label} has a parameter `{parameter.name}` that nothing fills. Beside the state a function may take "
                f"{', '.join(INJECTED)}; bind anything else with functools.partial.",
                parameter=parameter.name,
            )
    if first is None and not any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        raise InvalidGraphError(f"{label} takes no state: its first parameter receives it.")
    return Injection(fills, frozenset(required))


def fillable(source: Any) -> Mapping[str, str]:
    """Return what of the engine's a function would take where its caller gives nothing: parameter name → value."""
    wanted = {parameter.name: _engine_value(parameter) for parameter in _parameters(source)}
    return {name: value for name, value in wanted.items() if value is not None}


def _check_takes_state(source: Any, label: str) -> None:
    try:
        inspect.signature(source).bind(None)
    except TypeError:
        raise InvalidGraphError(f"{label} takes no state: its first parameter receives it.") from None
    except ValueError:
        return


def _engine_value(parameter: inspect.Parameter) -> str | None:
    """Return which of the engine's values a parameter asks for: by its name, else by what it is annotated as."""
    if parameter.name not in INJECTED:
        return _ANNOTATED_AS.get(_hint_name(parameter.annotation))
    accepted = _ACCEPTED.get(parameter.name)
    if accepted is None or parameter.annotation is inspect.Parameter.empty:
        return parameter.name
    return parameter.name if _hint_name(parameter.annotation).endswith(accepted) else None


def _hint_name(annotation: Any) -> str:
    """Return the bare class name of an annotation, whether it is a text or an object; of an optional, the other one."""
    if not isinstance(annotation, str):
        args = [arg for arg in typing.get_args(annotation) if arg is not type(None)]
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated or (args and _is_union(origin)):
            return _hint_name(args[0])
        annotation = getattr(origin or annotation, "__name__", None) or str(annotation)
    text = annotation.strip("\"' ")
    text = text.removeprefix("typing.").removeprefix("Optional[") if "Optional[" in text else text
    first = next((part for part in text.split("|") if part.strip() != "None"), text)
    return str(first.split("[")[0].strip(" ]").rsplit(".", 1)[-1])


def _is_union(origin: Any) -> bool:
    return getattr(origin, "__name__", "") in ("Union", "UnionType", "Optional")


def renaming(source: Callable[..., Any], wanted: Injection) -> Callable[..., Any]:
    """Return `source` taking the engine's names where the user named a parameter otherwise."""
    names = wanted.parameters
    if all(name == parameter for name, parameter in names.items()):
        return source

    @functools.wraps(source, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    def call(value: Any, **injected: Any) -> Any:
        return source(value, **{names[name]: item for name, item in injected.items()})

    return call


def first_parameter(source: Any) -> str | None:
    """Return the name of the parameter that receives the state."""
    parameters = _parameters(source)
    return next((p.name for p in parameters if p.kind in _POSITIONAL), None)


def _parameters(source: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(source).parameters.values())
    except (ValueError, TypeError):  # a builtin that does not tell
        return []
