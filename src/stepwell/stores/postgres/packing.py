"""Rows in PostgreSQL's binary format: an array of a table's row type is one parameter, however many rows it holds.

Packed by hand, since an adapter a column would cost a commit more than the statement does. The columns are those of the
table, in its order. Formats: `array_recv`, `record_recv`, and the `recv` functions of text, bigint, bytea and float8.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

from stepwell.stores.postgres.texts import stored

_TEXT, _BIGINT, _BYTEA, _FLOAT = 25, 20, 17, 701
_SIZED = Struct(">Ii").pack
_NUMBER = Struct(">Iiq").pack
_REAL = Struct(">Iid").pack
_NULL = _SIZED(_BIGINT, -1)
_COUNT = Struct(">i")
_BIGINT_OF = Struct(">iq")
_ONE_DIMENSION = Struct(">iiIii")
_EMPTY = Struct(">iiI")

LONGEST_KEPT, MOST_KEPT = 64, 4096
_texts: dict[str, bytes] = {}
"""Short texts as they were packed last."""


class Packed(bytes):
    """A parameter as the server reads it."""


class PackedDumper(Dumper):
    """Hands it over as it is, its type to be told by the statement."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: Any) -> Buffer:
        """Return the bytes."""
        return obj  # type: ignore[no-any-return]


def pack_rows(row_type: int, rows: Sequence[Sequence[Any]], nullable: int | None = None) -> Packed:
    """Return rows as an array of the row type. `nullable` is the column that holds a bigint or null."""
    if not rows:
        return Packed(_EMPTY.pack(0, 0, row_type))
    parts = [_ONE_DIMENSION.pack(1, 0, row_type, len(rows), 1)]
    for row in rows:
        packed = _row(row, nullable)
        parts += (_COUNT.pack(len(packed)), packed)
    return Packed(b"".join(parts))


def pack_texts(texts: Sequence[str]) -> Packed:
    """Return texts as an array."""
    parts = [_ONE_DIMENSION.pack(1, 0, _TEXT, len(texts), 1)]
    for text in texts:
        data = stored(text).encode()
        parts += (_COUNT.pack(len(data)), data)
    return Packed(b"".join(parts))


def pack_numbers(numbers: Sequence[int]) -> Packed:
    """Return bigints as an array."""
    head = _ONE_DIMENSION.pack(1, 0, _BIGINT, len(numbers), 1)
    return Packed(head + b"".join([_BIGINT_OF.pack(8, number) for number in numbers]))


def _row(row: Sequence[Any], nullable: int | None) -> bytes:
    parts = [_COUNT.pack(len(row))]
    append, known = parts.append, _texts.get
    for index, value in enumerate(row):
        kind = type(value)
        if kind is str:
            append(known(value) or _text(value))
        elif kind is int:
            append(_NUMBER(_BIGINT, 8, value))
        elif kind is bytes:
            append(_SIZED(_BYTEA, len(value)))
            append(value)
        elif kind is float:
            append(_REAL(_FLOAT, 8, value))
        elif value is None and index == nullable:
            append(_NULL)
        else:
            raise TypeError(f"column {index} of a row holds a {kind.__name__}")
    return b"".join(parts)


def _text(text: str) -> bytes:
    """Return a text, packed; a short one is kept, since rows of a thread share most of theirs."""
    data = stored(text).encode()
    packed = _SIZED(_TEXT, len(data)) + data
    if len(text) <= LONGEST_KEPT:
        if len(_texts) >= MOST_KEPT:
            _texts.clear()
        _texts[text] = packed
    return packed
