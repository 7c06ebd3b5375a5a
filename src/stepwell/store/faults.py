"""What checking a database finds, and rows as they stand, whatever is wrong with them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self


class Fault(str):
    """One fault: a sentence for people, which knows the row it is about."""

    __slots__ = ("is_row", "place", "reason", "table", "thread_id")

    table: str
    """"" where it is about the database itself."""
    thread_id: str
    """"" where it is no thread's."""
    place: str
    """What tells the row apart in its table and thread, as text: its seq, its run id, its key."""
    reason: str
    is_row: bool
    """Whether the row does not verify by itself; else it does, and what should be beside it is not there."""

    @classmethod
    def of(cls, told: str, table: str, thread_id: str, place: object, reason: str, *, is_row: bool = False) -> Self:
        """Return the fault that this sentence tells."""
        fault = cls(told)
        fault.table, fault.thread_id, fault.place, fault.reason = table, thread_id, str(place), reason
        fault.is_row = is_row
        return fault


class RawRow(NamedTuple):
    """A row as it stands, to be looked at and never to be gone on with."""

    columns: dict[str, Any]
    """By name; None where a value is not of its column's type. Text that is no UTF-8 is shown with escapes."""
    fault: str | None
    """Why it does not verify."""
    stored: tuple[Any, ...]
    """The columns as they were found: text as bytes."""
