"""What is known of an effect, looked up by its key and its position, and what that means for a call. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from stepwell.errors import (
    EffectBusyError,
    EffectCompensatedError,
    EffectForbiddenError,
    IdempotencyConflictError,
    JournalError,
    NoCheckpointerError,
    NonDeterminismError,
)
from stepwell.runtime.blobs import whole_record
from stepwell.runtime.editing.origins import origins_of
from stepwell.runtime.effects.witness import check_all_there
from stepwell.runtime.journal import journal_of
from stepwell.store import EffectsQuery
from stepwell.superstep import lifecycle
from stepwell.superstep.effects import rules
from stepwell.superstep.effects.keys import (
    BROUGHT,
    GLOBAL,
    POSITION,
    keys_of_place,
    origin_of_lineage,
    position_key,
    user_key,
)
from stepwell.superstep.effects.layout import Ended, Intent, decode_ended, decode_intent
from stepwell.superstep.effects.resolution import decode_resolved
from stepwell.superstep.effects.rules import Asked, InDoubt, Known, Perform, Refuse, Reuse, Verdict
from stepwell.superstep.state import position_id

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.effects.performing import EffectCall
    from stepwell.runtime.run import Run
    from stepwell.store import EffectRow, Reader
    from stepwell.superstep.origin import Origin


class Sight(NamedTuple):
    """What a call sees: what it is to do, and the rows under the key that this is about."""

    verdict: Verdict
    key: str
    rows: Sequence[EffectRow]
    row: EffectRow | None
    """The one among them that the verdict is about."""
    intent: Intent | None
    ended: Ended | None
    """What the row's record says, where it is not the intent."""
    renewed: bool = False
    """Whether a new effect stands in for one whose key must not be used again."""


class _Known:
    """What is known under each key, from one snapshot."""

    def __init__(self, run: Run, reader: Reader) -> None:
        self._run, self._reader = run, reader
        self._rows: dict[str, Sequence[EffectRow]] = {}

    def rows(self, key: str) -> Sequence[EffectRow]:
        if key not in self._rows:
            self._rows[key] = self._reader.effect(key)
        return self._rows[key]

    def looked_up(self) -> list[str]:
        """Return the keys that somebody asked about."""
        return list(self._rows)

    def __call__(self, key: str) -> Sequence[Known]:
        return [_known(self._run, self._reader, row) for row in self.rows(key)]


def look(call: EffectCall) -> Sight:
    """Return what is known about this call, from one snapshot."""
    store, now = call.run.store, call.run.clock.now()
    assert store is not None
    with store.reading() as reader:
        known = _Known(call.run, reader)
        found = origins(call.run, reader, call.thread_id)
        asked = call.asked(found)
        first, keys = asked.key, list[str]()
        if not asked.by_user:
            asked, keys = _placed(call, reader, asked)
        lineages = rules.counting(asked, keys, known, now)
        verdict = rules.judge(asked, known, lineages, now)
        if isinstance(verdict, Perform | InDoubt):
            check_all_there(call, reader, found, known.looked_up(), known.rows)
        if isinstance(verdict, Perform):
            return Sight(verdict, verdict.key, known.rows(verdict.key), None, None, None, verdict.key != first)
        return _about(reader, verdict, known.rows(verdict.effect.key))


def rows_under(run: Run, key: str) -> Sequence[EffectRow]:
    """Return the rows under a key as they are now."""
    assert run.store is not None
    with run.store.reading() as reader:
        return reader.effect(key)


def _about(reader: Reader, verdict: Reuse | InDoubt | Refuse, rows: Sequence[EffectRow]) -> Sight:
    effect = verdict.effect
    row = next(each for each in rows if each.thread_id == effect.thread_id)
    intent, ended = said(reader, row)
    if isinstance(verdict, Refuse) and ended is not None and ended.intent_seq and not row.body:
        intent, _ = _record(reader, row.thread_id, ended.intent_seq)
    return Sight(verdict, effect.key, rows, row, intent, ended)


def said(reader: Reader, row: EffectRow) -> tuple[Intent | None, Ended | None]:
    """Return what is said of an effect, as far as it is kept: its intent, or how its last attempt ended."""
    if row.body:
        return None, decode_ended(row.body, f"effect {row.key}")
    if row.scope == GLOBAL or row.seq == 0:  # its record may be gone with its thread
        return None, None
    return _record(reader, row.thread_id, row.seq)


def _record(reader: Reader, thread_id: str, seq: int) -> tuple[Intent | None, Ended | None]:
    record = whole_record(reader, reader.record(thread_id, seq))
    name = f"record {seq} of thread {thread_id}"
    if record.kind == lifecycle.INTENT:
        return decode_intent(record.body, name), None
    if record.kind == lifecycle.RESOLVED:
        return None, decode_resolved(record.body, name).ended
    return None, decode_ended(record.body, name)


def _placed(call: EffectCall, reader: Reader, asked: Asked) -> tuple[Asked, list[str]]:
    """Return a call with the key of what its thread did at its place last, and the keys that count elsewhere."""
    lineage, first = call.owner.base.lineage, asked.key
    last: dict[int, list[str]] = {}
    for row in reader.effects_at(call.thread_id, call.position):
        if row.lineage == lineage and row.scope != POSITION:
            continue
        if row.lineage == BROUGHT or row.lineage not in last:
            last.setdefault(row.lineage, []).append(row.key)
    asked = asked._replace(key=last.pop(lineage, [first])[0])
    if call.run.ledger.lineages == 1 and not last and asked.key == first:  # nothing else has come by here
        return asked, []
    forks = [(row.lineage, row.parent_lineage, row.parent_seq) for row in reader.lineages(call.thread_id)]
    copied_from = _copied_from(origins(call.run, reader, call.thread_id))
    return asked, keys_of_place(call.thread_id, lineage, call.position, forks, last, copied_from)


def _known(run: Run, reader: Reader, row: EffectRow) -> Known:
    running = row.status == rules.INTENT and _is_running(run, reader, row)
    return Known(row.key, row.thread_id, row.status, row.fingerprint, row.finished_at, running)


def _is_running(run: Run, reader: Reader, row: EffectRow) -> bool:
    """Tell whether whoever wrote an intent is still at it: its epoch has not passed, nor has the call been given up."""
    if row.thread_id == run.config.thread_id and row.epoch == run.ledger.epoch:
        work = journal_of(run).at_work.get(row.key)
        return work is not None and work.goes_on()
    thread = reader.thread(row.thread_id)
    if thread is None or (thread.epoch, thread.run_id) != (row.epoch, row.run_id):
        return False
    assert run.store is not None
    return run.store.is_held(thread)


def origins(run: Run, reader: Reader, thread_id: str) -> Sequence[Origin]:
    """Return where the thread comes from, the first origin first; read once a run."""
    journal = journal_of(run)
    if journal.origins is None:
        journal.origins = origins_of(reader, thread_id)
    return journal.origins


def key_of(call: EffectCall, found: Sequence[Origin]) -> str:
    """Return the key of a call: of its position, or of what the user gave."""
    if call.user_key:
        return user_key(call.declared.scope, found[0].root if found else call.thread_id, call.user_key)
    return key_at(call.thread_id, call.owner.base.lineage, call.position, found)


def key_at(thread_id: str, lineage: int, position: str, found: Sequence[Origin]) -> str:
    """Return the key of a position in a lineage."""
    return position_key(origin_of_lineage(thread_id, lineage, _copied_from(found)), lineage, position)


def _copied_from(found: Sequence[Origin]) -> Sequence[tuple[str, int]]:
    return [(origin.thread_id, origin.lineages) for origin in found]


def key_of_activation(owner: TaskRun | None) -> str:
    """Return the key of a node's activation: for what it calls by hand."""
    if owner is None or owner.run.store is None:
        raise NoCheckpointerError(operation="runtime.idempotency_key")
    run, base = owner.run, owner.base
    assert run.store is not None
    thread_id = base.identity.thread_id
    found = journal_of(run).origins
    if found is None:
        with run.store.reading() as reader:
            found = origins(run, reader, thread_id)
    return key_at(thread_id, base.lineage, position_id(owner.task, ""), found)


def open_doubts(reader: Reader, thread_id: str, lineage: int) -> list[str]:
    """Return the keys of what is in doubt in a lineage of a thread that nobody drives."""
    found = reader.effects(EffectsQuery(thread_id, in_doubt=True))
    return [row.key for row in found if row.lineage in (lineage, BROUGHT) or row.scope != POSITION]


def refusal(call: EffectCall, sight: Sight) -> JournalError:
    """Return the error for a call that must not be made."""
    verdict, row = sight.verdict, sight.row
    assert isinstance(verdict, Refuse) and row is not None
    facts = {"name": call.declared.name, "key": row.key, "thread_id": row.thread_id}
    recorded = sight.intent.shown if sight.intent is not None else f"{row.name} with other inputs"
    if verdict.why == rules.BUSY:
        return EffectBusyError(run_id=row.run_id, **facts)
    if verdict.why == rules.FORBIDDEN:
        return EffectForbiddenError(status=row.status, **facts)
    if verdict.why == rules.IS_COMPENSATED:
        return EffectCompensatedError(**facts)
    if verdict.why == rules.CONFLICT:
        return IdempotencyConflictError(user_key=call.user_key, recorded=recorded, attempted=call.shown, **facts)
    codes = sight.intent.code if sight.intent is not None else "?", call.declared.step.code
    told = (
        f"Thread {row.thread_id}: effect {row.call_id} was recorded as {recorded}, and is now called as {call.shown}"
        f" (recorded by code {codes[0]}, this is {codes[1]}). Nothing was done. A node must make the same calls when it"
        " runs again. Go on with the code that recorded it. Under a name of its own the call is another effect, and"
        " happens beside the recorded one."
    )
    return NonDeterminismError(
        told,
        thread_id=row.thread_id,
        step_id=row.call_id,
        recorded=recorded,
        attempted=call.shown,
        recorded_code=codes[0],
        called_code=codes[1],
    )
