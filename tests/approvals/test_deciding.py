"""INV-8 for effects that need approval: nothing happens before somebody decides, and it is decided once."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell import (
    START,
    AlreadyDecidedError,
    AmbiguousAnswerError,
    Answer,
    Approval,
    ApprovalRejectedError,
    ApprovalRequest,
    Approve,
    Command,
    Decision,
    EffectDeclarationError,
    InMemorySaver,
    Interrupt,
    InvalidDecisionError,
    Reject,
    SqliteSaver,
    StateGraph,
    UnserializableValueError,
    effect,
    interrupt,
    task,
)
from stepwell.superstep.effects.layout import decode_intent
from stepwell.testing import FakeClock
from tests.approvals.desks import arefunding, asked, decisions, desk, head, refunding
from tests.effects.acting import DURABILITIES, Outside, one, statuses
from tests.runtime.graphs import Call, Chunks, Log, thread

AT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
"""What a fake clock shows at first."""


@pytest.mark.parametrize("refunding", [refunding, arefunding])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_effect_asks_before_its_intent_and_happens_once_it_is_approved(
    call: Call, saver: SqliteSaver, outside: Outside, durability: str, refunding: Any
) -> None:
    graph = desk(saver, refunding(outside))
    (question,) = call(graph, {}, thread(), durability=durability)["__interrupt__"]
    assert (statuses(saver), outside.asked) == ([], [])
    assert question.value == ApprovalRequest(
        effect="refund",
        planned_action="refund(order='a')",
        inputs={"order": "a"},
        key=question.value.key,
        step_id="node/refund/0",
        asked_at=AT,
        editable=("order", "cents"),
    )
    assert graph.get_state(thread()).interrupts == (question,), "it reads back as it was asked"
    assert call(graph, None, thread(), durability=durability)["__interrupt__"] == [question]
    decision = Command(resume=Approve(by="ann", note="fine"))
    assert call(graph, decision, thread(), durability=durability) == {"log": ["a:100 #1"]}
    assert (outside.keys, statuses(saver)) == ([question.value.key], ["done"])
    assert decisions(saver, graph) == [Decision(status="approved", by="ann", at=AT, note="fine")]
    assert list(saver.store.verify()) == []


NO_DECISION = {
    "true": True,
    "text": "yes",
    "none": None,
    "empty": {},
    "nobody": {"approved": True},
    "approved by nothing": {"approved": True, "by": ""},
    "by blanks": Approve(by="  "),
    "by a number": Approve(by=7),  # type: ignore[arg-type]
    "not a bool": {"approved": 1, "by": "ann"},
    "a word for it": {"approved": "yes", "by": "ann"},
    "more than it means": {"approved": True, "by": "ann", "amount": 5},
    "a reason to approve": {"approved": True, "by": "ann", "reason": "fine"},
    "a note that is no text": Approve(by="ann", note=5),  # type: ignore[arg-type]
    "an argument it has not": Approve(by="ann", args={"euros": 5}),
    "arguments that are none": {"approved": True, "by": "ann", "args": [1]},
    "the key": Approve(by="ann", args={"idempotency_key": "k"}),
    "a wrapped word": Answer("yes"),
}


@pytest.mark.parametrize("answer", NO_DECISION.values(), ids=list(NO_DECISION))
def test_nothing_is_approved_by_default_and_no_word_is_recorded(
    call: Call, saver: SqliteSaver, outside: Outside, answer: Any
) -> None:
    graph = desk(saver, refunding(outside))
    (question,) = call(graph, {}, thread())["__interrupt__"]
    before = head(saver)
    for resume in (answer, {question.id: answer.value if isinstance(answer, Answer) else answer}):
        with pytest.raises(InvalidDecisionError, match="Nothing was recorded") as refused:
            call(graph, Command(resume=resume), thread())
        assert refused.value.fields()["interrupt_id"] == question.id
    assert (head(saver), outside.asked) == (before, [])
    assert call(graph, Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #1"]}


def test_a_value_that_cannot_be_stored_is_refused_before_anything_is_recorded(
    call: Call, saver: SqliteSaver, outside: Outside
) -> None:
    graph = desk(saver, refunding(outside))
    call(graph, {}, thread())
    before = head(saver)
    with pytest.raises(UnserializableValueError):
        call(graph, Command(resume=Approve("ann", args={"cents": object()})), thread())
    assert (head(saver), outside.asked) == (before, [])


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        (Approve("ann"), "a:100 #1"),
        ({"approved": True, "by": "ann"}, "a:100 #1"),
        ({"approved": True, "by": "ann", "note": "n", "args": {"cents": 7}}, "a:7 #1"),
        (Reject("ann", "too much"), "no: too much"),
        ({"approved": False, "by": "ann", "reason": "too much"}, "no: too much"),
        ({"approved": False, "by": "ann"}, "no: no reason was given"),
    ],
)
def test_a_decision_is_given_as_an_object_or_as_a_mapping(
    saver: SqliteSaver, outside: Outside, decision: Any, result: str
) -> None:
    graph = desk(saver, refunding(outside))
    graph.invoke({}, thread())
    assert graph.invoke(Command(resume={asked(graph)["a"]: decision}), thread()) == {"log": [result]}
    (recorded,) = decisions(saver, graph)
    assert (recorded.by, recorded.at) == ("ann", AT)


def test_the_decision_is_on_record_before_the_body_runs(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    seen: list[Any] = []

    @effect(approval=True)
    def refund(order: str, idempotency_key: str) -> str:
        seen.extend([*decisions(saver, graph), *statuses(saver)])
        return outside.act(idempotency_key, order)

    graph = desk(saver, refund)
    call(graph, {}, thread(), durability="exit")
    call(graph, Command(resume=Approve("ann")), thread(), durability="exit")
    assert seen == [Decision(status="approved", by="ann", at=AT), "intent"]


# -- edited arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_name", [False, True])
def test_edited_arguments_are_what_it_is_called_with(saver: SqliteSaver, by_name: bool) -> None:
    seen: list[Any] = []

    @effect(approval=True, on_doubt="raise", key=lambda a, b, c=3: f"{a}-{b}-{c}")
    def act(a: int, b: int, c: int = 3) -> int:
        seen.append((a, b, c))
        return a + b + c

    graph = one(lambda state: {"log": [str(act(1, b=2) if by_name else act(1, 2))]}, saver)
    graph.invoke({}, thread())
    edited = {"a": 10, "b": 20, "c": 30}
    assert graph.invoke(Command(resume=Approve("ann", args=edited)), thread()) == {"log": ["60"]}
    assert seen == [(10, 20, 30)]
    with saver.store.reading() as reader:
        (row,) = reader.records_of_kind("t", "intent")
    intent = decode_intent(row.body, "intent")
    assert graph.codec.loads(intent.inputs) == edited
    assert intent.user_key == "10-20-30"
    assert graph.codec.loads(intent.approval).args == edited


def test_edited_arguments_stay_when_the_node_runs_again(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    refund, failures = refunding(outside), [ValueError("once")]

    def node(state: Any) -> Any:
        receipt = refund("a")
        if failures:
            raise failures.pop()
        return {"log": [receipt, interrupt("and?")]}

    graph = one(node, saver)
    call(graph, {}, thread())
    with pytest.raises(ValueError, match="once"):
        call(graph, Command(resume=Approve("ann", args={"cents": 7})), thread())
    assert [q.value for q in call(graph, None, thread())["__interrupt__"]] == ["and?"]
    assert call(graph, Command(resume="yes"), thread()) == {"log": ["a:7 #1", "yes"]}
    assert outside.times == {"a:7": 1}


def test_what_is_left_out_is_not_shown_and_not_changed(saver: SqliteSaver, outside: Outside) -> None:
    @effect(
        approval=Approval(show=lambda client, order: {"for": order, "limit": 5}),
        exclude=["client"],
        planned_action=lambda client, order: f"refund order {order}",
    )
    def refund(client: Any, order: str, idempotency_key: str) -> str:
        return str(client(idempotency_key, order))

    graph = one(lambda state: {"log": [refund(outside.act, "a")]}, saver)
    (question,) = graph.invoke({}, thread())["__interrupt__"]
    request = question.value
    assert (request.inputs, request.editable, request.shown) == ({"order": "a"}, ("order",), {"for": "a", "limit": 5})
    assert request.planned_action == "refund order a"
    assert graph.invoke(Command(resume=Approve("ann", args={"order": "b"})), thread()) == {"log": ["b #1"]}


# -- rejection --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refunding", [refunding, arefunding])
def test_a_rejection_is_raised_in_the_node_and_again_whenever_it_runs(
    call: Call, saver: SqliteSaver, outside: Outside, refunding: Any
) -> None:
    refund, ways = refunding(outside), []

    def after(way: str) -> Any:
        ways.append(way)
        return {"log": [way, interrupt("and?")]}

    def node(state: Any) -> Any:
        try:
            refund("a")
        except ApprovalRejectedError as no:
            return after(f"rejected by {no.fields()['by']}")

    async def anode(state: Any) -> Any:
        try:
            await refund("a")
        except ApprovalRejectedError as no:
            return after(f"rejected by {no.fields()['by']}")

    graph = one(anode if refund.declared.step.is_async else node, saver)
    call(graph, {}, thread())
    call(graph, Command(resume=Reject("eve", "no")), thread())
    assert call(graph, Command(resume="on"), thread()) == {"log": ["rejected by eve", "on"]}
    assert (ways, outside.asked, statuses(saver)) == (["rejected by eve"] * 2, [], [])


def test_a_rejection_nobody_handles_fails_the_node_and_stays(saver: SqliteSaver, outside: Outside) -> None:
    refund = refunding(outside)
    graph = one(lambda state: {"log": [refund("a")]}, saver)
    (question,) = graph.invoke({}, thread())["__interrupt__"]
    for given in (Command(resume=Reject("eve", "no")), None):
        with pytest.raises(ApprovalRejectedError, match=r"rejected by eve: no\. It has not happened") as rejected:
            graph.invoke(given, thread())
        assert rejected.value.fields()["key"] == question.value.key
    assert outside.asked == []


def test_a_rejection_inside_a_step_is_the_same_when_the_node_runs_again(saver: SqliteSaver, outside: Outside) -> None:
    refund, raised = refunding(outside), []

    @task
    def through() -> str:
        return str(refund("a"))

    def node(state: Any) -> Any:
        try:
            through().result()
        except ApprovalRejectedError as no:
            raised.append((str(no), no.fields()["decision"]))
        return {"log": [interrupt("and?")]}

    graph = one(node, saver)
    graph.invoke({}, thread())
    graph.invoke(Command(resume=Reject("eve")), thread())
    assert graph.invoke(Command(resume="on"), thread()) == {"log": ["on"]}
    assert len(raised) == 2
    assert raised[0] == raised[1]


# -- a second decision ------------------------------------------------------------------------------------------------

SECOND = {
    "the same": Approve("ann"),
    "another person's": Approve("bob"),
    "a no": Reject("bob", "stop"),
    "a mapping": {"approved": False, "by": "bob"},
}


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("second", SECOND.values(), ids=list(SECOND))
def test_a_second_decision_is_told_the_first(
    call: Call, saver: SqliteSaver, outside: Outside, second: Any, by_id: bool
) -> None:
    graph = desk(saver, refunding(outside))
    (question,) = call(graph, {}, thread())["__interrupt__"]
    call(graph, Command(resume=Approve("ann", "go", {"cents": 7})), thread())
    before = head(saver)
    with pytest.raises(
        AlreadyDecidedError, match=r"approved by ann at 2023-11-14T22:13:20\+00:00 \(cents=7; go\)"
    ) as no:
        call(graph, Command(resume={question.id: second} if by_id else second), thread())
    first = Decision(status="approved", by="ann", at=AT, note="go", args={"cents": 7})
    assert f"question {question.id} of thread" in str(no.value)
    assert (no.value.fields()["decision"], no.value.fields()["interrupt_ids"]) == (first, [question.id])
    assert (head(saver), outside.times) == (before, {"a:7": 1})


def test_a_decision_beside_a_run_that_follows_another_is_told_that_one(saver: SqliteSaver, outside: Outside) -> None:
    told: list[BaseException] = []

    def decide() -> None:
        try:
            graph.invoke(Command(resume=Reject("bob")), thread())
        except AlreadyDecidedError as error:
            told.append(error)

    @effect(approval=True)
    def refund(order: str, idempotency_key: str) -> str:
        beside = threading.Thread(target=decide)
        beside.start()
        beside.join()
        return outside.act(idempotency_key, order)

    graph = desk(saver, refund)
    graph.invoke({}, thread())
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["a #1"]}
    assert [error.fields()["decision"].by for error in told] == ["ann"]  # type: ignore[attr-defined]


def test_of_many_who_decide_at_once_one_decides_and_the_others_learn_who(saver: SqliteSaver, outside: Outside) -> None:
    graph = desk(saver, refunding(outside))
    (question,) = graph.invoke({}, thread())["__interrupt__"]
    together, done, told = threading.Barrier(8), [], []

    def decide(name: str) -> None:
        together.wait()
        try:
            graph.invoke(Command(resume={question.id: Approve(name)}), thread())
            done.append(name)
        except AlreadyDecidedError as error:
            told.append(error.fields()["decision"].by)

    people = [threading.Thread(target=decide, args=(f"p{i}",)) for i in range(8)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert (len(done), told) == (1, done * 7)
    assert outside.times == {"a:100": 1}
    assert len(decisions(saver, graph)) == 1


def test_a_decision_where_nothing_asks_is_refused_at_a_breakpoint_too(saver: SqliteSaver, outside: Outside) -> None:
    refund = refunding(outside)
    graph = StateGraph(Log).add_node("n", lambda state: {"log": [refund("a")]}).add_node("m", lambda state: None)
    compiled = graph.add_edge(START, "n").add_edge("n", "m").compile(checkpointer=saver, interrupt_before=["m"])
    compiled.invoke({}, thread())
    compiled.invoke(Command(resume=Approve("ann")), thread())
    before = head(saver)
    with pytest.raises(AlreadyDecidedError, match="approved by ann"):
        compiled.invoke(Command(resume=Approve("bob")), thread())
    assert head(saver) == before


# -- streams, threads in other places ---------------------------------------------------------------------------------


def test_C4_an_approval_that_was_streamed_is_on_the_thread_by_then(saver: SqliteSaver, outside: Outside) -> None:
    """Fault C4: a question is persisted before it is streamed, so state and stream agree."""
    graph = desk(saver, refunding(outside))
    stream = graph.stream({}, thread())
    (question,) = next(chunk["__interrupt__"] for chunk in stream if "__interrupt__" in chunk)
    assert graph.get_state(thread()).interrupts == (question,)
    stream.close()
    assert asked(graph) == {"a": question.id}
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #1"]}


def test_C1_an_approval_has_one_result_however_many_ways_lead_there(
    call: Call, saver: SqliteSaver, outside: Outside
) -> None:
    """Fault C1: an approved call has exactly one result, though two paths lead to the node that makes it."""
    refund = refunding(outside, key=lambda order: order)
    graph = StateGraph(Log)
    for name in ("left", "right"):
        graph.add_node(name, lambda state, name=name: {"log": [name]})
        graph.add_edge(START, name).add_edge(name, "tool")
    graph.add_node("tool", lambda state: {"log": [refund("a")]}).add_node("again", lambda state: {"log": [refund("a")]})
    compiled = graph.add_edge("tool", "again").compile(checkpointer=saver)
    call(compiled, {}, thread())
    log = call(compiled, Command(resume=Approve("ann")), thread())["log"]
    assert log == ["left", "right", "a:100 #1", "a:100 #1"]
    assert (outside.times, statuses(saver)) == ({"a:100": 1}, ["done"])


@pytest.mark.parametrize("mode", ["updates", "values"])
def test_a_stream_hands_out_the_request(chunks: Chunks, saver: SqliteSaver, outside: Outside, mode: Any) -> None:
    graph = desk(saver, refunding(outside))
    shown = [
        chunk["__interrupt__"] for chunk in chunks(graph, {}, thread(), stream_mode=mode) if "__interrupt__" in chunk
    ]
    assert [[type(each) for each in group] for group in shown] == [[Interrupt]]
    assert isinstance(shown[0][0].value, ApprovalRequest)


# -- what cannot be declared ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("approval", "reason"),
    [
        ("yes", "must be True or an Approval"),
        (Approval(expires=0), "expires must be a number of seconds above 0"),
        (Approval(expires=timedelta(seconds=-1)), "expires must be a number of seconds above 0"),
        (Approval(expires=True), "expires must be a number of seconds above 0"),
        (Approval(show="it"), "must be a function of the arguments"),  # type: ignore[arg-type]
    ],
)
def test_what_no_approval_could_be_is_refused_when_the_module_is_imported(approval: Any, reason: str) -> None:
    with pytest.raises(EffectDeclarationError, match=reason):
        refunding(Outside(), approval=approval)


@pytest.mark.parametrize("none", [False, None])
def test_without_approval_nothing_is_asked(outside: Outside, none: Any) -> None:
    graph = desk(InMemorySaver(), refunding(outside, approval=none))
    assert graph.invoke({}, thread()) == {"log": ["a:100 #1"]}


def test_an_approval_costs_the_pause_and_nothing_more(
    call: Call, saver: SqliteSaver, outside: Outside, clock: FakeClock
) -> None:
    graph = desk(saver, refunding(outside))
    counts = saver.store.counts
    call(graph, {}, thread())
    assert counts.transactions == 2, "admission, pause"
    call(graph, Command(resume=Approve("ann")), thread())
    assert counts.transactions == 2 + 4, "the decision is the admission; intent, receipt, end"


def test_several_that_ask_need_to_be_told_apart(saver: SqliteSaver, outside: Outside) -> None:
    refund = refunding(outside)
    graph = StateGraph(Log)
    for order in "ab":
        graph.add_node(order, lambda state, order=order: {"log": [refund(order)]}).add_edge(START, order)
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({}, thread())
    before = head(saver)
    with pytest.raises(AmbiguousAnswerError):
        compiled.invoke(Command(resume=Approve("ann")), thread())
    with pytest.raises(InvalidDecisionError):
        ids = asked(compiled)
        compiled.invoke(Command(resume={ids["a"]: Approve("ann"), ids["b"]: "yes"}), thread())
    assert head(saver) == before
