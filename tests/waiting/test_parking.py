"""A thread that waits: what it shows, that nothing runs and nothing is held, what goes on with it, what it refuses."""

from typing import Any

import pytest

from stepwell import (
    Command,
    IncompatibleGraphError,
    NoCheckpointerError,
    PendingWorkError,
    SqliteSaver,
    UnknownInterruptError,
    Waiting,
    events,
    interrupt,
    sleep,
    wait_for,
)
from stepwell.testing import FakeClock
from tests.runtime.deaths import Saver
from tests.runtime.graphs import Call, Chunks, Counted, Flaky, ask, chain, fan, note, thread
from tests.waiting.nodes import at, expect, nap, status, waiting


def test_a_thread_that_waits_says_for_what_and_until_when(call: Call, kept: Saver, any_durability: str) -> None:
    graph = chain(("a", note("a")), ("nap", nap("nap", 60)), ("b", note("b"))).compile(checkpointer=kept)
    result = call(graph, {}, thread(), durability=any_durability)
    assert result == {"log": ["a"], "__waiting__": [Waiting(key="", until=at(60), kind="timer")]}
    assert status(graph) == "waiting"
    snapshot = graph.get_state(thread())
    assert snapshot.next == ("nap",)
    assert snapshot.interrupts == ()
    assert snapshot.tasks[0].waiting == (Waiting("", at(60), "timer"),)
    [run] = kept.runs("t")
    assert run.status == "waiting"


def test_nothing_is_leased_while_a_thread_waits(kept: Saver) -> None:
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    with kept.store.reading() as reader:
        row = reader.thread("t")
    assert row is not None
    assert (row.run_id, row.holder, row.lease_until) == ("", "", 0.0)


def test_continuing_before_it_is_due_returns_the_same_and_runs_nothing(
    call: Call, kept: Saver, clock: FakeClock
) -> None:
    node = Counted("nap", nap("nap", 60))
    graph = chain(("nap", node)).compile(checkpointer=kept)
    first = call(graph, {}, thread())
    clock.advance(50)
    spent = kept.store.counts.transactions
    assert call(graph, None, thread()) == first
    assert (node.calls, kept.store.counts.transactions) == (1, spent)


def test_a_node_that_is_due_is_called_again_from_its_start(
    call: Call, kept: Saver, clock: FakeClock, any_durability: str
) -> None:
    node, before = Counted("nap", nap("nap", 60)), Counted("before")
    graph = chain(("before", before), ("nap", node), ("after", note("after"))).compile(checkpointer=kept)
    call(graph, {}, thread(), durability=any_durability)
    clock.advance(60)
    assert call(graph, None, thread(), durability=any_durability) == {"log": ["before", "nap", "after"]}
    assert (before.calls, node.calls) == (1, 2)
    assert status(graph) == "finished"


def test_siblings_finish_and_are_kept_while_one_waits(call: Call, kept: Saver, clock: FakeClock) -> None:
    sibling = Counted("b")
    graph = fan(("a", nap("a", 60)), ("b", sibling)).compile(checkpointer=kept)
    assert call(graph, {}, thread())["log"] == ["b"]
    clock.advance(61)
    assert call(graph, None, thread()) == {"log": ["a", "b"]}
    assert sibling.calls == 1


def test_several_tasks_wait_each_for_its_own(call: Call, kept: Saver, clock: FakeClock) -> None:
    late = Counted("late", nap("late", 90))
    graph = fan(("late", late), ("soon", nap("soon", 30))).compile(checkpointer=kept)
    assert [each.until for each in waiting(call(graph, {}, thread()))] == [at(90), at(30)]
    clock.advance(31)
    left = call(graph, None, thread())
    assert (left["log"], [each.until for each in waiting(left)]) == (["soon"], [at(90)])
    assert late.calls == 1
    clock.advance(60)
    assert call(graph, None, thread()) == {"log": ["late", "soon"]}


def test_a_question_beside_a_wait_pauses_and_both_are_shown(call: Call, kept: Saver, clock: FakeClock) -> None:
    graph = fan(("ask", ask("ask")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    result = call(graph, {}, thread())
    assert [each.value for each in result["__interrupt__"]] == ["ask"]
    assert [each.until for each in waiting(result)] == [at(60)]
    assert status(graph) == "paused"
    answered = call(graph, Command(resume=1), thread())
    assert (answered["log"], "__interrupt__" in answered) == (["ask=1"], False)
    assert status(graph) == "waiting"
    clock.advance(60)
    assert call(graph, None, thread()) == {"log": ["ask=1", "nap"]}


def test_a_wait_that_is_due_goes_on_while_a_question_stays_open(call: Call, kept: Saver, clock: FakeClock) -> None:
    graph = fan(("ask", ask("ask")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    question = call(graph, {}, thread())["__interrupt__"]
    clock.advance(60)
    due = call(graph, None, thread())
    assert (due["log"], due["__interrupt__"], waiting(due)) == (["nap"], question, [])
    assert call(graph, Command(resume=1), thread()) == {"log": ["ask=1", "nap"]}


def test_one_node_may_ask_and_then_wait(call: Call, kept: Saver, clock: FakeClock) -> None:
    def both(state: Any) -> dict[str, list[str]]:
        answer = interrupt("sure?")
        sleep(60)
        return {"log": [answer, wait_for("go")]}

    graph = chain(("both", both)).compile(checkpointer=kept)
    call(graph, {}, thread())
    assert waiting(call(graph, Command(resume="yes"), thread()))[0].until == at(60)
    clock.advance(60)
    assert waiting(call(graph, None, thread()))[0].key == "go"
    graph.signal(thread(), "go", "went")
    assert call(graph, None, thread()) == {"log": ["yes", "went"]}


def test_an_answer_to_a_thread_that_only_waits_is_refused(kept: Saver) -> None:
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume=1), thread())


def test_a_failure_beside_a_wait_fails_the_thread_and_the_wait_keeps_its_time(
    call: Call, kept: Saver, clock: FakeClock
) -> None:
    graph = fan(("bad", Flaky("bad")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    with pytest.raises(ValueError, match="bad is broken"):
        call(graph, {}, thread())
    assert status(graph) == "failed"
    clock.advance(30)
    left = call(graph, None, thread())
    assert (left["log"], [each.until for each in waiting(left)]) == (["bad"], [at(60)])


def test_new_input_on_a_waiting_thread_is_refused_unless_the_call_says_otherwise(
    call: Call, kept: Saver, clock: FakeClock
) -> None:
    graph = chain(("go", expect("go", "go")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    call(graph, {}, thread())
    with pytest.raises(PendingWorkError, match="waits \\(signal 'go'\\)") as caught:
        call(graph, {}, thread())
    assert caught.value.fields()["waiting"] == "signal 'go'"
    with pytest.raises(PendingWorkError):
        call(graph, {}, thread(), on_pending="finish")
    graph.signal(thread(), "go", 1)
    graph.signal(thread(), "go", 2)
    with pytest.raises(PendingWorkError, match="waits \\(timer\\)"):
        call(graph, {}, thread(), on_pending="finish")
    assert waiting(call(graph, {"log": ["new"]}, thread(), on_pending="discard"))[0].until == at(60)
    clock.advance(60)
    assert call(graph, None, thread()) == {"log": ["go=1", "new", "go=2", "nap"]}


def test_streams_show_the_wait(chunks: Chunks, kept: Saver) -> None:
    graph = chain(("a", note("a")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    shown = (Waiting("", at(60), "timer"),)
    assert chunks(graph, {}, thread("u"))[-1] == {"__waiting__": shown}
    assert chunks(graph, {}, thread("v"), stream_mode="values")[-1] == {"log": ["a"], "__waiting__": shown}
    assert chunks(graph, {}, thread("t"), stream_mode="tasks")[-1]["waiting"] == shown
    [*_, part] = chunks(graph, None, thread("t"), stream_mode="values", version="v2")
    assert (part["waiting"], part["interrupts"]) == (shown, ())
    [*_, checkpoint] = chunks(graph, None, thread("t"), stream_mode="checkpoints")
    assert checkpoint["tasks"][0]["waiting"] == shown


def test_a_run_as_a_value_says_that_it_waits(kept: Saver) -> None:
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    run = graph.run({}, thread())
    assert (run.status, run.waiting, run.interrupts) == ("waiting", (Waiting("", at(60), "timer"),), ())
    typed = graph.invoke(None, thread(), version="v2")
    assert typed.waiting == run.waiting


def test_a_repeated_run_id_shows_the_wait_again(kept: Saver) -> None:
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    first = graph.invoke({}, thread(run_id="r"))
    assert graph.invoke({}, thread(run_id="r")) == first


def test_events_tell_of_waits(kept: Saver, clock: FakeClock) -> None:
    graph = chain(("go", expect("go", "go", timeout=60))).compile(checkpointer=kept, events=True)
    first = graph.run({}, thread())
    told = [each.event for each in kept.events(first.run_id)]
    [started] = [each for each in told if isinstance(each, events.WaitStarted)]
    assert (started.kind, started.key, started.until) == ("signal", "go", clock.now() + 60_000_000)
    assert isinstance(told[-1], events.RunWaiting)
    assert (told[-1].keys, told[-1].until) == (("go",), started.until)
    graph.signal(thread(), "go", 1, id="one")
    second = graph.run(None, thread())
    [ended] = [each.event for each in kept.events(second.run_id) if isinstance(each.event, events.WaitEnded)]
    assert (ended.key, ended.message_id) == ("go", "signal/one")


# -- edits, forks, changed code ---------------------------------------------------------------------------------------


def test_an_edit_keeps_the_wait_of_a_task_that_stays(kept: Saver, clock: FakeClock) -> None:
    graph = chain(("a", note("a")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    clock.advance(30)
    graph.update_state(thread(), {"log": []}, as_node="a")
    assert graph.get_state(thread()).tasks[0].waiting == (Waiting("", at(60), "timer"),)
    assert status(graph) == "waiting"
    clock.advance(30)
    assert graph.invoke(None, thread()) == {"log": ["a", "nap"]}


def test_an_edit_that_changes_what_a_task_reads_drops_its_wait(kept: Saver, clock: FakeClock) -> None:
    graph = chain(("a", note("a")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    clock.advance(30)
    graph.update_state(thread(), {"log": ["more"]}, as_node="a")
    assert status(graph) == "paused"
    assert waiting(graph.invoke(None, thread()))[0].until == at(90)


def test_a_fork_waits_anew(kept: Saver, clock: FakeClock) -> None:
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    clock.advance(30)
    forked = graph.fork(thread())
    assert waiting(graph.invoke(None, forked))[0].until == at(90)


def test_a_signal_that_arrived_stays_with_the_task_that_runs_anew(kept: Saver, clock: FakeClock) -> None:
    graph = chain(("go", expect("go", "a", "b"))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    graph.signal(thread(), "a", 1)
    assert waiting(graph.invoke(None, thread()))[0].key == "b"
    graph.signal(thread(), "b", 2)
    assert graph.retry(thread(), tasks="go") == {"log": ["go=1", "go=2"]}


def test_a_graph_without_the_node_that_waits_is_refused(kept: Saver, clock: FakeClock) -> None:
    chain(("a", note("a")), ("nap", nap("nap", 60))).compile(checkpointer=kept, name="g").invoke({}, thread())
    clock.advance(60)
    with pytest.raises(IncompatibleGraphError, match="node 'nap', which waits"):
        chain(("a", note("a"))).compile(checkpointer=kept, name="g").invoke(None, thread())


@pytest.mark.parametrize("wait", [lambda: sleep(1), lambda: wait_for("x")])
def test_without_a_checkpointer_nothing_can_be_waited_for(wait: Any) -> None:
    def node(state: Any) -> dict[str, Any]:
        wait()
        return {}

    with pytest.raises(NoCheckpointerError):
        chain(("node", node)).compile().invoke({})


def test_outside_of_a_node_nothing_can_be_waited_for() -> None:
    with pytest.raises(RuntimeError, match="outside of a runnable context"):
        sleep(1)


def test_a_pause_that_is_swallowed_stays_a_wait(call: Call, saver: SqliteSaver) -> None:
    def stubborn(state: Any) -> dict[str, list[str]]:
        try:
            wait_for("go")
        except BaseException:
            return {"log": ["swallowed"]}
        return {"log": ["went"]}

    graph = chain(("stubborn", stubborn)).compile(checkpointer=saver)
    assert waiting(call(graph, {}, thread()))[0].key == "go"
    graph.signal(thread(), "go")
    assert call(graph, None, thread()) == {"log": ["went"]}


def test_reading_side_of_the_saver_shows_the_wait(kept: Saver, clock: FakeClock) -> None:
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    found = kept.get_tuple(thread())
    assert found is not None
    assert [write[1:] for write in found.pending_writes or ()] == [("__waiting__", (Waiting("", at(60), "timer"),))]


def test_lists_of_threads_say_what_each_waits_for(kept: Saver, clock: FakeClock) -> None:
    """What is due can be found without knowing the graphs."""
    graph = fan(("go", expect("go", "go")), ("nap", nap("nap", 60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    chain(("a", note("a"))).compile(checkpointer=kept).invoke({}, thread("other"))
    [listed] = kept.threads(status="waiting")
    assert (listed.thread_id, set(listed.waiting)) == (
        "t",
        {Waiting("go", None, "signal"), Waiting("", at(60), "timer")},
    )
    clock.advance(60)
    graph.invoke(None, thread())
    assert [each.waiting for each in kept.threads(status="waiting")] == [(Waiting("go", None, "signal"),)]
    assert [each.waiting for each in kept.threads(status="finished")] == [()]
