"""The rows in which the values of checkpoints stand, and the values out of them: whole, or folded along a chain.

A channel's value lies in the row that last wrote it; distances say which. Where that row holds only what was written,
the rows of its chain are needed too, all of which it names; they are fetched at once, for all channels. The rule: what
was recorded decides how a value is folded, never the channel as it is declared now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError, UnknownReducerError
from stepwell.graph.deltas import BUILT_IN, DeltaRule
from stepwell.plan.tables import Plan
from stepwell.runtime.blobs import BlobCodec, fetched
from stepwell.runtime.reading.unreadable import LenientCodec, Unreadable
from stepwell.store import CheckpointRow, Reader, RecordRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.blobs import may_refer, names_in, names_of

Place = tuple[str, int]
"""A channel, and the seq of a row that says something of it."""


Rules = Mapping[str, DeltaRule]
"""How recorded deltas are folded, by the name they are recorded under."""

NO_RULES: Rules = MappingProxyType({})


class Known(NamedTuple):
    """What reading needs to know of the graph that wrote a row."""

    codec: Codec
    rules: Rules = NO_RULES


def row_name(row: CheckpointRow | RecordRow) -> str:
    """Return how errors name a row."""
    kind = "checkpoint" if isinstance(row, CheckpointRow) else row.kind
    return f"{kind} {row.seq} of thread {row.thread_id}"


class Holders:
    """Rows of one thread by seq, each opened when it is first asked for."""

    __slots__ = ("_decoded", "_folds", "_opened", "_reading", "_several", "blobs", "records", "rows", "thread_id")

    def __init__(self, thread_id: str, rows: Iterable[CheckpointRow]) -> None:
        self.thread_id = thread_id
        self._opened: dict[int, layout.Opened] = {}
        self._decoded: dict[Place, list[Any]] = {}
        self._folds: dict[Place, Any] = {}
        self.rows = {row.seq: row for row in rows}
        self._several = len(self.rows) > 1
        self._reading: tuple[Codec, Codec] | None = None
        self.records: dict[int, RecordRow] = {}
        """By seq: those that values were looked for in."""
        self.blobs: dict[bytes, bytes | None] = {}
        """What rows refer to, by name; None where it is missing."""

    def __getitem__(self, seq: int) -> layout.Opened:
        found = self._opened.get(seq)
        if found is None:
            row = self.rows.get(seq)
            if row is None:
                name = f"checkpoint {seq} of thread {self.thread_id}"
                raise CorruptRecordError(record=name, reason="a later one refers to it and its parent does not")
            found = self._opened[seq] = _opened(row)
        return found

    def know(self, seq: int, opened: layout.Opened) -> None:
        """Take a body that is open already."""
        self._opened[seq] = opened

    # -- fetching ----------------------------------------------------------------------------------------------------

    def gather_all(self, reader: Reader, seqs: Iterable[int]) -> None:
        """Fetch all that the values of these checkpoints, which are here, need."""
        self.gather(reader, ((key, held) for seq in seqs for key, held in layout.holds_of(self[seq], seq).items()))

    def gather(self, reader: Reader, held: Iterable[Place]) -> None:
        """Fetch all that these channels need, each held by the row at this seq."""
        places = set(held)
        self._fetch(reader, places)
        if apart := {(key, seq) for key, seq in places if stands_apart(self[seq], key)}:
            places |= self._gather_chains(reader, apart)
        found = {name for key, seq in self._referring(places) for name in names_of([*self._stored(key, seq)])}
        self.fetch_blobs(reader, found)

    def _gather_chains(self, reader: Reader, apart: set[Place]) -> set[Place]:
        """Fetch the rows and records that these channels are put together of; return where the rest of them stands."""
        chained = {(key, row) for key, seq in apart for row in self._chain(key, seq)}
        self._fetch(reader, chained)
        needed = set[int]().union(*(layout.records_of(self[seq], key) for key, seq in apart | chained))
        for row in reader.records_at(self.thread_id, sorted(needed)) if needed else ():
            self.records[row.seq] = row
        return chained

    def _referring(self, places: set[Place]) -> Iterable[Place]:
        """Return the places whose values may refer to others: no body is looked through that cannot."""
        if may_refer(record.body for record in self.records.values()):
            return places
        plain = {seq for seq, row in self.rows.items() if not may_refer((row.body,))}
        return [place for place in places if place[1] not in plain]

    def fetch_blobs(self, reader: Reader, names: set[bytes]) -> None:
        """Fetch the values of these names that are not here yet."""
        if names:
            self.blobs.update(fetched(reader, self.thread_id, names - self.blobs.keys()))

    def fetch_referred(self, reader: Reader, seq: int, records: Iterable[RecordRow]) -> None:
        """Fetch what the plan of a checkpoint, and records, refer to."""
        read = [row.body for row in records if row.kind not in lifecycle.EFFECT_KINDS]  # a call reads what it needs
        self.fetch_blobs(reader, names_of(self[seq].next).union(*map(names_in, read)))

    def reading(self, codec: Codec) -> Codec:
        """Return a codec that reads these rows, with what they refer to."""
        if not self.blobs:
            return codec
        if self._reading is None or self._reading[0] is not codec:
            self._reading = codec, BlobCodec(codec, self.blobs, self.thread_id)
        return self._reading[1]

    def _stored(self, key: str, seq: int) -> Iterable[layout.Part]:
        """Return what a channel's value is read from in the row at `seq`."""
        delta = self[seq].channels[key][0] == layout.DELTA
        return self._parts(key, seq) if delta else (self.data(key, seq),)

    def _fetch(self, reader: Reader, places: Iterable[Place]) -> None:
        absent = {seq for _, seq in places} - self.rows.keys() - self._opened.keys()
        for row in reader.checkpoints(self.thread_id, sorted(absent)) if absent else ():
            self.rows[row.seq] = row

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, codec: Codec, key: str, seq: int, rules: Rules = NO_RULES) -> Any:
        """Return the value of a channel that the row at `seq` holds, or holds the last writes of. `rules` are those
        that are not built in."""
        opened = self[seq]
        kind, payload = opened.channels[key]
        if kind == layout.FULL and type(payload) is bytes:
            return codec.loads(payload, key)
        if kind != layout.DELTA:
            return self.reading(codec).loads(self.data(key, seq), key)
        return self._folded(codec, key, seq, rules)

    def data(self, key: str, seq: int) -> layout.Stored:
        """Return the bytes of a value that stands whole in the row at `seq`, or in a record of its superstep."""
        opened, name = self[seq], self._name(seq)
        kind, payload = opened.channels[key]
        if kind == layout.POINTER and payload[1] is None:
            return self._sole_write(key, int(opened.outcomes[payload[0]][3]), name)
        return layout.value_bytes(opened, key, name)

    def chains(self, holds: Mapping[str, int], plan: Plan) -> dict[str, layout.Chain]:
        """Return the chains that go on, of the channels that these rows hold."""
        found = {key: self._chain_of(key, holds[key]) for key in plan.deltas if key in holds}
        return {key: chain for key, chain in found.items() if chain is not None}

    def _chain_of(self, key: str, seq: int) -> layout.Chain | None:
        kind, payload = self[seq].channels[key]
        if kind == layout.SNAPSHOT:
            return layout.begun(payload[0], payload[1], seq)
        if kind != layout.DELTA:
            return None
        *deltas, snapshot = rows = [seq, *self._chain(key, seq)]
        last = self._delta(key, seq)
        links = tuple(self._link(key, row) for row in deltas)
        return layout.Chain(self._rule_of(key, rows), last.number, last.weight, last.due, snapshot, links)

    def _link(self, key: str, seq: int) -> layout.Link:
        delta = self._delta(key, seq)
        return layout.Link(seq, layout.level_of(delta.number), [*delta.parts], [*self._own(key, seq)])

    def _folded(self, codec: Codec, key: str, seq: int, rules: Rules) -> Any:
        *deltas, snapshot = rows = [seq, *self._chain(key, seq)]
        name, reading = self._rule_of(key, rows), self.reading(codec)
        rule = BUILT_IN.get(name)
        if rule is not None and self._several:
            return self._shared(reading, key, rows, rule)
        whole = reading.loads(self.data(key, snapshot), key)
        writes = [write for row in reversed(deltas) for write in self._writes(reading, key, row)]
        for part in (whole, *writes):
            if type(part) is Unreadable:
                return part
        rule = rule or rules.get(name)
        if rule is None:
            error = UnknownReducerError(thread_id=self.thread_id, channel=key, reducer=name, seq=seq)
            if isinstance(codec, LenientCodec):
                return Unreadable(key, b"", error)
            raise error
        return rule.fold(whole, writes)

    def _shared(self, codec: Codec, key: str, rows: Sequence[int], rule: DeltaRule) -> Any:
        """Return the value in `rows[0]` where many checkpoints are looked at, which share the elements of their values.

        It is folded over the value in the nearest row before it that took over others, which is kept: many stand on it.
        """
        folds, last = self._folds, len(rows) - 1
        nearest = layout.rows_since_last_taking_over(self._delta(key, rows[0]).number) + 1
        kept = range(min(nearest, last), last + 1)
        at = next((i for i in kept if (key, rows[i]) in folds), last)
        if (key, rows[at]) not in folds:
            folds[key, rows[at]] = codec.loads(self.data(key, rows[at]), key)
        value = folds[key, rows[at]]
        for until in (*(i for i in reversed(kept) if i < at), 0):
            writes = [write for row in reversed(rows[until:at]) for write in self._kept_writes(codec, key, row)]
            for part in (value, *writes):
                if type(part) is Unreadable:
                    return part
            value, at = rule.fold(value, writes), until
            if until:
                folds[key, rows[until]] = value
        return value

    def _rule_of(self, key: str, rows: Sequence[int]) -> str:
        """Return the name of the rule by which a chain of these rows is folded."""
        kind, payload = self[rows[-1]].channels[key]
        if kind != layout.SNAPSHOT:
            raise CorruptRecordError(record=self._name(rows[0]), reason=f"no snapshot of channel {key!r} is before it")
        return str(payload[0])

    def _chain(self, key: str, seq: int) -> list[int]:
        """Return the rows of a chain before this one, back to the one that holds the value whole."""
        return layout.chain_rows(self[seq], key, seq, self._name(seq))

    def _delta(self, key: str, seq: int) -> layout.Delta:
        found = layout.delta_of(self[seq], key)
        if found is None:
            raise CorruptRecordError(record=self._name(seq), reason=f"a delta of channel {key!r} follows no delta here")
        return found

    def _kept_writes(self, codec: Codec, key: str, seq: int) -> list[Any]:
        found = self._decoded.get((key, seq))
        if found is None:
            found = self._decoded[key, seq] = self._writes(codec, key, seq)
        return found

    def _writes(self, codec: Codec, key: str, seq: int) -> list[Any]:
        """Return what the delta in the row at `seq` folds, in order."""
        found: list[Any] = []
        for part in self._parts(key, seq):
            if type(part) is list:
                several = codec.loads(part[0], key)
                found += several if type(several) is list else [several]
            else:
                found.append(codec.loads(part, key))
        return found

    def _parts(self, key: str, seq: int) -> Iterator[layout.Part]:
        yield from self._delta(key, seq).parts
        yield from self._own(key, seq)

    def _own(self, key: str, seq: int) -> Iterator[layout.Stored]:
        opened, name = self[seq], self._name(seq)
        for write in layout.writes_of(opened, key):
            if type(write) is int:
                yield from self._recorded(key, write, name)
            else:
                yield write

    def _recorded(self, key: str, seq: int, name: str) -> Iterator[layout.Stored]:
        record = self.records.get(seq)
        if record is None:
            raise CorruptRecordError(record=name, reason=f"it refers to record {seq}, which is missing")
        for channel, data in layout.succeeded_writes(record.body, row_name(record)):
            if channel == key and data:
                yield data

    def _sole_write(self, key: str, seq: int, name: str) -> layout.Stored:
        found = list(self._recorded(key, seq, name))
        if len(found) != 1:
            raise CorruptRecordError(record=name, reason=f"record {seq} does not hold the one write of {key!r}")
        return found[0]

    def _name(self, seq: int) -> str:
        return f"checkpoint {seq} of thread {self.thread_id}"


def stands_apart(opened: layout.Opened, key: str) -> bool:
    """Tell whether other rows have to be read for a channel that this body holds."""
    kind, payload = opened.channels[key]
    return kind == layout.DELTA or (kind == layout.POINTER and payload[1] is None)


def _opened(row: CheckpointRow) -> layout.Opened:
    try:
        return layout.open_checkpoint(row.body, "")
    except CorruptRecordError:
        return layout.open_checkpoint(row.body, row_name(row))  # the name costs as much as opening: only now
