"""What the writing code needs of a body: its statements, on one connection inside a transaction, and its leases.

Statements of one name take the same bindings and return the same columns in every body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Statements(NamedTuple):
    """The writing statements on one connection. The caller has begun a transaction."""

    query: Callable[[str], Any]
    """By name, to what `execute` takes."""
    execute: Callable[..., Any]
    """Run a statement with a tuple or a mapping of bindings; returns something that has `fetchall`."""
    changes: Callable[[], int]
    """How many rows the statement before changed."""
    lock: Callable[[str, Sequence[str]], None]
    """Let nobody else into what these names stand for until the transaction ends. Where one lock is for all writers,
    they are locked already."""


class Leases(NamedTuple):
    """Whose leases are given, and by which clock they run."""

    holder: str
    """This process, as thread rows name it."""
    now: Callable[[], float]
    """The clock of leases."""
    asked: Callable[[], float | None]
    """What a claim is told to compare leases with; None where the database asks its own clock."""
    is_gone: Callable[[str], bool]
    """Whether the holder of a lease needs no waiting for."""


def locked_already(kind: str, names: Sequence[str]) -> None:
    """Do nothing: the transaction holds the one lock of all writers."""
