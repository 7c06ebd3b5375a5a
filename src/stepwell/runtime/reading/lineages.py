"""The lineages of a thread as a tree: where each was forked off, and where it ends. No checkpoint is read for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepwell.runtime.reading.snapshot import config_at
from stepwell.store import Reader


@dataclass(frozen=True, slots=True)
class Lineage:
    """One branch of a thread."""

    lineage: int
    """Its number: what `get_state_history(config, lineage=...)` takes."""
    parent: int | None
    """The lineage it was forked off; None for the one that the first input opened."""
    forked_from: Mapping[str, Any] | None
    """The config of the checkpoint it was forked from."""
    head: Mapping[str, Any]
    """The config of its newest checkpoint."""
    is_current: bool
    """A call without a checkpoint id goes on with this one."""
    children: tuple[Lineage, ...]
    """The lineages that were forked off it, in the order in which that was done."""

    def walk(self) -> Iterator[Lineage]:
        """Yield this lineage and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_lineages(reader: Reader, thread_id: str) -> tuple[Lineage, ...]:
    """Return the roots of the tree: one, or none where nothing was committed yet."""
    rows = {row.lineage: row for row in reader.lineages(thread_id)}
    newest = reader.newest_seq(thread_id, "")
    made: dict[int, Lineage] = {}

    def config(seq: int) -> dict[str, Any]:
        return config_at(thread_id, "", reader.id_of(thread_id, seq))

    for number in sorted(rows, reverse=True):  # a lineage is forked off one with a smaller number
        row = rows[number]
        below = tuple(made[child] for child in sorted(made) if rows[child].parent_lineage == number)
        forked_from = None if row.parent_seq is None else config(row.parent_seq)
        is_current = row.head_seq == newest
        made[number] = Lineage(number, row.parent_lineage, forked_from, config(row.head_seq), is_current, below)
    return tuple(made[number] for number in sorted(made) if rows[number].parent_lineage is None)
