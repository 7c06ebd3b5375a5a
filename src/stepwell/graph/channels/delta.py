"""DeltaChannel: a reducer of the user's own, whose value is told by its writes and stored whole only now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from stepwell.errors import InvalidGraphError
from stepwell.graph.channel import Channel, overwritten, unshared
from stepwell.graph.channels.reduced import first_value, replacing, same_reducer
from stepwell.graph.declared import function_text
from stepwell.graph.deltas import UNLIMITED, DeltaRule
from stepwell.graph.message_shapes import id_of, with_id
from stepwell.graph.types import MISSING, Overwrite


class DeltaChannel(Channel):
    """Fold a superstep's writes into the value: `value = reducer(value, [write, ...])`, in merge order.

    Use it as `Annotated[list, DeltaChannel(reducer)]`. A checkpoint stores what was written instead of the value; where
    that has become much less to read, and after `snapshot_frequency` supersteps that wrote if you give it, it stores
    the value. Reading folds what was written since in one call, so the reducer must be a function of its arguments and
    not mind how writes are batched: `reducer(reducer(value, xs), ys) == reducer(value, xs + ys)`. It may change the
    value it is given, which is a copy, and must not change what that holds.

    `name` is what the reducer is recorded by: `module:qualname` unless given. Give it before you rename the function,
    and another one when you change what it does.
    """

    invents_ids = True

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: Any = None,
        *,
        snapshot_frequency: int | None = None,
        name: str | None = None,
    ) -> None:
        if snapshot_frequency is not None and (type(snapshot_frequency) is not int or snapshot_frequency <= 0):
            raise ValueError(f"snapshot_frequency must be a positive int, got {snapshot_frequency}")
        if not callable(reducer):
            raise InvalidGraphError(reason=f"the reducer of a DeltaChannel is a function, not {reducer!r}")
        if name is not None and (not isinstance(name, str) or not name):
            raise InvalidGraphError(reason=f"name= of a DeltaChannel is text that is not empty, not {name!r}")
        super().__init__(list if typ is None else typ)
        self.reducer = reducer
        self.snapshot_frequency = snapshot_frequency
        self.name = function_text(reducer) if name is None else name
        self._untyped = typ is None

    def typed(self, typ: Any) -> Channel:
        if not self._untyped:
            return self
        bound = copy(self)
        bound.typ, bound._untyped = typ, False
        return bound

    def initial(self) -> Any:
        return first_value(self.typ)

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        replacement = replacing(writes, key)
        if replacement is not None:
            return self.initial() if replacement.value is None else replacement.value
        return self._folded(self.initial() if current is MISSING else current, writes)

    def _folded(self, value: Any, writes: Sequence[Any]) -> Any:
        """Call the reducer with a value of its own."""
        return self.reducer(unshared(value), list(writes))

    def with_ids(self, write: Any, make_id: Callable[[int], str]) -> Any:
        """Give messages of langchain-core their ids before they are stored: a reducer that made them up would make up
        others when it folds them again."""
        messages = sys.modules.get("langchain_core.messages")
        if messages is None:
            return write
        replaces, inner = overwritten(write)
        if replaces:
            completed = self.with_ids(inner, make_id)
            return write if completed is inner else Overwrite(completed)
        parts = write if isinstance(write, list) else [write]
        if not any(isinstance(part, messages.BaseMessage) and id_of(part) is None for part in parts):
            return write
        whole = [
            with_id(part, make_id(i)) if isinstance(part, messages.BaseMessage) and id_of(part) is None else part
            for i, part in enumerate(parts)
        ]
        return whole if isinstance(write, list) else whole[0]

    def delta_rule(self) -> DeltaRule:
        return DeltaRule(f"delta:{self.name}", _are_folded, self._folded, self.snapshot_frequency or UNLIMITED)

    def _options(self) -> tuple[str, ...]:
        return (self.name,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeltaChannel):
            return NotImplemented
        return self.snapshot_frequency == other.snapshot_frequency and same_reducer(self.reducer, other.reducer)

    # `typing` keeps the first of equal annotations; channels of two lambdas are equal, and not the same.
    __hash__ = None  # type: ignore[assignment]


def _are_folded(value: Any, writes: Sequence[Any]) -> bool:
    return value is not MISSING and not any(overwritten(write)[0] for write in writes)
