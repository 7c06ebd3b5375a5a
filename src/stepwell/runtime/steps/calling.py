"""What happens when a durable step is called: replayed if it is recorded, else run and recorded. Written once.

A step that succeeded is handed on as it will be read back: a node sees the same value now and when it runs again.
"""

from __future__ import annotations

import reprlib
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from stepwell.codec import is_scalar
from stepwell.errors import NonDeterminismError, StepOverError, UnserializableValueError
from stepwell.graph import retry_rules
from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy
from stepwell.ids import structural_hash
from stepwell.runtime.caching import cached_step
from stepwell.runtime.deadlines import Deadline
from stepwell.runtime.journal import Draft, Entry, journal_of
from stepwell.runtime.requests import Body, Record, Sleep
from stepwell.runtime.scope import Scope
from stepwell.runtime.steps import showing
from stepwell.runtime.steps.children import Children
from stepwell.runtime.steps.driving import Arriving, Steps, start_on_background_loop, start_on_thread
from stepwell.runtime.steps.turns import turn_of
from stepwell.superstep import lifecycle
from stepwell.superstep.step_body import encode_step, error_of, failed_step
from stepwell.superstep.steps import ATTEMPT, DONE, FAILED, Step

if TYPE_CHECKING:
    import asyncio

    from stepwell.runtime.calls import Call, TaskRun
    from stepwell.runtime.run import Run
    from stepwell.runtime.steps.threads import StepThreads
    from stepwell.superstep.items import ItemWrite


@dataclass(frozen=True, slots=True)
class StepCode:
    """A function as its decorator declares it."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    code: str
    """Version of its code."""
    retry: tuple[RetryPolicy, ...] = ()
    timeout: TimeoutPolicy | None = None
    fills: Mapping[str, str] = field(default_factory=dict)
    """What of the engine's it takes: parameter → value."""
    cache: CachePolicy | None = None
    cached_as: str = ""
    """What its results are kept under."""
    identity: str = ""
    """What tells its code from other code, where it has a cache policy."""


class StepScope(Scope):
    """The surroundings of a step's body: inside those of the code that called it."""

    owner: TaskRun
    outer: Scope
    reused = False
    """Whether the body was not called: the cache had what it would return."""

    def __init__(self, outer: Scope, call_id: str, declared: StepCode) -> None:
        self.outer = outer
        self.owner = outer.owner  # type: ignore[assignment]  # the owner of a node's code is its task run
        self.prefix = call_id
        self.name = declared.name
        self.is_async = declared.is_async
        self.deadline = outer.deadline


def call_step(scope: Scope, declared: StepCode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a step; return the future of its result: an asyncio one where the caller is on a loop."""
    call: Call = scope.root  # type: ignore[assignment]  # the outermost scope of a node's code is its call
    run = call.owner.run
    on_loop = scope.calls_on_loop()
    call_id = scope.call_id(declared.name, (args, kwargs))
    step = _called(run, call_id, declared, args, kwargs)
    known = call.owner.steps().get(call_id)
    if known is not None:
        check_same(scope, known, step)
    showing.called(call.owner, step, args, kwargs)
    if known is not None:
        scope.hangs_on_more()  # what it did when it ran is not looked into again
        if known.status in (DONE, FAILED):
            _hand_on(scope, known.items)
            return _over(run, known, on_loop)
        step = known
    given = filled(call.owner, scope, declared, kwargs)
    function: Callable[[], Any] = partial(declared.function, *args, **given)
    if run.cache is not None and declared.cache is not None:
        function = cached_step(run, declared, args, kwargs, function)
    steps = perform(scope, declared, step, function)
    return _started(scope, declared, steps, on_loop)


async def perform(scope: Scope, declared: StepCode, step: Step, function: Callable[[], Any]) -> Any:
    """Run a step, as often as its retry policy allows, and record what comes of it."""
    run = _run_of(scope)
    clock = run.clock
    step = step._replace(first_at=step.first_at or clock.now())
    while True:
        if step.status == ATTEMPT and step.attempts and (ahead := step.at - clock.now()) > 0:
            await Sleep(ahead / 1e6)
        if _comes_late(scope, run):
            raise StepOverError(step_id=step.call_id)
        _progress(scope)
        inner = StepScope(scope, step.call_id, declared)
        if declared.timeout is not None:
            inner.deadline = Deadline(declared.timeout, clock.monotonic, scope.hears)
        showing.begun(inner.owner, step)
        try:
            value = await Body(inner, function, declared.is_async, inner.deadline if declared.timeout else None)
            _progress(scope)
            data = b"" if run.store is None else run.codec.dumps(value, f"result of {step.callee}")
        except Exception as error:
            step = _after(run, declared, step, error)
            await _recorded(scope, run, step)
            if step.status == FAILED:
                showing.failed(inner.owner, step)
                raise
        else:
            return await _done(inner, run, step._replace(items=inner.wrote), value, data)


def _comes_late(scope: Scope, run: Run) -> bool:
    """Tell whether the code that calls has been given up, or its run is over: nothing more is to happen for it."""
    return scope.is_over or (run.store is not None and run.ledger.run_row is None)


def _progress(scope: Scope) -> None:
    if (hears := scope.hears) is not None:
        hears.progress()


async def _done(scope: StepScope, run: Run, step: Step, value: Any, data: bytes) -> Any:
    if run.store is None:
        _hand_on(scope.outer, step.items)
        showing.finished(scope.owner, step._replace(status=DONE, attempts=step.attempts + 1), value, scope.reused)
        return value
    step = step._replace(status=DONE, value=data, attempts=step.attempts + 1, at=run.clock.now())
    await _recorded(scope.outer, run, step)
    _hand_on(scope.outer, step.items)
    showing.finished(scope.owner, step, value, scope.reused)
    return value if is_scalar(value) else run.codec.loads(data)


def _hand_on(scope: Scope, items: tuple[ItemWrite, ...]) -> None:
    """What a step wrote to the item store is from now on written by the code that called it."""
    if items and (store := scope.root.items) is not None:
        store.hold(scope, items)


def _after(run: Run, declared: StepCode, step: Step, error: Exception) -> Step:
    """Return the step after an attempt that raised this: failed, or due again."""
    attempts, now = step.attempts + 1, run.clock.now()
    policy = next((policy for policy in declared.retry if policy.matches(error)), None)
    if policy is None or attempts >= policy.max_attempts:
        return failed_step(run.codec, step, error, FAILED, attempts, now)
    delay = retry_rules.delay(policy, attempts, error, now / 1e6, run.jitter())
    return failed_step(run.codec, step, error, ATTEMPT, attempts, now + int(delay * 1e6))


async def _recorded(scope: Scope, run: Run, step: Step) -> None:
    if run.store is None:
        return

    def note(owner: TaskRun, rows: Any) -> None:
        owner.base.stepped(owner.task.id, step)

    await Record(Entry(scope, step.call_id, [Draft(lifecycle.STEP, encode_step(step))], noted=note))


# -- what is called ---------------------------------------------------------------------------------------------------


def _called(run: Run, call_id: str, declared: StepCode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
    if run.store is None:
        return Step(call_id, declared.name, "", "", declared.code, ATTEMPT, b"", "", b"", 0, 0, 0)
    inputs = inputs_digest(run, args, kwargs)
    shown = shown_inputs(args, kwargs)
    return Step(call_id, declared.name, inputs, shown, declared.code, ATTEMPT, b"", "", b"", 0, 0, 0)


def inputs_digest(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the digest of what a step is called with; "" where that holds what cannot be stored."""
    try:
        return structural_hash("inputs", run.codec.canonical((args, kwargs)))
    except UnserializableValueError:
        return ""


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def shown_inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return what a step is called with, shortened, as it is written in a call."""
    shown = [_short.repr(value) for value in args] + [f"{name}={_short.repr(value)}" for name, value in kwargs.items()]
    return f"({', '.join(shown)})"


def check_same(scope: Scope, known: Step, step: Step) -> None:
    """Refuse a call that was recorded with other arguments: the code that makes it fails, whatever it makes of that."""
    if known.inputs and step.inputs and known.inputs != step.inputs:
        call: Call = scope.root  # type: ignore[assignment]  # as above
        call.journalled, call.broken = (
            True,
            NonDeterminismError(
                thread_id=call.owner.base.identity.thread_id,
                step_id=known.call_id,
                recorded=f"{known.callee}{known.shown}",
                attempted=f"{step.callee}{step.shown}",
                recorded_code=known.code,
                called_code=step.code,
            ),
        )
        raise call.broken


def filled(owner: TaskRun, scope: Scope, declared: StepCode, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of the call with the engine's values where the function takes them and none was given."""
    if not declared.fills:
        return kwargs
    runtime = owner.runtime(scope.hears, scope.root.items)
    values: dict[str, Callable[[], Any]] = {
        "config": lambda: owner.config(scope.hears),
        "runtime": lambda: runtime,
        "writer": lambda: runtime.stream_writer,
        "store": lambda: runtime.store,
        "previous": lambda: runtime.previous,
    }
    missing = {name: values[value]() for name, value in declared.fills.items() if name not in kwargs}
    return {**missing, **kwargs}


# -- where it runs ----------------------------------------------------------------------------------------------------


def _run_of(scope: Scope) -> Run:
    return scope.owner.run  # type: ignore[attr-defined,no-any-return]


def _over(run: Run, known: Step, on_loop: bool) -> Any:
    """Return the future of a step that is recorded."""
    future: Future[Any] | asyncio.Future[Any]
    future = sys.modules["asyncio"].get_running_loop().create_future() if on_loop else Arriving()
    if known.status == DONE:
        future.set_result(run.codec.loads(known.value, f"result of {known.callee}"))
        return future
    future.set_exception(error_of(run.codec, known))
    if on_loop:
        future.exception()
    return future


def _started(scope: Scope, declared: StepCode, steps: Steps, on_loop: bool) -> Any:
    """Start a step where its caller is: on the loop, or beside the thread."""
    children, turn = children_of(scope), turn_of(_run_of(scope))
    if not on_loop and not declared.is_async:
        step = start_on_thread(steps, _threads(scope), turn)
        children.add(step, step.cancel)
        return step
    future: Future[Any] | asyncio.Future[Any]
    if on_loop:
        from stepwell.runtime.steps.async_driving import start_on_loop

        future = start_on_loop(steps, turn)
    else:
        future = start_on_background_loop(steps, turn)
    children.add(future, None if turn is None else partial(turn.give_up, future.cancel))
    return future


def _threads(scope: Scope) -> StepThreads:
    """Return the threads of the steps that this code calls."""
    return journal_of(_run_of(scope)).threads if scope.outer is None else _threads(scope.outer).within()


def children_of(scope: Scope) -> Children:
    """Return what this code has started."""
    if scope.children is None:
        with _making:
            if scope.children is None:
                scope.children = Children()
    return scope.children


_making = threading.Lock()
