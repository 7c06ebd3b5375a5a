"""What an edit, an answer at an older checkpoint, or a fork keeps of the superstep it leaves.

Records are carried as they are stored: a record names its task by column, its body names nobody, so the same bytes
stand under the new identity. Interrupt ids stay what they were: an id given to a user goes on working.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from stepwell.superstep import lifecycle
from stepwell.superstep.state import Base, Task

CARRIED = (
    lifecycle.SUCCEEDED,
    *lifecycle.PAUSES,
    *lifecycle.ANSWERS,
    lifecycle.ARRIVED,
    lifecycle.FAILED,
    lifecycle.CANCELLED,
    lifecycle.DISCARDED,
    lifecycle.STEP,
)


class Record(NamedTuple):
    """A record without its place: what it says, and of which task."""

    kind: str
    task_id: str
    body: bytes


def carry(old: Base, new: Base, records: Iterable[Record], stays: Callable[[Task, Task], bool]) -> list[Record]:
    """Return the records of the tasks that stay, under their new ids, in the old order.

    A task stays if the new base plans the same node at the same index and `stays` agrees.
    """
    places = {(task.node, task.index): task for task in new.tasks}
    moved: dict[str, str] = {}
    for task in old.tasks:
        successor = places.get((task.node, task.index))
        if successor is not None and stays(task, successor):
            moved[task.id] = successor.id
    return [r._replace(task_id=moved[r.task_id]) for r in records if r.task_id in moved and r.kind in CARRIED]


def abandoned(old: Base, new: Base, stays: Callable[[Task, Task], bool]) -> list[Task]:
    """Return the tasks of the old base that the new one does not go on with."""
    places = {(task.node, task.index): task for task in new.tasks}
    return [t for t in old.tasks if (s := places.get((t.node, t.index))) is None or not stays(t, s)]


def earlier_answers(records: Sequence[Record], task_id: str, asked: Callable[[Record], bool]) -> list[Record]:
    """Return the answers and signals a task had before it asked the question `asked` recognises."""
    kept: list[Record] = []
    for record in records:
        if record.task_id != task_id:
            continue
        if record.kind in lifecycle.PAUSES and asked(record):
            break
        if record.kind in (*lifecycle.ANSWERS, lifecycle.ARRIVED):
            kept.append(record)
    return kept
