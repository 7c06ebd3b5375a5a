"""The life of one call of an effect: look, intent, body, receipt. Written once for sync and async code.

The rule kept: between two lines here the process may die. Before the intent is on disk nothing has happened; from the
intent until the receipt is on disk, what has happened is in doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from stepwell import points
from stepwell.codec import is_scalar
from stepwell.errors import (
    EffectBusyError,
    EffectDeclarationError,
    EffectInDoubtError,
    EffectNotPerformed,
    NoCheckpointerError,
    StepOverError,
    UnserializableValueError,
)
from stepwell.graph import retry_rules
from stepwell.ids import holdable, is_holdable, structural_hash
from stepwell.runtime.deadlines import Deadline
from stepwell.runtime.effects.approving import Approving
from stepwell.runtime.effects.declared import KEY, RAISE, RETRY, Declared
from stepwell.runtime.effects.doubting import Doubt, consult, doubt_about
from stepwell.runtime.effects.knowing import Sight, key_of, look, refusal, rows_under
from stepwell.runtime.effects.working import Work
from stepwell.runtime.effects.writing import Standing, ended_entry, intent_entry, was_refused
from stepwell.runtime.journal import Entry, journal_of
from stepwell.runtime.requests import Blocking, Body, Record, Sleep
from stepwell.runtime.scope import Scope
from stepwell.runtime.steps import showing
from stepwell.runtime.steps.calling import StepScope, check_same, children_of, shown_inputs
from stepwell.runtime.steps.driving import drive
from stepwell.superstep import lifecycle
from stepwell.superstep.effects.layout import KNOWN_ELSEWHERE, LATE, LOOKED_UP, PERFORMED, Ended
from stepwell.superstep.effects.resolution import ALLOWED
from stepwell.superstep.effects.rules import Asked, InDoubt, Perform, Refuse, Reuse
from stepwell.superstep.outcome import text_of
from stepwell.superstep.state import position_id
from stepwell.superstep.step_body import encode_raised, error_of
from stepwell.superstep.steps import DONE, FAILED, Step

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call
    from stepwell.superstep.origin import Origin


def call_effect(scope: Scope, declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an effect; return its receipt, or for an async function an awaitable of it."""
    scope.hangs_on_more()
    call = EffectCall(scope, declared, args, kwargs)
    if not declared.step.is_async:
        return drive(call.happen())
    from stepwell.runtime.steps.async_driving import drive_async

    return children_of(scope).until_over(drive_async(call.happen()))


class Came(NamedTuple):
    """It is over: this is the receipt."""

    value: Any


class EffectCall:
    """One call of an effect: who calls, what, and by what it is known."""

    def __init__(self, scope: Scope, declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.root: Call = scope.root  # type: ignore[assignment]  # the outermost scope of a node's code is its call
        self.scope = scope
        self.owner = self.root.owner
        self.run = self.owner.run
        self.declared = declared
        if self.run.store is None:
            raise NoCheckpointerError(operation=f"effect {declared.name!r}")
        if KEY in kwargs:
            raise TypeError(f"{declared.name}() gets its {KEY} from the engine: declare key=... to choose one")
        self.thread_id = self.owner.base.identity.thread_id
        self.call_with(args, kwargs, _bound(declared, args, kwargs))
        self.call_id = scope.call_id(declared.name, self.named)
        self.position = position_id(self.owner.task, self.call_id)
        self.tries = 0
        """Attempts of this call."""
        self.approval = b""
        """The decision that allows it, encoded."""
        self._approving = Approving(self, declared.approval) if declared.approval is not None else None

    def call_with(self, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Mapping[str, Any]) -> None:
        """Take these as what it is called with: as they are passed, and by name."""
        declared, codec = self.declared, self.run.codec
        self.args, self.kwargs = args, kwargs
        self.named = {name: value for name, value in arguments.items() if name not in declared.exclude}
        self.shown = declared.name + shown_inputs((), self.named)
        self.inputs = codec.dumps(self.named, f"inputs of {declared.name}")
        self.fingerprint = structural_hash("inputs", declared.name, codec.canonical(self.named))
        self.user_key = self._user_key()

    def _user_key(self) -> str:
        key = self.declared.key
        chosen = key(*self.args, **self.kwargs) if callable(key) else key
        if chosen is None and key is None:
            return ""
        if not isinstance(chosen, str) or not chosen:
            raise EffectDeclarationError(name=self.declared.name, reason=f"its key must be a text, not {chosen!r}.")
        if not is_holdable(chosen):
            reason = f"its key is valid Unicode without NUL, not {chosen!r}."
            raise EffectDeclarationError(name=self.declared.name, reason=reason)
        return chosen

    def planned_action(self) -> str:
        """Return what is about to happen, for people."""
        chosen = self.declared.planned_action
        return holdable(str(chosen(*self.args, **self.kwargs))) if callable(chosen) else chosen or self.shown

    def asked(self, found: Sequence[Origin]) -> Asked:
        """Return the call as the rules look at it."""
        declared = self.declared
        key = key_of(self, found)
        return Asked(key, self.fingerprint, self.thread_id, bool(self.user_key), declared.on_fork, declared.valid_for)

    # -- its life ----------------------------------------------------------------------------------------------------

    async def happen(self) -> Any:
        """Return the receipt: what stands, or what the body returns."""
        if self._approving is not None:
            self._approving.take()
        showing.called(self.owner, self._step(), self.args, self.kwargs)
        self._raise_known_failure()
        while True:
            sight = await Blocking(partial(look, self))
            verdict = sight.verdict
            if isinstance(verdict, Refuse):
                raise refusal(self, sight)
            standing = Standing(self, sight.key, sight.rows, _intent_seq(self, sight))
            if isinstance(verdict, Reuse):
                return await self._reused(sight, standing)
            if self._approving is not None and isinstance(verdict, Perform):
                self._approving.require(sight.key, sight.renewed)
            came = await self._doubted(sight, standing) if isinstance(verdict, InDoubt) else None
            came = came or await self._attempt(standing)
            if came is not None:
                return came.value

    def _raise_known_failure(self) -> None:
        """Raise what the call raised in this attempt of its node already: a node that runs again is told the same."""
        known = self.owner.steps().get(self.call_id)
        if known is not None and known.status == FAILED:
            check_same(self.scope, known, self._step())
            raise error_of(self.run.codec, known)

    async def _reused(self, sight: Sight, standing: Standing) -> Any:
        assert sight.ended is not None
        if standing.mine is not None and standing.mine.finished_at == 0:  # in doubt here, and known there
            await self._write(standing, lifecycle.RECEIPT, sight.ended._replace(how=KNOWN_ELSEWHERE))
        return self.run.codec.loads(sight.ended.value, f"receipt of {self.declared.name}")

    async def _doubted(self, sight: Sight, standing: Standing) -> Came | None:
        """Follow what was declared for a doubt that was there before this call. None: the body may run."""
        if self.declared.on_doubt == RETRY or (sight.ended is not None and sight.ended.how == ALLOWED):
            return None
        doubt = doubt_about(self, standing, sight.ended.error if sight.ended is not None else "")
        if self.declared.on_doubt == RAISE:
            raise self._in_doubt(doubt)
        return await self._consulted(standing, doubt, None)

    async def _attempt(self, standing: Standing) -> Came | None:
        """Run the body once. None: look again. Until that is over, the key is this call's."""
        at_work, work = journal_of(self.run).at_work, Work(self, standing)
        if (other := at_work.setdefault(standing.key, work)) is not work and other.goes_on():
            facts = {"name": self.declared.name, "key": standing.key, "thread_id": self.thread_id}
            raise EffectBusyError(run_id=self.run.run_id, **facts)
        at_work[standing.key] = work
        try:
            return await self._perform(standing, work)
        finally:
            if at_work.get(standing.key) is work:
                del at_work[standing.key]

    async def _perform(self, standing: Standing, work: Work) -> Came | None:
        """Write the intent, run the body, write what came of it. None: look again."""
        entry = intent_entry(standing, self.run.clock.now())
        await Record(entry)
        if was_refused(entry):
            return None
        points.reach(points.INTENT_DURABLE)
        self.tries += 1
        inner = StepScope(self.scope, self.call_id, self.declared.step)
        inner.keeps_items, inner.may_pause = False, self.declared.on_doubt != RAISE
        limit = self.declared.step.timeout
        if limit is not None:
            inner.deadline = Deadline(limit, self.run.clock.monotonic, self.scope.hears)
        showing.begun(self.owner, self._step()._replace(attempts=self.tries - 1))
        try:
            value = await Body(inner, work.body, self.declared.step.is_async, inner.deadline if limit else None)
        except Exception as error:
            if work.give_up():
                return await self._raised(standing, work, error)
            value = work.value
        except BaseException:
            if not work.give_up():  # it had returned: its receipt is written, whatever else is on its way
                await self._received(standing, work.value, PERFORMED)
            raise
        points.reach(points.BODY_RETURNED)
        return await self._received(standing, value, PERFORMED)

    async def _received(self, standing: Standing, value: Any, how: str) -> Came | None:
        """Write the receipt. None: another thread has the key by now."""
        try:
            ended = self._receipt(standing, value, how)
        except UnserializableValueError as error:  # it has happened, and nobody can be told what it returned
            await self._write(standing, lifecycle.DOUBT, self._ended(standing, error))
            raise
        if not await self._write(standing, lifecycle.RECEIPT, ended):
            return None
        points.reach(points.RECEIPT_DURABLE)
        showing.finished(self.owner, self._step()._replace(status=DONE, attempts=self.tries), value, False)
        return Came(value if is_scalar(value) else self.run.codec.loads(ended.value))

    async def _raised(self, standing: Standing, work: Work, error: Exception) -> Came | None:
        """Say what the body's exception means, and follow what was declared. None: look, and perhaps try, again."""
        by_body = work.raised is error  # and not its timeout, which says nothing
        if by_body and (isinstance(error, EffectNotPerformed) or self.declared.fails_on(error)):
            await self._failed(standing, error)
            return None
        if not await self._write(standing, lifecycle.DOUBT, self._ended(standing, error)):
            return None
        if self.declared.on_doubt == RETRY:
            await self._once_more(error)
            return None
        doubt = doubt_about(self, standing, text_of(error))
        if self.declared.on_doubt == RAISE:
            raise self._in_doubt(doubt) from error
        return await self._consulted(standing, doubt, error)

    async def _consulted(self, standing: Standing, doubt: Doubt, error: Exception | None) -> Came | None:
        """Have the declared function look the truth up. None: the body may run."""
        try:
            value = await consult(self, doubt)
        except EffectNotPerformed:
            if error is not None:
                await self._failed(standing, error)
            return None
        except Exception as unknown:
            raise self._in_doubt(doubt) from unknown
        return await self._received(standing, value, LOOKED_UP)

    async def _failed(self, standing: Standing, error: Exception) -> None:
        """Write that nothing has happened; wait for the next attempt, or raise."""
        final = self._policy(error) is None
        ended = self._ended(standing, error)._replace(final=final)
        step = self._step(ended) if final else None
        if await self._write(standing, lifecycle.EFFECT_FAILED, ended, step):
            if step is not None:
                showing.failed(self.owner, step._replace(attempts=self.tries))
            await self._once_more(error)

    async def _once_more(self, error: Exception) -> None:
        policy = self._policy(error)
        if policy is None:
            raise error
        await Sleep(retry_rules.delay(policy, self.tries, error, self.run.clock.now() / 1e6, self.run.jitter()))

    def _policy(self, error: Exception) -> Any:
        policy = next((policy for policy in self.declared.step.retry if policy.matches(error)), None)
        return None if policy is None or self.tries >= policy.max_attempts else policy

    async def _write(self, standing: Standing, kind: str, ended: Ended, failed: Step | None = None) -> bool:
        """Write what came of an attempt. False: another thread that shares the key was faster."""
        while True:
            before = standing.mine
            if await self._put(ended_entry(standing, kind, ended, failed)):
                return True
            if not standing.holds(before, await Blocking(partial(rows_under, self.run, standing.key))):
                return False

    async def _put(self, entry: Entry) -> bool:
        """Write over the rows as they were seen. False: they are others by now."""
        try:
            await Record(entry)
        except StepOverError:  # its node was given up: told with what the run writes next
            journal_of(self.run).leave_late(entry)
            raise
        return not was_refused(entry)

    # -- what is said ------------------------------------------------------------------------------------------------

    def late(self, standing: Standing, value: Any) -> Entry:
        """Return what is written when a body that was given up returns after all."""
        return ended_entry(standing, lifecycle.RECEIPT, self._receipt(standing, value, LATE))

    def _receipt(self, standing: Standing, value: Any, how: str) -> Ended:
        data = self.run.codec.dumps(value, f"receipt of {self.declared.name}")
        attempts = standing.newest.attempts if standing.newest is not None else 0
        return Ended(standing.key, standing.intent_seq, how, data, "", b"", False, attempts, self.run.clock.now())

    def _ended(self, standing: Standing, error: Exception) -> Ended:
        attempts = standing.newest.attempts if standing.newest is not None else 0
        raised = encode_raised(self.run.codec, error)
        return Ended(
            standing.key,
            standing.intent_seq,
            PERFORMED,
            b"",
            text_of(error),
            raised,
            False,
            attempts,
            self.run.clock.now(),
        )

    def _step(self, ended: Ended | None = None) -> Step:
        code, name = self.declared.step.code, self.declared.name
        shown = self.shown.removeprefix(name)
        step = Step(self.call_id, name, self.fingerprint, shown, code, FAILED, b"", "", b"", 0, 0, 0)
        if ended is None:
            return step
        return step._replace(error=ended.error, raised=ended.raised, attempts=ended.attempts, at=ended.at)

    def _in_doubt(self, doubt: Doubt) -> EffectInDoubtError:
        """Show that the call raises, and return what it raises."""
        error = doubt.error or "its process died, or it was stopped"
        showing.failed(self.owner, self._step()._replace(error=error, attempts=self.tries))
        return EffectInDoubtError(name=doubt.name, key=doubt.key, error=error, thread_id=self.thread_id)


def _bound(declared: Declared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
    """Return the arguments by name. Raises TypeError, as the function itself would, where they do not fit."""
    try:
        return declared.signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{declared.name}(): {error}") from None


def _intent_seq(call: EffectCall, sight: Sight) -> int:
    """Return the record of the intent that a sight is about, where it is this thread's."""
    if sight.row is None or sight.row.thread_id != call.thread_id:
        return 0
    return sight.ended.intent_seq if sight.ended is not None else sight.row.seq
