"""`retry(config, tasks=...)`: what is named runs anew, what is not keeps its outcome, and the discard is on record."""

import asyncio
from typing import Any

import pytest

from stepwell import Command, InvalidConfigError, NothingToRetryError, SqliteSaver, UnknownTaskError
from stepwell.errors import MergeError
from tests.runtime.graphs import Counted, Flaky, ask, chain, fan, thread


def log(*names: str) -> dict[str, list[str]]:
    return {"log": list(names)}


def kinds(saver: SqliteSaver) -> list[str]:
    with saver.store.reading() as reader:
        head = reader.newest("t", "")
        assert head is not None
        return [record.kind for record in reader.records("t", head.seq)]


class Changing(Counted):
    """Logs which of its calls this is."""

    def __call__(self, state: Any) -> Any:
        self.calls += 1
        return log(f"{self.name}{self.calls}")


def failed(saver: SqliteSaver) -> tuple[Any, Changing, Changing]:
    """Return a graph whose thread failed beside two tasks that finished."""
    a, b = Changing("a"), Changing("b")
    graph = fan(("a", a), ("b", b), ("c", Flaky("c"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    return graph, a, b


@pytest.mark.parametrize("by", ["name", "names", "id"])
def test_what_is_named_runs_anew_and_its_siblings_do_not(by: str, saver: SqliteSaver) -> None:
    """INV-4: a success is run again only where the caller discards it, which is recorded."""
    graph, a, b = failed(saver)
    base = graph.get_state(graph.get_state(thread()).config)
    task_id = next(t.id for t in base.tasks if t.name == "a")
    named: Any = {"name": "a", "names": ["a"], "id": [task_id]}[by]
    assert graph.retry(thread(), named) == log("a2", "b1", "c")
    assert (a.calls, b.calls) == (2, 1)
    with saver.store.reading() as reader:
        (record,) = reader.records_of_kind("t", "discarded")
    assert record.task_id == task_id


def test_the_async_retry_does_the_same(saver: SqliteSaver) -> None:
    graph, a, b = failed(saver)
    assert asyncio.run(graph.aretry(thread(), ["a", "b"])) == log("a2", "b2", "c")
    assert (a.calls, b.calls) == (2, 2)


def test_a_merge_that_failed_may_be_tried_with_other_results(saver: SqliteSaver) -> None:
    """INV-4: a failing merge keeps the outcomes; `retry` merges again, `retry(tasks=)` runs the named ones anew."""
    good, bad = Changing("a"), Changing("b")

    def sometimes(state: Any) -> Any:
        bad.calls += 1
        return {"log": 5 if bad.calls == 1 else ["b"]}

    graph = fan(("a", good), ("b", sometimes)).compile(checkpointer=saver)
    for _ in range(2):
        with pytest.raises(MergeError, match="channel 'log'"):
            graph.retry(thread()) if good.calls else graph.invoke({}, thread())
    assert (good.calls, bad.calls) == (1, 1)
    assert graph.retry(thread(), ["b"]) == log("a1", "b")
    assert (good.calls, bad.calls) == (1, 2)


def test_a_discarded_task_keeps_its_answers(saver: SqliteSaver) -> None:
    """INV-8: a question that was answered is not asked again."""
    asks = Counted("asks", ask("asks"))
    graph = fan(("asks", asks), ("flaky", Flaky("flaky", 2))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    with pytest.raises(ValueError, match="broken"):
        graph.invoke(Command(resume="yes"), thread())
    assert graph.retry(thread(), "asks") == log("asks='yes'", "flaky")
    assert asks.calls == 3


def test_a_question_is_asked_anew_under_its_id(saver: SqliteSaver) -> None:
    node = Counted("ask", ask("ask"))
    graph = chain(("ask", node)).compile(checkpointer=saver)
    first = graph.invoke({}, thread())["__interrupt__"]
    assert graph.retry(thread(), "ask")["__interrupt__"] == first
    assert node.calls == 2
    assert graph.invoke(Command(resume={first[0].id: "yes"}), thread()) == log("ask='yes'")


def test_tasks_of_an_older_checkpoint_run_anew_in_a_lineage_beside_what_their_siblings_made(saver: SqliteSaver) -> None:
    a, b = Changing("a"), Changing("b")
    graph = fan(("a", a), ("b", b)).compile(checkpointer=saver)
    assert graph.invoke({}, thread()) == log("a1", "b1")
    base = next(s for s in graph.get_state_history(thread()) if s.next == ("a", "b"))
    assert graph.retry(base.config, ["b"]) == log("a1", "b2")
    assert (a.calls, b.calls) == (1, 2)
    assert graph.get_state(thread()).lineage == 1
    assert graph.get_state(base.config) == base


def test_tasks_that_are_not_planned_cannot_be_retried(saver: SqliteSaver) -> None:
    graph, a, _ = failed(saver)
    with pytest.raises(UnknownTaskError, match="plans no task zz") as raised:
        graph.retry(thread(), ["a", "zz"])
    assert raised.value.code == "unknown_task"
    with pytest.raises(InvalidConfigError, match="no tasks"):
        graph.retry(thread(), [])
    assert a.calls == 1
    assert "discarded" not in kinds(saver)
    graph.retry(thread())
    with pytest.raises(UnknownTaskError, match="Planned there: none"):
        graph.retry(thread(), ["a"])
    with pytest.raises(NothingToRetryError):
        graph.retry(thread())
