"""INV-7, INV-10: what was done to the world is not done again because a row is gone, wherever it was done: in another
lineage, before an edit, under a key of the thread's, or in the thread that this one was forked off.
"""

from collections.abc import Callable
from typing import Any

import pytest

from stepwell import START, CorruptRecordError, InMemorySaver, StateGraph, effect
from stepwell.errors import CannotRepairError
from tests.effects.acting import Outside
from tests.integrity.spoiling import Saver, spoil
from tests.runtime.graphs import Log, note, thread

Life = Callable[[Any, Saver], dict[str, Any]]
"""Has threads live until an effect is to be called that was performed; returns the config to go on with."""


@pytest.fixture
def outside() -> Outside:
    return Outside()


def ordering(outside: Outside, saver: Saver, failures: int, **options: Any) -> Any:
    """Return a graph that prepares, charges, checks, charges again, and ends. Nodes that have charged fail so often."""
    left = [RuntimeError("after it")] * failures

    @effect(**options)
    def charge(amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    def pay(state: Any) -> Any:
        receipt = charge(5)
        if left:
            raise left.pop()
        return {"log": [receipt]}

    graph = StateGraph(Log)
    graph.add_sequence([("prepare", note("p")), ("pay", pay), ("check", note("c")), ("again", pay), ("end", note("e"))])
    return graph.add_edge(START, "prepare").compile(checkpointer=saver, name="g")


def before(graph: Any, node: str) -> dict[str, Any]:
    """Return the config of the oldest checkpoint of thread "t" from which a node is due."""
    found: dict[str, Any] = [state.config for state in graph.get_state_history(thread()) if state.next == (node,)][-1]
    return found


def ancestor(graph: Any, saver: Saver) -> dict[str, Any]:
    graph.invoke({}, thread(), interrupt_before=["check"])
    config: dict[str, Any] = graph.fork(before(graph, "pay"))
    return config


def grandfather(graph: Any, saver: Saver) -> dict[str, Any]:
    ancestor(graph, saver)
    config: dict[str, Any] = graph.fork(graph.get_state(thread()).config)
    return config


def sibling(graph: Any, saver: Saver) -> dict[str, Any]:
    graph.invoke({}, thread(), interrupt_before=["pay"])
    place = graph.get_state(thread()).config
    first, second = graph.fork(place), graph.fork(place)
    graph.invoke(None, first, interrupt_before=["check"])
    config: dict[str, Any] = second
    return config


def child(graph: Any, saver: Saver) -> dict[str, Any]:
    graph.invoke({}, thread(), interrupt_before=["pay"])
    place: dict[str, Any] = graph.get_state(thread()).config
    graph.invoke(None, graph.fork(place), interrupt_before=["check"])
    return place


def edited(graph: Any, saver: Saver) -> dict[str, Any]:
    graph.invoke({}, thread(), interrupt_before=["pay"])
    graph.update_state(thread(), {"log": []})
    with pytest.raises(RuntimeError, match="after it"):
        graph.invoke(None, thread())
    graph.update_state(thread(), {"log": []})
    return thread()


def edited_and_forked(graph: Any, saver: Saver) -> dict[str, Any]:
    edited(graph, saver)
    config: dict[str, Any] = graph.fork(graph.get_state(thread()).config)
    return config


def forked_away(graph: Any, saver: Saver) -> dict[str, Any]:
    graph.invoke({}, thread(), interrupt_before=["check"])
    config: dict[str, Any] = graph.fork(before(graph, "pay"), thread_id="away")
    return config


def forked_away_twice(graph: Any, saver: Saver) -> dict[str, Any]:
    forked_away(graph, saver)
    config: dict[str, Any] = graph.fork(graph.get_state(thread("away")).config, thread_id="far")
    return config


def forked_away_and_copied(graph: Any, saver: Saver) -> dict[str, Any]:
    forked_away(graph, saver)
    saver.copy_thread("away", "copy")
    return thread("copy")


def key_used_before(graph: Any, saver: Saver) -> dict[str, Any]:
    graph.invoke({}, thread(), interrupt_before=["again"])
    return thread()


LIVES: dict[str, tuple[Life, dict[str, Any]]] = {
    "an ancestor": (ancestor, {}),
    "an ancestor's ancestor": (grandfather, {}),
    "a sibling": (sibling, {}),
    "a lineage forked off this one": (child, {}),
    "before an edit": (edited, {}),
    "before an edit, forked": (edited_and_forked, {}),
    "another thread": (forked_away, {}),
    "another thread's other thread": (forked_away_twice, {}),
    "another thread, copied": (forked_away_and_copied, {}),
    "an earlier superstep": (key_used_before, {"key": "k"}),
}


@pytest.mark.parametrize("life", LIVES)
def test_what_was_done_elsewhere_is_not_done_again_where_its_row_is_lost(
    saver: Saver, outside: Outside, life: str
) -> None:
    live, options = LIVES[life]
    graph = ordering(outside, saver, failures=life.startswith("before an edit"), **options)
    config = live(graph, saver)
    name = config["configurable"]["thread_id"]
    asked = list(outside.asked)
    assert len(asked) == 1
    spoil(saver, f"delete from effects where thread_id = '{name}'")
    with pytest.raises(CorruptRecordError, match=f"effects row of thread '{name}'"):
        graph.invoke(None, config, interrupt_before=["check", "end"])
    assert outside.asked == asked
    assert [fault.table for fault in saver.verify(name).faults] == ["effects"]
    saver.repair(name, by="ann")
    assert saver.verify().is_sound
    graph.invoke(None, config, interrupt_before=["check", "end"])
    assert outside.asked == asked


@pytest.mark.parametrize("options", [{}, {"key": "k"}], ids=["by position", "by key"])
def test_an_effect_that_came_along_and_that_no_thread_knows_any_more_is_neither_done_again_nor_made_up(
    saver: Saver, outside: Outside, options: dict[str, Any]
) -> None:
    graph = ordering(outside, saver, failures=0, **options)
    config = forked_away(graph, saver)
    saver.delete_thread("t")
    asked = list(outside.asked)
    spoil(saver, "delete from effects")
    with pytest.raises(CorruptRecordError, match="was brought along from thread t"):
        graph.invoke(None, config)
    with pytest.raises(CorruptRecordError, match="was brought along from thread t"):
        graph.compensate(config)
    with pytest.raises(CannotRepairError, match="nobody can tell what has happened"):
        saver.repair("away")
    assert outside.asked == asked


def test_a_damaged_row_of_an_effect_that_came_along_is_told_anew_by_the_thread_it_came_from(
    saver: Saver, outside: Outside
) -> None:
    graph = ordering(outside, saver, failures=0)
    config = forked_away(graph, saver)
    spoil(saver, "update effects set key = 'other' where thread_id = 'away'")
    asked = list(outside.asked)
    with pytest.raises(CorruptRecordError):
        graph.invoke(None, config)
    assert dict(saver.repair("away").made_anew) == {"effects": "other"}
    assert saver.verify().is_sound
    assert graph.invoke(None, thread("away"), interrupt_before=["check"]) == {"log": ["p", "5 #1"]}
    assert outside.asked == asked


def test_records_that_a_repair_has_left_behind_keep_no_effect_from_being_performed(
    saver: Saver, outside: Outside
) -> None:
    graph = ordering(outside, saver, failures=0)
    ancestor(graph, saver)
    spoil(saver, "update records set body = x'00' where kind = 'receipt'")
    saver.repair("t", by="ann")
    graph.invoke(None, thread(), interrupt_before=["check"])
    assert outside.times == {5: 2}, "what it came to is lost, so it is asked for again, under its key"
    assert len(set(outside.keys)) == 1


def test_what_others_tell_of_effects_is_read_once_a_run_and_only_where_others_may_tell(outside: Outside) -> None:
    with InMemorySaver() as saver:
        store: Any = saver.store
        connection, read = store._writer.transactions.connection, list[str]()

        def trace(cursor: Any, statement: str, bindings: Any) -> bool:
            if "from records" in statement and "'effect_failed'" in statement:
                read.append(statement)
            return True

        connection.exec_trace = trace
        graph = ordering(outside, saver, failures=0)
        graph.invoke({}, thread())
        assert (len(outside.asked), len(read)) == (2, 0), "one lineage, and each base made by a superstep of the run"
        graph.fork(before(graph, "pay"))
        graph.invoke(None, thread())
        assert (len(outside.asked), len(read)) == (2, 0), "what was done answers, so nothing is performed"
        other = ordering(outside, saver, failures=0, on_fork="reissue")
        other.fork(before(graph, "pay"))
        other.invoke(None, thread())
        assert (len(outside.asked), len(read)) == (4, 2), "those beside it, and those on the base it began with"
