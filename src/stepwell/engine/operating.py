"""`CompiledGraph`: the operator's hand on what a thread has done to the outside world."""

from __future__ import annotations

from typing import Any

from stepwell.engine.wiring import Config, Wired
from stepwell.graph.types import MISSING
from stepwell.runtime.effects.compensating import Undone, compensate
from stepwell.runtime.effects.resolving import decision_of, resolve
from stepwell.runtime.reading.journal import entry_at
from stepwell.runtime.reading.journal_entry import JournalEntry
from stepwell.runtime.run import Request, Run
from stepwell.runtime.steps.driving import drive


class Operating(Wired):
    """What somebody does about a thread's effects."""

    def resolve_effect(
        self,
        config: Config,
        key: str,
        *,
        receipt: Any = MISSING,
        retry: bool = False,
        failed: str | bool | None = None,
        by: str | None = None,
        reason: str = "",
    ) -> JournalEntry:
        """Say what is known of an effect in doubt, and have it go on by that; return the decision as it is recorded.

        `receipt`: it has happened, and calls return this. `failed` (a text that says why, or True): it has not
        happened; a call performs it, under the same key. `retry=True`: it is still not known, and one more attempt
        under the same key is allowed all the same. `by`: who decides; the user of this process, unless given.
        `reason`: why.

        Durable on return: the decision, with who, when and why, and how the effect stands by it, in one transaction.
        Nothing is run: `invoke(None, config)` goes on. An effect of the scope "global" can be resolved through any
        thread of the database, which then holds the decision.

        Raises EffectNotInDoubtError where it is done, failed or compensated, UnknownEffectError, UnknownThreadError,
        ThreadBusyError while somebody runs the thread, EffectBusyError while another thread performs it,
        InvalidResolutionError, UnserializableValueError.
        """
        store, codec, clock, _ = self._sending("resolve_effect")
        thread_id = self._addressed(config, "resolve_effect").thread_id
        assert thread_id is not None
        decision = decision_of(key, receipt, retry, failed, by, reason)
        seq = resolve(store, codec, clock, thread_id, key, decision)
        return entry_at(store, codec, thread_id, seq)

    async def aresolve_effect(
        self,
        config: Config,
        key: str,
        *,
        receipt: Any = MISSING,
        retry: bool = False,
        failed: str | bool | None = None,
        by: str | None = None,
        reason: str = "",
    ) -> JournalEntry:
        """Do as `resolve_effect`, without blocking the event loop."""

        def resolved() -> JournalEntry:
            return self.resolve_effect(config, key, receipt=receipt, retry=retry, failed=failed, by=by, reason=reason)

        return await self._off_loop(resolved)  # type: ignore[no-any-return]

    def compensate(self, config: Config) -> tuple[Undone, ...]:
        """Undo what the thread has done: call the compensations of its effects, the last receipt first; return what
        became of each effect.

        It is about what the lineage of `config` has done, its ancestors' part included. Each compensation is an effect
        under a key made of its effect's: an intent before it, a receipt after it, and with that receipt, in the same
        transaction, its effect is compensated, in every lineage. Called again, it goes on where it was. What declares
        no compensation, and what is in doubt itself, is left as it is, and listed. No node runs, and the state of the
        thread stays.

        Raises EffectInDoubtError where nobody knows whether a compensation has happened (resolve it under its own key),
        what a compensation raises, CannotCompensateError before any where one is not declared in this process,
        ThreadBusyError while somebody runs the thread, NestedThreadError, UnknownCheckpointError, NoCheckpointerError.
        """
        return drive(compensate(self._undoing(config), blocks=True))  # type: ignore[no-any-return]

    async def acompensate(self, config: Config) -> tuple[Undone, ...]:
        """Do as `compensate`, on this event loop."""
        from stepwell.runtime.steps.async_driving import drive_async

        return await drive_async(compensate(self._undoing(config), blocks=False))  # type: ignore[no-any-return]

    def _undoing(self, config: Config) -> Run:
        store, codec, clock, ids = self._sending("compensate")
        request = Request(None, self._addressed(config, "compensate"))
        return Run(self.plan, codec, store, request, clock, ids, leases=self._leases)
