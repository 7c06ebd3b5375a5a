"""What a task returned serves again in other runs, and is recorded in each of them all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    BaseStore,
    CachePolicy,
    Command,
    InMemoryCache,
    InMemorySaver,
    InMemoryStore,
    Runtime,
    SqliteCache,
    UnserializableValueError,
    effect,
    entrypoint,
    interrupt,
    task,
)
from stepwell.testing import SimulatedCrash, record_points
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import thread


@pytest.fixture(params=["memory", "file"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteCache]:
    with InMemoryCache() if request.param == "memory" else SqliteCache(tmp_path / "cache.db") as made:
        yield made


class Doubling:
    """A task that counts its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def task(self, policy: CachePolicy | None = None) -> Any:
        @task(cache_policy=policy or CachePolicy())
        def double(number: int) -> int:
            self.calls.append(number)
            return number * 2

        return double

    def async_task(self) -> Any:
        @task(cache_policy=CachePolicy())
        async def double(number: int) -> int:
            self.calls.append(number)
            return number * 2

        return double


def test_threads_share_what_a_task_returned(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    doubling = Doubling()
    double = doubling.task()
    graph = entrypoint(checkpointer=memory_saver, cache=cache)(lambda value: double(value).result())
    assert [graph.invoke(2, thread(name)) for name in ("a", "b")] == [4, 4]
    assert doubling.calls == [2]


def test_async_tasks_too(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    doubling = Doubling()
    double = doubling.async_task()

    @entrypoint(checkpointer=memory_saver, cache=cache)
    async def work(value: int) -> int:
        return int(await double(value)) + int(await double(value))

    assert [asyncio.run(work.ainvoke(2, thread(name))) for name in ("a", "b")] == [8, 8]
    assert doubling.calls == [2]


def test_a_result_of_the_cache_is_on_record_when_the_cache_forgets_it(
    cache: SqliteCache, memory_saver: InMemorySaver
) -> None:
    doubling = Doubling()
    double = doubling.task()

    @entrypoint(checkpointer=memory_saver, cache=cache)
    def work(value: int) -> list[Any]:
        return [double(value).result(), interrupt("?")]

    work.invoke(2, thread("a"))
    work.invoke(2, thread("b"))
    work.clear_cache()
    assert work.invoke(Command(resume="!"), thread("b")) == [4, "!"]
    assert doubling.calls == [2]


def test_clearing_the_cache_of_a_task_leaves_the_others(cache: SqliteCache) -> None:
    one, two = Doubling(), Doubling()
    first, second = one.task(), task(lambda number: two.calls.append(number), name="second", cache_policy=CachePolicy())
    graph = entrypoint(cache=cache)(lambda value: [first(value).result(), second(value).result()])
    graph.invoke(1)
    first.clear_cache(cache)
    graph.invoke(1)
    asyncio.run(first.aclear_cache(cache))
    graph.invoke(1)
    assert (one.calls, two.calls) == ([1, 1, 1], [1])


def test_stale_cached_result_of_other_arguments_is_never_returned(cache: SqliteCache) -> None:
    shown = task(lambda *args, **kwargs: repr((args, kwargs)), name="shown", cache_policy=CachePolicy())

    @entrypoint(cache=cache)
    def work(value: Any) -> list[str]:
        calls = [shown(1, 2), shown((1, 2)), shown(1, b=2), shown(1.0, 2), shown([1, 2]), shown(True, 2)]
        return [call.result() for call in calls]

    assert work.invoke(0) == work.invoke(0)
    assert len(set(work.invoke(0))) == 6


def test_stale_cached_result_of_another_task_of_that_name_is_never_returned(cache: SqliteCache) -> None:
    one = task(lambda number: number + 1, name="same", cache_policy=CachePolicy())
    two = task(lambda number: number + 2, name="same", cache_policy=CachePolicy())
    graph = entrypoint(cache=cache)(lambda value: [one(value).result(), two(value).result()])
    assert graph.invoke(1) == graph.invoke(1) == [2, 3]


def test_stale_cached_result_of_another_context_is_never_returned(cache: SqliteCache) -> None:
    @task(cache_policy=CachePolicy())
    def told(number: int, runtime: Runtime[Any]) -> Any:
        return runtime.context

    graph = entrypoint(cache=cache)(lambda value: told(value).result())  # type: ignore[call-arg]
    assert [graph.invoke(1, context=each) for each in ("a", "b", "a")] == ["a", "b", "a"]


def test_K8_a_failed_task_is_never_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    broken = [True]

    @task(cache_policy=CachePolicy())
    def work(number: int) -> int:
        if broken:
            raise ValueError("broken")
        return number

    graph = entrypoint(checkpointer=memory_saver, cache=cache)(lambda value: work(value).result())
    for name in ("a", "b"):
        with pytest.raises(ValueError, match="broken"):
            graph.invoke(1, thread(name))
    broken.clear()
    assert graph.invoke(1, thread("c")) == graph.retry(thread("a")) == 1


def test_K8_a_task_that_asked_is_never_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    @task
    def ask(question: str) -> Any:
        return interrupt(question)

    @task(cache_policy=CachePolicy())
    def approve(question: str) -> Any:
        return ask(question).result()

    graph = entrypoint(checkpointer=memory_saver, cache=cache)(lambda value: approve("sure?").result())
    for name in ("a", "b"):
        assert "__interrupt__" in graph.invoke(1, thread(name))
        assert graph.invoke(Command(resume="yes"), thread(name)) == "yes"


def test_code_that_performed_an_effect_is_never_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    paid: list[int] = []

    @effect(on_doubt="raise")
    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    @task
    def inner(amount: int) -> int:
        return int(pay(amount))

    outer = task(lambda amount: inner(amount).result(), name="outer", cache_policy=CachePolicy())
    graph = entrypoint(checkpointer=memory_saver, cache=cache)(lambda value: outer(value).result())
    assert [graph.invoke(5, thread(name)) for name in ("a", "b")] == [5, 5]
    assert paid == [5, 5]


def test_code_that_goes_on_from_what_is_recorded_is_not_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    """What a recorded step did when it ran is not known any more: it may have performed an effect."""
    broken, done = [True], [0]

    @task
    def inner() -> int:
        done[0] += 1
        return 1

    def failing() -> int:
        value = int(inner().result())
        if broken:
            raise ValueError("broken")
        return value

    outer = task(failing, name="outer", cache_policy=CachePolicy())
    graph = entrypoint(checkpointer=memory_saver, cache=cache)(lambda value: outer().result())
    with pytest.raises(ValueError, match="broken"):
        graph.invoke(1, thread("a"))
    broken.clear()
    assert graph.retry(thread("a")) == graph.invoke(1, thread("b")) == 1
    assert done == [2]


def test_code_that_wrote_to_the_item_store_is_never_kept(cache: SqliteCache, memory_saver: InMemorySaver) -> None:
    @task(cache_policy=CachePolicy())
    def note(number: int, store: BaseStore) -> int:
        written = store.get(("notes",), "count")
        store.put(("notes",), "count", {"number": number + (written.value["number"] if written is not None else 0)})
        return number

    items = InMemoryStore()
    graph = entrypoint(checkpointer=memory_saver, cache=cache, store=items)(lambda value: note(value).result())  # type: ignore[call-arg]
    for name in ("a", "b"):
        assert graph.invoke(2, thread(name)) == 2
    found = items.get(("notes",), "count")
    assert found is not None
    assert found.value == {"number": 4}


def test_arguments_that_cannot_be_told_apart_are_refused_unless_a_key_func_does(cache: SqliteCache) -> None:
    plain = task(lambda given: 1, name="plain", cache_policy=CachePolicy())
    keyed = task(lambda given: 1, name="keyed", cache_policy=CachePolicy(key_func=lambda given: "one"))
    with pytest.raises(UnserializableValueError, match="to be cached"):
        entrypoint(cache=cache)(lambda value: plain(object()).result()).invoke(1)
    assert entrypoint(cache=cache)(lambda value: keyed(object()).result()).invoke(1) == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_killed_anywhere_around_the_cache_ends_as_if_nothing_had_happened(
    deaths: Deaths, durability: Any
) -> None:
    def work(saver: Saver) -> Any:
        double = Doubling().task()

        @entrypoint(checkpointer=saver, cache=InMemoryCache(), name="work")
        def working(value: int) -> list[int]:
            return [double(number).result() for number in (value, value + 1, value)]

        return working

    with Saver(deaths.clock) as saver, record_points() as reached:
        empty_state = work(saver).get_state(thread())
        whole = work(saver).invoke(1, thread(), durability=durability)
    for point, nth in [(point, reached[: i + 1].count(point)) for i, point in enumerate(reached)]:
        with Saver(deaths.clock) as saver:
            graph = work(saver)
            deaths.dies_at(point, nth)
            with pytest.raises(SimulatedCrash):
                graph.invoke(1, thread(), durability=durability)
            deaths.revive()
            arrived = graph.get_state(thread()) != empty_state
            given = None if arrived else 1
            assert graph.invoke(given, thread(), durability=durability) == whole, (point, nth)
            assert list(saver.store.verify()) == []
