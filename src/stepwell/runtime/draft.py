"""A checkpoint before it has a row: what the ledger makes one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import Identity, State, Task


class Draft(NamedTuple):
    """A checkpoint without its row."""

    identity: Identity
    state: State
    lineage: int
    source: str
    parent_seq: int | None
    parent_digest: bytes
    sources: Sequence[tuple[Task, Succeeded, int | None]] = ()
    """In merge order."""
    abandoned: tuple[Task, ...] = ()
    before: Mapping[str, Any] | None = None
    """The values that the sources were folded into; None: what was written is stored whole."""

    def instead_of(self, other: Draft | None) -> Draft:
        """Return the draft as it takes the place of another, which gets no row."""
        if other is None or not other.abandoned:
            return self
        return self._replace(abandoned=other.abandoned + self.abandoned)
