"""The SQLite store: one file, or `:memory:`, behind the contract of `stepwell.store`.

`saver.py` is the object the engine holds; `transaction.py` owns the only connection that writes;
`writes.py` is what one member does inside a transaction; `reader.py` reads snapshots; `rows.py` checks each row on its
way out; `audit.py` checks all of them. SQL lives in `queries/` and `migrations/`, nowhere else. What a run means is
decided above; nothing here reads a body.
"""

from stepwell.stores.sqlite.saver import SqliteStore

__all__ = ["SqliteStore"]
