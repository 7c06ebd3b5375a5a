"""Callers at once: of those that want one key, one performs it; those that want another are none of its business."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepwell import EffectBusyError, InMemorySaver, SqliteSaver, ThreadBusyError, effect, points
from tests.effects.acting import Outside, one, rows, statuses
from tests.runtime.graphs import thread


def rivals(outside: Outside, **options: Any) -> tuple[Any, Any, Any]:
    """Return an effect with one key for all, whose body waits until another call of it is told that it is busy; an
    effect without a key; and what awaits either."""
    busy = asyncio.Event()

    @effect(key="order", on_doubt="raise", **options)
    async def charge(amount: int) -> str:
        await busy.wait()
        return outside.act("order", amount)

    @effect(on_doubt="raise")
    async def mail(to: str) -> str:
        return outside.act(to, to)

    async def told(call: Awaitable[str]) -> str:
        try:
            return await call
        except EffectBusyError:
            busy.set()
            return "busy"

    return charge, mail, told


def test_of_two_calls_with_one_key_in_one_turn_one_is_busy_and_their_neighbours_happen(tmp_path: Path) -> None:
    """Their intents are written together: that one of them is refused says nothing of the others."""
    outside = Outside()
    charge, mail, told = rivals(outside)

    async def node(state: Any) -> Any:
        calls = mail("a"), charge(5), charge(5), mail("b")
        came = await asyncio.gather(*map(told, calls))
        return {"log": sorted(each.split(" ")[0] for each in came)}

    with SqliteSaver(tmp_path / "db") as saver:
        ended = asyncio.run(one(node, saver).ainvoke({}, thread()))
        assert ended == {"log": ["5", "a", "b", "busy"]}
        assert outside.times == {5: 1, "a": 1, "b": 1}
        assert statuses(saver) == ["done"] * 3
        assert [row.attempts for row in rows(saver)] == [1, 1, 1]
        assert list(saver.store.verify()) == []


def test_of_threads_that_want_one_global_key_at_once_one_has_it_and_their_own_effects_happen(tmp_path: Path) -> None:
    outside = Outside()
    charge, mail, told = rivals(outside, scope="global")

    async def node(state: Any) -> Any:
        to = state["log"][0]
        came = await asyncio.gather(*map(told, (mail(f"{to}1"), charge(5), mail(f"{to}2"))))
        return {"log": [each.split(" ")[0] for each in came]}

    async def both(graph: Any) -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke({"log": [name]}, thread(name)) for name in "tu"))

    with SqliteSaver(tmp_path / "db") as saver:
        ended = asyncio.run(both(one(node, saver)))
        assert sorted(log["log"][2] for log in ended) == ["5", "busy"]
        assert outside.times == {"t1": 1, "t2": 1, "u1": 1, "u2": 1, 5: 1}
        assert statuses(saver) == ["done"] * 5
        assert list(saver.store.verify()) == []


def test_a_call_whose_receipt_is_on_its_way_is_busy_and_not_in_doubt(tmp_path: Path) -> None:
    """Between the return of a body and its receipt on the disk nobody else has the key."""
    outside = Outside()
    second: list[Any] = []

    @effect(key="order")
    def charge(amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    def again() -> None:
        try:
            second.append(charge(5))
        except EffectBusyError as error:
            second.append(error.code)

    def hook(point: str) -> None:
        if point == points.BODY_RETURNED and not second:
            second.append("called")
            again()

    points.hook = hook
    with SqliteSaver(tmp_path / "db") as saver:
        ended = one(lambda state: {"log": [charge(5)]}, saver).invoke({}, thread())
        assert (ended, second) == ({"log": ["5 #1"]}, ["called", "effect_busy"])
        assert len(outside.asked) == 1
        assert statuses(saver) == ["done"]


@pytest.mark.parametrize("copies", ["copy", "fork"])
def test_a_thread_that_is_copied_while_an_effect_runs_keeps_the_receipt(copies: str) -> None:
    """The copy has a row under the same key, which the receipt's writer has not seen."""
    outside, saver = Outside(), InMemorySaver()

    @effect(on_doubt="raise")
    def charge(amount: int) -> str:
        if copies == "copy":
            saver.copy_thread("t", "c")
        else:
            graph.fork(thread(), thread_id="c")
        return outside.act("no key", amount)

    graph = one(lambda state: {"log": [charge(5)]}, saver)
    assert graph.invoke({}, thread()) == {"log": ["5 #1"]}
    assert graph.invoke(None, thread("c")) == {"log": ["5 #1"]}
    assert outside.times == {5: 1}
    assert statuses(saver) == ["done", "done"]
    assert list(saver.store.verify()) == []


def test_a_new_input_while_an_effect_is_performed_finds_the_thread_busy() -> None:
    saver = InMemorySaver()

    @effect(on_doubt="raise")
    def charge() -> str:
        with pytest.raises(ThreadBusyError):
            pool.submit(graph.invoke, {}, thread()).result()
        return "receipt"

    graph = one(lambda state: {"log": [charge()]}, saver)
    with ThreadPoolExecutor(1) as pool:
        assert graph.invoke({}, thread()) == {"log": ["receipt"]}
    assert statuses(saver) == ["done"]
