"""What undoes an effect, as its decorator declares it. What could not be called when it comes to it is refused here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NoReturn

from stepwell.runtime.effects.declared import KEY, RAISE, Declared

Refuse = Callable[[str], NoReturn]

_FIRST = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Compensation:
    """A function that undoes an effect, itself an effect. It takes the receipt first."""

    declared: Declared
    takes: tuple[str, ...]
    """What of the effect's own arguments it takes, by name."""


def declare_compensation(
    source: Any, refuse: Refuse, declare: Callable[..., Declared], known: Collection[str], excluded: Collection[str]
) -> Compensation | None:
    """Return what undoes an effect whose arguments have these names; `excluded` ones are not recorded."""
    if source is None:
        return None
    declared = source.declared if isinstance(getattr(source, "declared", None), Declared) else None
    function = source.func if declared is not None else source
    if not callable(function):
        refuse(f"compensate must be a function of the receipt, not {source!r}.")
    takes = _takes(function, refuse, known, excluded)
    if declared is None:
        declared = _plain(function, declare)
    if declared.key is not None or declared.valid_for is not None or declared.compensate is not None:
        refuse("its compensation has a key of its own, made of the effect's: leave key, valid_for and compensate out.")
    if declared.approval is not None:
        refuse("its compensation asks for approval, and nobody is asked when it is called: leave approval out.")
    if declared.step.fills:
        filled = ", ".join(sorted(declared.step.fills))
        refuse(f"its compensation takes {filled}, and no node runs when it is called. Take the receipt and arguments.")
    return Compensation(declared, takes)


def _plain(function: Callable[..., Any], declare: Callable[..., Declared]) -> Declared:
    """Return a plain function as an effect: without the key, a doubt about it is an operator's to resolve."""
    named = {} if hasattr(function, "__name__") and function.__name__ != "<lambda>" else {"name": "compensation"}
    takes_key = KEY in inspect.signature(function).parameters
    return declare(function, named if takes_key else {**named, "on_doubt": RAISE})


def _takes(
    function: Callable[..., Any], refuse: Refuse, known: Collection[str], excluded: Collection[str]
) -> tuple[str, ...]:
    try:
        first, *rest = inspect.signature(function).parameters.values()
    except ValueError:  # no parameter, or none that can be read
        refuse("its compensation takes nothing: its first parameter is for the receipt.")
    if first.kind not in _FIRST or first.name == KEY:
        refuse(f"the first parameter of its compensation is for the receipt, and {first.name!r} cannot take it.")
    takes = []
    for each in rest:
        if each.name == KEY or each.kind in _VARIADIC:
            continue
        if each.name in known and each.name not in excluded and each.kind is not inspect.Parameter.POSITIONAL_ONLY:
            takes.append(each.name)
        elif each.default is inspect.Parameter.empty:
            why = "is excluded, so not recorded" if each.name in excluded else "is no argument of the effect"
            refuse(f"its compensation asks for {each.name!r}, which {why}. It has: {', '.join(sorted(known))}.")
    return tuple(takes)
