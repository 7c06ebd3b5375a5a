"""What the bodies of a thread's rows say of its other rows, gathered row by row, to be looked for at the end.

The audit gives it rows as they are stored; of an encrypted thread it sees nothing so, and whoever has the key gives it
the rows decrypted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from stepwell.errors import CorruptRecordError, StepwellError, ZstdMissingError
from stepwell.store import CheckpointRow, EffectRow, RecordRow, is_encrypted
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.blobs import names_in
from stepwell.superstep.effects.told import Told, hear, lacking
from stepwell.superstep.origin import decode_origin
from stepwell.superstep.references import references

Missed = tuple[str, object, str]
"""Table and place of the row that a fault is about, and the reason."""


class Referring:
    """What is referred to in one thread."""

    def __init__(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._values: dict[bytes, list[tuple[str, int]]] = {}
        """Name of a value → the rows that refer to it."""
        self._checkpoints: list[tuple[int, int]] = []
        self._records: list[tuple[int, int]] = []
        """What is needed, and the checkpoint that refers to it."""
        self._told: dict[str, Told] = {}
        """Key → what records tell of an effect, as long as no row that is as new has been seen."""
        self._brought: dict[str, str] = {}
        """Key of an effect that came along when the thread was forked off another one → that one, as long as no row has
        been seen."""
        self._counted: list[tuple[int, int, int]] = []
        """A checkpoint, the one before it, and how many records stood on that when it was made."""
        self._on: Counter[int] = Counter()
        """Checkpoint → its records."""
        self._wrong: list[Missed] = []

    def checkpoint(self, row: CheckpointRow, is_held: bool) -> None:
        """Note what a checkpoint needs besides its parent. A body that no run wrote says nothing of it; a held one is
        read for some of its channels only, and its anchor sees to it that it is there."""
        if is_encrypted(row.body):
            return
        self._refer("checkpoints", row)
        if is_held:
            return
        try:
            with layout.reading(""):
                opened = layout.open_checkpoint(row.body, "")
                needs = references(opened, row.seq)
        except StepwellError:
            return
        if opened.counted and row.parent_seq is not None:
            self._counted.append((row.seq, row.parent_seq, opened.counted))
        self._checkpoints += ((seq, row.seq) for seq in sorted(needs.checkpoints))
        self._records += ((seq, row.seq) for seq in sorted(needs.records))

    def record(self, row: RecordRow) -> None:
        """Note what a record refers to, and of which effect it tells. They come in seq order."""
        self._on[row.base_seq] += 1
        if is_encrypted(row.body):
            return
        self._refer("records", row)
        try:
            if row.kind in lifecycle.EFFECT_KINDS:
                self._told.update(hear(self._told, row.kind, row.seq, row.body, f"record {row.seq}"))
            elif row.kind == lifecycle.ORIGIN:
                origin = decode_origin(row.body, f"record {row.seq}")
                self._brought |= {key: origin.thread_id for key, _ in origin.brought}
        except CorruptRecordError as error:
            self._wrong.append(("records", row.seq, str(error.fields()["reason"])))

    def effect(self, row: EffectRow) -> None:
        """Note how an effect stands: after all records."""
        self._brought.pop(row.key, None)
        if row.key in self._told and row.seq >= self._told[row.key].seq:
            del self._told[row.key]

    def missing(
        self,
        checkpoints: Collection[int],
        records: Collection[int],
        values: Collection[bytes],
        effects: Callable[[str], Sequence[EffectRow]],
        pruned: Collection[int],
    ) -> Iterator[Missed]:
        """Yield what is referred to and is not there. `effects` finds all rows under a key that verify; `pruned`: the
        checkpoints with an anchor, which counts their records."""
        yield from self._wrong
        for seq, before, counted in self._counted:
            if (there := self._on[before]) < counted and before not in pruned:
                reason = f"{counted} records stood on the checkpoint {before} before it, {there} are there"
                yield "checkpoints", seq, reason
        for seq, by in self._checkpoints:
            if seq not in checkpoints:
                yield "checkpoints", by, f"the checkpoint {seq} that it refers to is missing"
        for seq, by in self._records:
            if seq not in records:
                yield "checkpoints", by, f"the record {seq} that it refers to is missing"
        for name in self._values.keys() - set(values):
            for table, seq in self._values[name]:
                yield table, seq, f"the value {name.hex()} that it refers to is missing"
        for key, told in self._told.items():
            if (why := lacking(told, self._thread_id, effects(key))) is not None:
                yield "effects", key, why
        for key, thread_id in self._brought.items():
            yield "effects", key, f"it is missing, and was brought along from thread {thread_id}"

    def _refer(self, table: str, row: CheckpointRow | RecordRow) -> None:
        try:
            names = names_in(row.body)
        except (CorruptRecordError, ZstdMissingError, TypeError, ValueError):
            return  # what its digest says of it is said; without zstd it cannot be looked into
        for name in names:
            self._values.setdefault(name, []).append((table, row.seq))
