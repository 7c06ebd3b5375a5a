"""What a reader stands on: one snapshot of a database, asked by the names of its queries.

Queries of one name return the same columns in every body; bindings are texts, integers, bytes and None, lists are JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from stepwell.stores.shared.rows import Table

Bindings = Mapping[str, Any]


class Source(Protocol):
    """One consistent snapshot. What the database says about damage comes as CorruptRecordError, any other refusal as
    StoreError: nothing of a driver leaves it."""

    place: str
    """What a fault of all of it is told of, as in "the database file"."""

    def fetch(self, name: str, table: Table[Any], where: Bindings) -> list[Any]:
        """Return all that a query finds. `table` is whose rows these are, for the error."""
        ...

    def stream(self, name: str, where: Bindings) -> Iterator[Any]:
        """Yield what a query finds, without holding all of it. Others may be asked meanwhile."""
        ...
