"""Dead at any line: item writes are committed with the outcomes that made them (INV-1).

In memory the process only seems to die, at every point in every mode. On files it is killed.
"""

import contextlib
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import BaseStore, InMemoryStore, SqliteStore, effect, points
from stepwell.testing import SimulatedCrash
from tests.e2e.forked import Processes
from tests.items.crash_child import Job, diamond, files
from tests.items.places import N, puts
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Log, chain, thread

KILLED = -signal.SIGKILL
SUPERSTEPS = ("", "a", "abc", "abcd")
AROUND = (
    f"{points.TASK_FINISHED}:3",
    f"{points.MERGED}:2",
    f"{points.ITEMS_WRITTEN}:2",
    f"{points.FENCED}:3",
    f"{points.WRITTEN}:3",
    f"{points.DURABLE}:3",
)


def found(saver: Any, store: Any) -> tuple[str, str]:
    """Return whose outcomes are committed and whose items are there, each in order; every row must verify."""
    stored = saver.get_tuple(thread())
    log = "" if stored is None else "".join(stored.checkpoint["channel_values"].get("log", []))
    keys = "".join(sorted(item.key for item in store.search(())))
    assert list(saver.store.verify()) == list(store.rows.verify()) == []
    return log, keys


def check_apart(log: str, keys: str, durability: str) -> None:
    """Items elsewhere are never behind, and ahead by what is yet to be committed."""
    assert keys in SUPERSTEPS
    assert log in SUPERSTEPS
    most = {"sync": 1, "async": 2, "exit": 3}[durability]
    assert 0 <= SUPERSTEPS.index(keys) - SUPERSTEPS.index(log) <= most


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "apart"])
@pytest.mark.parametrize("point", [point for point in points.ALL if not point.startswith("copy.")])
def test_a_run_that_died_has_the_items_of_what_is_committed(
    point: str, beside: bool, deaths: Deaths, any_durability: Any
) -> None:
    """INV-1, and in the end the items are those of a run that nothing happened to."""
    for nth in itertools.count(1):
        with Saver(deaths.clock) as saver, SqliteStore(saver) if beside else InMemoryStore() as store:
            graph = diamond().compile(checkpointer=saver, store=store)
            deaths.dies_at(point, nth)
            with contextlib.suppress(SimulatedCrash):
                graph.invoke({}, thread(), durability=any_durability)
            died = deaths.dead
            deaths.revive()
            log, keys = found(saver, store)
            if beside:
                assert log == keys
            else:
                check_apart(log, keys, any_durability)
            begun = saver.get_tuple(thread()) is not None or list(saver.runs("t"))
            graph.invoke(None if begun else {}, thread(), durability=any_durability)
            assert found(saver, store) == ("abcd", "abcd")
        if not died:
            return


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "apart"])
def test_a_base_that_an_effect_has_flushed_has_its_items(beside: bool, deaths: Deaths) -> None:
    """In `exit` too: what an effect runs on is on disk, checkpoint and items."""

    @effect(on_doubt="retry")
    def pay(idempotency_key: str) -> str:
        return "paid"

    def paying(state: Log, store: BaseStore) -> dict[str, list[str]]:
        store.put(N, "paying", {"receipt": pay()})
        return {"log": ["paying"]}

    with Saver(deaths.clock) as saver, SqliteStore(saver) if beside else InMemoryStore() as store:
        graph = chain(("a", puts("a")), ("paying", paying)).compile(checkpointer=saver, store=store)
        deaths.dies_at(points.BODY_RETURNED)
        with pytest.raises(SimulatedCrash):
            graph.invoke({}, thread(), durability="exit")
        deaths.revive()
        assert found(saver, store) == ("a", "a")
        graph.invoke(None, thread(), durability="exit")
        assert found(saver, store) == ("apaying", "apaying")


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    running = Processes("tests.items.crash_child")
    yield running
    running.close()


@pytest.mark.crash
@pytest.mark.parametrize("beside", [True, False], ids=["beside", "apart"])
@pytest.mark.parametrize(("api", "durability"), [("sync", "sync"), ("async", "sync"), ("async", "async")])
def test_a_run_that_was_killed_has_the_items_of_what_is_committed(
    api: str, durability: str, beside: bool, processes: Processes, tmp_path: Path
) -> None:
    """INV-1: SIGKILL around the commits; the next process goes on, and ends as if nothing had happened."""
    died = 0
    for number, crash in enumerate(AROUND):
        folder = tmp_path / str(number)
        folder.mkdir()
        job = Job(str(folder), beside, durability, api)
        died += processes.run(job._replace(crash=crash)) == KILLED
        saver, store = files(job)
        with saver, store:
            log, keys = found(saver, store)
            if beside:
                assert log == keys, crash
            else:
                check_apart(log, keys, durability)
        assert processes.run(job) == 0
        saver, store = files(job)
        with saver, store:
            assert found(saver, store) == ("abcd", "abcd")
    assert died >= 5
