"""Lists narrowed by a filter: what it looks at is read first, what matches is decided by the code that decides it for
every body, and only the rows that do are fetched.

So equality is the same in every body, whatever PostgreSQL thinks of numbers, NULs or surrogates in JSON. PostgreSQL
leaves out what cannot match by its text; that only narrows what is read.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from typing import Any, Protocol

from stepwell.stores.shared.filters import COLUMNS, matches
from stepwell.stores.shared.rows import Table
from stepwell.stores.shared.source import Bindings


class Scanning(Protocol):
    """A snapshot that can be scanned."""

    def fetch(self, name: str, table: Table[Any], where: Bindings) -> list[Any]: ...

    def scan(self, name: str, where: Bindings) -> Generator[Any, None, None]: ...


def find_filtered(source: Scanning, name: str, table: Table[Any], where: Bindings) -> list[Any]:
    """Return what the query `name` finds, without what does not match the filter, up to the bound."""
    wanted = where["filter"]
    bound = where["max_rows"]
    with closing(source.scan(f"scan_{name}", {**where, "needles": needles(wanted)})) as scanned:
        found = (place for place, *facts in scanned if matches(wanted, *facts))
        places = list(found if bound < 0 else islice(found, bound))
    if not places:
        return []
    if name == "threads":
        return source.fetch("threads_named", table, {"thread_ids": places})
    rows = source.fetch("checkpoints", table, {"thread_id": where["thread_id"], "seqs": places})
    return rows[::-1]


def needles(wanted: str) -> list[str]:
    """Return texts that the metadata of whatever matches a filter holds: its keys, as they are written there, each with
    its value where that is text."""
    return [
        f"{json.dumps(key)}: {json.dumps(value) if isinstance(value, str) else ''}"
        for key, value in json.loads(wanted).items()
        if key not in COLUMNS
    ]
