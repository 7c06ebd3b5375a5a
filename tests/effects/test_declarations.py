"""What could not be safe is refused when it is declared, with what to declare instead."""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from stepwell import Doubt, EffectDeclarationError, effect, wrap_tool
from stepwell.runtime.effects.decorator import registered


def keyed(amount: int, *, idempotency_key: str) -> int:
    return amount


def plain(amount: int) -> int:
    return amount


async def acting(amount: int) -> int:
    return amount


async def looking(doubt: Doubt) -> int:
    return 0


def generating(amount: int, idempotency_key: str) -> Any:
    yield amount


def positional(idempotency_key: str, /) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "options", "reason"),
    [
        (plain, {}, 'no idempotency_key.*on_doubt="raise".*EffectNotPerformed.*on_doubt="retry" is safe'),
        (plain, {"on_doubt": "retry"}, "without a parameter idempotency_key that may happen twice"),
        (keyed, {"on_doubt": "again"}, "on_doubt must be 'retry', 'raise' or a function, not 'again'"),
        (plain, {"on_doubt": looking}, "its on_doubt is async and it is not"),
        (plain, {"on_doubt": lambda doubt, more: None}, "called with one argument, a Doubt, and does not take that"),
        (keyed, {"on_doubts": "raise"}, "no option 'on_doubts'. Did you mean 'on_doubt'"),
        (keyed, {"zzz": 1}, "no option 'zzz'. There are name, fails_on"),
        (keyed, {"scope": "global"}, "scope='global' says where a key is known, and it has none"),
        (keyed, {"key": "k", "scope": "tenant"}, "scope must be one of"),
        (keyed, {"key": ""}, "key must be a text or a function"),
        (keyed, {"key": 7}, "key must be a text or a function"),
        (keyed, {"key": "k", "on_fork": "reuse"}, "the same in every fork.*Leave on_fork out"),
        (keyed, {"on_fork": "maybe"}, "on_fork must be one of"),
        (keyed, {"exclude": ["client"]}, "exclude names 'client', which is no parameter of it. There are: amount"),
        (keyed, {"exclude": ["idempotency_key"]}, "exclude names 'idempotency_key'"),
        (keyed, {"exclude": "amount"}, "exclude must be a list of names"),
        (keyed, {"valid_for": 0}, "valid_for must be a number of seconds above 0"),
        (keyed, {"valid_for": True}, "valid_for must be"),
        (keyed, {"valid_for": timedelta(seconds=-1)}, "valid_for must be"),
        (keyed, {"valid_for": float("nan")}, "valid_for must be"),
        (keyed, {"versions": {"prompt": 3}}, "versions must map names to texts"),
        (keyed, {"versions": "3"}, "versions must map names to texts"),
        (keyed, {"planned_action": 3}, "planned_action must be a text or a function"),
        (keyed, {"fails_on": Exception}, "Exception is every one"),
        (keyed, {"fails_on": (ValueError, BaseException)}, "Exception is every one"),
        (keyed, {"fails_on": "ValueError"}, "fails_on must be exception classes or a function"),
        (keyed, {"name": 3}, "name must be a text"),
        (keyed, {"name": ""}, "name must be a text, not ''"),
        (keyed, {"retry_policy": "twice"}, "retry_policy is a RetryPolicy or a sequence of them, not str"),
        (keyed, {"timeout": -1}, "run_timeout must be greater than 0"),
        (generating, {}, "it is a generator function"),
        (positional, {}, "must not be positional only"),
        (lambda idempotency_key: None, {}, "a lambda has none. Give name="),
        (3, {}, "it is a int, and nothing that can be called"),
    ],
)
def test_what_could_not_be_safe_is_refused(function: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(EffectDeclarationError, match=reason) as caught:
        effect(**options)(function)
    assert caught.value.code == "effect_declaration"
    with pytest.raises(EffectDeclarationError, match=reason):
        wrap_tool(function, **options)


@pytest.mark.parametrize(
    ("function", "options", "on_doubt"),
    [
        (keyed, {}, "retry"),
        (keyed, {"on_doubt": "raise"}, "raise"),
        (plain, {"on_doubt": "raise"}, "raise"),
        (acting, {"on_doubt": looking}, looking),
        (functools.partial(keyed, 3), {"name": "three"}, "retry"),
        (keyed, {"key": lambda amount: str(amount), "scope": "global"}, "retry"),
        (keyed, {"valid_for": timedelta(hours=1), "exclude": ("amount",), "versions": {"tool": "2"}}, "retry"),
    ],
)
def test_what_can_be_safe_is_an_effect(function: Callable[..., Any], options: dict[str, Any], on_doubt: Any) -> None:
    made = effect(**options)(function)
    assert made.declared.on_doubt == on_doubt
    assert registered[made.name] is made


def test_it_is_decorated_with_and_without_brackets_and_keeps_its_looks() -> None:
    @effect
    def pay(amount: int, idempotency_key: str) -> int:
        """Pay it."""
        return amount

    assert (pay.name, pay.__doc__, repr(pay)) == ("pay", "Pay it.", "<effect pay>")
    assert effect(name="other")(pay.func).name == "other"
    assert pay.declared.scope == "position"


def test_outside_of_a_run_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="effect 'keyed' outside of a runnable context"):
        wrap_tool(keyed)(3)
