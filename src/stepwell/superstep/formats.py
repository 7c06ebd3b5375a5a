"""The number that leads every body, and what a reader makes of one: its own, a newer one, or none.

A newer number in a row that verifies is no damage: a later release wrote it, and only that one can tell what it says.
"""

from __future__ import annotations

from typing import Any

import ormsgpack

from stepwell.errors import CorruptRecordError, NewerFormatError
from stepwell.superstep.blobs import reference
from stepwell.superstep.compression import is_compressed, plain

FORMAT = 1


def parts_of(body: bytes, record: str) -> list[Any]:
    """Return the parts of a body behind its format. CorruptRecordError where it is no body, NewerFormatError where a
    later release wrote it."""
    if is_compressed(body):
        body = plain(body, record)
    try:
        parts = ormsgpack.unpackb(body, ext_hook=reference, option=ormsgpack.OPT_NON_STR_KEYS)
    except (ormsgpack.MsgpackDecodeError, TypeError, ValueError) as error:
        raise CorruptRecordError(record=record, reason=str(error)) from error
    if type(parts) is not list or not parts or parts[0] != FORMAT:
        raise _unknown(parts, record)
    return parts[1:]


def _unknown(parts: Any, record: str) -> CorruptRecordError | NewerFormatError:
    found = parts[0] if type(parts) is list and parts else None
    if type(found) is int and found > FORMAT:
        return NewerFormatError(record=record, found=found, known=FORMAT)
    return CorruptRecordError(record=record, reason=f"its format {found!r} is none that Stepwell ever wrote")
