"""What became of a write whose connection was lost while it may have landed: the rows say it, or it is done again.

The look takes the lock of the thread's row. Whatever the lost connection's transaction did is over by then, or has not
begun; and one that begins later finds the fence closed, since the head has moved. So a write that is found missing is
written again, once, and its caller never learns of the loss. Only where the database cannot be reached, or another run
has written over what could have told, is the outcome unknown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg

from stepwell.errors import CommitUnknownError, DatabaseUnavailableError, LeaseLostError
from stepwell.store import ItemWrites, KeyWrites, Message
from stepwell.stores.postgres.connections import Connection, Connections
from stepwell.stores.postgres.damage import is_lost
from stepwell.stores.postgres.refusals import reason_of, refused
from stepwell.stores.postgres.session import Session, understands_rows
from stepwell.stores.shared.landed import landed
from stepwell.stores.shared.member import Member, Renewal

PATIENCE_SECONDS = 20.0
"""How long a server may take to come back."""
PAUSE_SECONDS = 0.05
ATTEMPTS = 2


class Recovery:
    """Looks, and writes again."""

    def __init__(self, connections: Connections, write_in: Callable[[Session, Member], None], schema: str) -> None:
        self._connections, self._write_in, self._schema = connections, write_in, schema

    def settle(self, member: Member, error: BaseException) -> None:
        """Find out what became of a member, write it if it did not land, and close it."""
        for _ in range(ATTEMPTS):
            try:
                if self._look(member):
                    return
            except (psycopg.Error, DatabaseUnavailableError) as second:
                error = second
            except LeaseLostError as lease:
                member.fail(lease)
                return
            except Exception as other:
                member.fail(other)
                return
        thread_id = member.work.thread_id
        told = None if thread_id else f"The store could not say whether a write landed: {reason_of(error)}. Read again."
        unknown = CommitUnknownError(told, thread_id=thread_id, reason=reason_of(error))
        unknown.__cause__ = error
        member.fail(unknown)

    def _look(self, member: Member) -> bool:
        """Look once; False where the connection was lost again. Raises what the second write is refused with."""
        connection = self.patiently()
        try:
            understands_rows(connection)
            session = Session(connection, self._schema)
            try:
                with session:
                    self._finish(session, member)
            except psycopg.Error as error:
                if is_lost(error, connection):
                    raise
                raise refused(error, member.work.thread_id, self._connections.where) from error
            return True
        finally:
            self._connections.give_back(connection)

    def _finish(self, session: Session, member: Member) -> None:
        session.fetch("thread_to_write", {"thread_id": member.work.thread_id})
        verdict = landed(session.statements(), member) if _can_tell(member) else False
        if verdict is None:
            raise CommitUnknownError(thread_id=member.work.thread_id, reason="another run has written over it since")
        if verdict is False:
            self._write_in(session, member)
        session.commit()
        member.open = False

    def patiently(self) -> Connection:
        """Return a connection that works, waiting for a server that starts again."""
        self._connections.forget_idle()
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._connections.take()
            except DatabaseUnavailableError:
                if time.monotonic() >= until:
                    raise
                threading.Event().wait(PAUSE_SECONDS)


def _can_tell(member: Member) -> bool:
    """Tell whether rows show if a member landed. The others are written again: twice is once for them."""
    return member.sealed is not None and not isinstance(member.work, Message | ItemWrites | KeyWrites | Renewal)
