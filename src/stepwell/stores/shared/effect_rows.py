"""The table of effects: each row is written if all rows under its key are still those that its writer saw.

A thread's own rows change under its own fence alone. Keys that other threads share (the scope "global", and copies)
are not fenced by it: there, whoever was faster wins, and the slower one is told which change was left out. Nothing here
is called where a write changes no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.store import Counts, EffectChange
from stepwell.stores.shared.statements import Statements


def put_effects(on: Statements, counts: Counts, thread_id: str, changes: Sequence[EffectChange]) -> tuple[bytes, ...]:
    """Write the rows whose keys are as seen; return the digests of the others."""
    _lock(on, changes)
    refused = []
    for row, seen in changes:
        if row.thread_id != thread_id:
            raise ValueError(f"a write to thread {thread_id!r} holds an effect of thread {row.thread_id!r}")
        if seen is not None and not _is_as_seen(on, counts, row.key, seen):
            refused.append(row.digest)
            continue
        counts.statements += 1
        counts.bytes += len(row.body)
        on.execute(on.query("put_effect"), row)
    return tuple(refused)


def are_as_seen(on: Statements, counts: Counts, changes: Sequence[EffectChange]) -> bool:
    """Tell whether the rows under every key are those that the writer saw."""
    _lock(on, changes)
    return all(seen is None or _is_as_seen(on, counts, row.key, seen) for row, seen in changes)


def _lock(on: Statements, changes: Sequence[EffectChange]) -> None:
    shared = [row.key for row, seen in changes if seen is not None]
    if shared:
        on.lock("effect", shared)


def _is_as_seen(on: Statements, counts: Counts, key: str, seen: tuple[bytes, ...]) -> bool:
    counts.statements += 1
    return tuple(digest for (digest,) in on.execute(on.query("effect_digests"), {"key": key}).fetchall()) == seen
