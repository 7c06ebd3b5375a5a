"""How a graph is called: by the sync API, by the async one, or by the sync one inside a running event loop; and how it
is streamed: by either."""

import asyncio
from typing import Any

import pytest

from tests.runtime.graphs import Call, Chunks


def _invoke(graph: Any, *args: Any, **options: Any) -> Any:
    return graph.invoke(*args, **options)


def _ainvoke(graph: Any, *args: Any, **options: Any) -> Any:
    return asyncio.run(graph.ainvoke(*args, **options))


def _invoke_inside_a_loop(graph: Any, *args: Any, **options: Any) -> Any:
    async def main() -> Any:
        return graph.invoke(*args, **options)

    return asyncio.run(main())


CALLS = {"invoke": _invoke, "ainvoke": _ainvoke, "invoke-in-loop": _invoke_inside_a_loop}


@pytest.fixture(params=list(CALLS))
def call(request: pytest.FixtureRequest) -> Call:
    """Call a graph each way in turn: `call(graph, input, config, **options)`."""
    return CALLS[request.param]


def _stream(graph: Any, *args: Any, **options: Any) -> list[Any]:
    return list(graph.stream(*args, **options))


def _astream(graph: Any, *args: Any, **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [chunk async for chunk in graph.astream(*args, **options)]

    return asyncio.run(main())


@pytest.fixture(params=[_stream, _astream], ids=["stream", "astream"])
def chunks(request: pytest.FixtureRequest) -> Chunks:
    """Stream a graph each way in turn, to its end."""
    made: Chunks = request.param
    return made
