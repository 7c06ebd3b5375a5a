"""A workflow: one function that is a whole graph, as the user wrote it.

Its input is what it is called with, its output what it returned, and one value is kept for its next run (`Final` tells
the two apart). The rule kept: what could only fail when it runs (a generator, no parameter for the input) is refused
when it is declared.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic

from typing_extensions import TypeVar

from stepwell.errors import GeneratorEntrypointError, InvalidGraphError
from stepwell.graph import nodes as make
from stepwell.graph.callables import UserCode, called_name, function_of, hints_of, user_code
from stepwell.graph.channels import Channel, LastValue
from stepwell.graph.identity import qualified_name
from stepwell.graph.injection import first_parameter
from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy
from stepwell.graph.schema import RootSchema, Schema
from stepwell.graph.types import END, PREVIOUS

ValueT = TypeVar("ValueT", default=Any)
SaveT = TypeVar("SaveT", default=Any)


@dataclass(frozen=True, slots=True)
class Final(Generic[ValueT, SaveT]):
    """What a workflow returns where the caller gets one value and the next run, as `previous`, another."""

    value: ValueT
    """What the caller gets."""
    save: SaveT
    """What the next run on this thread gets as `previous`."""


def writes_of(value: Any) -> tuple[tuple[str, Any], ...]:
    """Return what a workflow's return value writes."""
    made = value if isinstance(value, Final) else Final(value, value)
    return ((END, made.value), (PREVIOUS, made.save))


class AnyValueSchema(RootSchema):
    """A workflow's input or output: a value of any type, taken and returned as it is, kept in the channel `key`."""

    def __init__(self, source: Any, key: str) -> None:
        Schema.__init__(self, source, {})
        self.key = key
        self.channels = {key: LastValue(source)}
        self.keys = (key,)


@dataclass(frozen=True, slots=True)
class Workflow:
    """A function as `entrypoint` was given it."""

    name: str
    """Of its one node."""
    home: str
    """`module.qualname` of the function: the graph id, unless it is given one."""
    code: UserCode
    takes: Any
    returns: Any
    saves: Any
    """The types its annotations declare; Any where they declare none."""
    retry: tuple[RetryPolicy, ...]
    timeout: TimeoutPolicy | None
    cache: CachePolicy | None
    context_schema: Any

    @property
    def channels(self) -> Mapping[str, Channel]:
        """What a thread keeps: the last return value, and what the next run gets as `previous`."""
        return {END: LastValue(self.returns), PREVIOUS: LastValue(self.saves)}


def workflow_of(
    function: Any,
    *,
    context_schema: Any,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None,
    timeout: float | timedelta | TimeoutPolicy | None,
    cache_policy: CachePolicy | None,
) -> Workflow:
    """Inspect a function. Raises InvalidGraphError for one that cannot be a workflow."""
    code = _checked(function)
    hints = hints_of(function)
    returns, saves = _returned(hints.get("return", Any))
    name = called_name(function) or "<lambda>"
    return Workflow(
        name=make.new_node_name(name),
        home=qualified_name(function),
        code=code,
        takes=hints.get(first_parameter(function) or "", Any),
        returns=returns,
        saves=saves,
        retry=make.retry_policies(retry_policy),
        timeout=TimeoutPolicy.coerce(timeout),
        cache=make.cache_policy(cache_policy),
        context_schema=context_schema,
    )


def _checked(function: Any) -> UserCode:
    name = called_name(function) or "<lambda>"
    label = f"The entrypoint `{name}`"
    inner = function_of(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise GeneratorEntrypointError(function=name)
    if callable(function) and first_parameter(function) is None:
        raise InvalidGraphError(f"{label} must have at least one parameter: the first one receives the input.")
    return user_code(function, label)


def _returned(hint: Any) -> tuple[Any, Any]:
    """Return the types of what the caller gets and of what is saved."""
    if hint is Final or typing.get_origin(hint) is Final:
        value, save = typing.get_args(hint) or (Any, Any)
        return value, save
    return hint, hint
