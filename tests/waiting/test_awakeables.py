"""Awakeables: completed from outside by their id, once, with a value or an error."""

from typing import Any

import pytest

from stepwell import (
    AwakeableCompletedError,
    AwakeableFailedError,
    InvalidWaitError,
    NoCheckpointerError,
    SqliteSaver,
    WaitTimeoutError,
    awakeable,
)
from stepwell.testing import FakeClock
from tests.runtime.deaths import Saver
from tests.runtime.graphs import Call, Node, chain, note, thread
from tests.waiting.nodes import at, waiting


def handed_out(*ids: list[str], timeout: float | None = None) -> Node:
    """Return a node that makes an awakeable for each list, puts its id in, then logs the results."""

    def node(state: Any) -> dict[str, list[str]]:
        made = [awakeable() for _ in ids]
        for each, known in zip(made, ids, strict=True):
            known.append(each.id)
        return {"log": [repr(each.result(timeout)) for each in made]}

    return node


def test_an_outside_system_completes_it_by_its_id(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    ids: list[str] = []
    graph = chain(("a", note("a")), ("node", handed_out(ids))).compile(checkpointer=saver)
    [wait] = waiting(call(graph, {}, thread(), durability=any_durability))
    assert (wait.kind, wait.key, wait.until) == ("awakeable", ids[0], None)
    graph.complete_awakeable(ids[0], {"paid": True})
    assert call(graph, None, thread(), durability=any_durability) == {"log": ["a", "{'paid': True}"]}
    assert set(ids) == {ids[0]}


@pytest.mark.parametrize("value", [None, 0, "done"])
def test_any_value_completes_it(kept: Saver, value: Any) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    graph.complete_awakeable(ids[0], value)
    assert graph.invoke(None, thread()) == {"log": [repr(value)]}


def test_an_async_node_awaits_it(call: Call, saver: SqliteSaver) -> None:
    async def node(state: Any) -> dict[str, list[str]]:
        return {"log": [await awakeable()]}

    graph = chain(("node", node)).compile(checkpointer=saver)
    [wait] = waiting(call(graph, {}, thread()))
    graph.complete_awakeable(wait.key, "done")
    assert call(graph, None, thread()) == {"log": ["done"]}


def test_it_may_be_completed_before_its_result_is_asked_for(call: Call, saver: SqliteSaver) -> None:
    def node(state: Any) -> dict[str, list[str]]:
        made = awakeable()
        graph.complete_awakeable(made.id, "at once")
        return {"log": [made.result()]}

    graph = chain(("node", node)).compile(checkpointer=saver)
    assert call(graph, {}, thread()) == {"log": ["at once"]}


def test_several_are_completed_in_any_order(call: Call, saver: SqliteSaver) -> None:
    first: list[str] = []
    second: list[str] = []
    graph = chain(("node", handed_out(first, second))).compile(checkpointer=saver)
    call(graph, {}, thread())
    assert first[0] != second[0]
    graph.complete_awakeable(second[0], 2)
    assert waiting(call(graph, None, thread()))[0].key == first[0]
    graph.complete_awakeable(first[0], 1)
    assert call(graph, None, thread()) == {"log": ["1", "2"]}


def test_an_error_is_raised_in_the_node(call: Call, saver: SqliteSaver) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=saver)
    call(graph, {}, thread())
    graph.complete_awakeable(ids[0], error="card refused")
    with pytest.raises(AwakeableFailedError, match="card refused") as caught:
        call(graph, None, thread())
    assert caught.value.fields()["awakeable_id"] == ids[0]


@pytest.mark.parametrize("delivered", [False, True])
def test_a_second_completion_is_refused_with_the_first(kept: Saver, clock: FakeClock, delivered: bool) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    graph.complete_awakeable(ids[0], "first")
    clock.advance(5)
    if delivered:
        graph.invoke(None, thread())
    with pytest.raises(AwakeableCompletedError, match="done: 'first'") as caught:
        graph.complete_awakeable(ids[0], "second")
    fields = caught.value.fields()
    assert (fields["thread_id"], fields["status"], fields["value"]) == ("t", "done", "first")
    assert fields["completed_at"] == at(0)
    with pytest.raises(AwakeableCompletedError):
        graph.complete_awakeable(ids[0], error="first")
    graph.complete_awakeable(ids[0], "first")  # the same notification, delivered twice
    assert graph.invoke(None, thread()) if not delivered else graph.get_state(thread()).values == {"log": ["'first'"]}


def test_its_time_may_run_out(call: Call, kept: Saver, clock: FakeClock) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids, timeout=60))).compile(checkpointer=kept)
    assert waiting(call(graph, {}, thread()))[0].until == at(60)
    clock.advance(61)
    graph.complete_awakeable(ids[0], "late")
    with pytest.raises(WaitTimeoutError):
        call(graph, None, thread())


def test_ids_tell_threads_calls_and_lineages_apart(kept: Saver) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=kept)
    graph.invoke({}, thread("t"))
    graph.invoke({}, thread("u"))
    graph.invoke(None, graph.fork(thread("t")))
    assert len(set(ids)) == 3


def test_a_copied_thread_is_completed_by_the_same_id(kept: Saver) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=kept)
    graph.invoke({}, thread("t"))
    kept.copy_thread("t", "copy")
    graph.complete_awakeable(ids[0], "original")
    graph.complete_awakeable(ids[0], "copy", config=thread("copy"))
    assert graph.invoke(None, thread("t")) == {"log": ["'original'"]}
    assert graph.invoke(None, thread("copy")) == {"log": ["'copy'"]}


@pytest.mark.parametrize("text", ["", "x", "x.", ".x", "abc.!!", 5, None])
def test_what_is_no_id_is_refused(kept: Saver, text: Any) -> None:
    graph = chain(("node", note("a"))).compile(checkpointer=kept)
    with pytest.raises(InvalidWaitError, match="no id of an awakeable"):
        graph.complete_awakeable(text, 1)


def test_a_value_and_an_error_together_are_refused(kept: Saver) -> None:
    graph = chain(("node", note("a"))).compile(checkpointer=kept)
    with pytest.raises(InvalidWaitError, match="a value, or with the text of an error"):
        graph.complete_awakeable("x.dA", 1, error="no")


def test_completing_needs_a_checkpointer() -> None:
    with pytest.raises(NoCheckpointerError):
        chain(("node", note("a"))).compile().complete_awakeable("x.dA", 1)


async def test_completing_from_a_loop(saver: SqliteSaver) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=saver)
    await graph.ainvoke({}, thread())
    await graph.acomplete_awakeable(ids[0], 1)
    assert await graph.ainvoke(None, thread()) == {"log": ["1"]}


def test_a_thread_id_of_any_letters_is_found_again(kept: Saver) -> None:
    ids: list[str] = []
    graph = chain(("node", handed_out(ids))).compile(checkpointer=kept)
    graph.invoke({}, thread("Zoë/ü.?#"))
    assert ids[0].isascii()
    graph.complete_awakeable(ids[0], 1)
    assert graph.invoke(None, thread("Zoë/ü.?#")) == {"log": ["1"]}
