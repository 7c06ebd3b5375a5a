"""Reducers whose value can be told by what was written: fold the writes since over an earlier value, and it is there.

A channel with such a reducer is stored as its writes, which a superstep stores anyway, and now and then whole. The name
of a rule is stored with each delta and says for good what it does: a rule that folds otherwise gets another name.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from stepwell.graph.channel import overwritten
from stepwell.graph.messages import add_messages, fold_messages

UNLIMITED: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class DeltaRule:
    """How the writes of a channel make its value. `fold(fold(a, xs), ys) == fold(a, xs + ys)`, and nothing that is
    passed to it is changed."""

    name: str
    """What is recorded: reducer and version."""
    fits: Callable[[Any, Sequence[Any]], bool]
    """Tell whether these writes over this value are what the rule is for."""
    fold: Callable[[Any, Sequence[Any]], Any]
    """Return the value after these writes."""
    most: int = UNLIMITED
    """How many deltas may follow a value that is stored whole, where the channel says so."""
    keeps: bool = False
    """Whether the value holds all that was ever written, so that storing it whole saves nothing."""


def _are(kind: type) -> Callable[[Any, Sequence[Any]], bool]:
    return lambda value, writes: type(value) is kind and all(type(write) is kind for write in writes)


def _are_plain_dicts(value: Any, writes: Sequence[Any]) -> bool:
    return _are(dict)(value, writes) and not any(overwritten(write)[0] for write in writes)


def _append(value: Any, writes: Sequence[Any]) -> list[Any]:
    whole = list(value)
    for write in writes:
        whole += write
    return whole


def _update(value: Any, writes: Sequence[Any]) -> dict[Any, Any]:
    whole = dict(value)
    for write in writes:
        whole.update(write)
    return whole


ADD: Final = DeltaRule("add@1", _are(list), _append, keeps=True)
OR: Final = DeltaRule("or@1", _are_plain_dicts, _update)
MESSAGES: Final = DeltaRule("add_messages@1", _are(list), fold_messages)

BUILT_IN: Final[Mapping[str, DeltaRule]] = MappingProxyType({rule.name: rule for rule in (ADD, OR, MESSAGES)})
"""The rules that every process knows, whatever graph it has."""


def rule_of(reducer: Any) -> DeltaRule | None:
    """Return the rule of a reducer; None where the value has to be stored whole after each write."""
    if reducer is operator.add:
        return ADD
    if reducer is operator.or_:
        return OR
    while isinstance(reducer, functools.partial):
        if reducer.args or any(value is not None for value in reducer.keywords.values()):
            return None  # a format rewrites what was there
        reducer = reducer.func
    return MESSAGES if reducer is add_messages else None
