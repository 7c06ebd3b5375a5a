"""What an effect is declared to be. What could not be safe is refused here, when its module is imported."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from stepwell.errors import EffectDeclarationError, InvalidGraphError
from stepwell.graph.approval import Approval
from stepwell.graph.callables import function_of, name_of
from stepwell.graph.effect_rules import default_fails_on
from stepwell.graph.nodes import retry_policies
from stepwell.graph.policies import TimeoutPolicy, idle_needs_async
from stepwell.ids import is_holdable
from stepwell.runtime.steps.calling import StepCode
from stepwell.runtime.steps.task import declare as declare_step
from stepwell.superstep.effects.keys import POSITION, SCOPES, THREAD
from stepwell.superstep.effects.rules import ON_FORK, REUSE

if TYPE_CHECKING:
    from stepwell.runtime.effects.compensation import Compensation

KEY = "idempotency_key"
"""The parameter by which a function takes the key."""

RETRY: Literal["retry"] = "retry"
RAISE: Literal["raise"] = "raise"

OnDoubt = Literal["retry", "raise"] | Callable[..., Any]
FailsOn = type[Exception] | tuple[type[Exception], ...] | Callable[[BaseException], bool]

OPTIONS = (
    "name", "fails_on", "on_doubt", "key", "scope", "on_fork", "valid_for", "exclude", "versions", "retry_policy",
    "timeout", "planned_action", "approval", "compensate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Declared:
    """An effect as its decorator declares it."""

    step: StepCode
    signature: inspect.Signature
    """Of what its caller gives: without the key, and without what the engine fills in."""
    takes_key: bool
    fails_on: Callable[[BaseException], bool]
    on_doubt: OnDoubt
    key: str | Callable[..., str] | None
    scope: str
    on_fork: str
    valid_for: int | None
    """Microseconds."""
    exclude: frozenset[str]
    versions: Mapping[str, str]
    planned_action: str | Callable[..., str] | None
    approval: Approval | None
    compensate: Compensation | None = None
    """What undoes it."""

    @property
    def name(self) -> str:
        return self.step.name


class _Options:
    """The options of one effect, as they are checked."""

    def __init__(self, source: Callable[..., Any], given: Mapping[str, Any]) -> None:
        self.source = source
        self.given = given
        self.name = name_of(source) if given.get("name") is None else given["name"]

    def refuse(self, reason: str) -> NoReturn:
        name = self.name or "<lambda>"
        raise EffectDeclarationError(name=name, reason=reason)

    def get(self, option: str, default: Any = None) -> Any:
        found = self.given.get(option)
        return default if found is None else found


def declare(source: Callable[..., Any], given: Mapping[str, Any]) -> Declared:
    """Return a function as an effect. EffectDeclarationError for one that could not be safe, saying what to declare."""
    options = _Options(source, given)
    _check_known(options)
    step = _step(options)
    parameters = _parameters(options)
    takes_key = KEY in parameters
    left = [each for name, each in parameters.items() if name != KEY and name not in step.fills]
    key, scope = _key(options)
    return Declared(
        step=step,
        signature=inspect.Signature(left),
        takes_key=takes_key,
        fails_on=_fails_on(options),
        on_doubt=_on_doubt(options, takes_key, step.is_async),
        key=key,
        scope=scope,
        on_fork=_on_fork(options),
        valid_for=_valid_for(options),
        exclude=_exclude(options, {each.name for each in left}),
        versions=_versions(options),
        planned_action=_planned_action(options),
        approval=_approval(options),
        compensate=_compensate(options, {each.name for each in left}),
    )


def _check_known(options: _Options) -> None:
    for option in options.given:
        if option not in OPTIONS:
            near = difflib.get_close_matches(option, OPTIONS, 1)
            meant = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(OPTIONS)}."
            options.refuse(f"it has no option {option!r}.{meant}")
    if options.name is not None and (not isinstance(options.name, str) or not options.name):
        options.refuse(f"name must be a text, not {options.name!r}.")


def _step(options: _Options) -> StepCode:
    if not callable(options.source):
        options.refuse(f"it is a {type(options.source).__name__}, and nothing that can be called.")
    if options.name is None:
        options.refuse("it is recorded by its name, and a lambda has none. Give name=...")
    if inspect.isgeneratorfunction(function_of(options.source)) or inspect.isasyncgenfunction(
        function_of(options.source)
    ):
        options.refuse("it is a generator function. Return the receipt instead.")
    try:
        retry, timeout = retry_policies(options.get("retry_policy")), TimeoutPolicy.coerce(options.get("timeout"))
    except (TypeError, InvalidGraphError) as error:
        options.refuse(f"{error}.")
    is_async = inspect.iscoroutinefunction(function_of(options.source))
    if timeout is not None and timeout.idle_timeout is not None and not is_async:
        options.refuse(idle_needs_async(options.name))
    try:
        return declare_step(options.source, options.name, retry, timeout)
    except InvalidGraphError as error:
        options.refuse(str(error))


def _parameters(options: _Options) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(options.source).parameters)
    except (TypeError, ValueError):
        options.refuse("its parameters cannot be read. Wrap it in a function of your own.")
    found = parameters.get(KEY)
    if found is not None and found.kind is inspect.Parameter.POSITIONAL_ONLY:
        options.refuse(f"{KEY} is passed by its name: it must not be positional only.")
    return parameters


def _on_doubt(options: _Options, takes_key: bool, is_async: bool) -> OnDoubt:
    chosen = options.get("on_doubt", RETRY if takes_key else None)
    ways = (
        'on_doubt="raise" leaves it to an operator; a function that looks at the other side returns the receipt or'
        f' raises EffectNotPerformed; with a parameter {KEY}, which the other side honours, on_doubt="retry" is safe'
    )
    if chosen is None:
        options.refuse(f"it takes no {KEY}, so a call whose outcome is not known cannot be repeated. Declare: {ways}.")
    if chosen == RETRY:
        if not takes_key:
            options.refuse(f'on_doubt="retry" repeats it, and without a parameter {KEY} that may happen twice: {ways}.')
        return RETRY
    if chosen == RAISE:
        return RAISE
    if not callable(chosen):
        options.refuse(f"on_doubt must be {RETRY!r}, {RAISE!r} or a function, not {chosen!r}: {ways}.")
    if not _takes_a_doubt(chosen):
        options.refuse("its on_doubt is called with one argument, a Doubt, and does not take that.")
    if inspect.iscoroutinefunction(function_of(chosen)) and not is_async:
        options.refuse("its on_doubt is async and it is not. Make both async, or both sync.")
    return cast("OnDoubt", chosen)


def _takes_a_doubt(function: Callable[..., Any]) -> bool:
    """Tell whether a function can be called with one argument; where nobody can know, it is believed."""
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        parameters.bind(None)
    except TypeError:
        return False
    return True


def _key(options: _Options) -> tuple[str | Callable[..., str] | None, str]:
    key, scope = options.get("key"), options.get("scope")
    if key is None:
        if scope is not None:
            options.refuse(f"scope={scope!r} says where a key is known, and it has none. Give key=... too.")
        return None, POSITION
    if not (callable(key) or (isinstance(key, str) and key)):
        options.refuse(f"key must be a text or a function of the arguments that returns one, not {key!r}.")
    if isinstance(key, str) and not is_holdable(key):
        options.refuse(f"key is valid Unicode without NUL, not {key!r}.")
    if scope is not None and scope not in SCOPES:
        options.refuse(f"scope must be one of {SCOPES}, not {scope!r}.")
    if options.get("on_fork") is not None:
        options.refuse(
            "a key of your own is the same in every fork, so its receipt is always reused. Leave on_fork out."
        )
    return key, scope or THREAD


def _on_fork(options: _Options) -> str:
    chosen = options.get("on_fork", REUSE)
    if chosen not in ON_FORK:
        options.refuse(f"on_fork must be one of {ON_FORK}, not {chosen!r}.")
    return str(chosen)


def _fails_on(options: _Options) -> Callable[[BaseException], bool]:
    chosen = options.get("fails_on", default_fails_on)
    kinds = chosen if isinstance(chosen, tuple) else (chosen,)
    if all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        if any(kind in (Exception, BaseException) for kind in kinds):
            options.refuse(
                "fails_on names exceptions after which nothing has happened for sure, and Exception is every one."
                " Name those raised before the other side is reached."
            )
        return lambda error: isinstance(error, kinds)
    if not callable(chosen) or isinstance(chosen, type):
        options.refuse(f"fails_on must be exception classes or a function of the exception, not {chosen!r}.")
    return cast("Callable[[BaseException], bool]", chosen)


def _valid_for(options: _Options) -> int | None:
    chosen = options.get("valid_for")
    if chosen is None:
        return None
    return _microseconds(options, "valid_for", chosen)


def _microseconds(options: _Options, option: str, chosen: Any) -> int:
    seconds = chosen.total_seconds() if isinstance(chosen, timedelta) else chosen
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e10:
        options.refuse(f"{option} must be a number of seconds above 0 or a timedelta, not {chosen!r}.")
    return int(seconds * 1e6)


def _exclude(options: _Options, parameters: set[str]) -> frozenset[str]:
    chosen = options.get("exclude", ())
    if isinstance(chosen, str) or not isinstance(chosen, Sequence | set | frozenset):
        options.refuse(f"exclude must be a list of names of parameters, not {chosen!r}.")
    for name in chosen:
        if name not in parameters:
            known = ", ".join(sorted(parameters)) or "none"
            options.refuse(f"exclude names {name!r}, which is no parameter of it. There are: {known}.")
    return frozenset(chosen)


def _versions(options: _Options) -> Mapping[str, str]:
    chosen = options.get("versions", {})
    if not isinstance(chosen, Mapping) or not all(isinstance(text, str) for pair in chosen.items() for text in pair):
        options.refuse(f'versions must map names to texts, as {{"prompt": "3"}}, not {chosen!r}.')
    if not all(is_holdable(text) for pair in chosen.items() for text in pair):
        options.refuse(f"versions are valid Unicode without NUL, not {chosen!r}.")
    return dict(chosen)


def _planned_action(options: _Options) -> str | Callable[..., str] | None:
    chosen = options.get("planned_action")
    if chosen is not None and not isinstance(chosen, str) and not callable(chosen):
        options.refuse(f"planned_action must be a text or a function of the arguments, not {chosen!r}.")
    if isinstance(chosen, str) and not is_holdable(chosen):
        options.refuse(f"planned_action is valid Unicode without NUL, not {chosen!r}.")
    return cast("str | Callable[..., str] | None", chosen)


def _approval(options: _Options) -> Approval | None:
    chosen = options.get("approval", False)
    if isinstance(chosen, bool):
        return Approval() if chosen else None
    if not isinstance(chosen, Approval):
        options.refuse(f"approval must be True or an Approval, not {chosen!r}.")
    if chosen.show is not None and not callable(chosen.show):
        options.refuse(f"what its approval shows must be a function of the arguments, not {chosen.show!r}.")
    if chosen.expires is not None:
        _microseconds(options, "expires", chosen.expires)
    return chosen


def _compensate(options: _Options, parameters: set[str]) -> Compensation | None:
    if options.get("compensate") is None:
        return None
    from stepwell.runtime.effects.compensation import declare_compensation

    return declare_compensation(
        options.get("compensate"), options.refuse, declare, parameters, set(options.get("exclude", ()))
    )
