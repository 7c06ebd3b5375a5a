"""Several inputs at once, and config that is bound to a graph."""

import asyncio
import threading
from typing import Any, TypedDict

import pytest

from stepwell import InvalidConfigError, SqliteSaver
from tests.runtime.graphs import chain, letters, thread


class N(TypedDict):
    n: int


def step(state: N) -> dict[str, int]:
    if state["n"] == 13:
        raise ValueError("thirteen")
    return {"n": state["n"] + 1}


def _batch(graph: Any, *args: Any, **options: Any) -> list[Any]:
    return graph.batch(*args, **options)  # type: ignore[no-any-return]


def _abatch(graph: Any, *args: Any, **options: Any) -> list[Any]:
    return asyncio.run(graph.abatch(*args, **options))


@pytest.fixture(params=[_batch, _abatch], ids=["batch", "abatch"])
def batch(request: pytest.FixtureRequest) -> Any:
    """Run a batch each way in turn."""
    return request.param


def counting() -> Any:
    return chain(("step", step), schema=N).compile()


def test_results_come_in_the_order_of_the_inputs(batch: Any) -> None:
    assert batch(counting(), [{"n": n} for n in range(12)]) == [{"n": n + 1} for n in range(12)]
    assert batch(counting(), []) == []
    assert batch(counting(), [{"n": 1}]) == [{"n": 2}]


def test_the_first_failure_is_raised_or_returned_and_stops_no_other(batch: Any) -> None:
    inputs = [{"n": 1}, {"n": 13}, {"n": 3}]
    with pytest.raises(ValueError, match="thirteen"):
        batch(counting(), inputs)
    first, second, third = batch(counting(), inputs, return_exceptions=True)
    assert (first, third) == ({"n": 2}, {"n": 4})
    assert isinstance(second, ValueError)


def test_each_input_has_a_config_of_its_own(batch: Any, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    assert batch(graph, [{}, {}], [thread("one"), thread("two")]) == [{"log": ["a"]}] * 2
    assert graph.get_state(thread("two")).values == {"log": ["a"]}
    with pytest.raises(InvalidConfigError, match="same length as inputs, but got 1 configs for 2 inputs"):
        batch(graph, [{}, {}], [thread("one")])


def test_one_thread_for_several_inputs_is_refused_before_anything_runs(batch: Any, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    with pytest.raises(InvalidConfigError, match="2 inputs share one thread_id"):
        batch(graph, [{}, {}], thread())
    with pytest.raises(InvalidConfigError, match="2 inputs share one thread_id"):
        batch(graph.with_config(thread()), [{}, {}])
    with pytest.raises(InvalidConfigError, match="2 inputs share one run_id"):
        batch(graph, [{}, {}], {"run_id": "r"})
    assert graph.get_state(thread()).values == {}


def test_max_concurrency_bounds_how_many_run_at_once(batch: Any) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def node(state: N) -> dict[str, int]:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        with lock:
            now[0] -= 1
        return {"n": state["n"]}

    graph = chain(("node", node), schema=N).compile()
    batch(graph, [{"n": n} for n in range(30)], {"max_concurrency": 1})
    assert most == [1]


def test_runs_of_a_batch_are_at_work_together() -> None:
    together = threading.Barrier(3)

    def node(state: N) -> dict[str, int]:
        together.wait(timeout=30)
        return {"n": state["n"]}

    assert len(chain(("node", node), schema=N).compile().batch([{"n": n} for n in range(3)])) == 3


# -- config that is bound ---------------------------------------------------------------------------------------------


def test_bound_config_is_merged_key_by_key() -> None:
    seen: list[Any] = []

    def node(state: Any, config: Any) -> dict[str, Any]:
        seen.append(config)
        return {}

    graph = chain(("node", node)).compile()
    first = {"tags": ["a"], "metadata": {"m": 1, "n": 1}, "configurable": {"u": 1, "v": 1}, "recursion_limit": 7}
    bound = graph.with_config(first).with_config(tags=["b"], metadata={"n": 2}, configurable={"v": 2})
    bound.invoke({}, {"tags": ["c"], "metadata": {"o": 3}, "configurable": {"v": 3}, "max_concurrency": 3})
    config = seen[0]
    assert config["tags"] == ["a", "b", "c"]
    assert {key: config["metadata"][key] for key in "mno"} == {"m": 1, "n": 2, "o": 3}
    assert {key: config["configurable"][key] for key in "uv"} == {"u": 1, "v": 3}
    assert (config["recursion_limit"], config["max_concurrency"]) == (7, 3)
    graph.invoke({})
    assert seen[1]["tags"] == [], "the graph itself is as it was"


def test_config_that_no_call_could_take_is_refused_when_it_is_bound() -> None:
    with pytest.raises(InvalidConfigError, match="unknown key 'thread_id'"):
        letters("a").compile().with_config({"thread_id": "t"})
