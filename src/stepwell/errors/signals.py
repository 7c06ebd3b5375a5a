"""What is told by raising or warning and is no error: a pause, and what a run says beside its result."""

from __future__ import annotations

from typing import Any, ClassVar


class GraphInterrupt(BaseException):
    """Raised by `interrupt()` to leave the node. Not an `Exception`: `except Exception` does not catch a pause.

    Catching it anyway changes nothing: the node is interrupted all the same.
    """

    code: ClassVar[str] = "graph_interrupt"

    def __init__(self, interrupts: Any = ()) -> None:
        super().__init__(interrupts)
        self.interrupts = tuple(interrupts) if isinstance(interrupts, list | tuple) else (interrupts,)


class AnswerNotUsedWarning(UserWarning):
    """An answer was given to a thread that has work left and asks nothing: the run goes on without it."""


class JoinNotReleasedWarning(UserWarning):
    """A run finished while a join had seen some of its sources and not the others: what follows the join never ran."""
