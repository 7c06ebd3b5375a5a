"""Whether a transaction landed whose COMMIT ended in an error. Nothing is guessed: the rows say it, or it is unknown.

A transaction is atomic, so one member that is found, or found missing (`shared/landed.py`), speaks for all.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from stepwell.stores.shared.landed import landed
from stepwell.stores.shared.member import Member
from stepwell.stores.shared.statements import Statements
from stepwell.stores.sqlite import sql


def find_outcome(
    connection: apsw.Connection, on: Statements, members: Sequence[Member], error: BaseException
) -> bool | None:
    """Return whether these members' transaction landed; None where it cannot be known any more.

    The look itself is a durable write. Without it a log whose sync failed could still bring the lost transaction back
    when it is recovered after a crash, and "not committed" would have been a lie. A full disk needs no such write, and
    would refuse it: the frame that ends the transaction never reached the log.
    """
    connection.execute(sql.BEGIN_WRITE)
    try:
        verdicts = [landed(on, member) for member in members if member.sealed is not None]
        if not isinstance(error, apsw.FullError):
            connection.execute(sql.query("overwrite_log"))
        connection.execute(sql.COMMIT)
    except BaseException:
        if connection.in_transaction:
            connection.execute(sql.ROLLBACK)
        raise
    if True in verdicts:
        return True
    return False if False in verdicts or not verdicts else None
