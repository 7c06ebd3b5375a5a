"""Whether something of a thread is still to come: an answer, a wait, a doubt to be settled, a message to be taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepwell.runtime.loading import row_name
from stepwell.store import EffectsQuery, Reader, RecordRow, ThreadRow
from stepwell.superstep import body as layout, lifecycle

_ENDS = (lifecycle.SUCCEEDED, lifecycle.FAILED, lifecycle.CANCELLED, lifecycle.DISCARDED)


def open_work(reader: Reader, thread: ThreadRow) -> str | None:
    """Return what is still to come of a thread, in a word; None where nothing is."""
    if thread.run_id:
        return "a run that has not ended"
    if thread.status in (lifecycle.PAUSED, lifecycle.WAITING):
        return f"it is {thread.status}"
    if reader.effects(EffectsQuery(thread.thread_id, in_doubt=True, limit=1)):
        return "an effect in doubt"
    if reader.inbox(thread.thread_id):
        return "a message in its inbox"
    if any(_asks(reader.records(thread.thread_id, row.head_seq)) for row in reader.lineages(thread.thread_id)):
        return "an open question"
    return None


def _asks(records: Sequence[RecordRow]) -> bool:
    """Tell whether a task of this checkpoint has paused and has not gone on since."""
    last = {row.task_id: row.kind for row in records if row.kind in (*_ENDS, *lifecycle.PAUSES)}
    return not set(last.values()).isdisjoint(lifecycle.PAUSES)


def unanswered(reader: Reader, thread_id: str) -> Iterator[int]:
    """Yield the checkpoints on which something was asked that nobody has answered, anywhere in the thread."""
    answered = {
        layout.answered_id(row.body, row_name(row))
        for kind in lifecycle.ANSWERS
        for row in reader.records_of_kind(thread_id, kind)
    }
    for kind in lifecycle.PAUSES:
        for row in reader.records_of_kind(thread_id, kind):
            asked = layout.asked_ids(row.body, row_name(row))
            if any(interrupt_id not in answered for interrupt_id, _ in asked):
                yield row.base_seq
