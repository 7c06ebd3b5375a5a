"""Retry policies: which failures are tried again, how often, and that each attempt is recorded."""

from typing import Any

import httpx
import pytest
import requests

from stepwell import Command, RetryPolicy, Runtime, SqliteSaver, StateGraph, interrupt
from stepwell.graph.types import START
from tests.runtime.graphs import Call, Counted, Flaky, Log, note, thread


def at_once(**options: Any) -> RetryPolicy:
    """Return a policy that does not wait."""
    return RetryPolicy(initial_interval=0, jitter=False, **options)


def retried(node: Any, *policies: RetryPolicy) -> StateGraph[Any, Any, Any, Any]:
    return StateGraph(Log).add_node("node", node, retry_policy=policies).add_edge(START, "node")


def attempts_of(saver: SqliteSaver) -> int:
    with saver.store.reading() as reader:
        return len(reader.records_of_kind("t", "attempt"))


def test_a_failed_attempt_is_recorded_and_tried_again(call: Call, saver: SqliteSaver) -> None:
    node = Flaky("node", failures=2)
    graph = retried(node, at_once(retry_on=ValueError)).compile(checkpointer=saver)
    assert call(graph, {}, thread()) == {"log": ["node"]}
    assert node.calls == 3
    assert attempts_of(saver) == 2


def test_jitter_is_up_to_a_second_more(saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn, and slept, by the functions as they are when the wait begins: a test may put others in their place."""
    drawn: list[tuple[float, float]] = []
    slept: list[float] = []

    def half(low: float, high: float) -> float:
        drawn.append((low, high))
        return 0.5

    monkeypatch.setattr("random.uniform", half)
    monkeypatch.setattr("time.sleep", slept.append)
    policy = RetryPolicy(initial_interval=0.25, retry_on=ValueError)
    assert retried(Flaky("node"), policy).compile(checkpointer=saver).invoke({}, thread()) == {"log": ["node"]}
    assert (drawn, slept) == ([(0, 1)], [0.75])


def test_in_exit_mode_no_attempt_is_recorded(call: Call, saver: SqliteSaver) -> None:
    graph = retried(Flaky("node", failures=2), at_once(retry_on=ValueError)).compile(checkpointer=saver)
    assert call(graph, {}, thread(), durability="exit") == {"log": ["node"]}
    assert attempts_of(saver) == 0


def test_the_last_attempt_raises(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    node = Flaky("node", failures=9)
    graph = retried(node, at_once(retry_on=ValueError, max_attempts=4)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="node is broken"):
        call(graph, {}, thread(), durability=any_durability)
    assert node.calls == 4
    with pytest.raises(ValueError, match="node is broken"):
        call(graph, None, thread(), durability=any_durability)
    assert node.calls == 8, "a new run has fresh attempts"


def test_without_a_policy_nothing_is_tried_again(call: Call) -> None:
    node = Flaky("node", error=ConnectionError("refused"))
    with pytest.raises(ConnectionError):
        call(retried(node).compile(), {})
    assert node.calls == 1


def test_the_first_policy_that_matches_decides(call: Call, saver: SqliteSaver) -> None:
    policies = (at_once(retry_on=KeyError, max_attempts=5), at_once(retry_on=(ValueError, KeyError), max_attempts=2))
    once, often = Flaky("node", 9), Flaky("node", 9, KeyError("k"))
    for node, calls in ((once, 2), (often, 5)):
        with pytest.raises((ValueError, KeyError)):
            call(retried(node, *policies).compile(checkpointer=saver), {}, thread(str(calls)))
        assert node.calls == calls


def test_a_predicate_may_decide(call: Call) -> None:
    node = Flaky("node", 9, ValueError("transient"))
    with pytest.raises(ValueError, match="transient"):
        call(retried(node, at_once(retry_on=lambda error: "transient" in str(error))).compile(), {})
    assert node.calls == 3


def test_a_node_knows_its_attempt(call: Call, saver: SqliteSaver) -> None:
    seen: list[tuple[int, float | None]] = []

    def node(state: Log, runtime: Runtime[Any]) -> dict[str, list[str]]:
        info = runtime.execution_info
        assert info is not None
        seen.append((info.node_attempt, info.node_first_attempt_time))
        if len(seen) < 3:
            raise ConnectionError("refused")
        return {"log": ["node"]}

    call(retried(node, at_once()).compile(checkpointer=saver), {}, thread())
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    assert len({first for _, first in seen}) == 1


def test_attempts_of_siblings_are_their_own(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    nodes = {name: Flaky(name, failures) for name, failures in (("a", 2), ("b", 1), ("c", 0))}
    graph = StateGraph(Log)
    for name, node in nodes.items():
        graph.add_node(name, node, retry_policy=at_once(retry_on=ValueError)).add_edge(START, name)
    result = call(graph.compile(checkpointer=saver), {}, thread(), durability=any_durability)
    assert result == {"log": ["a", "b", "c"]}
    assert [node.calls for node in nodes.values()] == [3, 2, 1]


def test_a_router_is_tried_again_without_its_node(call: Call, saver: SqliteSaver) -> None:
    node, left = Counted("node"), [2]

    def choose(state: Log) -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectionError("refused")
        return "next"

    graph = retried(node, at_once()).add_node("next", note("next")).add_conditional_edges("node", choose, ["next"])
    assert call(graph.compile(checkpointer=saver), {}, thread()) == {"log": ["node", "next"]}
    assert node.calls == 1


def test_a_pause_is_never_tried_again(call: Call, saver: SqliteSaver) -> None:
    node = Counted("node", lambda state: {"log": [interrupt("?")]})
    graph = retried(node, at_once(retry_on=lambda error: True)).compile(checkpointer=saver)
    assert "__interrupt__" in call(graph, {}, thread())
    assert node.calls == 1
    assert call(graph, Command(resume="yes"), thread()) == {"log": ["yes"]}


def test_a_failed_attempt_leaves_no_writes(call: Call, saver: SqliteSaver) -> None:
    results = iter([[Command(update={"log": ["half"]}), 42], {"log": ["whole"]}])

    def node(state: Log) -> Any:
        return next(results)

    graph = retried(node, at_once(retry_on=lambda error: True)).compile(checkpointer=saver)
    assert call(graph, {}, thread()) == {"log": ["whole"]}


# -- what is tried again by default -----------------------------------------------------------------------------------


def http_error(status: int, library: str) -> Exception:
    """Return a real exception of a real response, with a header that says: at once."""
    if library == "httpx":
        request = httpx.Request("GET", "http://localhost/")
        response = httpx.Response(status, request=request, headers={"Retry-After": "0"})
        return httpx.HTTPStatusError(str(status), request=request, response=response)
    answer = requests.Response()
    answer.status_code = status
    answer.headers["Retry-After"] = "0"
    return requests.HTTPError(str(status), response=answer)


@pytest.mark.parametrize("library", ["httpx", "requests"])
@pytest.mark.parametrize(
    ("status", "calls"), [(400, 1), (401, 1), (404, 1), (422, 1), (408, 3), (425, 3), (429, 3), (500, 3), (503, 3)]
)
def test_M1_an_http_answer_is_tried_again_by_its_status(
    status: int, calls: int, library: str, saver: SqliteSaver
) -> None:
    """LangGraph's reports 8802 and 8840: for one library client errors were retried and lost connections were not."""
    node = Flaky("node", 9, http_error(status, library))
    with pytest.raises(type(node.error)):
        retried(node, at_once()).compile(checkpointer=saver).invoke({}, thread())
    assert node.calls == calls


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        requests.ConnectionError("refused"),
        requests.ReadTimeout("slow"),
        ConnectionResetError("reset"),
        TimeoutError("slow"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_M1_a_lost_connection_is_tried_again(error: Exception, call: Call) -> None:
    """Connection errors and timeouts of every kind."""
    node = Flaky("node", 2, error)
    assert call(retried(node, at_once()).compile(), {}) == {"log": ["node"]}


@pytest.mark.parametrize("error", [ValueError("v"), TypeError("t"), KeyError("k"), ZeroDivisionError(), NameError("n")])
def test_a_programming_error_is_not_tried_again(error: Exception, call: Call) -> None:
    node = Flaky("node", 2, error)
    with pytest.raises(type(error)):
        call(retried(node, at_once()).compile(), {})
    assert node.calls == 1
