"""Checkpoints in LangGraph's shape: what `get_tuple` and `list` return.

Values are read by the codec of the graph that wrote them, where that graph was compiled with this saver in this
process; else by the types that are registered for all graphs. Nothing here writes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError
from stepwell.ids import TaskIds
from stepwell.runtime.config import RunConfig
from stepwell.runtime.holders import Known
from stepwell.runtime.loading import decode_pause, row_name
from stepwell.runtime.reading.history import Walk
from stepwell.runtime.reading.page import Page
from stepwell.runtime.reading.paging import Paged
from stepwell.runtime.reading.snapshot import config_at, config_of, created_at_of, metadata_of
from stepwell.runtime.stream.payloads import as_interrupt, as_waiting
from stepwell.savers.threads import cursor_of, list_threads
from stepwell.store import CheckpointRow, RecordRow, Store
from stepwell.superstep import body as layout, lifecycle

_log = logging.getLogger("stepwell.saver")

Config = Mapping[str, Any]
"""Graph id → the codec of that graph."""


class Checkpoint(TypedDict):
    """A checkpoint as LangGraph's savers give it."""

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: dict[str, int]
    """Channel → seq of the checkpoint that last wrote it."""
    versions_seen: dict[str, dict[str, int]]
    """Empty: what has run is told by `next` and by the tasks of `get_state`."""
    updated_channels: list[str]


class CheckpointTuple(NamedTuple):
    """A checkpoint with its address, and what is recorded on it."""

    config: dict[str, Any]
    checkpoint: Checkpoint
    metadata: dict[str, Any]
    parent_config: dict[str, Any] | None = None
    pending_writes: list[tuple[str, str, Any]] | None = None
    """(task id, channel, value): what tasks wrote, errors, questions and answers."""


class Tuples:
    """Makes tuples of checkpoints, with what is known of graphs."""

    def __init__(self, known: Mapping[str, Known], other: Known) -> None:
        self._known, self._other = known, other

    def read(self, store: Store, address: RunConfig) -> CheckpointTuple | None:
        """Return a checkpoint, or the newest one of a thread; None where there is none."""
        thread_id, wanted = address.thread_id or "", address.checkpoint_id
        with store.reading() as reader:
            if wanted is None:
                row = reader.newest(thread_id, address.namespace)
            else:
                row = reader.checkpoint(thread_id, address.namespace, wanted)
            return None if row is None else self.shown(Page(reader, [row]), row)

    def shown(self, page: Page, row: CheckpointRow) -> CheckpointTuple:
        """Return a checkpoint of a page."""
        codec, rules = self._known.get(row.graph_id, self._other)
        opened = page.opened(row)
        checkpoint = Checkpoint(
            v=4,
            id=row.checkpoint_id,
            ts=created_at_of(row),
            channel_values=page.every_value(codec, row, rules),
            channel_versions=layout.holds_of(opened, row.seq),
            versions_seen={},
            updated_channels=sorted(key for key, entry in opened.channels.items() if entry[0] != layout.DISTANCE),
        )
        parent = "" if row.parent_seq is None else page.ids[row.parent_seq]
        parent_config = config_at(row.thread_id, row.namespace, parent) if parent else None
        return CheckpointTuple(config_of(row), checkpoint, metadata_of(row), parent_config, _pending(page, codec, row))


def _pending(page: Page, codec: Codec, row: CheckpointRow) -> list[tuple[str, str, Any]]:
    """Return what is recorded on a checkpoint, task by task, and what its superstep came to."""
    ids = TaskIds(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
    merged = page.merged_writes(codec, row)
    outcomes: dict[str, list[tuple[str, Any]]] = {}
    answers: dict[str, list[Any]] = {}
    reading = page.reading(codec)
    for record in page.records.get(row.seq, ()):
        if record.kind in lifecycle.ANSWERS:
            answers.setdefault(record.task_id, []).append(
                layout.decode_answer(reading, record.body, row_name(record))[2]
            )
        elif record.kind in (lifecycle.SUCCEEDED, lifecycle.FAILED, lifecycle.CANCELLED, *lifecycle.PAUSES):
            outcomes[record.task_id] = _recorded(reading, record)
    for node, index, *_ in page.opened(row).next:  # what the superstep came to, whatever was recorded on the way
        if (node, index) in merged:
            outcomes[ids.of(node, index)] = list(merged[node, index]) or [("__no_writes__", None)]
    written = [(task_id, key, value) for task_id, writes in outcomes.items() for key, value in writes]
    return written + [(task_id, "__resume__", values) for task_id, values in answers.items()]


def _recorded(codec: Codec, record: RecordRow) -> list[tuple[str, Any]]:
    name = row_name(record)
    if record.kind == lifecycle.SUCCEEDED:
        return list(layout.decode_succeeded(codec, record.body, name).writes) or [("__no_writes__", None)]
    if record.kind in lifecycle.PAUSES:
        outcome = decode_pause(codec, record.kind, record.body, name)
        waiting = [("__waiting__", tuple(map(as_waiting, outcome.awaited)))] if outcome.awaited else []
        asked = tuple(map(as_interrupt, outcome.questions))
        return [*([("__interrupt__", asked)] if asked or not waiting else []), *waiting]
    return [("__error__", layout.decode_failed(codec, record.body, name).text)]


def list_tuples(
    store: Store,
    tuples: Tuples,
    address: RunConfig | None,
    filter: Mapping[str, Any] | None,
    before: RunConfig | None,
    limit: int | None,
) -> Paged[CheckpointTuple]:
    """Return the checkpoints of a thread, newest first, or those of all threads, thread by thread."""
    if address is not None:
        return Paged(Walk(store, address, tuples.shown, filter=filter, before=before).turn, limit)
    return Paged(_Across(store, tuples, filter, before).turn, limit)


class _Across:
    """Where in the checkpoints of all threads their reader stands."""

    def __init__(
        self, store: Store, tuples: Tuples, filter: Mapping[str, Any] | None, before: RunConfig | None
    ) -> None:
        self._store, self._tuples, self._filter = store, tuples, filter
        self._walk: Walk[CheckpointTuple] | None = None
        cursor = None
        if before is not None:
            here = RunConfig(thread_id=before.thread_id, namespace=before.namespace)
            self._walk = Walk(store, here, tuples.shown, filter=filter, before=before)
            with store.reading() as reader:
                row = reader.thread(before.thread_id or "")
            cursor = None if row is None else cursor_of(row)
        self._threads = list_threads(store, None, None, cursor, None)
        self._damaged: list[CorruptRecordError] = []

    def turn(self, size: int) -> tuple[Sequence[CheckpointTuple], Any]:
        """Read on from thread to thread until a page is full. What is damaged hides nothing behind it, and is raised
        where nothing else is left."""
        found: list[CheckpointTuple] = []
        while len(found) < size:
            if self._walk is None:
                summary = next(self._threads, None)
                if summary is None:
                    return self._ended(found)
                here = RunConfig(thread_id=summary.thread_id)
                self._walk = Walk(self._store, here, self._tuples.shown, filter=self._filter)
            try:
                shown, more = self._walk.turn(size - len(found))
            except CorruptRecordError as error:
                _log.warning("%s Its thread is left out of the list from here on.", error)
                self._damaged.append(error)
                shown, more = [], None
            found += shown
            if more is None:
                self._walk = None
        return found, found[-1].config if found else None

    def _ended(self, found: Sequence[CheckpointTuple]) -> tuple[Sequence[CheckpointTuple], Any]:
        if not self._damaged:
            return found, None
        if found:  # those first
            return found, found[-1].config
        first, *others = self._damaged
        first.add_note("Everything else is listed.")
        for other in others:
            first.add_note(f"Left out as well: {other}")
        raise first
