"""Results that serve again: found under graph, callee, code, version and input before user code is called.

A `Slot` is one call's place in the cache. The rule kept: a result is only found where the call would be the same, and
only kept where it is a success that hangs on nothing but its input; a cache that fails, or holds what cannot be read,
costs the call its shortcut and nothing else.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stepwell.errors import CodecError
from stepwell.graph.policies import CachePolicy
from stepwell.graph.types import MISSING
from stepwell.ids import structural_hash
from stepwell.plan.tables import Callee
from stepwell.runtime.scope import current
from stepwell.store.cache import Cache, CacheKey

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.run import Run
    from stepwell.runtime.steps.calling import StepCode

log = logging.getLogger("stepwell.cache")

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Slot:
    """One call's place in the cache."""

    run: Run
    cache: Cache
    key: CacheKey
    ttl: float | None

    def find(self) -> Any:
        """Return the result that is kept, or MISSING."""
        try:
            stored = self.cache.get(self.key)
        except Exception as error:  # the cache may be the user's own
            self._failed("read", error)
            return MISSING
        if stored is None or not _intact(stored):
            return MISSING
        try:
            return self.run.codec.loads(stored[_DIGEST_BYTES:], f"cached result of {self.key.callee}")
        except CodecError as error:
            self._failed("read", error)
            return MISSING

    def keep(self, value: Any) -> None:
        """Keep a result. Raises UnserializableValueError for what cannot be stored."""
        data = self.run.codec.dumps(value, f"result of {self.key.callee}, to be cached")
        try:
            self.cache.set(self.key, _digest(data) + data, self.ttl)
        except Exception as error:  # the cache may be the user's own
            self._failed("written", error)

    def _failed(self, what: str, error: Exception) -> None:
        log.warning("the cached result of %s could not be %s: %r", self.key.callee, what, error)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _intact(stored: bytes) -> bool:
    return _digest(stored[_DIGEST_BYTES:]) == stored[:_DIGEST_BYTES]


def slot_of(
    run: Run, policy: CachePolicy, callee: str, code: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Slot:
    """Return the place of this call. `code` is what besides the input makes its result another one.

    Raises UnserializableValueError for an input that cannot be told from others, where no `key_func` does.
    """
    assert run.cache is not None
    if policy.key_func is not None:
        given = policy.key_func(*args, **kwargs)
        if not isinstance(given, str | bytes):
            raise TypeError(f"The key_func of {callee} returns text or bytes, not {type(given).__name__}")
    else:
        given = run.codec.canonical((args, kwargs), f"input of {callee}, to be cached")
    digest = structural_hash("cache", run.plan.version, code, given)
    return Slot(run, run.cache, CacheKey(run.plan.graph_id, callee, digest), policy.seconds)


def context_of(run: Run, takes: bool) -> bytes | None:
    """Return what of the run's context counts as input: all of it, for a function that takes the runtime."""
    return run.codec.canonical(run.context, "context of a cached call") if takes and run.context is not None else None


def through(slot: Slot, function: Callable[[], Any], is_async: bool, reused: Callable[[], None]) -> Callable[[], Any]:
    """Return the function behind its slot: not called where a result is found. `reused` is told of that."""
    return partial(_found_later if is_async else _found, slot, function, reused)


def _found(slot: Slot, function: Callable[[], Any], reused: Callable[[], None]) -> Any:
    value = slot.find()
    if value is not MISSING:
        reused()
        return value
    value = function()
    if _stands_alone():
        slot.keep(value)
    return value


async def _found_later(slot: Slot, function: Callable[[], Any], reused: Callable[[], None]) -> Any:
    value = await _beside(slot, slot.find)
    if value is not MISSING:
        reused()
        return value
    value = await function()
    if _stands_alone():
        await _beside(slot, partial(slot.keep, value))
    return value


def _stands_alone() -> bool:
    """Return whether what the running code returned hangs on nothing else, and did nothing else: no question, asked now
    or answered before, no effect, no write to the item store."""
    scope = current.get()
    if scope is None:
        return True
    if scope.wrote or not scope.repeatable:
        return False
    inside = f"{scope.prefix}/"
    return not scope.root.questions and not any(call_id.startswith(inside) for call_id in scope.owner.answers())


async def _beside(slot: Slot, function: Callable[[], Any]) -> Any:
    """Call a function of the slot without blocking this event loop."""
    if not slot.cache.blocking:
        return function()
    from stepwell.runtime.async_driver import on_pool

    return await on_pool(function)


# -- steps ------------------------------------------------------------------------------------------------------------


def cached_step(
    run: Run, declared: StepCode, args: tuple[Any, ...], kwargs: dict[str, Any], function: Callable[[], Any]
) -> Callable[[], Any]:
    """Return a step's body behind the cache."""
    assert declared.cache is not None
    code = (declared.identity, context_of(run, "runtime" in declared.fills.values()))
    slot = slot_of(run, declared.cache, declared.cached_as, code, args, kwargs)
    return through(slot, function, declared.is_async, _reuse_step)


def _reuse_step() -> None:
    scope: Any = current.get()
    scope.reused = True


# -- nodes ------------------------------------------------------------------------------------------------------------


def node_name(name: str) -> str:
    """Return what the results of a node are kept under."""
    return f"node {name}"


def cached_callee(owner: TaskRun, callee: Callee, arg: Any) -> Callee:
    """Return a node's callee behind the cache."""
    run, node = owner.run, owner.node
    assert node.cache is not None
    code = (node.code, run.plan.fingerprint, context_of(run, "runtime" in callee.inject))
    slot = slot_of(run, node.cache, node_name(node.name), code, (arg,), {})

    def call(value: Any, **injected: Any) -> Any:
        return through(slot, partial(callee.call, value, **injected), callee.is_async, owner.reuse)()

    return replace(callee, call=call)
