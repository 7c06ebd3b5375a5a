"""A doubt, as it is handed to a function that looks the truth up."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from stepwell.graph.callables import function_of
from stepwell.runtime.requests import Body
from stepwell.runtime.steps.calling import StepScope

if TYPE_CHECKING:
    from stepwell.runtime.effects.performing import EffectCall
    from stepwell.runtime.effects.writing import Standing


@dataclass(frozen=True, slots=True)
class Doubt:
    """A call of an effect of which nobody knows whether it has happened."""

    key: str
    """What the body got as its `idempotency_key`."""
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    fingerprint: str
    attempts: int
    started_at: int
    """When its first attempt began, in microseconds of wall time."""
    error: str
    """What the body raised last, as text; "" where its process died, or the call was stopped."""


def doubt_about(call: EffectCall, standing: Standing, error: str) -> Doubt:
    """Return the doubt that a call has about what stands under its key."""
    row = standing.newest
    attempts, started_at = (0, 0) if row is None else (row.attempts, row.started_at)
    return Doubt(
        standing.key, call.declared.name, call.args, call.kwargs, call.fingerprint, attempts, started_at, error
    )


async def consult(call: EffectCall, doubt: Doubt) -> Any:
    """Return the receipt that the effect's `on_doubt` finds. Raises what it raises."""
    look_up = call.declared.on_doubt
    assert callable(look_up)
    is_async = inspect.iscoroutinefunction(function_of(look_up))
    inner = StepScope(call.scope, f"{call.call_id}/on_doubt", call.declared.step)
    inner.keeps_items = False
    return await Body(inner, partial(look_up, doubt), is_async)
