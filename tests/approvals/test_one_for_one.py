"""One decision is for one effect: for the call that was asked about, with what was shown, and never for another."""

import pytest

from stepwell import START, ApprovalRejectedError, Approve, Command, Reject, Send, SqliteSaver, StateGraph, interrupt
from stepwell.testing import FakeClock
from tests.approvals.desks import asked, decisions, desk, refunding
from tests.effects.acting import Outside, one, statuses
from tests.runtime.graphs import Call, Log, thread


def test_a_call_with_other_inputs_is_another_question(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    refund, orders = refunding(outside), ["a", "b"]
    graph = one(lambda state: {"log": [refund(orders.pop(0))]}, saver)
    call(graph, {}, thread())
    (first,) = graph.get_state(thread()).interrupts
    (second,) = call(graph, Command(resume=Approve("ann")), thread())["__interrupt__"]
    assert (second.value.inputs, second.id == first.id) == ({"order": "b"}, False)
    assert outside.asked == []


def test_what_expired_and_is_done_anew_is_approved_anew(
    call: Call, saver: SqliteSaver, outside: Outside, clock: FakeClock
) -> None:
    refund = refunding(outside, valid_for=60)
    graph = one(lambda state: {"log": [refund("a"), interrupt("and?")]}, saver)
    call(graph, {}, thread())
    call(graph, Command(resume=Approve("ann", args={"cents": 7})), thread())
    (question,) = graph.get_state(thread()).interrupts
    clock.advance(61)
    (again,) = call(graph, Command(resume="on"), thread())["__interrupt__"]
    assert (again.value.inputs, again.value.editable, again.id == question.id) == (
        {"order": "a", "cents": 7},
        (),
        False,
    )
    assert outside.times == {"a:7": 1}
    assert call(graph, Command(resume=Approve("bob")), thread()) == {"log": ["a:7 #2", "on"]}
    assert len(set(outside.keys)) == 2
    assert [each.by for each in decisions(saver, graph)] == ["ann", "bob"]


def test_what_was_refused_by_the_other_side_is_tried_again_under_the_same_decision(
    call: Call, saver: SqliteSaver, outside: Outside
) -> None:
    graph = desk(saver, refunding(outside))
    call(graph, {}, thread())
    outside.refusals.append(ConnectionRefusedError("down"))
    with pytest.raises(ConnectionRefusedError):
        call(graph, Command(resume=Approve("ann")), thread())
    assert statuses(saver) == ["failed"]
    assert call(graph, None, thread()) == {"log": ["a:100 #1"]}
    assert len(decisions(saver, graph)) == 1


def test_a_receipt_answers_without_asking_in_a_fork(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    graph = desk(saver, refunding(outside))
    call(graph, {}, thread())
    call(graph, Command(resume=Approve("ann")), thread())
    start = [each.config for each in graph.get_state_history(thread()) if each.next == ("__start__",)][-1]
    assert call(graph, None, start) == {"log": ["a:100 #1"]}
    assert outside.times == {"a:100": 1}


def test_a_fork_that_is_to_happen_anew_is_approved_anew(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    graph = desk(saver, refunding(outside, on_fork="reissue"))
    call(graph, {}, thread())
    call(graph, Command(resume=Approve("ann")), thread())
    start = [each.config for each in graph.get_state_history(thread()) if each.next == ("__start__",)][-1]
    assert call(graph, None, start)["__interrupt__"][0].value.inputs == {"order": "a"}
    assert outside.times == {"a:100": 1}
    assert call(graph, Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #2"]}


def test_at_an_older_checkpoint_it_may_be_decided_otherwise_in_a_lineage_of_its_own(
    call: Call, saver: SqliteSaver, outside: Outside
) -> None:
    graph = desk(saver, refunding(outside))
    call(graph, {}, thread())
    here, question = graph.get_state(thread()).config, asked(graph)["a"]
    call(graph, Command(resume=Approve("ann")), thread())
    assert call(graph, Command(resume={question: Reject("bob", "no")}), here) == {"log": ["no: no"]}
    assert outside.times == {"a:100": 1}


def test_an_edit_keeps_the_open_question_and_the_decision(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    refund = refunding(outside)
    graph = StateGraph(Log).add_node("x", lambda state: {"log": ["x"]})
    graph.add_node("n", lambda order: {"log": [refund(order), interrupt("and?")]}).add_edge(START, "x")
    graph.add_conditional_edges("x", lambda state: [Send("n", "a")], ["n"])
    compiled = graph.compile(checkpointer=saver)
    call(compiled, {}, thread())
    question = asked(compiled)["a"]
    compiled.update_state(thread(), {"log": ["edited"]}, as_node="x")
    assert asked(compiled) == {"a": question}
    call(compiled, Command(resume={question: Approve("ann")}), thread())
    compiled.update_state(thread(), {"log": ["again"]}, as_node="x")
    log = call(compiled, Command(resume="on"), thread())["log"]
    assert log == ["x", "edited", "again", "a:100 #1", "on"]
    assert outside.times == {"a:100": 1}


def test_a_task_run_anew_keeps_the_decision_about_it(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    graph = one(lambda state: {"log": [refunding(outside)("a")]}, saver)
    call(graph, {}, thread())
    with pytest.raises(ApprovalRejectedError, match="rejected by eve"):
        call(graph, Command(resume=Reject("eve")), thread())
    with pytest.raises(ApprovalRejectedError, match="rejected by eve"):
        graph.retry(thread(), tasks=["n"])
    assert outside.asked == []


def test_a_copy_that_took_an_open_question_along_decides_for_itself(saver: SqliteSaver, outside: Outside) -> None:
    graph = desk(saver, refunding(outside))
    graph.invoke({}, thread())
    saver.copy_thread("t", "copy")
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #1"]}
    assert graph.invoke(Command(resume=Reject("bob", "no")), thread("copy")) == {"log": ["no: no"]}
    assert outside.times == {"a:100": 1}
