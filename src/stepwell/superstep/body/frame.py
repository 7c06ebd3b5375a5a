"""What every stored body is: a msgpack list that a format number leads, and what a body that is none raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ormsgpack

from stepwell.errors import CorruptRecordError, StepwellError
from stepwell.superstep.formats import FORMAT as FORMAT, parts_of

pack = ormsgpack.packb
"""For what holds no reference yet (`superstep/blobs.py`)."""


@contextmanager
def reading(record: str) -> Iterator[None]:
    """Turn what a body that does not fit its layout raises into a CorruptRecordError naming the record."""
    try:
        yield
    except StepwellError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise CorruptRecordError(record=record, reason=f"its body does not fit its layout ({error})") from error


def expect(fits: bool, record: str) -> None:
    """Raise CorruptRecordError where a body does not fit its layout."""
    if not fits:
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")


def unpack(body: bytes, record: str, *lengths: int) -> list[Any]:
    """Return the parts of a body, its format checked and left out."""
    parts = parts_of(body, record)
    expect(len(parts) in lengths, record)
    return parts
