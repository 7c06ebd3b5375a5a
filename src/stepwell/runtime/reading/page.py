"""Checkpoints with everything their snapshots refer to, gathered in a fixed number of reads however many they are.

A snapshot needs more than its row: the rows that hold its unchanged channels, the records on it, its parent's id, and
the next checkpoint of its lineage, which says what its tasks came to. The rule: what is read is what is shown, never
the length of the thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stepwell.codec import Codec, is_scalar
from stepwell.errors import CorruptRecordError
from stepwell.graph.types import MISSING
from stepwell.plan.tables import Plan
from stepwell.runtime.changes import Stored, as_of_today
from stepwell.runtime.holders import NO_RULES, Holders, Rules
from stepwell.runtime.loading import Loaded, assemble, row_name
from stepwell.runtime.reading.unreadable import LenientCodec
from stepwell.store import CheckpointRow, Reader, RecordRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.begin import initial_values
from stepwell.superstep.blobs import names_in
from stepwell.superstep.outcome import Write

JOURNALLED = (lifecycle.STEP, *lifecycle.EFFECT_KINDS)
"""Records that a journal tells, and no state."""

NodeWrites = tuple[str, int | None, tuple[Write, ...]]


class Page:
    """Some checkpoints of one thread and namespace.

    `later` are checkpoints read before, to find successors among; where `whole` is true, all there are have been.
    `plan` is the graph that they are shown by, where they are: the shapes of the graphs that wrote them are gathered if
    it has renamed nodes.
    """

    __slots__ = ("_holders", "_scalars", "_shapes", "_successors", "_writes", "ids", "records")

    def __init__(
        self,
        reader: Reader,
        rows: Sequence[CheckpointRow],
        *,
        later: Iterable[CheckpointRow] = (),
        whole: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self._holders = Holders(rows[0].thread_id if rows else "", rows)
        self._scalars: dict[tuple[str, int], Any] = {}
        self._writes: dict[int, list[NodeWrites]] = {}
        self.ids: dict[int, str] = {}
        """Checkpoint ids of the rows and of their parents, by seq."""
        self.records: dict[int, list[RecordRow]] = {}
        """What is recorded on checkpoints, by their seq, as far as a state shows it."""
        self._shapes: dict[str, str | None] = {}
        self._successors: dict[tuple[int | None, int], CheckpointRow] = {(row[5], row[2]): row for row in later}
        """By seq of the parent, and lineage."""
        if rows:
            renamed = plan is not None and plan.changed.nodes
            self._gather(reader, rows, whole, {row.fingerprint for row in rows} if renamed else set())

    def _gather(self, reader: Reader, rows: Sequence[CheckpointRow], whole: bool, fingerprints: set[str]) -> None:
        thread_id, needed = rows[0].thread_id, set[int]()
        listed = {row.seq for row in rows}
        for row in rows:
            self.ids[row.seq] = row.checkpoint_id
            self._successors[row.parent_seq, row.lineage] = row
            if row.parent_seq not in listed:  # what a row holds elsewhere its parent does, or the parent is it
                needed.add(row.seq)
        if not whole:
            for row in rows:
                if (row.seq, row.lineage) not in self._successors:
                    self._find_successor(reader, row)
        bases = sorted(self._bases(rows))
        self._expect(reader, rows, bases, fingerprints)
        with layout.reading(row_name(rows[0])):
            self._holders.gather_all(reader, needed)
        self.ids.update((seq, row.checkpoint_id) for seq, row in self._holders.rows.items())
        for row in rows:
            if row.parent_seq is not None and row.parent_seq not in self.ids:
                self.ids[row.parent_seq] = reader.id_of(thread_id, row.parent_seq)
        for seq, records in reader.records_of(thread_id, bases).items():
            if shown := [record for record in records if record.kind not in JOURNALLED]:
                self.records[seq] = shown
                self._holders.records.update((record.seq, record) for record in shown)
        bodies = [row.body for row in {row.seq: row for row in (*rows, *self._successors.values())}.values()]
        bodies += [record.body for record in self._holders.records.values()]
        self._holders.fetch_blobs(reader, set[bytes]().union(*map(names_in, bodies)))
        self._shapes = {fingerprint: reader.shape(fingerprint) for fingerprint in fingerprints}

    def _expect(self, reader: Reader, rows: Sequence[CheckpointRow], bases: list[int], shapes: set[str]) -> None:
        """Say what is asked below of rows that are here."""
        for parent in {row.parent_seq for row in rows} - self.ids.keys():
            if parent is not None:
                reader.expect("id_of", rows[0].thread_id, parent)
        reader.expect("records_of", rows[0].thread_id, bases)
        for fingerprint in shapes:
            reader.expect("shape", fingerprint)

    def _bases(self, rows: Sequence[CheckpointRow]) -> set[int]:
        """Return the checkpoints that may have records on them: a row whose successor came right behind it has none."""
        bases: set[int] = set()
        for row in rows:
            parent = row.parent_seq
            if parent is not None and parent != row.seq - 1 and row.source != "fork":  # nothing came along with a fork
                bases.add(parent)
            successor = self._successors.get((row.seq, row.lineage))
            if successor is None or successor.seq != row.seq + 1:
                bases.add(row.seq)
        return bases

    def shape(self, fingerprint: str) -> str | None:
        """Return the stored shape of the graph that wrote one of the rows."""
        return self._shapes.get(fingerprint)

    def _find_successor(self, reader: Reader, row: CheckpointRow) -> None:
        if reader.head_seq(row.thread_id, row.namespace, row.lineage) == row.seq:
            return
        try:
            child = reader.child(row.thread_id, row.seq, row.lineage)
        except CorruptRecordError:
            return  # it is found when it is read itself; what comes before it stays readable
        if child is not None:
            self._successors[row.seq, row.lineage] = child
            self._holders.rows.setdefault(child.seq, child)

    def barriers(self, row: CheckpointRow) -> Mapping[str, Sequence[str]]:
        """Return the sources that arrived at each join, under the names they were recorded by."""
        return self._holders[row.seq].barriers

    def planned(self, row: CheckpointRow) -> tuple[str, ...]:
        """Return the nodes that are next, in listing order."""
        return tuple([entry[0] for entry in self._holders[row.seq].next])

    def load(self, codec: Codec, plan: Plan, row: CheckpointRow) -> Loaded:
        """Return a row with its values and what is recorded on it."""
        stored, records = self.stored(codec, plan, row), self.records.get(row.seq, ())
        return assemble(self.reading(codec), plan, row, self._holders[row.seq], stored, records)

    def reading(self, codec: Codec) -> Codec:
        """Return a codec that reads what these checkpoints and records hold, with what they refer to."""
        return self._holders.reading(codec)

    def stored(self, codec: Codec, plan: Plan, row: CheckpointRow) -> Stored:
        """Return a row's parts under today's names, with every channel's value."""
        opened, changed = self._holders[row.seq], plan.changed
        if not (changed.nodes or changed.channels or changed.migrate):
            values = self.values(codec, plan, row)
            return Stored(values, layout.holds_of(opened, row.seq), opened.barriers, opened.deferred, opened.writers)
        found = self.every_value(codec, row, plan.rules)
        stored = as_of_today(self, plan, row, opened, found)
        return stored._replace(values={**initial_values(plan), **stored.values})

    def values(self, codec: Codec, plan: Plan, row: CheckpointRow) -> dict[str, Any]:
        """Return every channel's value, decoded anew for each checkpoint unless nobody could change it."""
        if plan.changed.nodes or plan.changed.channels or plan.changed.migrate:
            return self.stored(codec, plan, row).values
        values: dict[str, Any] = {}
        scalars, seq, stored = self._scalars, row.seq, self._holders[row.seq].channels
        for key, channel in plan.channels.items():
            entry = stored.get(key)
            if entry is None:
                value = channel.initial()
                if value is not MISSING:
                    values[key] = value
                continue
            held = seq - entry[1] if entry[0] == layout.DISTANCE else seq
            value = scalars.get((key, held), MISSING)
            if value is MISSING:
                value = self._holders.value(codec, key, held, plan.rules)
                if is_scalar(value):
                    scalars[key, held] = value
            values[key] = value
        return values

    def every_value(self, codec: Codec, row: CheckpointRow, rules: Rules = NO_RULES) -> dict[str, Any]:
        """Return the value of every channel that is stored, whatever graph it belongs to. `rules` are that graph's."""
        held = layout.holds_of(self._holders[row.seq], row.seq)
        return {key: self._holders.value(codec, key, seq, rules) for key, seq in held.items()}

    def opened(self, row: CheckpointRow) -> layout.Opened:
        """Return the body of a row, its user values still in bytes."""
        return self._holders[row.seq]

    def own_writes(self, codec: Codec, row: CheckpointRow) -> list[NodeWrites]:
        """Return what the superstep that made this checkpoint wrote, task by task."""
        found = self._writes.get(row.seq)
        if found is None:
            found = self._writes[row.seq] = self._decoded(codec, row)
        elif not all(is_scalar(value) for _, _, writes in found for _, value in writes):
            found = self._decoded(codec, row)
        return found

    def merged_writes(self, codec: Codec, row: CheckpointRow) -> Mapping[tuple[str, int | None], tuple[Write, ...]]:
        """Return what the next checkpoint of the lineage was made of: outcomes of tasks, or an edit as one of them."""
        child = self._successors.get((row.seq, row.lineage))
        if child is None:
            return {}
        return {(node, index): writes for node, index, writes in self.own_writes(codec, child)}

    def _decoded(self, codec: Codec, row: CheckpointRow) -> list[NodeWrites]:
        self._holders.rows.setdefault(row.seq, row)
        opened = self._holders[row.seq]
        name = row_name(row)
        codec = self.reading(LenientCodec(codec))  # for looking only: values that are gone on with are read strictly
        recorded = {record.seq: record for record in self.records.get(row.parent_seq or 0, ())}
        found: list[NodeWrites] = []
        for entry in opened.outcomes:
            if len(entry) == 5:
                writes = layout.decode_writes(codec, entry[3])
            elif entry[3] in recorded:
                record = recorded[entry[3]]
                writes = layout.decode_succeeded(codec, record.body, row_name(record)).writes
            else:
                raise CorruptRecordError(record=name, reason=f"it refers to record {entry[3]}, which is missing")
            found.append((entry[0], entry[1], writes))
        return found
