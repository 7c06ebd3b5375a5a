"""Rows of durable steps: a thousand calls of `@task` in one entrypoint, in a row and all at once, and read back again.

On SQLite files at full durability. The bare side of a row runs the statements that Stepwell's own writer ran.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.drive import in_memory, on_sqlite
from benchmarks.engines import Engine, Saver, fresh_config, langgraph, stepwell
from benchmarks.floor import bare_loop
from benchmarks.measure import Row, Run, Side, Target

CALLS = 1_000
Body = Callable[[Any], Callable[..., Any]]


def double(value: int) -> int:
    return value * 2


async def adouble(value: int) -> int:
    return value * 2


def in_a_row(step: Any) -> Callable[[int], int]:
    def work(count: int) -> int:
        return sum(step(number).result() for number in range(count))

    return work


def at_once(step: Any) -> Callable[[int], int]:
    def work(count: int) -> int:
        return sum(future.result() for future in [step(number) for number in range(count)])

    return work


def gathered(step: Any) -> Callable[[int], Any]:
    async def work(count: int) -> int:
        return sum(await asyncio.gather(*(step(number) for number in range(count))))

    return work


def rows() -> list[Row]:
    """Return the rows."""
    return [
        _versus("1,000 steps in a row, SQLite", in_a_row, 3),
        _versus("1,000 steps at once, SQLite", at_once, 8),
        _versus("1,000 steps gathered, in memory", gathered, None, in_memory, adouble),
        Row(
            "1,000 steps in a row vs bare loop",
            _side(stepwell, in_a_row, on_sqlite, double),
            Side("bare loop of its statements", CALLS, lambda: bare_loop(_in_a_row)),
            "step",
            Target("at most", 1.5),
        ),
        Row(
            "1,000 recorded steps read back vs recorded",
            Side("read back", CALLS, lambda: _ready_again(in_a_row)),
            _side(stepwell, in_a_row, on_sqlite, double),
            "step",
            Target("at most", 0.1),
        ),
    ]


def _versus(name: str, body: Body, target: float | None, saver: Any = on_sqlite, function: Any = double) -> Row:
    goal = None if target is None else Target("at least", target)
    over, under = (_side(engine, body, saver, function) for engine in (langgraph, stepwell))
    return Row(name, over, under, "step", goal, rounds=3, repeats=3)


def _side(engine: Callable[[], Engine], body: Body, saver: Callable[[Engine], Saver], function: Any) -> Side:
    def ready() -> Any:
        return _ready(engine(), body, saver(engine()), function)

    return Side(engine.__name__.capitalize(), CALLS, ready)


def _in_a_row() -> Any:
    return _ready(stepwell(), in_a_row)


@contextmanager
def _ready(engine: Engine, body: Body, saver: Saver | None = None, function: Any = double) -> Iterator[Run]:
    with (saver or engine.sqlite_file)() as opened, asyncio.Runner() as runner:
        work = body(engine.task(function))
        graph = engine.entrypoint(checkpointer=opened)(work)

        def run() -> None:
            if asyncio.iscoroutinefunction(work):
                runner.run(graph.ainvoke(CALLS, fresh_config(), durability="sync"))
            else:
                graph.invoke(CALLS, fresh_config(), durability="sync")

        run()
        yield run


@contextmanager
def _ready_again(body: Body) -> Iterator[Run]:
    """Give a run that finds every step recorded, asks, and so leaves them there to be found again."""
    import stepwell as api

    engine, config = stepwell(), fresh_config()
    with engine.sqlite_file() as opened:
        work = body(engine.task(double))

        def asking(count: int) -> Any:
            return work(count), api.interrupt("again?"), api.interrupt("and again?")

        graph = engine.entrypoint(checkpointer=opened)(asking)
        graph.invoke(CALLS, config, durability="sync")
        yield lambda: graph.invoke(api.Command(resume="yes"), config, durability="sync")
