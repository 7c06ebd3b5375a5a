"""How a graph is called: by the sync API, by the async one, or by the sync one inside a running event loop."""

import asyncio
from typing import Any

import pytest

from tests.runtime.graphs import Call


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
