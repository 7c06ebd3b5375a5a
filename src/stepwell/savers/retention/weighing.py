"""What threads weigh: bytes by table and by channel, in one pass over their rows. No value is decoded.

The bytes are those of the columns as they are stored, without what the database adds around rows and for its indexes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.errors import CorruptRecordError, UnknownThreadError
from stepwell.runtime.reading.paging import checked_limit
from stepwell.savers.retention.moving import COLUMNS
from stepwell.savers.threads import list_threads
from stepwell.store import Reader, Store, StoreSize, is_encrypted
from stepwell.superstep import body as layout
from stepwell.superstep.blobs import BlobRef
from stepwell.superstep.sizes import Weight, channel_sizes, record_sizes

LEAST_SUPERSTEPS = 4
"""Before so many, nothing is said to grow."""
LEAST_RISES = 3
"""What takes more than ever before less often than that, nothing is said of either."""


class ChannelWeight(NamedTuple):
    """What one channel takes, over all checkpoints and records of a thread."""

    channel: str
    bytes: int
    per_checkpoint: float
    """Bytes of it that a checkpoint holds, on average."""
    growth: float
    """How many bytes more of it each checkpoint holds than the one before it, on average."""
    rises: int = 0
    """How often a checkpoint held more of it than any before."""


@dataclass(frozen=True, slots=True)
class ThreadWeight:
    """What one thread takes."""

    thread_id: str
    bytes: int
    checkpoints: int
    held: int
    """Checkpoints that are listed nowhere, and there because others need them."""
    records: int
    tables: dict[str, int]
    """Table → bytes."""
    channels: tuple[ChannelWeight, ...]
    """The heaviest first. Empty where the bodies are encrypted and no key is at hand."""

    @property
    def grows(self) -> str | None:
        """The channel that weighs more with every checkpoint; None where none does."""
        if self.checkpoints < LEAST_SUPERSTEPS:
            return None
        growing = [each for each in self.channels if self._is_growing(each)]
        return max(growing, key=lambda each: each.growth).channel if growing else None

    def _is_growing(self, channel: ChannelWeight) -> bool:
        """Tell growth from what was written once, however late: that rises once."""
        steep = channel.growth * (self.checkpoints - 1) >= channel.per_checkpoint > 0
        return steep and channel.rises >= LEAST_RISES


@dataclass(frozen=True, slots=True)
class Stats:
    """What a database takes."""

    size: StoreSize
    threads: tuple[ThreadWeight, ...]
    """The heaviest first."""
    unread: dict[str, str]
    """Threads that could not be weighed, with the reason."""


def weigh(store: Store, thread_id: str | None, limit: int | None) -> Stats:
    """Weigh one thread, or all of them, of which the heaviest `limit` are returned."""
    checked_limit(limit)
    weighed: list[ThreadWeight] = []
    unread: dict[str, str] = {}
    for each in [thread_id] if thread_id is not None else _all(store):
        try:
            with store.reading() as reader:
                weighed.append(_weigh(reader, each))
        except CorruptRecordError as error:
            if thread_id is not None:
                raise
            unread[each] = str(error)
        except UnknownThreadError:
            if thread_id is not None:
                raise
        if limit is not None and len(weighed) > 2 * limit:
            weighed = _heaviest(weighed, limit)
    return Stats(store.size(), tuple(_heaviest(weighed, limit)), unread)


def _all(store: Store) -> Iterator[str]:
    return (summary.thread_id for summary in list_threads(store, None, None, None, None))


def _heaviest(weighed: list[ThreadWeight], limit: int | None) -> list[ThreadWeight]:
    return sorted(weighed, key=lambda each: each.bytes, reverse=True)[:limit]


class _Line:
    """How one channel's bytes go from checkpoint to checkpoint: sums for a straight line through them."""

    def __init__(self) -> None:
        self.bytes, self.weighted, self.most, self.rises = 0, 0, 0, 0

    def add(self, at: int, size: int) -> None:
        self.bytes += size
        self.weighted += at * size
        if size > self.most:
            self.most, self.rises = size, self.rises + 1

    def growth(self, points: int) -> float:
        """Return the slope of the line of least squares over checkpoints 0 to `points` - 1."""
        if points < 2:
            return 0.0
        mean = (points - 1) / 2
        return (self.weighted - mean * self.bytes) / (points * (points * points - 1) / 12)


def _weigh(reader: Reader, thread_id: str) -> ThreadWeight:
    if reader.thread(thread_id) is None:
        raise UnknownThreadError(thread_id=thread_id)
    tables: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    lines: dict[str, _Line] = {}
    apart: dict[bytes, int] = {}

    def weight(data: Any) -> int:
        """Weigh a value; one that is stored apart where it is first referred to."""
        return apart.pop(data.name, 0) if isinstance(data, BlobRef) else len(data)

    for name, columns in reader.stored(thread_id):
        if name == "shapes":
            continue  # all threads share them
        if name == "blobs":
            apart[columns[1]] = len(columns[2])
        tables[name] += sum(map(_bytes, columns))
        for channel, size in _channels(name, columns, weight).items():
            lines.setdefault(channel, _Line()).add(rows["checkpoints"], size)
        rows[name] += 1
    points = rows["checkpoints"]
    channels = [
        ChannelWeight(channel, line.bytes, line.bytes / max(points, 1), line.growth(points), line.rises)
        for channel, line in lines.items()
    ]
    held = sum(row.held for row in reader.anchors(thread_id))
    return ThreadWeight(
        thread_id,
        tables.total(),
        points,
        held,
        rows["records"],
        dict(tables),
        tuple(sorted(channels, key=lambda each: each.bytes, reverse=True)),
    )


_BODY = {name: COLUMNS[name].index("body") for name in ("checkpoints", "records")}
_KIND = COLUMNS["records"].index("kind")


def _channels(name: str, columns: tuple[Any, ...], weight: Weight) -> Counter[str]:
    if name not in _BODY or is_encrypted(columns[_BODY[name]]):
        return Counter()
    body = columns[_BODY[name]]
    with layout.reading(f"a row of {name}"):
        if name == "records":
            return record_sizes(columns[_KIND], body, weight)
        return channel_sizes(layout.open_checkpoint(body, "a checkpoint"), weight)


def _bytes(value: Any) -> int:
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode()) if isinstance(value, str) else 8
