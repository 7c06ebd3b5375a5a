"""What happens to an effect, as records and as its row: each change is one commit that waits for the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepwell.runtime.journal import Draft, Entry
from stepwell.store import EffectChange, EffectRow, RecordRow
from stepwell.superstep import lifecycle
from stepwell.superstep.effects import rules
from stepwell.superstep.effects.keys import GLOBAL
from stepwell.superstep.effects.layout import Ended, Intent, encode_ended, encode_intent
from stepwell.superstep.step_body import encode_step
from stepwell.superstep.steps import Step

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.effects.performing import EffectCall


class Standing:
    """The rows under a key as one attempt knows them. It writes only over those."""

    def __init__(self, call: EffectCall, key: str, rows: Sequence[EffectRow], intent_seq: int = 0) -> None:
        self.call = call
        self.key = key
        self.intent_seq = intent_seq
        self.mine: EffectRow | None = None
        self._others: dict[str, EffectRow] = {}
        self._see(rows)

    def _see(self, rows: Sequence[EffectRow]) -> None:
        self.mine = next((row for row in rows if row.thread_id == self.call.thread_id), None)
        self._others = {row.thread_id: row for row in rows if row is not self.mine}

    @property
    def newest(self) -> EffectRow | None:
        """The row that this attempt goes on from."""
        return self.mine or next(iter(self._others.values()), None)

    def seen(self) -> tuple[bytes, ...]:
        rows = {**self._others, self.call.thread_id: self.mine}
        return tuple(row.digest for _, row in sorted(rows.items()) if row is not None)

    def holds(self, before: EffectRow | None, rows: Sequence[EffectRow]) -> bool:
        """Take these rows for what is known now, if the attempt that wrote `before` still speaks: a copy of its thread
        came into being meanwhile, or changed what it says, and knows no end either."""
        self._see(rows)
        settled = any(row.status in (rules.DONE, rules.COMPENSATED) for row in self._others.values())
        return self.mine is not None and self.mine == before and not settled

    def took(self, row: EffectRow) -> None:
        """Note what this attempt has written."""
        self.mine = row
        if row.scope == GLOBAL:
            self._others.clear()


def intent_entry(standing: Standing, now: int) -> Entry:
    """Return what is written before the body begins."""
    call, before = standing.call, standing.newest
    attempts = 1 if before is None else before.attempts + 1
    started_at = now if before is None else before.started_at
    declared = call.declared
    intent = Intent(
        standing.key,
        declared.name,
        call.call_id,
        call.user_key,
        call.fingerprint,
        call.inputs,
        call.shown,
        call.planned_action(),
        dict(declared.versions),
        call.approval,
        declared.step.code,
        attempts,
        now,
    )

    def note(owner: TaskRun, records: Sequence[RecordRow]) -> None:
        standing.intent_seq = records[0].seq
        entry.effect = _change(standing, rules.INTENT, records[0].seq, attempts, started_at, 0, b"")

    drafts = [Draft(lifecycle.INTENT, encode_intent(intent))]
    entry = Entry(call.scope, call.call_id, drafts, flush=True, noted=note)
    return entry


_STATUSES = {
    lifecycle.RECEIPT: rules.DONE,
    lifecycle.EFFECT_FAILED: rules.FAILED,
    lifecycle.DOUBT: rules.DOUBT,
}


def ended_entry(standing: Standing, kind: str, ended: Ended, failed: Step | None = None) -> Entry:
    """Return what is written when it is over, one way or another. `failed`: what a node that runs again is told."""
    call, before = standing.call, standing.newest
    body = encode_ended(ended)
    kept = body if call.declared.scope == GLOBAL and kind == lifecycle.RECEIPT else b""
    started_at = ended.at if before is None else before.started_at
    finished_at = 0 if kind == lifecycle.DOUBT else ended.at
    drafts = [Draft(kind, body)]
    if failed is not None:
        drafts.append(Draft(lifecycle.STEP, encode_step(failed)))

    def note(owner: TaskRun, records: Sequence[RecordRow]) -> None:
        seq = records[0].seq
        entry.effect = _change(standing, _STATUSES[kind], seq, ended.attempts, started_at, finished_at, kept)
        if failed is not None:
            owner.base.stepped(owner.task.id, failed)

    entry = Entry(call.scope, call.call_id, drafts, flush=True, noted=note)
    return entry


def _change(
    standing: Standing, status: str, seq: int, attempts: int, started_at: int, finished_at: int, body: bytes
) -> bytes:
    """Have the row written with what has just been staged; return its digest. The ledger's lock is held."""
    call, ledger = standing.call, standing.call.run.ledger
    base, task, mine = call.owner.base, call.owner.task, standing.mine
    row = EffectRow(
        key=standing.key,
        thread_id=call.thread_id,
        scope=call.declared.scope,
        lineage=base.lineage if mine is None else mine.lineage,
        position=call.position,
        node=task.node,
        activation=task.activation,
        call_id=call.call_id,
        name=call.declared.name,
        status=status,
        epoch=ledger.epoch,
        run_id=call.run.run_id,
        fingerprint=call.fingerprint,
        seq=seq,
        attempts=attempts,
        started_at=started_at,
        finished_at=finished_at,
        body=body,
        digest=b"",
    )
    assert call.run.store is not None
    sealed = call.run.store.sealer.effect(row)
    ledger.staged_effects = (*ledger.staged_effects, EffectChange(sealed, standing.seen()))
    standing.took(row._replace(digest=sealed.digest))
    return sealed.digest


def was_refused(entry: Entry) -> bool:
    """Tell whether another caller who shares the key was faster: the row is as that one wrote it. What was written in
    the same commit for other calls has nothing to do with it."""
    return entry.commit is not None and entry.effect in entry.commit.refused
