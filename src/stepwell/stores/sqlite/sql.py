"""The statements of the store, read once from `queries/`.

No SQL is written in Python, here or elsewhere, except the verbs that bracket a transaction below.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

BEGIN_WRITE = "begin immediate"
"""Takes the write lock at once: a transaction that reads first and writes later could be refused half-way."""
BEGIN_READ = "begin"
COMMIT = "commit"
WAIT_FOR_DISK = "pragma synchronous = full"
LEAVE_TO_SYSTEM = "pragma synchronous = normal"
"""In WAL mode: a commit is in the system's hands when it returns, and on the disk with the next one that waits."""
ROLLBACK = "rollback"
SAVEPOINT = "savepoint member"
RELEASE = "release member"
UNDO = "rollback to member"


@cache
def query(name: str) -> str:
    """Return the statement of `queries/<name>.sql` without its header comment."""
    return _without_comments(files(f"{__package__}.queries").joinpath(f"{name}.sql").read_text("utf-8"))


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
