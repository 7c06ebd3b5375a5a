"""The statements of the store, read once from `queries/` and `migrations/`, for the schema that a store was given.

The files call the schema `stepwell`; what is said here puts the store's own in its place. No SQL is written in Python,
here or elsewhere, except the verbs that bracket a transaction or page through a query below.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

SCHEMA = "stepwell"
"""The schema that the files name, and that a store has unless it is told otherwise."""

BEGIN = "begin isolation level read committed"
"""READ COMMITTED, whatever the database's default: each statement sees what was committed before it began."""
BEGIN_READ = "begin isolation level repeatable read read only"
"""One snapshot for all that is read."""
COMMIT = "commit"
ROLLBACK = "rollback"

_NAMED = re.compile(rf"\b{SCHEMA}\b(?=[. ;]|$)")


@cache
def query(name: str, schema: str = SCHEMA) -> str:
    """Return the statement of `queries/<name>.sql` without its header comment."""
    return within(schema, files(f"{__package__}.queries").joinpath(f"{name}.sql").read_text("utf-8"))


def within(schema: str, text: str) -> str:
    """Return a statement or a script as one that means this schema, without comments that take a line of their own."""
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
    quoted = '"{}"'.format(schema.replace('"', '""').replace("%", "%%"))
    return _NAMED.sub(lambda _: quoted, kept)


def declare(cursor: str, text: str) -> str:
    """Return the statement that opens a query to be read in pages, within its transaction."""
    return f"declare {cursor} no scroll cursor for {text}"


def fetch(cursor: str, rows: int) -> str:
    """Return the statement that reads the next page."""
    return f"fetch forward {rows} from {cursor}"
