"""The same runs on PostgreSQL: the tests of the engine that are about what is stored and read back, on another saver.

What they say stands where they are written; here they are only given a `PostgresSaver`.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell import PostgresSaver, SaverClosedError
from tests.runtime import (
    test_answers,
    test_branches,
    test_copies,
    test_deleting_runs,
    test_edits,
    test_finding,
    test_foreign_ids,
    test_history,
    test_interrupts,
    test_retry_tasks,
)
from tests.runtime.graphs import letters, thread
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database
from tests.waiting import test_signals

MODULES = (
    test_answers,
    test_branches,
    test_copies,
    test_deleting_runs,
    test_edits,
    test_finding,
    test_foreign_ids,
    test_history,
    test_interrupts,
    test_retry_tasks,
    test_signals,
)
ELSEWHERE = ("test_H1_", "test_H2_", "test_an_option_")
"""What is about calls and loops, with many cases each: a saver makes no difference to it."""

GIVEN = {"saver", "graph", "branched"}
backwards, copy = test_branches.backwards, test_copies.copy
graph, branched = test_history.graph, test_history.branched


@pytest.fixture
def saver(worker_id: str) -> Iterator[PostgresSaver]:
    """A saver on an empty database. At the end every row must verify."""
    with PostgresSaver(empty_database(VERSIONS[-1], worker_id)) as made:
        yield made
        assert list(made.store.verify()) == []


@pytest.fixture
def call() -> Callable[..., Any]:
    """Call a graph by its sync API: what the others do to it is not the saver's."""
    return lambda graph, *args, **options: graph.invoke(*args, **options)


@pytest.fixture
def any_durability() -> str:
    """The default: what the others change is not the saver's."""
    return "sync"


for _module in MODULES:
    for _name, _test in inspect.getmembers(_module, inspect.isfunction):
        if (
            _name.startswith("test_")
            and not _name.startswith(ELSEWHERE)
            and GIVEN & {*inspect.signature(_test).parameters}
        ):
            globals()[f"{_name}_on_postgres"] = _test


@pytest.mark.parametrize("name", test_finding.AFTER_CLOSE)
def test_H5_a_saver_used_after_its_block_says_so_on_postgres(name: str, worker_id: str) -> None:
    with PostgresSaver(empty_database(VERSIONS[-1], worker_id)) as saver:
        graph = letters("ab").compile(checkpointer=saver)
        graph.invoke({}, thread())
    use: Callable[[Any, Any], Any] = test_finding.AFTER_CLOSE[name]
    with pytest.raises(SaverClosedError):
        use(graph, saver)
