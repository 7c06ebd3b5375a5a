"""Snapshots for readers, each lazily on a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stepwell.store import Fault
from stepwell.stores.postgres.connections import Connections
from stepwell.stores.postgres.source import PostgresSource
from stepwell.stores.shared.audit import audit
from stepwell.stores.shared.reader import RowReader


class Snapshots:
    """Reads of one database and schema."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections, self._schema = connections, schema

    @contextmanager
    def reading(self) -> Iterator[RowReader]:
        """Open one consistent snapshot. A connection is taken when it is first asked something."""
        source = PostgresSource(self._connections, self._schema)
        try:
            yield RowReader(source)
        finally:
            source.end()

    def audit(self) -> Iterator[Fault]:
        """Check every row, in one snapshot."""
        source = PostgresSource(self._connections, self._schema)
        try:
            yield from audit(source)
        finally:
            source.end()
