"""What the payment server remembers: requests and charges, in a file that outlives a kill of its process.

A charge and the fate of its request are one transaction.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

SCHEMA = """
create table if not exists requests (id integer primary key, account text, key text, reference text, fate text);
create table if not exists charges (id integer primary key, account text, key text, reference text, amount integer);
"""


class Books:
    """The books of a server. A charge is on file when `charge` returns; SIGKILL does not undo it."""

    def __init__(self, path: Path, honours_keys: bool) -> None:
        self._honours_keys = honours_keys
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False)
        self._file.execute("pragma synchronous = off")
        self._file.executescript(SCHEMA)

    def receive(self, account: str, key: str | None, reference: str) -> int:
        """Note a request that has come in; return its number."""
        with self._lock, self._file:
            row = (account, key, reference, "held")
            added = self._file.execute("insert into requests (account, key, reference, fate) values (?, ?, ?, ?)", row)
            return added.lastrowid or 0

    def settle(self, request: int, fate: str) -> None:
        """Note what became of a request for which nothing was charged."""
        with self._lock, self._file:
            self._settle(request, fate)

    def charge(self, request: int, account: str, key: str | None, reference: str, amount: int) -> dict[str, Any] | None:
        """Charge, or return the charge this key has already made; None where that one was another."""
        with self._lock, self._file:
            known = self._find(account, {"key": key}) if self._honours_keys and key is not None else []
            if known:
                same = (known[0]["reference"], known[0]["amount"]) == (reference, amount)
                self._settle(request, "repeated" if same else "reused")
                return known[0] if same else None
            row = (account, key, reference, amount)
            added = self._file.execute("insert into charges (account, key, reference, amount) values (?, ?, ?, ?)", row)
            self._settle(request, "charged")
            return {"id": added.lastrowid, "reference": reference, "amount": amount, "key": key}

    def find(self, account: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the charges with these columns, oldest first."""
        with self._lock:
            return self._find(account, asked)

    def report(self, account: str) -> dict[str, Any]:
        """Return all requests and charges of the account."""
        with self._lock:
            query = "select key, reference, fate from requests where account = ? order by id"
            return {"requests": self._file.execute(query, (account,)).fetchall(), "charges": self._find(account, {})}

    def _find(self, account: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
        query = (
            "select id, reference, amount, key from charges where account = :account"
            " and (:key is null or key = :key) and (:reference is null or reference = :reference) order by id"
        )
        found = self._file.execute(query, {"account": account, "key": None, "reference": None, **asked})
        return [dict(zip(("id", "reference", "amount", "key"), row, strict=True)) for row in found]

    def _settle(self, request: int, fate: str) -> None:
        self._file.execute("update requests set fate = ? where id = ?", (fate, request))
