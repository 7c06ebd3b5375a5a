"""Callers at once: of those that want one key, one performs it; those that want another are none of its business."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from stepwell import EffectBusyError, SqliteSaver, effect
from tests.effects.acting import Outside, one, rows, statuses
from tests.runtime.graphs import thread


def test_of_two_calls_with_one_key_in_one_turn_one_is_busy_and_their_neighbours_happen(tmp_path: Path) -> None:
    """Their intents are written together: that one of them is refused says nothing of the others."""
    outside, busy = Outside(), asyncio.Event()

    @effect(key="order", on_doubt="raise")
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
