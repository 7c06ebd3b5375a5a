"""What a node returned serves again: for an equal input, the same code and the same graph, and for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from stepwell import (
    START,
    CachePolicy,
    Command,
    InMemoryCache,
    InMemorySaver,
    NoCacheError,
    Runtime,
    SqliteCache,
    StateGraph,
    UnserializableValueError,
    UnsupportedStorageError,
    entrypoint,
    interrupt,
)
from stepwell.store.cache import CacheKey
from stepwell.testing import FakeClock
from tests.runtime.graphs import thread

THREAD = thread("t")


class Number(TypedDict, total=False):
    value: int
    note: str


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "file"])
def cache(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[SqliteCache]:
    """A cache of each kind in turn."""
    with (
        InMemoryCache(clock=clock) if request.param == "memory" else SqliteCache(tmp_path / "c.db", clock=clock) as made
    ):
        yield made


class Doubling:
    """A function that counts its calls, and the graphs of which it is a node.

    The count is no part of its code: an object without a `__dict__` counts by its class.
    """

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: list[int] = []

    def graph(self, cache: Any, policy: CachePolicy | None = None, **options: Any) -> Any:
        def double(state: Number) -> Number:
            self.calls.append(state["value"])
            return {"value": state["value"] * 2}

        return graph_of(double, cache, policy, **options)


def graph_of(node: Callable[..., Any], cache: Any, policy: CachePolicy | None = None, **options: Any) -> Any:
    graph = StateGraph(Number).add_node("node", node, cache_policy=policy or CachePolicy()).add_edge(START, "node")
    return graph.compile(cache=cache, **options)


def test_an_equal_input_is_not_run_again(cache: SqliteCache) -> None:
    doubling = Doubling()
    graph = doubling.graph(cache)
    assert [graph.invoke({"value": value})["value"] for value in (1, 2, 1, 2)] == [2, 4, 2, 4]
    assert doubling.calls == [1, 2]


def test_async_nodes_and_callers_share_what_is_kept(cache: SqliteCache) -> None:
    calls: list[int] = []

    async def double(state: Number) -> Number:
        calls.append(state["value"])
        return {"value": state["value"] * 2}

    graph = graph_of(double, cache)
    assert asyncio.run(graph.ainvoke({"value": 1})) == graph.invoke({"value": 1}) == {"value": 2}
    assert calls == [1]


def test_threads_share_what_is_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    doubling = Doubling()
    graph = doubling.graph(cache, checkpointer=memory_saver)
    assert [graph.invoke({"value": 1}, thread(name)) for name in ("a", "b")] == [{"value": 2}] * 2
    assert doubling.calls == [1]


def test_without_a_cache_a_policy_does_nothing() -> None:
    doubling = Doubling()
    graph = doubling.graph(None)
    assert graph.invoke({"value": 1}) == graph.invoke({"value": 1})
    assert doubling.calls == [1, 1]
    with pytest.raises(NoCacheError, match="No cache is set"):
        graph.clear_cache()


def test_jumps_are_kept_too(cache: SqliteCache) -> None:
    calls: list[str] = []

    def first(state: Number) -> Command[Any]:
        calls.append("first")
        return Command(update={"value": 1}, goto="second")

    def second(state: Number) -> Number:
        calls.append("second")
        return {"note": "here"}

    graph: Any = StateGraph(Number)
    graph.add_node(first, cache_policy=CachePolicy(), destinations=("second",)).add_node(second).add_edge(
        START, "first"
    )
    compiled = graph.compile(cache=cache)
    assert compiled.invoke({"value": 0}) == compiled.invoke({"value": 0}) == {"value": 1, "note": "here"}
    assert calls == ["first", "second", "second"]


def test_routers_are_asked_each_time(cache: SqliteCache) -> None:
    asked: list[int] = []

    def route(state: Number) -> str:
        asked.append(state["value"])
        return "__end__"

    calls: list[int] = []
    graph: Any = StateGraph(Number).add_node("node", lambda state: calls.append(1), cache_policy=CachePolicy())
    compiled = graph.add_edge(START, "node").add_conditional_edges("node", route).compile(cache=cache)
    assert [compiled.invoke({"value": 1}) for _ in range(2)] == [{"value": 1}] * 2
    assert (calls, asked) == ([1], [1, 1])


def test_a_stream_says_what_was_not_run(cache: SqliteCache) -> None:
    graph = Doubling().graph(cache)
    assert list(graph.stream({"value": 1})) == [{"node": {"value": 2}}]
    assert list(graph.stream({"value": 1})) == [{"node": {"value": 2}, "__metadata__": {"cached": True}}]


def test_an_entrypoint_may_be_kept_whole(cache: SqliteCache) -> None:
    calls: list[int] = []

    @entrypoint(cache=cache, cache_policy=CachePolicy())
    def double(value: int) -> int:
        calls.append(value)
        return value * 2

    assert [double.invoke(value) for value in (1, 2, 1)] == [2, 4, 2]
    assert list(double.stream(2)) == [{"double": 4, "__metadata__": {"cached": True}}]
    assert calls == [1, 2]


# -- never stale ------------------------------------------------------------------------------------------------------


def test_stale_cached_result_of_other_code_is_never_returned(cache: SqliteCache) -> None:
    def before(state: Number) -> Number:
        return {"value": state["value"] + 1}

    def after(state: Number) -> Number:
        return {"value": state["value"] + 2}

    after.__qualname__ = before.__qualname__
    assert graph_of(before, cache).invoke({"value": 1}) == {"value": 2}
    assert graph_of(after, cache).invoke({"value": 1}) == {"value": 3}


def test_stale_cached_result_of_code_inside_the_code_is_never_returned(cache: SqliteCache) -> None:
    def before(state: Number) -> Number:
        return {"value": (lambda n: n + 1)(state["value"])}

    def after(state: Number) -> Number:
        return {"value": (lambda n: n + 2)(state["value"])}

    after.__qualname__ = before.__qualname__
    assert graph_of(before, cache).invoke({"value": 1}) == {"value": 2}
    assert graph_of(after, cache).invoke({"value": 1}) == {"value": 3}


def test_stale_cached_result_of_another_closure_is_never_returned(cache: SqliteCache) -> None:
    def adding(addend: int, helper: Callable[[int], int] = lambda n: n) -> Any:
        return lambda state: {"value": helper(state["value"] + addend)}

    assert graph_of(adding(1), cache).invoke({"value": 1}) == {"value": 2}
    assert graph_of(adding(2), cache).invoke({"value": 1}) == {"value": 3}
    assert graph_of(adding(1, lambda n: n * 10), cache).invoke({"value": 1}) == {"value": 20}


def test_stale_cached_result_of_another_version_is_never_returned(cache: SqliteCache) -> None:
    doubling = Doubling()
    for version in ("1", "2", "1"):
        doubling.graph(cache, version=version).invoke({"value": 1})
    assert doubling.calls == [1, 1]


def test_stale_cached_result_of_another_context_is_never_returned(cache: SqliteCache) -> None:
    def told(state: Number, runtime: Runtime[Any]) -> Number:
        return {"note": runtime.context}

    graph = graph_of(told, cache)
    assert [graph.invoke({"value": 1}, context=each)["note"] for each in ("a", "b", "a")] == ["a", "b", "a"]


class Adds:
    def __init__(self, addend: int = 1) -> None:
        self.addend = addend

    def __call__(self, state: Number) -> Number:
        return {"value": state["value"] + self.addend}


class Multiplies(Adds):
    def __call__(self, state: Number) -> Number:
        return {"value": state["value"] * 10}


def test_K7_callable_objects_of_two_classes_do_not_share_results(cache: SqliteCache) -> None:
    assert graph_of(Adds(), cache).invoke({"value": 3}) == {"value": 4}
    assert graph_of(Multiplies(), cache).invoke({"value": 3}) == {"value": 30}
    assert graph_of(Adds(5), cache).invoke({"value": 3}) == {"value": 8}


class Client:
    def __init__(self, model: str) -> None:
        self.model = model
        self.connection = object()

    def answer(self, state: Number) -> Number:
        return {"note": self.model}


def test_stale_cached_result_of_a_method_of_another_object_is_never_returned(cache: SqliteCache) -> None:
    def asking(client: Client) -> Any:
        return lambda state: client.answer(state)

    for model in ("small", "large"):
        assert graph_of(Client(model).answer, cache, name="method").invoke({"value": 1})["note"] == model
        assert graph_of(asking(Client(model)), cache, name="closure").invoke({"value": 1})["note"] == model


def test_K7_graphs_and_nodes_do_not_share_results(cache: SqliteCache) -> None:
    doubling = Doubling()
    for name in ("one", "two"):
        doubling.graph(cache, name=name).invoke({"value": 1})
    assert doubling.calls == [1, 1]


def test_K7_inputs_that_look_alike_are_told_apart(cache: SqliteCache) -> None:
    calls: list[Any] = []

    @entrypoint(cache=cache, cache_policy=CachePolicy())
    def shown(value: Any) -> str:
        calls.append(value)
        return repr(value)

    values: list[Any] = [1, 1.0, True, "1", [1], (1,), {"a": [1]}, {"a": (1,)}]
    assert [shown.invoke(value) for value in [*values, *values]] == [repr(value) for value in [*values, *values]]
    assert len(calls) == len(values)
    assert shown.invoke({"a": 1, "b": 2}) == shown.invoke({"b": 2, "a": 1})


def test_K8_a_failure_is_never_kept(cache: SqliteCache) -> None:
    broken = [True]

    def work(state: Number) -> Number:
        if broken:
            raise ValueError("broken")
        return {"value": 1}

    graph = graph_of(work, cache)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            graph.invoke({"value": 0})
    broken.clear()
    assert graph.invoke({"value": 0}) == {"value": 1}


def test_K8_neither_a_pause_nor_what_hangs_on_its_answer_is_kept(
    cache: SqliteCache, memory_saver: InMemorySaver
) -> None:
    def approve(state: Number) -> Number:
        return {"note": interrupt("sure?")}

    graph = graph_of(approve, cache, checkpointer=memory_saver)
    assert "__interrupt__" in graph.invoke({"value": 1}, thread("a"))
    assert graph.invoke(Command(resume="yes"), thread("a"))["note"] == "yes"
    assert "__interrupt__" in graph.invoke({"value": 1}, thread("b"))


def test_a_swallowed_pause_is_not_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    def careless(state: Number) -> Number:
        try:
            return {"note": interrupt("sure?")}
        except BaseException:
            return {"note": "swallowed"}

    graph = graph_of(careless, cache, checkpointer=memory_saver)
    for name in ("a", "b"):
        assert "__interrupt__" in graph.invoke({"value": 1}, thread(name))


# -- for how long -----------------------------------------------------------------------------------------------------


def test_a_result_serves_until_its_time_is_over(cache: SqliteCache, clock: FakeClock) -> None:
    doubling = Doubling()
    graph = doubling.graph(cache, CachePolicy(ttl=10))
    graph.invoke({"value": 1})
    clock.advance(9)
    graph.invoke({"value": 1})
    assert doubling.calls == [1]
    clock.advance(1)
    graph.invoke({"value": 1})
    assert doubling.calls == [1, 1]


def test_what_has_expired_is_dropped_when_something_is_kept(cache: SqliteCache, clock: FakeClock) -> None:
    cache.set(CacheKey("g", "c", "1"), b"old", 10)
    clock.advance(11)
    cache.set(CacheKey("g", "c", "2"), b"new", None)
    clock.advance(-11)
    assert cache.get(CacheKey("g", "c", "1")) is None
    assert cache.get(CacheKey("g", "c", "2")) == b"new"


def test_clearing_forgets_what_it_names(cache: SqliteCache) -> None:
    one, two = Doubling(), Doubling()
    graph, other = one.graph(cache, name="one"), two.graph(cache, name="two")
    for each in (graph, other):
        each.invoke({"value": 1})
    graph.clear_cache(["node"])
    asyncio.run(graph.aclear_cache())
    for each in (graph, other):
        each.invoke({"value": 1})
    assert (one.calls, two.calls) == ([1, 1], [1])
    with pytest.raises(ValueError, match="Node `absent` not found"):
        graph.clear_cache(["absent"])


def test_a_key_func_says_what_tells_inputs_apart(cache: SqliteCache) -> None:
    doubling = Doubling()
    graph = doubling.graph(cache, CachePolicy(key_func=lambda state: str(state["value"])))
    for note in ("a", "b"):
        assert graph.invoke({"value": 1, "note": note}) == {"value": 2, "note": note}
    assert doubling.calls == [1]


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_ttl_that_is_not_positive_is_refused(ttl: int) -> None:
    with pytest.raises(ValueError, match="ttl must be greater than 0"):
        CachePolicy(ttl=ttl)


def test_a_cache_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cache is an InMemoryCache\(\)"):
        StateGraph(Number).add_node("node", lambda state: state).add_edge(START, "node").compile(cache={})


def test_a_key_that_is_no_text_is_refused(cache: SqliteCache) -> None:
    policy = CachePolicy(key_func=lambda state: 1)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="returns text or bytes, not int"):
        Doubling().graph(cache, policy).invoke({"value": 1})


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="cache_policy is a CachePolicy"):
        StateGraph(Number).add_node("node", lambda state: state, cache_policy=60)  # type: ignore[arg-type]


# -- what can go wrong ------------------------------------------------------------------------------------------------


def test_an_input_that_cannot_be_told_from_others_is_refused(cache: SqliteCache) -> None:
    graph = entrypoint(cache=cache, cache_policy=CachePolicy(), name="g")(lambda value: 1)
    with pytest.raises(UnserializableValueError, match="to be cached"):
        graph.invoke(object())


def test_a_cache_that_fails_costs_the_shortcut_and_is_told(
    cache: SqliteCache, caplog: pytest.LogCaptureFixture
) -> None:
    doubling = Doubling()
    graph = doubling.graph(cache)
    cache.close()
    assert graph.invoke({"value": 1}) == graph.invoke({"value": 1}) == {"value": 2}
    assert doubling.calls == [1, 1]
    assert "the cached result of node node could not be read" in caplog.text


def test_a_damaged_entry_is_no_result() -> None:
    class Careless(InMemoryCache):
        def set(self, key: CacheKey, value: bytes, ttl: float | None) -> None:
            super().set(key, value[:-1] + bytes([value[-1] ^ 1]), ttl)

    doubling = Doubling()
    graph = doubling.graph(Careless())
    assert graph.invoke({"value": 1}) == graph.invoke({"value": 1}) == {"value": 2}
    assert doubling.calls == [1, 1]


def test_a_file_outlives_its_process_and_is_shared(tmp_path: Path) -> None:
    doubling = Doubling()
    for _ in range(2):
        with SqliteCache(tmp_path / "cache.db") as cache:
            doubling.graph(cache).invoke({"value": 1})
    assert doubling.calls == [1]


def test_the_file_of_a_saver_is_refused(tmp_path: Path) -> None:
    from stepwell import SqliteSaver

    path = tmp_path / "threads.db"
    with SqliteSaver(path), pytest.raises(UnsupportedStorageError, match="a file of its own"):
        SqliteCache(path)
