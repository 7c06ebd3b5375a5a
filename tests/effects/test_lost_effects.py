"""INV-7, INV-10: an effect whose row is gone, or an older one, is not performed again by it: its records tell of it."""

from typing import Any

import pytest

from stepwell import CorruptRecordError, InMemorySaver, SqliteSaver, effect, points
from stepwell.testing import SimulatedCrash
from tests.effects.acting import Outside, one, rows, statuses
from tests.effects.test_life import POINTS, charging, paying
from tests.runtime.conftest import call as call
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, thread


@pytest.fixture
def outside() -> Outside:
    return Outside()


def spoil(saver: SqliteSaver, statement: str, *bindings: Any) -> None:
    connection = saver.store._writer.transactions.connection
    assert connection is not None
    connection.execute(statement, bindings)
    assert connection.changes() > 0


def stored(saver: SqliteSaver) -> list[Any]:
    connection = saver.store._writer.transactions.connection
    assert connection is not None
    return list(connection.execute("select * from effects"))


def died(call: Call, outside: Outside, point: str, **options: Any) -> tuple[Any, Saver]:
    """Return a graph whose process died where its effect had come to a point, and its saver."""
    deaths = Deaths()
    saver = Saver(deaths.clock)
    graph = one(paying(charging(outside, **options)), saver)
    deaths.dies_at(point)
    with pytest.raises(SimulatedCrash):
        call(graph, {}, thread())
    deaths.revive()
    return graph, saver


@pytest.mark.parametrize("options", [{}, {"key": "k"}, {"on_doubt": "raise"}])
@pytest.mark.parametrize("point", POINTS)
def test_an_effect_whose_row_is_gone_is_not_performed(
    call: Call, outside: Outside, point: str, options: dict[str, Any]
) -> None:
    graph, saver = died(call, outside, point, **options)
    asked = list(outside.asked)
    spoil(saver, "delete from effects")
    with pytest.raises(CorruptRecordError, match=r"effects row of thread 't' .* tells of it") as caught:
        call(graph, None, thread())
    assert caught.value.fields()["table"] == "effects"
    assert outside.asked == asked
    saver.repair("t", by="ann")
    assert saver.verify().is_sound
    assert statuses(saver) == (["done"] if point == points.RECEIPT_DURABLE else ["intent"])


@pytest.mark.parametrize("point", [points.INTENT_DURABLE, points.RECEIPT_DURABLE])
def test_an_effect_whose_row_is_an_older_one_is_not_performed(call: Call, outside: Outside, point: str) -> None:
    """It failed, and was performed then; the row of the failure is back."""
    outside.refusals = [ConnectionRefusedError("refused")]
    deaths = Deaths()
    saver = Saver(deaths.clock)
    graph = one(paying(charging(outside)), saver)
    with pytest.raises(ConnectionRefusedError):
        call(graph, {}, thread())
    assert statuses(saver) == ["failed"]
    (old,) = stored(saver)
    deaths.dies_at(point)
    with pytest.raises(SimulatedCrash):
        call(graph, None, thread())
    deaths.revive()
    asked, now = list(outside.asked), statuses(saver)
    spoil(saver, f"insert or replace into effects values ({', '.join('?' * len(old))})", *old)
    with pytest.raises(CorruptRecordError, match="tells more of it"):
        call(graph, None, thread())
    assert outside.asked == asked
    assert [fault.table for fault in saver.verify().faults] == ["effects"]
    saver.repair("t", by="ann")
    assert saver.verify().is_sound
    assert statuses(saver) == now


def test_the_lost_row_of_a_copy_is_found_and_made_anew(outside: Outside) -> None:
    """The original has a row under the same key, which says nothing of the copy's own."""
    saver = InMemorySaver()
    one(paying(charging(outside)), saver).invoke({}, thread())
    saver.copy_thread("t", "copy")
    spoil(saver, "delete from effects where thread_id = 'copy'")
    assert [(fault.table, fault.thread_id) for fault in saver.verify().faults] == [("effects", "copy")]
    saver.repair("copy", by="ann")
    assert saver.verify().is_sound
    assert statuses(saver, "copy") == ["done"]


def test_nothing_is_undone_where_the_row_of_an_effect_is_gone(outside: Outside) -> None:
    saver, undone = InMemorySaver(), list[str]()

    @effect(compensate=lambda receipt: undone.append(receipt))
    def charge(amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    graph = one(lambda state: {"log": [charge(5), charge(6)]}, saver)
    graph.invoke({}, thread())
    spoil(saver, "delete from effects where key = ?", rows(saver)[0].key)
    with pytest.raises(CorruptRecordError, match="tells of it"):
        graph.compensate(thread())
    assert undone == []
