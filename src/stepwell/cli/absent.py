"""What is said where a thread, a checkpoint or a run is not there: which ones are, and what lists them.

Not here: what an error costs (`exit_status.py`). The rule: a name is never guessed, only suggested.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from stepwell.errors import UnknownCheckpointError, UnknownRunError, UnknownThreadError
from stepwell.store import Reader, ThreadsQuery

LOOKED_THROUGH = 500
"""Threads, those changed last, among which a similar id is looked for."""
NAMED = 3


def unknown_thread(reader: Reader, thread_id: str) -> UnknownThreadError:
    """Return the error that says which threads there are."""
    known = [row.thread_id for row in reader.threads(ThreadsQuery(limit=LOOKED_THROUGH))]
    near = get_close_matches(thread_id, known, NAMED)
    if near:
        hint = f"Did you mean {_either(near)}? `threads` lists them all."
    elif known:
        rest = ", ..." if len(known) > NAMED else ""
        hint = f"There are {', '.join(map(repr, known[:NAMED]))}{rest}; `threads` lists them all."
    else:
        hint = "The database has none; `run` begins one."
    return UnknownThreadError(f"There is no thread {thread_id!r}. {hint}", thread_id=thread_id)


def unknown_checkpoint(reader: Reader, thread_id: str, checkpoint_id: str) -> UnknownCheckpointError:
    """Return the error that says where the thread's checkpoints are listed."""
    newest = reader.newest(thread_id, "")
    hint = "It has none yet" if newest is None else f"Its newest is {newest.checkpoint_id}"
    text = f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. {hint}; `history` lists them."
    return UnknownCheckpointError(text, thread_id=thread_id, checkpoint_id=checkpoint_id)


def unknown_run(run_id: str, thread_id: str | None = None) -> UnknownRunError:
    """Return the error that says what lists runs; with a thread, that it has no such run."""
    if thread_id is not None:
        text = f"Thread {thread_id!r} has no run {run_id!r}. `runs {thread_id}` lists them."
        return UnknownRunError(text, run_id=run_id, thread_id=thread_id)
    return UnknownRunError(f"There is no run {run_id!r}. `runs` lists those of a thread.", run_id=run_id)


def _either(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))
