"""An effect whose body asks or waits: it is left, and where nobody would enter it again that is said at once."""

from typing import Any

import pytest

from stepwell import Command, EffectInDoubtError, InMemorySaver, effect, interrupt, sleep, task, wait_for
from tests.effects.acting import one, statuses
from tests.runtime.graphs import thread


@task
def within() -> Any:
    return interrupt("?")


@pytest.mark.parametrize(
    "pause", [lambda: interrupt("?"), lambda: wait_for("key"), lambda: sleep(0.1), lambda: within().result()]
)
def test_a_body_that_nobody_would_enter_again_does_not_ask_or_wait(pause: Any) -> None:
    saver = InMemorySaver()

    @effect(on_doubt="raise")
    def charge() -> Any:
        return pause()

    with pytest.raises(EffectInDoubtError, match="Ask or wait in the node before it is called"):
        one(lambda state: {"log": [charge()]}, saver).invoke({}, thread())
    assert statuses(saver) == ["doubt"]
    assert list(saver.store.verify()) == []


def test_a_body_that_is_entered_again_goes_on_with_the_answer_under_its_key() -> None:
    saver = InMemorySaver()
    keys: list[str] = []

    @effect
    def charge(idempotency_key: str) -> Any:
        keys.append(idempotency_key)
        return interrupt("?")

    graph = one(lambda state: {"log": [charge()]}, saver)
    assert "__interrupt__" in graph.invoke({}, thread())
    assert graph.invoke(Command(resume="!"), thread()) == {"log": ["!"]}
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert statuses(saver) == ["done"]


def test_who_looks_a_doubt_up_may_ask() -> None:
    saver = InMemorySaver()

    @effect(on_doubt=lambda doubt: interrupt("has it happened?"))
    def charge() -> Any:
        raise OSError("lost")

    graph = one(lambda state: {"log": [charge()]}, saver)
    graph.invoke({}, thread())
    assert graph.invoke(Command(resume="receipt"), thread()) == {"log": ["receipt"]}
    assert statuses(saver) == ["done"]
