"""How effects stand, told anew from their records: where a row is damaged, or the record that it names.

The rule: what happened outside is never guessed. An effect of which nothing sound says how it ended is in doubt; one
that cannot be told from its records at all keeps its thread from being repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stepwell.codec import Codec, Registry
from stepwell.codec.raw_value import RawValue
from stepwell.errors import CorruptRecordError
from stepwell.runtime.blobs import whole_record
from stepwell.runtime.editing.origins import origins_of, root_of
from stepwell.runtime.effects.bringing import whole
from stepwell.runtime.loading import row_name
from stepwell.savers.integrity.remaking import Anew, remade
from stepwell.store import EffectChange, EffectRow, RawRow, Reader, RecordRow, Store
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.effects import rules
from stepwell.superstep.effects.keys import GLOBAL, POSITION, THREAD, compensation_key, user_key
from stepwell.superstep.effects.layout import Ended, Intent, decode_ended, decode_intent, encode_ended
from stepwell.superstep.effects.resolution import FAILED, RECEIPT, RETRY, decode_resolved
from stepwell.superstep.effects.told import Told, hear, lacking
from stepwell.superstep.state import Base, Identity, State, Task, position_id

REPAIRED = "repaired"
"""`Ended.how` of a doubt that a repair has stated."""
LOST = "what was recorded of it was damaged, and a repair has left it behind"

_STATUSES = {
    lifecycle.INTENT: rules.INTENT,
    lifecycle.RECEIPT: rules.DONE,
    lifecycle.EFFECT_FAILED: rules.FAILED,
    lifecycle.DOUBT: rules.DOUBT,
}
_RESOLVED = {RECEIPT: rules.DONE, FAILED: rules.FAILED, RETRY: rules.DOUBT}


class Untold(Exception):
    """Nothing sound says what an effect was."""

    def __init__(self, key: str) -> None:
        super().__init__(f"its effect {key} is not in its records, so nobody can tell what has happened")


class Said(NamedTuple):
    """What a sound record says of an effect."""

    row: RecordRow
    status: str
    intent: Intent | None
    ended: Ended | None


def effects_anew(store: Store, reader: Reader, thread_id: str, now: int) -> Anew:
    """Return the effects whose rows are to be written, and the rows in their way. Raises Untold."""
    records = _Records(reader, thread_id)
    found = Anew([], [], [])
    rows = reader.raw_rows(thread_id, "effects")
    there = {raw.columns["key"]: raw for raw in rows if raw.fault is None}
    brought = _brought_keys(reader, thread_id) - there.keys()
    for raw in rows:
        if raw.fault is not None:
            _replace(found, records, raw, now, bool(brought))
        elif raw.columns["seq"] and raw.columns["seq"] not in records.sound and raw.columns["scope"] != GLOBAL:
            row = next(row for row in reader.effect(raw.columns["key"]) if row.thread_id == thread_id)
            found.rows.append(_doubted(row, now))
            found.remade.append(remade("effects", row.key, raw))
    made = {row.key for row in found.rows}
    for key in records.said:
        if key not in made and records.lacks(key, there[key].columns["seq"] if key in there else None):
            found.rows.append(records.row_of(key, now))
            if key in there:
                found.remade.append(remade("effects", key, there[key]))
    for key in sorted(brought - made):
        found.rows.append(_brought_again(reader, thread_id, key))
    return found._replace(rows=[EffectChange(store.sealer.effect(row), None) for row in found.rows])


def _brought_keys(reader: Reader, thread_id: str) -> set[str]:
    """Return the keys of what the thread began with, since it was forked off another one."""
    return {key for origin in origins_of(reader, thread_id) for key, _ in origin.brought}


def _brought_again(reader: Reader, thread_id: str, key: str) -> EffectRow:
    """Return an effect that came along, as another thread has it under the same key. Raises Untold where none does."""
    others = [row for row in reader.effect(key) if row.thread_id != thread_id]
    if not others:
        raise Untold(key)
    return whole(reader, others[0])._replace(thread_id=thread_id, epoch=0)


def _replace(found: Anew, records: _Records, raw: RawRow, now: int, lacks_brought: bool) -> None:
    """Have a damaged row removed, and written as its records tell it if they know its key. Where they do not, the key
    may be what is damaged: then exactly one effect has no row, which is made with the others that have none."""
    key = raw.columns["key"]
    if key in records.said:
        found.rows.append(records.row_of(key, now))
    elif not lacks_brought and not records.has_an_effect_without_row():
        raise Untold(str(key))
    found.remade.append(remade("effects", key, raw))
    found.removed.append(("effects", raw.stored[0] or b"", raw.stored[1] or b""))


def _doubted(row: EffectRow, now: int) -> EffectRow:
    """Return an effect whose record is lost: in doubt, unless it is compensated, which its row alone says."""
    status = row.status if row.status == rules.COMPENSATED else rules.DOUBT
    told = f"{LOST}; until then it stood as {row.status!r}"
    ended = Ended(row.key, 0, REPAIRED, b"", told, b"", False, row.attempts, now)
    finished_at = row.finished_at if status == rules.COMPENSATED else 0
    return row._replace(status=status, seq=0, finished_at=finished_at, body=encode_ended(ended))


class _Records:
    """What the sound records of a thread say of its effects."""

    def __init__(self, reader: Reader, thread_id: str) -> None:
        self._reader, self._thread_id = reader, thread_id
        self.sound: set[int] = set()
        self.said: dict[str, list[Said]] = {}
        """Key → what is said of it, oldest first."""
        self.told: dict[str, Told] = {}
        for raw in reader.raw_rows(thread_id, "records"):
            if raw.fault is None:
                seq = raw.columns["seq"]
                if raw.columns["kind"] not in lifecycle.EFFECT_KINDS or self._hear(reader.record(thread_id, seq)):
                    self.sound.add(seq)

    def _hear(self, row: RecordRow) -> bool:
        """Take in what a record says; return False where what it refers to is lost, so that it cannot be gone by."""
        try:
            row = whole_record(self._reader, row)
        except CorruptRecordError:
            return False
        name = row_name(row)
        self.told.update(hear(self.told, row.kind, row.seq, row.body, name))
        if row.kind == lifecycle.INTENT:
            intent = decode_intent(row.body, name)
            self.said.setdefault(intent.key, []).append(Said(row, rules.INTENT, intent, None))
        elif row.kind == lifecycle.RESOLVED:
            resolved = decode_resolved(row.body, name)
            said = Said(row, _RESOLVED[resolved.choice], None, resolved.ended)
            self.said.setdefault(resolved.ended.key, []).append(said)
        else:
            ended = decode_ended(row.body, name)
            self.said.setdefault(ended.key, []).append(Said(row, _STATUSES[row.kind], None, ended))
        return True

    def lacks(self, key: str, seq: int | None = None) -> bool:
        """Tell whether the row of an effect is missing, or older than what is recorded of it; `seq`: the record that it
        names. Raises Untold where a row under its key is damaged that is no row of this thread, for all that can be
        seen of it."""
        told = self.told.get(key)
        if seq is not None and (told is None or seq >= told.seq):
            return False
        try:
            under_key = self._reader.effect(key)
        except CorruptRecordError:
            raise Untold(key) from None
        return not under_key if told is None else lacking(told, self._thread_id, under_key) is not None

    def has_an_effect_without_row(self) -> bool:
        """Tell whether the row of some effect that is recorded is not to be found under its key."""
        return any(self.lacks(key) for key in self.said)

    def row_of(self, key: str, now: int) -> EffectRow:
        """Return the row of an effect as its records tell it. Raises Untold where its intents are damaged too."""
        said = self.said[key]
        intents = [each for each in said if each.intent is not None]
        first, last = (intents[0], said[-1]) if intents else (None, said[-1])
        intent = intents[-1].intent if intents else None
        task = self._task_of(intents[-1].row) if intents else None
        if first is None or first.intent is None or intent is None or task is None:
            raise Untold(key)
        ended = last.ended
        scope = self._scope_of(intent)
        return EffectRow(
            key=key,
            thread_id=self._thread_id,
            scope=scope,
            lineage=first.row.lineage,
            position=position_id(task, intent.call_id),
            node=task.node,
            activation=task.activation,
            call_id=intent.call_id,
            name=intent.name,
            status=self._status_of(key, last),
            epoch=0,
            run_id=last.row.run_id,
            fingerprint=intent.fingerprint,
            seq=last.row.seq,
            attempts=intent.attempt,
            started_at=first.intent.at,
            finished_at=0 if ended is None or last.status == rules.DOUBT else ended.at,
            body=encode_ended(ended) if scope == GLOBAL and ended is not None and last.status == rules.DONE else b"",
            digest=b"",
        )

    def _status_of(self, key: str, last: Said) -> str:
        undone = self.said.get(compensation_key(key), [])
        is_undone = bool(undone) and undone[-1].status == rules.DONE
        return rules.COMPENSATED if is_undone else last.status

    def _scope_of(self, intent: Intent) -> str:
        if not intent.user_key:
            return POSITION
        root = root_of(self._reader, self._thread_id)
        return THREAD if intent.key == user_key(THREAD, root, intent.user_key) else GLOBAL

    def _task_of(self, record: RecordRow) -> Task | None:
        """Return the task on which a record stands, by the checkpoint that planned it."""
        try:
            (row,) = self._reader.checkpoints(record.thread_id, [record.base_seq])
            opened = layout.open_checkpoint(row.body, row_name(row))
            planned = layout.decode_next(Codec(Registry(), RawValue), opened.next)
        except CorruptRecordError:
            return None
        identity = Identity(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
        base = Base(State(values={}, next=planned, activations=opened.activations, step=row.step), identity)
        by_id: Mapping[str, Task] = {task.id: task for task in base.tasks}
        return by_id.get(record.task_id)
