"""A body at work, on whatever thread or loop it runs: it comes back, or is given up, and whichever is first counts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from stepwell.errors import StepOverError
from stepwell.runtime.effects.declared import KEY
from stepwell.runtime.effects.writing import Standing
from stepwell.runtime.journal import Entry, journal_of
from stepwell.runtime.steps.calling import filled

if TYPE_CHECKING:
    from stepwell.runtime.effects.performing import EffectCall


class Work:
    """One run of a body. It comes back, or is given up; whichever is first counts."""

    def __init__(self, call: EffectCall, standing: Standing) -> None:
        self.call = call
        self.standing = standing
        self.value: Any = None
        self.raised: BaseException | None = None
        self._lock = threading.Lock()
        self._came_back = False
        self._given_up = False
        declared = call.declared
        kwargs = filled(call.owner, call.scope, declared.step, call.kwargs)
        if declared.takes_key:
            kwargs = {**kwargs, KEY: standing.key}
        self._function: Callable[[], Any] = partial(declared.step.function, *call.args, **kwargs)
        self.body = self._run_async if declared.step.is_async else self._run

    def goes_on(self) -> bool:
        """Tell whether somebody still waits for it."""
        return not self._given_up and not self.call.scope.is_over

    def give_up(self) -> bool:
        """Wait for it no longer; False where it has returned."""
        with self._lock:
            self._given_up = not self._came_back
            return self._given_up

    def _is_late(self, value: Any) -> bool:
        with self._lock:
            self.value = value
            self._came_back = not self._given_up
            return self._given_up

    def _run(self) -> Any:
        try:
            value = self._function()
        except BaseException as error:
            self.raised = error
            raise
        if self._is_late(value):
            self._settle(journal_of(self.call.run).record)
        return value

    async def _run_async(self) -> Any:
        try:
            value = await self._function()
        except BaseException as error:
            self.raised = error
            raise
        if self._is_late(value):
            self._settle(journal_of(self.call.run).leave_late)
        return value

    def _settle(self, write: Callable[[Entry], None]) -> None:
        """Nobody waits any more: say what came of it, if nothing else has."""
        entry = self.call.late(self.standing, self.value)
        try:
            write(entry)
        except StepOverError:
            journal_of(self.call.run).leave_late(entry)
