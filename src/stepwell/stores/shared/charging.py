"""What one member of a transaction costs, for whoever asked: counted apart, beside the store's own counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stepwell.store import Counts

BRACKETS = 2
"""Begin and commit (or rollback): statements of every transaction, counted for each member."""


@contextmanager
def charging(cost: Counts, counts: Counts, synced: bool) -> Iterator[None]:
    """Add to `cost` what the block adds to the store's counts, and the transaction it is part of."""
    statements, size = counts.statements, counts.bytes
    try:
        yield
    finally:
        cost.transactions += 1
        cost.statements += counts.statements - statements + BRACKETS
        cost.bytes += counts.bytes - size
        cost.syncs += synced
