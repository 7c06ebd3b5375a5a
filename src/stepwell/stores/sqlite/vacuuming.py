"""Giving pages back to the file system: SQLite writes the database anew, without what is free.

That takes as much room again as the database, twice over while its log still holds the copy. What there is not is said
before it begins. Others may read meanwhile; who writes waits.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from stepwell.errors import StoreError
from stepwell.store import StoreSize
from stepwell.stores.sqlite.connection import MEMORY
from stepwell.stores.sqlite.sql import query


def size_of(connection: apsw.Connection) -> StoreSize:
    """Return what the database takes, and how much of it is free pages."""
    [(taken, free)] = connection.execute(query("size"))
    return StoreSize(int(taken), int(free))


def vacuum(connection: apsw.Connection, path: str) -> None:
    """Write the database anew, and fold its log into it. StoreError where that cannot be done: nothing is changed."""
    if path != MEMORY:
        needed, left = 2 * size_of(connection).bytes, shutil.disk_usage(Path(path).resolve().parent).free
        if left < needed:
            raise StoreError(
                f"A vacuum of {path!r} needs {needed} bytes of disk, and {left} are left. Make room first."
            )
    try:
        connection.execute(query("vacuum"))
        connection.execute(query("fold_log")).fetchall()
    except apsw.Error as error:
        raise StoreError(f"{path!r} could not be vacuumed: {error}. Nothing was changed; try again.") from error
