"""The channel behind `Annotated[T, reducer]`: writes are folded into the value by the user's function.

What `Overwrite` means within a superstep is defined here, once: it wins over every other write of that superstep,
whatever its position, so the result does not depend on where in merge order it stands.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_args, get_origin

from stepwell.errors import InvalidUpdateError
from stepwell.graph.channel import Channel, overwritten
from stepwell.graph.declared import function_text
from stepwell.graph.deltas import DeltaRule, rule_of
from stepwell.graph.messages import is_message_reducer, with_ids
from stepwell.graph.types import MISSING, Overwrite

Reducer = Callable[[Any, Any], Any]

_CONCRETE: dict[Any, type] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


class BinaryOperatorAggregate(Channel):
    """Fold each write into the value: `value = operator(value, write)`, in merge order.

    The value starts as `typ()` where the type can be called without arguments, else with the first write.
    """

    def __init__(self, typ: Any, operator: Reducer) -> None:
        super().__init__(typ)
        self.operator = operator
        self.invents_ids = is_message_reducer(operator)

    def initial(self) -> Any:
        return first_value(self.typ)

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        replacement = replacing(writes, key)
        if replacement is not None:
            return replacement.value
        for write in writes:
            current = write if current is MISSING else self.operator(current, write)
        return current

    def with_ids(self, write: Any, make_id: Callable[[int], str]) -> Any:
        return with_ids(write, make_id) if self.invents_ids else write

    def delta_rule(self) -> DeltaRule | None:
        return rule_of(self.operator)

    def _options(self) -> tuple[str, ...]:
        return (function_text(self.operator),)

    def _rule(self) -> Any:
        return self.operator

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryOperatorAggregate):
            return NotImplemented
        return same_reducer(self.operator, other.operator)

    # `typing` keeps the first of equal annotations; channels of two lambdas are equal, and not the same.
    __hash__ = None  # type: ignore[assignment]


def first_value(typ: Any) -> Any:
    """Return what a type makes without arguments, or MISSING."""
    typ = get_args(typ)[0] if get_origin(typ) is Annotated else typ
    origin = get_origin(typ) or typ
    try:
        return _CONCRETE.get(origin, origin)()
    except Exception:  # user code: a constructor that refuses means there is no first value
        return MISSING


def replacing(writes: Sequence[Any], key: str) -> Overwrite | None:
    """Return the write of a superstep that replaces the value, if there is one; two of them are refused."""
    found = [Overwrite(value) for replaces, value in map(overwritten, writes) if replaces]
    if len(found) > 1:
        raise InvalidUpdateError("Can receive only one Overwrite value per super-step.", key=key)
    return found[0] if found else None


def same_reducer(one: Any, other: Any) -> bool:
    """Return whether two reducers are the same, as far as can be told: lambdas are, written alike or not."""
    return bool(one == other) or _anonymous(one) or _anonymous(other)


def _anonymous(operator: Any) -> bool:
    return getattr(operator, "__name__", "") == "<lambda>"
