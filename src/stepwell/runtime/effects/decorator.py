"""`@effect` and `wrap_tool`: functions whose calls from a node happen once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from stepwell.runtime.effects.declared import Declared, declare
from stepwell.runtime.effects.performing import call_effect
from stepwell.runtime.scope import running

Result = TypeVar("Result")


class EffectFunction(Generic[Result]):
    """A function that changes the outside world. Called from a node like the function itself, without the parameters
    that the engine fills in."""

    def __init__(self, function: Callable[..., Result], declared: Declared) -> None:
        self.func = function
        self.declared = declared
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.declared.name

    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        """Perform it, or return the receipt where it has happened; of an async function, an awaitable of that.

        Before the body begins its intent is on disk, in every durability mode; before this returns its receipt is.
        Raises what the body raises where nothing has happened, EffectInDoubtError where that cannot be known and
        nothing declared settles it, EffectBusyError while another caller performs it, IdempotencyConflictError and
        NonDeterminismError where the key or the position was used for something else, EffectForbiddenError and
        EffectCompensatedError, ApprovalRejectedError and ApprovalExpiredError where somebody, or nobody, decided,
        NoCheckpointerError without a checkpointer, RuntimeError outside of a run.
        """
        result: Result = call_effect(running(f"effect {self.name!r}"), self.declared, args, kwargs)
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<effect {self.name}>"


@overload
def effect(function: Callable[..., Result], /) -> EffectFunction[Result]: ...
@overload
def effect(**options: Any) -> Callable[[Callable[..., Result]], EffectFunction[Result]]: ...
def effect(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make calls of a function happen once, whatever crashes, retries, pauses and forks come between.

    A call writes its intent, then runs the body, then writes what the body returned: the receipt. A node that runs
    again gets the receipt. A call whose intent stands without a receipt is *in doubt*: it may have happened. Make one
    request in one effect, and return what you need of the answer.

    If the function has a parameter `idempotency_key`, it is given the call's key, the same for every attempt: pass it
    to the other side.

    Options, each by its name:

    - `on_doubt`: what to do about a doubt. `"retry"`: call the body again with the same key; only for a function that
      takes the key, and its default. `"raise"`: EffectInDoubtError. A function of a `Doubt`: it looks at the other
      side, returns the receipt, or raises EffectNotPerformed, and then the body may run again.
    - `fails_on`: exceptions (classes, or a function of the exception) after which nothing has happened. By default:
      connection refused, the name does not resolve, and others raised before a request is sent. EffectNotPerformed
      always says so. Any other exception, a timeout and a cancellation leave the call in doubt.
    - `key`: a key of your own, a text or a function of the arguments, instead of the position of the call. `scope`:
      `"thread"` (default) or `"global"`, for all threads of the database.
    - `on_fork`: what a fork does about what happened before it, or in other forks of the same checkpoint. `"reuse"`
      (default) returns the receipt of the same call, `"reissue"` always performs anew, `"forbid"` is
      EffectForbiddenError.
    - `valid_for`: seconds, or a timedelta, for which a receipt is reused. An older one is not: the call is a new effect
      under a new key.
    - `exclude`: parameters that do not make calls different, as clients.
    - `versions`: texts to record, as `{"prompt": "3", "tool": "1.2"}`. `planned_action`: a text, or a function of the
      arguments, that says for people what is about to happen.
    - `retry_policy`: as for nodes, on attempts of this call: of one that failed, and, with `on_doubt="retry"`, of one
      in doubt. `timeout`: seconds, a timedelta or a TimeoutPolicy for one attempt.
    - `approval`: True, or an Approval with a deadline: somebody has to decide before it happens. The call leaves the
      node with the question, and raises ApprovalRejectedError or ApprovalExpiredError where the answer is no.
    - `compensate`: a function that undoes it: `graph.compensate(config)` calls it with the receipt and, by their names,
      with what it takes of the arguments and the `idempotency_key` of the undoing. It is an effect itself; without that
      parameter, a doubt about it is an operator's to resolve.
    - `name`: what it is recorded by; the function's own name by default.

    EffectDeclarationError, here, for what could not be safe.
    """

    def decorate(source: Callable[..., Any]) -> EffectFunction[Any]:
        made: EffectFunction[Any] = EffectFunction(source, declare(source, options))
        registered[made.name] = made
        return made

    return decorate if function is None else decorate(function)


def wrap_tool(tool: Callable[..., Result], /, **options: Any) -> EffectFunction[Result]:
    """Return a callable that you cannot decorate, as an effect. Options as for `effect`."""
    wrapped: EffectFunction[Result] = effect(**options)(tool)
    return wrapped


registered: dict[str, EffectFunction[Any]] = {}
"""Effects of this process by name: what is recorded names them so. Of two with one name the later one stands."""
