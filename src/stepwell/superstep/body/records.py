"""The layouts of records, by their `kind` (`lifecycle.RECORD_KINDS`). Not here: those of steps, effects and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.codec import Codec, is_scalar
from stepwell.errors import UnserializableValueError
from stepwell.plan.tables import Plan
from stepwell.superstep.blobs import pack as pack_references
from stepwell.superstep.body.frame import FORMAT, expect, pack, reading, unpack
from stepwell.superstep.body.values import blame, decode_routes, decode_writes, encode_routes, encode_writes
from stepwell.superstep.formats import parts_of
from stepwell.superstep.items import decode_items, whole_items
from stepwell.superstep.lifecycle import SUCCEEDED
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Question, Returned, Succeeded
from stepwell.superstep.state import Task, new


def encode_succeeded(codec: Codec, plan: Plan, task: Task, outcome: Succeeded) -> bytes:
    return pack([FORMAT, *_encode_return(codec, plan, task, outcome)])


def stored_copy(codec: Codec, plan: Plan, task: Task, outcome: Succeeded) -> Succeeded:
    """Return the outcome as it would be read back; untracked channels keep what was written."""
    writes, routes, items = outcome
    try:
        writes = tuple([(key, _copied(codec, plan, key, value)) for key, value in writes])
    except UnserializableValueError as error:
        raise blame(error, (task.node,)) from None
    if any(type(route) is not str for route in routes):
        routes = decode_routes(codec, encode_routes(codec, task.node, routes))
    return new(Succeeded, (writes, routes, items))


def _copied(codec: Codec, plan: Plan, key: str, value: Any) -> Any:
    return value if is_scalar(value) or not plan.channels[key].tracked else codec.copy(value, key)


def succeeded_writes(body: bytes, record: str) -> list[Any]:
    """Return the writes of a `succeeded` record as they are stored: [channel, bytes] pairs."""
    writes: list[Any] = unpack(body, record, 2, 3)[0]
    return writes


def without_items(kind: str, body: bytes) -> bytes:
    """Return the body of an outcome's record without what it wrote to the item store."""
    parts = [FORMAT, *parts_of(body, f"{kind} record")]
    if kind == SUCCEEDED:
        parts = parts[:3]
    elif parts[-1] is not None:
        parts[-1] = parts[-1][:2]
    return pack_references(parts)


def encode_failed(codec: Codec, plan: Plan, task: Task, outcome: Failed | Cancelled) -> bytes:
    return pack([FORMAT, outcome.text, _encode_kept(codec, plan, task, outcome.kept)])


def encode_interrupted(codec: Codec, plan: Plan, task: Task, outcome: Interrupted, *before: Any) -> bytes:
    questions = [[q.interrupt_id, q.call_id, _question_bytes(codec, task, q)] for q in outcome.questions]
    return pack([FORMAT, *before, questions, _encode_kept(codec, plan, task, outcome.kept)])


def _question_bytes(codec: Codec, task: Task, question: Question) -> bytes:
    try:
        return codec.dumps(question.value, "interrupt")
    except UnserializableValueError as error:
        raise blame(error, (task.node,)) from None


def encode_answer(codec: Codec, interrupt_id: str, call_id: str, value: Any) -> bytes:
    return pack([FORMAT, interrupt_id, call_id, codec.dumps(value, "answer")])


def encode_attempt(text: str, attempts: int, first_at: int, next_at: int) -> bytes:
    return pack([FORMAT, text, attempts, first_at, next_at])


def encode_discarded() -> bytes:
    return pack([FORMAT])


def _encode_kept(codec: Codec, plan: Plan, task: Task, kept: Returned | None) -> Any:
    return None if kept is None else _encode_return(codec, plan, task, kept)


def _encode_return(codec: Codec, plan: Plan, task: Task, made: Returned | Succeeded) -> list[Any]:
    """Return writes, routes and, where there are any, item writes."""
    parts = [encode_writes(codec, plan, task.node, made.writes), encode_routes(codec, task.node, made.routes)]
    return [*parts, [tuple(write) for write in made.items]] if made.items else parts


def _decode_return(codec: Codec, parts: Sequence[Any]) -> Returned:
    items = whole_items(codec, decode_items(parts[2])) if len(parts) > 2 else ()
    return Returned(decode_writes(codec, parts[0]), decode_routes(codec, parts[1]), items)


def _decode_kept(codec: Codec, kept: Any) -> Returned | None:
    return None if kept is None else _decode_return(codec, kept)


def decode_succeeded(codec: Codec, body: bytes, record: str) -> Succeeded:
    parts = unpack(body, record, 2, 3)
    with reading(record):
        return Succeeded(*_decode_return(codec, parts))


def decode_failed(codec: Codec, body: bytes, record: str) -> Failed:
    text, kept = unpack(body, record, 2)
    expect(type(text) is str, record)
    with reading(record):
        return Failed(text, None, _decode_kept(codec, kept))


def decode_cancelled(codec: Codec, body: bytes, record: str) -> Cancelled:
    text, _, kept = decode_failed(codec, body, record)
    return Cancelled(text, kept)


def decode_interrupted(codec: Codec, body: bytes, record: str) -> Interrupted:
    return interrupted_of(codec, unpack(body, record, 2), record)


def interrupted_of(codec: Codec, parts: Sequence[Any], record: str) -> Interrupted:
    questions, kept = parts
    with reading(record):
        asked = tuple(Question(*_ids(iid, call), codec.loads(value, "interrupt")) for iid, call, value in questions)
        return Interrupted(asked, _decode_kept(codec, kept))


def decode_answer(codec: Codec, body: bytes, record: str) -> tuple[str, str, Any]:
    interrupt_id, call_id, value = unpack(body, record, 3)
    with reading(record):
        return (*_ids(interrupt_id, call_id), codec.loads(value, "answer"))


def answered_id(body: bytes, record: str) -> str:
    """Return the id of the question that a record answers, without decoding the answer."""
    interrupt_id, call_id, _ = unpack(body, record, 3)
    with reading(record):
        return _ids(interrupt_id, call_id)[0]


def asked_ids(body: bytes, record: str) -> list[tuple[str, str]]:
    """Return the interrupt id and call id of each question that a pause asks, without decoding a value."""
    questions = unpack(body, record, 2, 3)[-2]
    with reading(record):
        return [_ids(interrupt_id, call_id) for interrupt_id, call_id, _ in questions]


def decode_attempt(body: bytes, record: str) -> tuple[str, int, int, int]:
    text, attempts, first_at, next_at = unpack(body, record, 4)
    expect(type(text) is str and all(type(number) is int for number in (attempts, first_at, next_at)), record)
    return text, attempts, first_at, next_at


def _ids(interrupt_id: Any, call_id: Any) -> tuple[str, str]:
    if type(interrupt_id) is not str or type(call_id) is not str:
        raise TypeError("an interrupt id and a call id are text")
    return interrupt_id, call_id
