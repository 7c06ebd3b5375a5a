"""A checkpoint read raw: whatever is wrong with it, what can be read is shown and what cannot is said.

For looking, and for deciding how to go on. What was read raw is never gone on with: an edit or a fork reads the rows it
stands on once more, and strictly where it uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError, UnknownCheckpointError, UnknownThreadError
from stepwell.runtime.config import RunConfig
from stepwell.runtime.holders import Holders, Known, stands_apart
from stepwell.runtime.reading.snapshot import config_at
from stepwell.runtime.reading.unreadable import LenientCodec, Unreadable
from stepwell.store import RawRow, Reader, Store
from stepwell.superstep import body as layout
from stepwell.superstep.blobs import names_of


@dataclass(frozen=True, slots=True)
class RawChannel:
    """A channel of a checkpoint that is read raw."""

    value: Any
    """The value; None where it cannot be read."""
    data: bytes | None
    """The bytes that are stored for it, None where even they are missing, or stand in several rows."""
    fault: str | None
    """Why the value cannot be read."""


@dataclass(frozen=True, slots=True)
class RawCheckpoint:
    """A checkpoint as it stands in the database, verified or not."""

    config: Mapping[str, Any]
    parent_config: Mapping[str, Any] | None
    """The checkpoint before it: what to fork from, to leave this one behind. None where there is none."""
    fault: str | None
    """Why the row itself is not to be trusted; None where it verifies."""
    channels: Mapping[str, RawChannel]
    """Every channel that its body names; empty where the body cannot be opened."""
    next: tuple[str, ...]
    """The nodes that its body plans."""
    columns: Mapping[str, Any]
    """The row, column by column."""

    @property
    def values(self) -> dict[str, Any]:
        """The values that can be read."""
        return {name: channel.value for name, channel in self.channels.items() if channel.fault is None}

    @property
    def faults(self) -> dict[str, str]:
        """What is wrong: with the row (""), and with each channel that cannot be read."""
        found = {name: channel.fault for name, channel in self.channels.items() if channel.fault is not None}
        return found if self.fault is None else {"": self.fault, **found}


def read_raw(store: Store, known: Mapping[str, Known], other: Known, address: RunConfig) -> RawCheckpoint:
    """Return the checkpoint that an address names, or the newest one of a thread."""
    thread_id, namespace, wanted = address.thread_id or "", address.namespace, address.checkpoint_id
    with store.reading() as reader:
        if wanted is None:
            seq = reader.newest_seq(thread_id, namespace)
            if seq is None:
                raise UnknownThreadError(thread_id=thread_id)
        else:
            seq = reader.seq_of(thread_id, namespace, wanted)
            if seq is None:
                raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=wanted)
        raw = reader.raw_checkpoint(thread_id, seq)
        assert raw is not None
        graph = known.get(str(raw.columns["graph_id"]), other)
        return _shown(reader, thread_id, namespace, seq, raw, graph._replace(codec=LenientCodec(graph.codec)))


def _shown(reader: Reader, thread_id: str, namespace: str, seq: int, raw: RawRow, graph: Known) -> RawCheckpoint:
    columns, fault, _ = raw
    parent = columns["parent_seq"]
    opened, problem = _opened(raw)
    return RawCheckpoint(
        config=config_at(thread_id, namespace, str(columns["checkpoint_id"])),
        parent_config=_parent_config(reader, thread_id, namespace, parent),
        fault=fault or problem,
        channels={} if opened is None else _channels(reader, thread_id, seq, opened, graph),
        next=() if opened is None else tuple(str(entry[0]) for entry in opened.next if isinstance(entry, list)),
        columns=columns,
    )


def _parent_config(reader: Reader, thread_id: str, namespace: str, parent: Any) -> dict[str, Any] | None:
    if not isinstance(parent, int):
        return None
    try:
        found = reader.id_of(thread_id, parent)
    except CorruptRecordError:
        return None
    return config_at(thread_id, namespace, found) if found else None


def _opened(raw: RawRow | None) -> tuple[layout.Opened | None, str | None]:
    """Return the body's parts, or why there are none."""
    if raw is None:
        return None, "the row is missing"
    body = raw.columns["body"]
    if body is None:
        return None, "its body is of another type"
    try:
        return layout.open_checkpoint(body, "the checkpoint"), None
    except CorruptRecordError as error:
        return None, str(error.fields()["reason"])


def _channels(reader: Reader, thread_id: str, seq: int, opened: layout.Opened, graph: Known) -> dict[str, RawChannel]:
    holders: dict[int, tuple[layout.Opened | None, str | None]] = {seq: (opened, None)}
    whole = Holders(thread_id, ())
    whole.know(seq, opened)
    found = {}
    for name, (kind, payload) in opened.channels.items():
        held = seq - payload if kind == layout.DISTANCE and isinstance(payload, int) else seq
        if held not in holders:
            holders[held] = _opened(reader.raw_checkpoint(thread_id, held))
        holder, problem = holders[held]
        if holder is not None and (stands_apart(holder, name) or names_of([holder.channels[name], holder.outcomes])):
            whole.know(held, holder)
            found[name] = _gathered(reader, whole, name, held, graph)
        else:
            found[name] = _channel(name, holder, problem, graph.codec)
    return found


def _gathered(reader: Reader, holders: Holders, name: str, seq: int, graph: Known) -> RawChannel:
    """Return a channel whose value stands in several rows, all of which must be sound."""
    try:
        with layout.reading("the checkpoint"):
            holders.gather(reader, [(name, seq)])
            value = holders.value(graph.codec, name, seq, graph.rules)
    except CorruptRecordError as error:
        return RawChannel(None, None, str(error))
    return RawChannel(None, None, str(value.error)) if isinstance(value, Unreadable) else RawChannel(value, None, None)


def _channel(name: str, holder: layout.Opened | None, problem: str | None, codec: Codec) -> RawChannel:
    if holder is None:
        return RawChannel(None, None, f"the checkpoint that holds it cannot be opened: {problem}")
    try:
        data = layout.value_bytes(holder, name, "the checkpoint")
    except (CorruptRecordError, LookupError, TypeError) as error:
        return RawChannel(None, None, f"its place in the body is damaged: {error}")
    value = codec.loads(data, name)
    if isinstance(value, Unreadable):
        return RawChannel(None, data, str(value.error))
    return RawChannel(value, data, None)
