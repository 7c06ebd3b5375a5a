"""Rows beside other durable engines, where they are installed: a run of three steps that do next to nothing, on SQLite.

Each engine as its documentation sets it up. What differs between them is said in `docs/benchmarks.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from benchmarks.engines import folder, fresh_config, stepwell
from benchmarks.graphs import Counting, chain, one_more
from benchmarks.measure import Row, Run, Side

RUNS, STEPS = 20, 3


def rows() -> list[Row]:
    """Return the rows of those that are installed. They have no target: the peers do not do the same work."""
    sides: dict[str, Callable[[], AbstractContextManager[Run]]] = {"dbos": _dbos, "lingxigraph": _lingxigraph}
    return [
        Row(f"a run of three steps, {name} vs Stepwell", Side(name, RUNS, theirs), Side("stepwell", RUNS, _ours), "run")
        for name, theirs in sides.items()
        if find_spec(name)
    ]


@contextmanager
def _ours() -> Iterator[Run]:
    with stepwell().sqlite_file() as saver:
        graph = chain(stepwell(), STEPS, one_more).compile(checkpointer=saver)
        graph.invoke({"n": 0}, fresh_config())
        yield lambda: [graph.invoke({"n": 0}, fresh_config()) for _ in range(RUNS)]


@contextmanager
def _lingxigraph() -> Iterator[Run]:
    api: Any = import_module("lingxigraph")
    with folder() as path:
        graph = api.StateGraph(Counting)
        names = [api.START, *(f"n{number}" for number in range(STEPS)), api.END]
        for name in names[1:-1]:
            graph.add_node(name, one_more)
        for before, after in pairwise(names):
            graph.add_edge(before, after)
        compiled = graph.compile(checkpointer=api.SqliteSaver(str(path / "bench.db")))
        compiled.invoke({"n": 0}, fresh_config())
        yield lambda: [compiled.invoke({"n": 0}, fresh_config()) for _ in range(RUNS)]


@contextmanager
def _dbos() -> Iterator[Run]:
    api: Any = import_module("dbos").DBOS
    with folder() as path:
        api(config={"name": "bench", "system_database_url": f"sqlite:///{path}/bench.db", "log_level": "ERROR"})
        step = api.step()(lambda number: number + 1)

        @api.workflow()  # type: ignore[untyped-decorator]
        def three(number: int) -> int:
            for _ in range(STEPS):
                number = step(number)
            return number

        logging.disable(logging.WARNING)
        api.launch()
        try:
            three(0)
            yield lambda: [three(0) for _ in range(RUNS)]
        finally:
            api.destroy(destroy_registry=True)
            logging.disable(logging.NOTSET)
