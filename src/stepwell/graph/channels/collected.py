"""Channels that collect: Topic gathers values into a list, NamedBarrierValue gathers names until all are there.

The joins a graph declares by `add_edge([...], target)` are not channels: the superstep layer keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stepwell.errors import InvalidUpdateError
from stepwell.graph.channel import Channel
from stepwell.graph.declared import value_text
from stepwell.graph.types import MISSING


class Topic(Channel):
    """Collect the writes of a superstep, lists flattened by one level, for the next one; with `accumulate` for good."""

    settles = True

    def __init__(self, typ: Any, accumulate: bool = False) -> None:
        super().__init__(typ)
        self.accumulate = accumulate

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        kept = [] if current is MISSING or not self.accumulate else list(current)
        for write in writes:
            kept.extend(write) if isinstance(write, list) else kept.append(write)
        return kept or MISSING

    def settle(self, current: Any) -> Any:
        return current if self.accumulate else MISSING

    def _options(self) -> tuple[str, ...]:
        return (f"accumulate={self.accumulate}",)


class NamedBarrierValue(Channel):
    """Collect the names written so far, out of the declared ones."""

    def __init__(self, typ: Any, names: Iterable[Any]) -> None:
        super().__init__(typ)
        self.names = frozenset(names)

    def fold(self, current: Any, writes: Sequence[Any], key: str) -> Any:
        for write in writes:
            if write not in self.names:
                raise InvalidUpdateError(f"At key '{key}': Value {write} not in {set(self.names)}", key=key)
        return (set() if current is MISSING else set(current)) | set(writes)

    def _options(self) -> tuple[str, ...]:
        return tuple(sorted(map(value_text, self.names)))
