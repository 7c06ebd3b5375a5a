"""INV-7 across forks, edits and copies: what happened is found by its position, and so is what is in doubt."""

from typing import Any

import pytest

from stepwell import (
    START,
    Command,
    EffectForbiddenError,
    EffectInDoubtError,
    InMemorySaver,
    NonDeterminismError,
    StateGraph,
    effect,
    interrupt,
)
from tests.effects.acting import Outside, rows, statuses
from tests.effects.test_life import charging
from tests.runtime.conftest import call as call
from tests.runtime.graphs import Call, Log, note, thread


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def saver() -> InMemorySaver:
    return InMemorySaver()


def ordering(charge: Any, saver: InMemorySaver) -> Any:
    """Return a graph that prepares, charges what the log says, and ends."""

    def pay(state: Any) -> Any:
        return {"log": [charge("".join(state["log"]))]}

    graph = StateGraph(Log).add_node("prepare", note("p")).add_node("pay", pay).add_node("end", note("e"))
    graph.add_edge(START, "prepare").add_edge("prepare", "pay").add_edge("pay", "end")
    return graph.compile(checkpointer=saver)


def before_paying(graph: Any, thread_id: str = "t") -> Any:
    """Return the config of the oldest checkpoint from which `pay` is due."""
    found = [state for state in graph.get_state_history(thread(thread_id)) if state.next == ("pay",)]
    return found[-1].config


def test_a_replay_returns_the_receipt(call: Call, outside: Outside, saver: InMemorySaver) -> None:
    graph = ordering(charging(outside), saver)
    call(graph, {}, thread())
    assert call(graph, None, before_paying(graph)) == {"log": ["p", "p #1", "e"]}
    assert outside.times == {"p": 1}


def test_a_fork_with_the_same_inputs_reuses_and_with_others_is_a_new_effect(
    outside: Outside, saver: InMemorySaver
) -> None:
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread())
    again = graph.fork(before_paying(graph))
    assert graph.invoke(None, again) == {"log": ["p", "p #1", "e"]}
    other = graph.fork(before_paying(graph), {"log": ["q"]}, as_node="prepare")
    assert graph.invoke(None, other) == {"log": ["p", "q", "pq #2", "e"]}
    assert graph.invoke(None, graph.fork(before_paying(graph), {"log": ["q"]}, as_node="prepare"))["log"][2] == "pq #2"
    assert outside.times == {"p": 1, "pq": 1}
    assert len(set(outside.keys)) == 2


def test_what_happened_after_the_fork_point_counts_in_the_lineage_it_was_forked_from_and_beside_it(
    outside: Outside, saver: InMemorySaver
) -> None:
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread(), interrupt_before=["pay"])
    place = graph.get_state(thread()).config
    first, second = graph.fork(place), graph.fork(place)
    assert graph.invoke(None, first)["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, second)["log"] == ["p", "p #1", "e"]
    assert outside.times == {"p": 1}


def test_a_lineage_that_goes_on_after_its_fork_finds_what_the_fork_did(
    call: Call, outside: Outside, saver: InMemorySaver
) -> None:
    """Whichever goes on first, the same call at the same place is one effect."""
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread(), interrupt_before=["pay"])
    place = graph.get_state(thread()).config
    assert call(graph, None, graph.fork(place))["log"] == ["p", "p #1", "e"]
    assert call(graph, None, place)["log"] == ["p", "p #1", "e"]
    assert outside.times == {"p": 1}


def test_reissue_always_performs_anew(outside: Outside, saver: InMemorySaver) -> None:
    graph = ordering(charging(outside, on_fork="reissue"), saver)
    graph.invoke({}, thread())
    assert graph.invoke(None, graph.fork(before_paying(graph)))["log"] == ["p", "p #2", "e"]
    assert graph.invoke(None, graph.fork(before_paying(graph)))["log"] == ["p", "p #3", "e"]
    assert len(set(outside.keys)) == 3


def test_forbid_refuses_before_the_intent(outside: Outside, saver: InMemorySaver) -> None:
    graph = ordering(charging(outside, on_fork="forbid"), saver)
    graph.invoke({}, thread())
    with pytest.raises(EffectForbiddenError, match=r"is done\. Go on in the lineage that called it"):
        graph.invoke(None, graph.fork(before_paying(graph)))
    assert statuses(saver) == ["done"]


@pytest.mark.parametrize("on_doubt", ["raise", "retry"])
def test_a_doubt_is_in_doubt_in_every_fork_under_its_own_key(
    outside: Outside, saver: InMemorySaver, on_doubt: str
) -> None:
    outside.losses = [OSError("lost")]
    graph = ordering(charging(outside, on_doubt=on_doubt), saver)
    with pytest.raises((EffectInDoubtError, OSError)):
        graph.invoke({}, thread())
    fork = graph.fork(before_paying(graph))
    if on_doubt == "raise":
        with pytest.raises(EffectInDoubtError, match=rows(saver)[0].key):
            graph.invoke(None, fork)
        assert outside.times == {"p": 1}
        return
    assert graph.invoke(None, fork)["log"] == ["p", "p #1", "e"]
    assert len(set(outside.keys)) == 1
    assert graph.invoke(None, before_paying(graph))["log"] == ["p", "p #1", "e"]
    assert len(outside.asked) == 2


def test_the_lineage_of_a_doubt_sees_that_a_fork_has_settled_it(outside: Outside, saver: InMemorySaver) -> None:
    outside.losses = [OSError("lost")]
    graph = ordering(charging(outside), saver)
    with pytest.raises(OSError, match="lost"):
        graph.invoke({}, thread())
    failed = graph.get_state(thread()).config
    graph.invoke(None, graph.fork(before_paying(graph)))
    assert graph.invoke(None, failed)["log"] == ["p", "p #1", "e"]
    assert statuses(saver) == ["done"]
    assert len(outside.asked) == 2


@pytest.mark.parametrize(("edit", "times"), [([], 1), (["edited"], 2)])
def test_an_edit_keeps_the_receipt_of_a_task_that_stays_and_another_input_is_another_task(
    outside: Outside, saver: InMemorySaver, edit: list[str], times: int
) -> None:
    charge = charging(outside)

    def pay(state: Any) -> Any:
        return {"log": [charge(5), interrupt("?")]}

    graph = StateGraph(Log).add_node("pay", pay).add_edge(START, "pay").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.update_state(thread(), {"log": edit}, as_node=START)
    graph.invoke(None, thread())
    assert graph.invoke(Command(resume="!"), thread())["log"] == [*edit, f"5 #{times}", "!"]
    assert outside.times == {5: times}


# -- other threads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delete", [False, True])
def test_a_copy_has_the_receipts_and_keeps_them_when_the_original_is_deleted(
    outside: Outside, saver: InMemorySaver, delete: bool
) -> None:
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread())
    saver.copy_thread("t", "copy")
    if delete:
        saver.delete_thread("t")
    assert graph.invoke(None, before_paying(graph, "copy")) == {"log": ["p", "p #1", "e"]}
    assert outside.times == {"p": 1}
    assert list(saver.store.verify()) == []


def test_a_thread_id_that_is_used_again_has_the_keys_of_the_thread_that_was_deleted(
    outside: Outside, saver: InMemorySaver
) -> None:
    """Its receipts are forgotten, so the body runs; the other side sees the key that it has seen before."""
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread())
    saver.delete_thread("t")
    graph.invoke({}, thread())
    first, again = outside.keys
    assert first == again


def test_a_copy_and_its_original_settle_each_others_doubts(outside: Outside, saver: InMemorySaver) -> None:
    outside.losses = [OSError("lost")]
    graph = ordering(charging(outside), saver)
    with pytest.raises(OSError, match="lost"):
        graph.invoke({}, thread())
    saver.copy_thread("t", "copy")
    saver.copy_thread("copy", "copy of the copy")
    assert graph.invoke(None, thread("copy"))["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, thread())["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, thread("copy of the copy"))["log"] == ["p", "p #1", "e"]
    assert len(outside.asked) == 2
    assert len(set(outside.keys)) == 1
    assert statuses(saver) == ["done"] * 3


def test_what_copy_and_original_do_after_the_copy_is_one_effect_if_it_is_the_same(
    outside: Outside, saver: InMemorySaver
) -> None:
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread(), interrupt_before=["pay"])
    saver.copy_thread("t", "copy")
    saver.copy_thread("t", "other")
    graph.update_state(thread("other"), {"log": ["q"]})
    assert graph.invoke(None, thread())["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, thread("copy"))["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, thread("other"))["log"] == ["p", "q", "pq #2", "e"]
    assert outside.times == {"p": 1, "pq": 1}
    assert len(set(outside.keys)) == 2


@pytest.mark.parametrize("delete", [False, True])
def test_a_fork_into_another_thread_brings_its_receipts_along(
    outside: Outside, saver: InMemorySaver, delete: bool
) -> None:
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread())
    fork = graph.fork(before_paying(graph), thread_id="branch")
    if delete:
        saver.delete_thread("t")
    assert graph.invoke(None, fork) == {"log": ["p", "p #1", "e"]}
    twig = graph.fork(before_paying(graph, "branch"), thread_id="twig")
    assert graph.invoke(None, twig) == {"log": ["p", "p #1", "e"]}
    assert outside.times == {"p": 1}
    assert list(saver.store.verify()) == []


def test_a_fork_into_another_thread_brings_its_doubts_along(outside: Outside, saver: InMemorySaver) -> None:
    outside.losses = [OSError("lost")]
    graph = ordering(charging(outside, on_doubt="raise"), saver)
    with pytest.raises(EffectInDoubtError):
        graph.invoke({}, thread())
    fork = graph.fork(before_paying(graph), thread_id="branch")
    with pytest.raises(EffectInDoubtError, match="lost"):
        graph.invoke(None, fork)
    assert outside.times == {"p": 1}


@pytest.mark.parametrize("thread_id", ["copy", "branch"])
def test_what_an_operator_decided_goes_along(outside: Outside, saver: InMemorySaver, thread_id: str) -> None:
    outside.losses = [OSError("lost")]
    graph = ordering(charging(outside, on_doubt="raise"), saver)
    with pytest.raises(EffectInDoubtError):
        graph.invoke({}, thread())
    graph.resolve_effect(thread(), rows(saver)[0].key, receipt="seen in the books", by="ann", reason="the statement")
    if thread_id == "copy":
        saver.copy_thread("t", "copy")
        place = before_paying(graph, "copy")
    else:
        place = graph.fork(before_paying(graph), thread_id="branch")
    saver.delete_thread("t")
    assert graph.invoke(None, place)["log"] == ["p", "seen in the books", "e"]
    assert outside.times == {"p": 1}
    assert list(saver.store.verify()) == []


def test_a_key_of_the_thread_is_the_same_in_forks_copies_and_branches(outside: Outside, saver: InMemorySaver) -> None:
    graph = ordering(charging(outside, key=lambda content: f"order {content}"), saver)
    graph.invoke({}, thread())
    assert graph.invoke(None, graph.fork(before_paying(graph)))["log"][1] == "p #1"
    saver.copy_thread("t", "copy")
    assert graph.invoke(None, graph.fork(before_paying(graph, "copy")))["log"][1] == "p #1"
    branch = graph.fork(before_paying(graph, "copy"), thread_id="branch")
    saver.delete_thread("t")
    saver.delete_thread("copy")
    assert graph.invoke(None, branch)["log"][1] == "p #1"
    assert graph.invoke({}, thread("unrelated"))["log"][1] == "p #2"
    assert outside.times == {"p": 2}


def test_a_global_key_outlives_its_thread(outside: Outside, saver: InMemorySaver) -> None:
    graph = ordering(charging(outside, key="the order", scope="global"), saver)
    graph.invoke({}, thread())
    saver.delete_thread("t")
    assert graph.invoke({}, thread("another"))["log"] == ["p", "p #1", "e"]
    assert outside.times == {"p": 1}
    assert list(saver.store.verify()) == []


def test_the_same_position_with_other_inputs_in_one_lineage_is_refused(outside: Outside, saver: InMemorySaver) -> None:
    amounts = iter([1, 2])
    charge = charging(outside)

    def node(state: Any) -> Any:
        return {"log": [charge(next(amounts)), interrupt("?")]}

    graph = StateGraph(Log).add_node("n", node).add_edge(START, "n").compile(checkpointer=saver)
    graph.invoke({}, thread())
    with pytest.raises(NonDeterminismError, match=r"recorded as charge\(amount=1\).*called as charge\(amount=2\)"):
        graph.invoke(Command(resume="!"), thread())
    assert outside.times == {1: 1}


def test_an_effect_that_failed_may_be_called_with_other_inputs_under_another_key(
    outside: Outside, saver: InMemorySaver
) -> None:
    outside.refusals = [ConnectionRefusedError("no")]
    amounts = iter([1, 2, 2])
    keys: list[str] = []

    @effect
    def charge(amount: int, idempotency_key: str) -> str:
        keys.append(idempotency_key)
        return outside.act(idempotency_key, amount)

    def node(state: Any) -> Any:
        return {"log": [charge(next(amounts)), interrupt("?")]}

    graph = StateGraph(Log).add_node("n", node).add_edge(START, "n").compile(checkpointer=saver)
    with pytest.raises(ConnectionRefusedError):
        graph.invoke({}, thread())
    graph.invoke(None, thread())
    assert graph.invoke(Command(resume="!"), thread()) == {"log": ["2 #1", "!"]}
    assert len(set(keys)) == 2
    assert outside.times == {2: 1}


# -- what a copy and its original did after the copy ------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [("t", "copy"), ("copy", "t")])
def test_a_fork_in_a_copy_finds_what_the_other_thread_did_after_the_copy_in_a_lineage_that_both_know(
    outside: Outside, saver: InMemorySaver, first: str, second: str
) -> None:
    """Whatever way the fork is made, it answers as the lineage would have that it was forked from."""
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread(), interrupt_before=["pay"])
    saver.copy_thread("t", "copy")
    assert graph.invoke(None, thread(first))["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, graph.fork(before_paying(graph, second)))["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, before_paying(graph, second))["log"] == ["p", "p #1", "e"]
    other = graph.fork(before_paying(graph, second), {"log": ["q"]}, as_node="prepare")
    assert graph.invoke(None, other)["log"] == ["p", "q", "pq #2", "e"]
    assert outside.times == {"p": 1, "pq": 1}


def test_a_doubt_of_the_original_after_the_copy_is_a_doubt_in_a_fork_in_the_copy(
    outside: Outside, saver: InMemorySaver
) -> None:
    outside.losses = [OSError("lost")]
    graph = ordering(charging(outside, on_doubt="raise"), saver)
    graph.invoke({}, thread(), interrupt_before=["pay"])
    saver.copy_thread("t", "copy")
    with pytest.raises(EffectInDoubtError):
        graph.invoke(None, thread())
    with pytest.raises(EffectInDoubtError, match=rows(saver)[0].key):
        graph.invoke(None, graph.fork(before_paying(graph, "copy")))
    assert outside.times == {"p": 1}


def test_a_copy_of_a_copy_keeps_to_what_the_copy_did_at_a_place_where_the_original_did_something_else(
    outside: Outside, saver: InMemorySaver
) -> None:
    """The original has the place's key; what the copy did in its stead goes along with the copy's rows."""
    wanted = {"t": "a", "copy": "b", "copy of the copy": "b"}
    charge = charging(outside)

    def node(state: Any, config: Any) -> Any:
        return {"log": [charge(wanted[config["configurable"]["thread_id"]]), interrupt("?")]}

    graph = StateGraph(Log).add_node("first", note("first")).add_node("n", node)
    compiled = graph.add_edge(START, "first").add_edge("first", "n").compile(checkpointer=saver)
    compiled.invoke({}, thread(), interrupt_before=["n"])
    saver.copy_thread("t", "copy")
    compiled.invoke(None, thread())
    compiled.invoke(None, thread("copy"))
    saver.copy_thread("copy", "copy of the copy")
    for each in ("copy of the copy", "copy", "t"):
        compiled.invoke(Command(resume="!"), thread(each))
    assert outside.times == {"a": 1, "b": 1}
    assert len(set(outside.keys)) == 2


def test_a_thread_forked_off_knows_what_each_lineage_did_there(outside: Outside, saver: InMemorySaver) -> None:
    """An ancestor's receipt goes along, whatever the lineage itself did at that place."""
    wanted = ["a"]
    charge = charging(outside)
    graph = StateGraph(Log).add_node("prepare", note("p")).add_node("pay", lambda state: {"log": [charge(wanted[0])]})
    compiled = graph.add_edge(START, "prepare").add_edge("prepare", "pay").compile(checkpointer=saver)
    compiled.invoke({}, thread())
    wanted[0] = "b"
    fork = compiled.fork(before_paying(compiled))
    assert compiled.invoke(None, fork)["log"] == ["p", "b #2"]
    for content, receipt in (("a", "a #1"), ("b", "b #2"), ("a", "a #1")):
        wanted[0] = content
        branch = compiled.fork(fork, thread_id=f"branch {len(rows(saver))}")
        assert compiled.invoke(None, branch)["log"] == ["p", receipt]
        fork = compiled.get_state(branch).config
    assert outside.times == {"a": 1, "b": 1}


# -- what did not come to its end -------------------------------------------------------------------------------------


def test_what_failed_here_is_not_performed_once_the_lineage_it_was_forked_from_has_done_it(
    outside: Outside, saver: InMemorySaver
) -> None:
    graph = ordering(charging(outside), saver)
    graph.invoke({}, thread(), interrupt_before=["pay"])
    place = graph.get_state(thread()).config
    outside.refusals = [ConnectionRefusedError("no")]
    fork = graph.fork(place)
    with pytest.raises(ConnectionRefusedError):
        graph.invoke(None, fork)
    again = graph.fork(place)
    assert graph.invoke(None, again)["log"] == ["p", "p #1", "e"]
    assert graph.invoke(None, fork)["log"] == ["p", "p #1", "e"]
    assert outside.times == {"p": 1}
