"""Undoing what a thread has done: the compensations of its effects, last receipt first, each an effect itself.

The thread is held meanwhile like by any run, under a run of its own that makes no checkpoint. The rule kept: with the
receipt of a compensation, and in the same transaction, its effect is compensated; so whatever dies in between, the next
call goes on where it was, and nothing is undone twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from stepwell.ids import structural_hash
from stepwell.runtime.effects.compensation import Compensation
from stepwell.runtime.effects.declared import Declared
from stepwell.runtime.effects.performing import Came, EffectCall
from stepwell.runtime.effects.selecting import Done
from stepwell.runtime.effects.undoing import UndoingRun
from stepwell.runtime.requests import Blocking
from stepwell.runtime.scope import Scope, current
from stepwell.store import EffectChange
from stepwell.superstep import lifecycle
from stepwell.superstep.effects import rules
from stepwell.superstep.effects.keys import compensation_key
from stepwell.superstep.effects.layout import KNOWN_ELSEWHERE, Ended
from stepwell.superstep.effects.rules import Asked

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.effects.knowing import Sight
    from stepwell.runtime.effects.writing import Standing
    from stepwell.runtime.journal import Entry
    from stepwell.runtime.run import Run
    from stepwell.store import RecordRow
    from stepwell.superstep.origin import Origin

COMPENSATED: Literal["compensated"] = "compensated"


@dataclass(frozen=True, slots=True)
class Undone:
    """What `compensate` has made of one effect."""

    key: str
    """The effect's idempotency key."""
    name: str
    node: str
    status: Literal["compensated", "no compensation", "in doubt", "elsewhere"]
    """`no compensation`: it is done, and declares none. `in doubt`: it may have happened; resolve it first.
    `elsewhere`: it came along from the thread that this one was forked off, and is that one's to undo."""
    receipt: Any = None
    """What the effect returned, where it was compensated."""
    result: Any = None
    """What its compensation returned."""
    compensation_key: str | None = None
    """The idempotency key of its compensation."""


async def compensate(run: Run, blocks: bool) -> tuple[Undone, ...]:
    """Undo what the thread has done; return what became of each effect, the last receipt first.

    `blocks` says that this is answered on a thread, which may wait for what is async.
    """
    undoing = UndoingRun(run)
    token = current.set(_Surroundings(undoing))
    try:
        found = await Blocking(undoing.begin)
        return await _undone(undoing, found, blocks)
    finally:
        current.reset(token)


async def _undone(undoing: UndoingRun, found: Sequence[Done], blocks: bool) -> tuple[Undone, ...]:
    made: list[Undone] = []
    error: BaseException | None = None
    try:
        for done in found:
            made.append(await _undo(undoing, done, blocks) if done.compensation is not None else _left(done))
    except BaseException as raised:
        error = raised
        raise
    finally:
        if undoing.run.admitted:
            await Blocking(partial(undoing.end, error))
    return tuple(made)


def _left(done: Done) -> Undone:
    return Undone(done.row.key, done.row.name, done.row.node, done.status)  # type: ignore[arg-type]  # `selecting`'s words


async def _undo(undoing: UndoingRun, done: Done, blocks: bool) -> Undone:
    call = UndoCall(undoing, done, blocks)
    result = await call.happen()
    row = done.row
    return Undone(row.key, row.name, row.node, COMPENSATED, call.args[0], result, compensation_key(row.key))


class _Surroundings(Scope):
    """Where compensations are called: in no node."""

    journalled = False
    children = None
    is_async = False
    prefix = "compensation"

    def __init__(self, undoing: UndoingRun, done: Done | None = None) -> None:
        self.owner = undoing.owner(done.row if done is not None else None)


class UndoCall(EffectCall):
    """A call of what undoes an effect. Its key is made of the effect's, so it is one call, whoever makes it."""

    def __init__(self, undoing: UndoingRun, done: Done, blocks: bool) -> None:
        compensation, codec = done.compensation, undoing.run.codec
        assert compensation is not None and done.ended is not None
        self.scope = _Surroundings(undoing, done)
        self.owner = self.scope.owner  # type: ignore[assignment]  # made to look like a node's task
        self.run = undoing.run
        self.row = done.row
        self.siblings = done.siblings
        self.is_left = False
        """Whether its effect is still to be marked, though it is done: the rows were not as seen."""
        self._marked = b""
        """The effect's row as it was to be."""
        self.declared = _declared(compensation, done.row.scope, blocks)
        receipt = codec.loads(done.ended.value, f"receipt of {done.row.name}")
        inputs = codec.loads(done.intent.inputs, f"inputs of {done.row.name}") if done.intent is not None else {}
        self.args = (receipt,)
        self.kwargs = {name: inputs[name] for name in compensation.takes if name in inputs}
        self.thread_id = done.row.thread_id
        what = done.intent.shown if done.intent is not None else done.row.name
        self.shown = f"{self.declared.name}, to undo {what}"
        self.inputs = codec.dumps({"receipt": receipt, **self.kwargs}, f"inputs of {self.declared.name}")
        self.fingerprint = structural_hash("compensation", done.row.key)
        self.user_key = ""
        self.call_id = f"{done.row.call_id}/compensation"
        self.position = done.row.key
        self.tries = 0
        self.approval = b""
        self._approving = None

    def asked(self, found: Sequence[Origin]) -> Asked:
        return Asked(compensation_key(self.row.key), self.fingerprint, self.thread_id, by_user=True)

    async def _put(self, entry: Entry) -> bool:
        is_written = await super()._put(self._with_its_effect(entry))
        self.is_left = entry.commit is not None and self._marked in entry.commit.refused
        return is_written

    async def _received(self, standing: Standing, value: Any, how: str) -> Came | None:
        came = await super()._received(standing, value, how)
        while came is not None and self.is_left:
            await self._mark(standing, self._receipt(standing, value, KNOWN_ELSEWHERE))
        return came

    async def _reused(self, sight: Sight, standing: Standing) -> Any:
        """It is done, and its effect is not marked: another thread that shares the key changed that meanwhile."""
        assert sight.ended is not None
        self.is_left = True
        while self.is_left:
            await self._mark(standing, sight.ended._replace(how=KNOWN_ELSEWHERE))
        return self.run.codec.loads(sight.ended.value, f"receipt of {self.declared.name}")

    async def _mark(self, standing: Standing, ended: Ended) -> None:
        """Say once more that it is done, over the rows of its effect as they are now."""
        await Blocking(self._look_again)
        await self._write(standing, lifecycle.RECEIPT, ended)

    def _look_again(self) -> None:
        assert self.run.store is not None
        with self.run.store.reading() as reader:
            self.siblings = reader.effect(self.row.key)
        self.row = next((row for row in self.siblings if row.thread_id == self.thread_id), self.row)

    def late(self, standing: Standing, value: Any) -> Entry:
        return self._with_its_effect(super().late(standing, value))

    def _with_its_effect(self, entry: Entry) -> Entry:
        """Have the effect compensated in the transaction in which its compensation is done."""
        if entry.drafts[0].kind != lifecycle.RECEIPT:
            return entry
        inner = entry.noted
        assert inner is not None

        def note(owner: TaskRun, records: Sequence[RecordRow]) -> None:
            inner(owner, records)
            ledger = self.run.ledger
            assert self.run.store is not None
            marked = self.run.store.sealer.effect(
                self.row._replace(status=rules.COMPENSATED, epoch=ledger.epoch, digest=b"")
            )
            self._marked = marked.digest
            seen = tuple(row.digest for row in self.siblings)
            ledger.staged_effects = (*ledger.staged_effects, EffectChange(marked, seen))

        entry.noted = note
        return entry


def _declared(compensation: Compensation, scope: str, blocks: bool) -> Declared:
    """Return the compensation as an effect known where its own effect is; on a thread, what is async is waited for."""
    declared = replace(compensation.declared, scope=scope)
    if not (blocks and declared.step.is_async):
        return declared
    from stepwell.runtime.effects.undoing import waiting

    step = replace(declared.step, function=waiting(declared.step.function), is_async=False)
    look_up: Any = declared.on_doubt
    return replace(declared, step=step, on_doubt=waiting(look_up) if callable(look_up) else look_up)
