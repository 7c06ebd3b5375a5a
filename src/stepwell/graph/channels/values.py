"""Channels whose value is the last write: LastValue, AnyValue, EphemeralValue, UntrackedValue, LastValueAfterFinish.

They differ in how many writes a superstep may make, how long the value stays and whether it is stored. None of them
looks into the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stepwell.graph.channel import Channel, only_write
from stepwell.graph.types import MISSING

_ONE_VALUE = "Can receive only one value per step. Use an Annotated key to handle multiple values."
_GUARDED = (
    "{kind}(guard=True) can receive only one value per step. "
    "Use guard=False if you want to store any one of multiple values."
)


class LastValue(Channel):
    """Keep the last value. Two writes in one superstep are an error: which one is meant is not known."""

    single = True

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        return only_write(writes, _ONE_VALUE, key) if writes else current


class AnyValue(Channel):
    """Keep the last of the superstep's values, which are taken to be equal; drop it when nothing writes."""

    settles: ClassVar[bool] = True

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        return writes[-1] if writes else MISSING

    def settle(self, current: Any) -> Any:
        return MISSING


class _Guarded(Channel):
    """A last value that may be declared open to several writes in one superstep: `guard=False`."""

    def __init__(self, typ: Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard
        self.single = guard

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        if not writes:
            return self.settle(current)
        return only_write(writes, _GUARDED.format(kind=type(self).__name__), key) if self.guard else writes[-1]

    def _options(self) -> tuple[str, ...]:
        return (f"guard={self.guard}",)


class EphemeralValue(_Guarded):
    """Keep the value for one superstep: the next one sees it, the one after does not."""

    settles: ClassVar[bool] = True

    def settle(self, current: Any) -> Any:
        return MISSING


class UntrackedValue(_Guarded):
    """Keep the last value for this run only: it is never stored, so a resumed run starts without it."""

    tracked = False


class LastValueAfterFinish(Channel):
    """Keep the last value, whichever task of the superstep wrote it last in merge order."""

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        return writes[-1] if writes else current
