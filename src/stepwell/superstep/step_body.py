"""The layout of a step's record, and which exceptions can be made again from one."""

from __future__ import annotations

import builtins
from typing import Any

import ormsgpack

from stepwell import errors
from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError, StepError, StepwellError, UnserializableValueError
from stepwell.superstep.blobs import is_apart, kinds_of
from stepwell.superstep.body import reading
from stepwell.superstep.formats import FORMAT, parts_of
from stepwell.superstep.items import decode_items, whole_items
from stepwell.superstep.outcome import text_of
from stepwell.superstep.steps import Step

_TYPES = (str, str, str, str, str, str, bytes, str, bytes, int, int, int)


def encode_step(step: Step) -> bytes:
    """Return the body of the record."""
    *parts, items = step
    return ormsgpack.packb((FORMAT, *parts, [tuple(write) for write in items]) if items else (FORMAT, *parts))


def decode_step(body: bytes, record: str) -> Step:
    """Return what the record says; large values may still stand apart. CorruptRecordError where its body does not fit
    its layout."""
    parts = parts_of(body, record)
    length = len(_TYPES)
    if kinds_of(parts[:length]) != _TYPES or len(parts) > length + 1:
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")
    with reading(record):
        return Step(*parts[:length], *map(decode_items, parts[length:]))


def whole_step(codec: Codec, step: Step) -> Step:
    """Return the step with every value at hand. `codec` reads the record it is from."""
    if is_apart(step.value) or is_apart(step.raised):
        value = codec.bytes_of(step.value, f"result of {step.callee}")
        step = step._replace(value=value, raised=codec.bytes_of(step.raised, f"error of {step.callee}"))
    return step._replace(items=whole_items(codec, step.items)) if step.items else step


def encode_raised(codec: Codec, error: BaseException) -> bytes:
    """Return what an exception is made again from: type and arguments of a built-in one, the value itself where its
    type is registered; b"" for what cannot be made again."""
    kind = type(error)
    if isinstance(error, StopIteration | StopAsyncIteration):
        return b""  # no future may raise it
    try:
        if kind is not _named(kind.__name__):
            return codec.dumps(error, "error")
        fields = error.fields() if isinstance(error, StepwellError) else {}
        return codec.dumps((kind.__name__, error.args, fields), "error")
    except UnserializableValueError:
        return b""


def error_of(codec: Codec, step: Step) -> Exception:
    """Return what a recorded failure raises again: the exception that it was, where it is a built-in one, one of the
    package's own or of a registered type, else a StepError saying so."""
    if step.raised:
        found = codec.loads(step.raised, f"error of {step.callee}")
        if isinstance(found, Exception):
            return found
        name, args, fields = found
        kind = _named(name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(*args, **fields)
    return StepError(step_id=step.call_id, callee=step.callee, error=step.error)


def _named(name: str) -> Any:
    """Return the exception of this name that is made again: a built-in one, or one of the package's own."""
    own = getattr(errors, name, None)
    if isinstance(own, type) and issubclass(own, StepwellError) and own.__reduce__ is StepwellError.__reduce__:
        return own
    return getattr(builtins, name, None)


def failed_step(codec: Codec, step: Step, error: BaseException, status: str, attempts: int, at: int) -> Step:
    """Return the step after an attempt that raised this."""
    return step._replace(
        status=status, error=text_of(error), raised=encode_raised(codec, error), attempts=attempts, at=at
    )
