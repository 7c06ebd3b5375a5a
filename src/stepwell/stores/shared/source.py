"""What a reader stands on: one snapshot of a database, asked by the names of its queries.

Queries of one name return the same columns in every body; bindings are texts, integers and None, and
lists as the body binds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from stepwell.stores.shared.rows import Table

Bindings = Mapping[str, Any]


class Source(Protocol):
    """One consistent snapshot. What the database says about damage comes as CorruptRecordError, any other refusal as
    StoreError: nothing of a driver leaves it."""

    place: str
    """What a fault of all of it is told of, as in "the database file"."""

    far: bool
    """Whether what is asked apart costs a way there and back each time, so that it is worth foreseeing."""

    def expect(self, name: str, where: Bindings) -> None:
        """Take note of a query that is about to be asked: a source that is far sends it along with the next one."""
        ...

    @property
    def listed(self) -> Callable[[Sequence[Any]], Any]:
        """What makes of a list of integers or texts what is bound for it."""
        ...

    def fetch(self, name: str, table: Table[Any], where: Bindings) -> list[Any]:
        """Return all that a query finds. `table` is whose rows these are, for the error."""
        ...

    def stream(self, name: str, where: Bindings) -> Iterator[Any]:
        """Yield what a query finds, without holding all of it. Others may be asked meanwhile. All text comes as bytes,
        so that what is no text is found too; a thread id may be given as bytes."""
        ...
