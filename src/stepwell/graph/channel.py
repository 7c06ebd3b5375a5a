"""The contract of a channel: how the writes of one superstep become the next value. The kinds are in `channels/`.

A channel here is a declaration, not a container: it holds no value and may be shared by every run of a graph. The rule
kept: each method is a function of its arguments, so the same writes in the same order always give the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from stepwell.errors import InvalidUpdateError
from stepwell.graph.declared import type_text
from stepwell.graph.types import MISSING, OVERWRITE, Overwrite

if TYPE_CHECKING:
    from stepwell.graph.deltas import DeltaRule


class Channel:
    """Declare how one key of the state is kept. Use a subclass, as a class or an instance, inside `Annotated`."""

    settles: ClassVar[bool] = False
    """Whether `settle` may change a value: False lets the engine skip channels a superstep did not write."""
    tracked: bool = True
    """Whether the value is stored with the state."""
    single: bool = False
    """Whether a superstep may write it once only, so that the value is that write."""
    invents_ids: bool = False
    """Whether writes must be given ids (`with_ids`) before they are folded."""

    def __init__(self, typ: Any) -> None:
        self.typ = typ

    def initial(self) -> Any:
        """Return the value before the first write, or MISSING."""
        return MISSING

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        """Return the value after one superstep wrote `writes`, in merge order; `current` may be MISSING."""
        raise NotImplementedError

    def settle(self, current: Any) -> Any:
        """Return what remains of `current` after a superstep that did not write this channel."""
        return current

    def with_ids(self, write: Any, make_id: Callable[[int], str]) -> Any:
        """Return a write of an `invents_ids` channel with the ids it lacks: `make_id(i)` for its i-th part."""
        return write

    def delta_rule(self) -> DeltaRule | None:
        """Return how the value follows from what was written, so that it need not be stored whole each time; None where
        it does not."""
        return None

    def typed(self, typ: Any) -> Channel:
        """Return the channel for a key of this type: itself, where its type was given."""
        return self

    def declaration(self) -> str:
        """Return a text that changes exactly when the kind, the declared type or the reducer does."""
        kind, *given = self.declared()
        return f"{kind}({', '.join(given)})"

    def declared(self) -> tuple[str, ...]:
        """Return kind, declared type and options, each as a text."""
        return type(self).__name__, type_text(self.typ), *self._options()

    def _options(self) -> tuple[str, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        """Whether two schemas may declare one key by these channels: same kind, same rule. The type is not compared."""
        return type(self) is type(other) and isinstance(other, Channel) and self._rule() == other._rule()

    def __hash__(self) -> int:
        return hash(type(self))

    def _rule(self) -> Any:
        return self._options()

    def __repr__(self) -> str:
        return self.declaration()


def overwritten(write: Any) -> tuple[bool, Any]:
    """Return whether `write` replaces the value, and by what. Knows `Overwrite` and its two JSON spellings."""
    if isinstance(write, Overwrite):
        return True, write.value
    if isinstance(write, dict):
        if len(write) == 1 and OVERWRITE in write:
            return True, write[OVERWRITE]
        if write.get("type") == OVERWRITE and "value" in write:
            return True, write["value"]
    return False, None


def unshared(value: Any) -> Any:
    """Return a shallow copy to hand to a reducer: one that changes its argument must not change what others hold."""
    try:
        return copy(value)
    except Exception:  # a class that refuses to be copied: then it cannot be helped
        return value


def only_write(writes: Sequence[Any], refusal: str, key: str) -> Any:
    """Return the one write of a superstep, or raise InvalidUpdateError with `refusal`."""
    if len(writes) != 1:
        raise InvalidUpdateError(f"At key '{key}': {refusal}", key=key, writes=len(writes))
    return writes[0]
