"""Messages to threads: appended by anybody, consumed by the thread's holder inside its own fenced transaction.

A message that was consumed keeps its id and the digest of its content: sent again, it is known. Order is an ordinal
read under the write lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.errors import MessageConflictError
from stepwell.store import PRUNED, Consumed, Counts, Message, MessageRow, content_digest, digest_of
from stepwell.stores.shared.keys import put_key
from stepwell.stores.shared.rows import INBOX
from stepwell.stores.shared.statements import Statements


def append(on: Statements, counts: Counts, message: Message) -> MessageRow:
    """Insert a message; return it, or the one that is there already if it is the same."""
    thread_id, message_id = message.thread_id, message.message_id
    if message.data_key is not None:
        put_key(on, counts, message.data_key)
    content = message.content or content_digest(message.kind, message.key, message.body)
    on.lock("inbox", (thread_id,))
    known = _find(on, counts, thread_id, message_id)
    if known is not None:
        if known.content != content:
            raise MessageConflictError(thread_id=thread_id, message_id=message_id, key=known.key)
        return known
    counts.statements += 2
    counts.bytes += len(message.body)
    [(last,)] = on.execute(on.query("last_message"), {"thread_id": thread_id}).fetchall()
    columns = (thread_id, message_id, (last or 0) + 1, message.kind, message.key, message.now, content, 0, message.body)
    row = _sealed(columns)
    on.execute(on.query("insert_message"), row)
    return row


def consume(on: Statements, counts: Counts, thread_id: str, consumed: Sequence[Consumed]) -> None:
    """Mark these messages as done with, each by the record that says what came of it."""
    for message_id, seq in consumed:
        row = _find(on, counts, thread_id, message_id)
        if row is None or row.consumed_seq:
            raise ValueError(f"message {message_id!r} to thread {thread_id!r} does not wait to be consumed")
        row = _sealed(row._replace(consumed_seq=seq, body=b"")[:-1])
        counts.statements += 1
        on.execute(on.query("consume_message"), row._asdict())


def forget_records(on: Statements, counts: Counts, thread_id: str) -> None:
    """Note of each message whose record was pruned that it was consumed by one that is there no more."""
    counts.statements += 1
    for found in on.execute(on.query("forgotten_messages"), {"thread_id": thread_id}).fetchall():
        row = _sealed(INBOX.verified(found)._replace(consumed_seq=PRUNED)[:-1])
        counts.statements += 1
        on.execute(on.query("consume_message"), row._asdict())


def _find(on: Statements, counts: Counts, thread_id: str, message_id: str) -> MessageRow | None:
    counts.statements += 1
    found = on.execute(on.query("message"), {"thread_id": thread_id, "message_id": message_id}).fetchall()
    return INBOX.verified(found[0]) if found else None


def _sealed(columns: Sequence[Any]) -> MessageRow:
    return MessageRow._make((*columns, digest_of("message", columns)))
