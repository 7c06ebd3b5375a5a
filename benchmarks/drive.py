"""Getting a compiled graph ready for a round: it has run once, and its event loop is up, before the clock starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

from benchmarks.engines import Engine, Saver, fresh_config, langgraph, no_saver, stepwell
from benchmarks.measure import Row, Run, Side, Target

Api = Literal["invoke", "ainvoke"]
Build = Callable[[Engine], Any]
Choose = Callable[[Engine], Saver]


def without_saver(_: Engine) -> Saver:
    """Run without a saver."""
    return no_saver


def in_memory(engine: Engine) -> Saver:
    """Run on the in-memory saver."""
    return engine.memory


def on_sqlite(engine: Engine) -> Saver:
    """Run on the SQLite saver, on a new file."""
    return engine.sqlite_file


def versus(
    name: str,
    build: Build,
    input: dict[str, Any],
    count: int,
    target: float | None,
    *,
    saver: Choose = without_saver,
    api: Api = "invoke",
    warm_up: dict[str, Any] | None = None,
    unit: str = "step",
    rounds: int = 5,
    repeats: int = 5,
    **call: Any,
) -> Row:
    """Make the row of LangGraph over Stepwell: how many times faster Stepwell is."""

    def side(engine: Callable[[], Engine], label: str) -> Side:
        return Side(label, count, lambda: ready(engine(), build, saver, api, input, warm_up or input, call))

    goal = None if target is None else Target("at least", target)
    return Row(
        name, side(langgraph, "LangGraph"), side(stepwell, "Stepwell"), unit, goal, rounds=rounds, repeats=repeats
    )


def ready(
    engine: Engine,
    build: Build,
    saver: Choose,
    api: Api,
    input: dict[str, Any],
    warm_up: dict[str, Any],
    call: dict[str, Any],
) -> AbstractContextManager[Run]:
    """Compile the graph on a new saver, run it once, and give the run that is measured."""
    return (_ready_sync if api == "invoke" else _ready_async)(engine, build, saver, input, warm_up, call)


@contextmanager
def _ready_sync(
    engine: Engine, build: Build, saver: Choose, input: Any, warm_up: Any, call: dict[str, Any]
) -> Iterator[Run]:
    with saver(engine)() as opened:
        graph = build(engine).compile(checkpointer=opened)
        graph.invoke(warm_up, fresh_config(), **call)
        yield lambda: graph.invoke(input, fresh_config(), **call)


@contextmanager
def _ready_async(
    engine: Engine, build: Build, saver: Choose, input: Any, warm_up: Any, call: dict[str, Any]
) -> Iterator[Run]:
    with asyncio.Runner() as runner, saver(engine)() as opened:
        graph = build(engine).compile(checkpointer=opened)
        runner.run(graph.ainvoke(warm_up, fresh_config(), **call))
        yield lambda: runner.run(graph.ainvoke(input, fresh_config(), **call))
