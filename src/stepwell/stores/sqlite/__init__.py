"""The SQLite store: one file, or `:memory:`, behind the contract of `stepwell.store`.

`saver.py` is the object the engine holds; `transaction.py` owns the only connection that writes; `snapshots.py` those
that read. The queue, the writes, the reader, the checks of rows and the audit are every body's: `stores/shared/`.
SQL lives in `queries/` and `migrations/`, nowhere else. What a run means is
decided above; nothing here reads a body.
"""

from stepwell.stores.sqlite.saver import SqliteStore

__all__ = ["SqliteStore"]
