"""A pipeline of psycopg's whose block can fail: leaving it fails then as well, and the first error is the one to tell.

psycopg would log the second one, on every connection that a server, a pooler or an idle limit has closed meanwhile.
"""

from __future__ import annotations

from types import TracebackType

import psycopg

from stepwell.stores.postgres.connections import Connection


class Pipelined:
    """One round trip, as a block."""

    __slots__ = ("_pipeline",)

    def __init__(self, connection: Connection) -> None:
        self._pipeline = connection.pipeline()

    def __enter__(self) -> psycopg.Pipeline:
        return self._pipeline.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._pipeline.__exit__(None, None, None)
        except psycopg.Error:
            if error is None:
                raise
