"""An approval may expire: at a time that is fixed when it is asked, and for good."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell import (
    Approval,
    ApprovalExpiredError,
    Approve,
    Command,
    Decision,
    InvalidDecisionError,
    Reject,
    SqliteSaver,
    interrupt,
    task,
)
from stepwell.testing import FakeClock
from tests.approvals.desks import arefunding, asked, decisions, desk, head, refunding
from tests.effects.acting import DURABILITIES, Outside, one, statuses
from tests.runtime.graphs import Call, thread

UNTIL = datetime(2023, 11, 14, 22, 14, 20, tzinfo=UTC)
"""A minute after what a fake clock shows at first."""
A_MINUTE = Approval(expires=60)


@pytest.mark.parametrize("expires", [60, 60.0, timedelta(minutes=1)])
def test_the_deadline_is_a_time_fixed_when_it_is_asked(
    saver: SqliteSaver, outside: Outside, clock: FakeClock, expires: Any
) -> None:
    graph = desk(saver, refunding(outside, approval=Approval(expires=expires)))
    (question,) = graph.invoke({}, thread())["__interrupt__"]
    assert question.value.expires_at == UNTIL
    clock.advance(59.999999)
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #1"]}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("late", [Approve("ann"), Reject("ann"), {"approved": True, "by": "ann"}])
def test_a_decision_after_the_deadline_is_refused_and_changes_nothing(
    call: Call, saver: SqliteSaver, outside: Outside, clock: FakeClock, durability: str, late: Any
) -> None:
    graph = desk(saver, refunding(outside, approval=A_MINUTE))
    call(graph, {}, thread(), durability=durability)
    clock.advance(60)
    before = head(saver)
    for resume in (late, {asked(graph)["a"]: late}):
        with pytest.raises(ApprovalExpiredError, match=r"before 2023-11-14 22:14:20\+00:00") as refused:
            call(graph, Command(resume=resume), thread(), durability=durability)
        assert refused.value.fields()["expires_at"] == UNTIL
    with pytest.raises(InvalidDecisionError):
        call(graph, Command(resume="yes"), thread())
    assert (head(saver), outside.asked) == (before, [])


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("refunding", [refunding, arefunding])
def test_a_node_that_runs_after_the_deadline_is_told_so_and_whenever_it_runs_again(
    call: Call, saver: SqliteSaver, outside: Outside, clock: FakeClock, durability: str, refunding: Any
) -> None:
    graph = desk(saver, refunding(outside, approval=A_MINUTE))
    call(graph, {}, thread(), durability=durability)
    question = asked(graph)["a"]
    assert call(graph, None, thread(), durability=durability)["__interrupt__"][0].id == question, "there is time"
    clock.advance(3600)
    for _ in range(2):
        with pytest.raises(ApprovalExpiredError, match="Nobody decided about effect 'refund'") as told:
            call(graph, None, thread(), durability=durability)
        assert told.value.fields()["expires_at"] == UNTIL
    assert decisions(saver, graph) == [Decision(status="expired", by="", at=UNTIL)]
    with pytest.raises(ApprovalExpiredError, match="too late"):
        call(graph, Command(resume={question: Approve("ann")}), thread(), durability=durability)
    assert (outside.asked, statuses(saver)) == ([], [])
    assert list(saver.store.verify()) == []


def test_a_node_may_go_on_without_what_expired(saver: SqliteSaver, outside: Outside, clock: FakeClock) -> None:
    refund, ways = refunding(outside, approval=A_MINUTE), []

    @task
    def through() -> str:
        return str(refund("a"))

    def node(state: Any) -> Any:
        try:
            through().result()
        except ApprovalExpiredError as late:
            ways.append(str(late))
        return {"log": [interrupt("and?")]}

    graph = one(node, saver)
    graph.invoke({}, thread())
    clock.advance(61)
    assert [question.value for question in graph.invoke(None, thread())["__interrupt__"]] == ["and?"]
    assert graph.invoke(Command(resume="on"), thread()) == {"log": ["on"]}
    assert ways == [ways[0]] * 2


def test_the_deadline_does_not_move_when_the_node_asks_again(
    call: Call, saver: SqliteSaver, outside: Outside, clock: FakeClock
) -> None:
    refund = arefunding(outside, approval=A_MINUTE)

    async def other() -> Any:
        return interrupt("who?")

    async def node(state: Any) -> Any:
        return {"log": await asyncio.gather(refund("a"), other())}

    graph = one(node, saver)
    call(graph, {}, thread())
    approval, who = graph.get_state(thread()).interrupts
    clock.advance(30)
    assert call(graph, Command(resume={who.id: "me"}), thread())["__interrupt__"] == [approval]
    assert graph.get_state(thread()).interrupts[0].value.expires_at == UNTIL
    clock.advance(30)
    with pytest.raises(ApprovalExpiredError):
        call(graph, Command(resume=Approve("ann")), thread())


def test_an_answer_to_another_question_takes_note_of_what_expired(
    saver: SqliteSaver, outside: Outside, clock: FakeClock
) -> None:
    refund = arefunding(outside, approval=A_MINUTE)

    async def expiring() -> str:
        try:
            return str(await refund("a"))
        except ApprovalExpiredError:
            return "too late"

    async def other() -> Any:
        return interrupt("who?")

    async def node(state: Any) -> Any:
        return {"log": await asyncio.gather(expiring(), other())}

    graph = one(node, saver)
    graph.invoke({}, thread())
    _, who = graph.get_state(thread()).interrupts
    clock.advance(60)
    assert graph.invoke(Command(resume={who.id: "me"}), thread()) == {"log": ["too late", "me"]}
    assert [each.status for each in decisions(saver, graph)] == ["expired"]


def test_it_can_be_asked_anew_from_an_earlier_checkpoint(
    saver: SqliteSaver, outside: Outside, clock: FakeClock
) -> None:
    graph = desk(saver, refunding(outside, approval=A_MINUTE))
    graph.invoke({}, thread())
    clock.advance(60)
    with pytest.raises(ApprovalExpiredError):
        graph.invoke(None, thread())
    start = [each.config for each in graph.get_state_history(thread()) if each.next == ("__start__",)][-1]
    (question,) = graph.invoke(None, start)["__interrupt__"]
    assert question.value.expires_at == UNTIL + timedelta(seconds=60)
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #1"]}
