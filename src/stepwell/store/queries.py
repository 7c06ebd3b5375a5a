"""What a reader is asked for, where it takes more than an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which checkpoints to list, newest first by seq."""

    thread_id: str
    namespace: str = ""
    before_seq: int | None = None
    """List only what is older than this seq."""
    since_seq: int | None = None
    """List nothing older than this seq."""
    line_from: int | None = None
    """List this checkpoint and its ancestors, parent by parent, instead of the whole thread."""
    limit: int | None = None
    filter: Mapping[str, Any] | None = None
    """Equality on `source`, `step`, `run_id`, `lineage` or a top-level key of the metadata. Keys and values are
    bound, never interpolated."""


@dataclass(frozen=True, slots=True)
class ThreadsQuery:
    """Which threads to list, last changed first and, of one moment, by id."""

    statuses: Sequence[str] | None = None
    """As stored: a thread whose process died is still "running" there."""
    filter: Mapping[str, Any] | None = None
    """As that of `HistoryQuery`, on the newest checkpoint of the root namespace."""
    before: tuple[int, str] | None = None
    """`updated_at` and id of the thread to list on from."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class EffectsQuery:
    """Which effects to list, by thread, seq and key."""

    thread_id: str | None = None
    """None: of all threads."""
    in_doubt: bool = False
    """Only intents and doubts. Whether an intent is running, its thread's row says: see `EffectRow.epoch`."""
    after: tuple[str, int, str] | None = None
    """Thread, seq and key of the effect behind which to list."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class JournalQuery:
    """Which records of steps, effects and waits to list, newest first by seq."""

    thread_id: str
    before_seq: int | None = None
    """List only what is older than this seq."""
    base_seq: int | None = None
    """List only what stands on this checkpoint."""
    line: Sequence[tuple[int, int]] | None = None
    """List only what these lineages hold, each up to a seq."""
    limit: int | None = None


class CheckpointOutline(NamedTuple):
    """A checkpoint without its body."""

    seq: int
    namespace: str
    lineage: int
    parent_seq: int | None
    created_at: int
    run_id: str
    parent_digest: bytes
    digest: bytes


class RecordOutline(NamedTuple):
    """A record without its body."""

    seq: int
    base_seq: int
    kind: str
    run_id: str
