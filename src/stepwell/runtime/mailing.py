"""Messages to threads: signals, and completions of awakeables. What the sending side does; a run takes them elsewhere.

Sending needs neither the lease nor a run, and the thread need not have begun. A message is durable when the call
returns; nobody is woken by it.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from stepwell.clock import Clock
from stepwell.codec import Codec
from stepwell.errors import AwakeableCompletedError, InvalidWaitError, MessageConflictError
from stepwell.ids import Ids, is_holdable
from stepwell.runtime.blobs import reading_records
from stepwell.store import Message, MessageRow, Reader, Store
from stepwell.superstep import lifecycle
from stepwell.superstep.waiting import AWAKEABLE, SIGNAL, decode_arrived

DONE = "done"
FAILED = "failed"


def send_signal(
    store: Store, codec: Codec, clock: Clock, ids: Ids, thread_id: str, key: str, value: Any, id: str | None
) -> str:
    """Leave a signal in the thread's inbox; return its id."""
    if not isinstance(key, str) or not key or not is_holdable(key):
        raise InvalidWaitError(reason=f"a signal has a key, text that is not empty and without NUL, not {key!r}")
    if id is not None and (not isinstance(id, str) or not id or not is_holdable(id)):
        raise InvalidWaitError(reason=f"the id of a signal is text that is not empty and without NUL, not {id!r}")
    name = ids.new() if id is None else id
    message = Message(thread_id, f"{SIGNAL}/{name}", SIGNAL, key, codec.dumps(value, "signal"), clock.now())
    store.append(message)
    return name


def awakeable_id(digest: str, thread_id: str) -> str:
    """Return the id to hand out: what tells the awakeable apart, and the thread it belongs to."""
    return f"{digest}.{base64.urlsafe_b64encode(thread_id.encode()).decode().rstrip('=')}"


def thread_of(awakeable_id: str) -> str:
    """Return the thread that an awakeable belongs to. InvalidWaitError where the text is no awakeable's id."""
    _, dot, coded = awakeable_id.partition(".") if isinstance(awakeable_id, str) else ("", "", "")
    try:
        thread_id = base64.b64decode(coded + "=" * (-len(coded) % 4), b"-_", validate=True).decode()
        if dot and coded and is_holdable(awakeable_id) and is_holdable(thread_id):
            return thread_id
    except (binascii.Error, ValueError):
        pass
    raise InvalidWaitError(reason=f"{awakeable_id!r} is no id of an awakeable: take it from awakeable().id")


def complete(
    store: Store, codec: Codec, clock: Clock, thread_id: str, awakeable_id: str, done: tuple[str, Any]
) -> None:
    """Complete an awakeable; the same completion again changes nothing. AwakeableCompletedError for another one."""
    body = codec.dumps(done, "completion")
    message_id = f"{AWAKEABLE}/{awakeable_id}"
    try:
        store.append(Message(thread_id, message_id, AWAKEABLE, awakeable_id, body, clock.now()))
    except MessageConflictError:
        with store.reading() as reader:
            first = reader.message(thread_id, message_id)
            assert first is not None
            status, value = _said(reader, codec, first)
        raise AwakeableCompletedError(
            awakeable_id=awakeable_id,
            thread_id=thread_id,
            completed_at=datetime.fromtimestamp(first.created_at / 1e6, UTC),
            status=status,
            value=value,
        ) from None


def _said(reader: Reader, codec: Codec, first: MessageRow) -> Any:
    """Return what a completion said: from the inbox or, once it was delivered, from the record of that."""
    if not first.consumed_seq:
        return codec.loads(first.body, "completion")
    for row in reader.records_of_kind(first.thread_id, lifecycle.ARRIVED):
        if row.seq == first.consumed_seq:
            codec = reading_records(reader, codec, [row])
            return decode_arrived(codec, row.body, f"arrived {row.seq} of thread {row.thread_id}")[2].value
    return "done", None
