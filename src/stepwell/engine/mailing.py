"""`CompiledGraph`: what is sent to a thread from outside, whoever holds it. What it means is `runtime/mailing.py`'s."""

from __future__ import annotations

from typing import Any

from stepwell.engine.wiring import Config, Wired
from stepwell.errors import InvalidWaitError
from stepwell.runtime.mailing import DONE, FAILED, complete, send_signal, thread_of


class Mailing(Wired):
    """The sending side of a compiled graph."""

    def signal(self, config: Config, key: str, value: Any = None, *, id: str | None = None) -> str:
        """Send a value to whatever waits for `key` on the thread, now or later; return the signal's id.

        Durable on return, and delivered once, to one `wait_for(key)`; those of one key are delivered in the order in
        which they were sent. The thread may be running, or not have begun. Nothing is run: `invoke(None, config)` goes
        on with a waiting thread. With an `id`, the same signal sent again is accepted once, and another one under that
        id is MessageConflictError. Raises InvalidWaitError, InvalidConfigError, NoCheckpointerError,
        UnserializableValueError.
        """
        parts = self._sending("signal")
        thread_id = self._addressed(config, "signal").thread_id
        assert thread_id is not None
        return send_signal(*parts, thread_id, key, value, id)

    async def asignal(self, config: Config, key: str, value: Any = None, *, id: str | None = None) -> str:
        """Do as `signal`, without blocking the event loop."""
        return await self._off_loop(lambda: self.signal(config, key, value, id=id))  # type: ignore[no-any-return]

    def complete_awakeable(
        self, awakeable_id: str, value: Any = None, *, error: str | None = None, config: Config = None
    ) -> None:
        """Complete an awakeable with a value, or with the text of an error; durable on return.

        It is completed once: the same completion again changes nothing, another one is AwakeableCompletedError with the
        first. The id names its thread; `config` names another, where that is a copy of it. Nothing is run, as with
        `signal`. Raises InvalidWaitError for what is no id, NoCheckpointerError, UnserializableValueError.
        """
        if error is not None and (value is not None or not isinstance(error, str)):
            raise InvalidWaitError(reason="an awakeable is completed with a value, or with the text of an error")
        parts = self._sending("complete_awakeable")
        thread_id = thread_of(awakeable_id)
        if config is not None:
            thread_id = self._addressed(config, "complete_awakeable").thread_id or thread_id
        complete(*parts[:3], thread_id, awakeable_id, (DONE, value) if error is None else (FAILED, error))

    async def acomplete_awakeable(
        self, awakeable_id: str, value: Any = None, *, error: str | None = None, config: Config = None
    ) -> None:
        """Do as `complete_awakeable`, without blocking the event loop."""
        await self._off_loop(lambda: self.complete_awakeable(awakeable_id, value, error=error, config=config))
