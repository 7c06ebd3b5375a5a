"""The store contract, kept in memory."""

import pytest

from stepwell import InMemorySaver, InvalidConfigError, StoreError
from stepwell.clock import Clock
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite import *  # noqa: F403
from stepwell.testing.store_suite.fixtures import StoreFactory
from tests.runtime.graphs import chain, thread


@pytest.fixture
def store_factory() -> StoreFactory:
    def make(clock: Clock) -> SqliteStore:
        return SqliteStore(":memory:", clock=clock)

    return make


def test_memory_never_blocks_a_loop() -> None:
    store = SqliteStore()
    assert not store.blocking
    store.close()


def test_G11_an_in_memory_saver_may_be_given_a_size_that_it_keeps() -> None:
    """Biomni's pull request 329: a program with one thread and a saver in memory grew with every call.

    The run for which there is no room fails, the thread stays as it was, and what is deleted makes room again.
    """
    with InMemorySaver(max_bytes=1 << 18) as saver:
        graph = chain(("a", lambda state: {"log": ["x" * 1000]})).compile(checkpointer=saver)
        done = 0
        with pytest.raises(StoreError, match="max_bytes"):
            while done < 200:
                graph.invoke({}, thread())
                done += 1
        assert 0 < done < 200
        assert len(graph.get_state(thread()).values["log"]) == done
        saver.delete_thread("t")
        for _ in range(done):
            graph.invoke({}, thread())
        assert list(saver.store.verify()) == []
    with pytest.raises(InvalidConfigError, match="max_bytes"):
        InMemorySaver(max_bytes=10)
