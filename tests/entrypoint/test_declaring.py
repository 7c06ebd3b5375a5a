"""What `entrypoint` makes of a function, and what it refuses before anything runs."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from stepwell import (
    CompiledGraph,
    GeneratorEntrypointError,
    InvalidCheckpointerError,
    InvalidGraphError,
    Runtime,
    TimeoutPolicy,
    entrypoint,
)


def double(number: int) -> int:
    return number * 2


def test_an_entrypoint_is_a_compiled_graph_of_one_node() -> None:
    graph = entrypoint()(double)
    assert isinstance(graph, CompiledGraph)
    assert list(graph.plan.nodes) == ["double"]
    assert list(graph.channels) == ["__end__", "__previous__"]
    assert graph.invoke(4) == 8


def test_the_graph_id_is_the_function_or_the_name_it_is_given() -> None:
    assert entrypoint()(double).plan.graph_id == f"{__name__}.double"
    assert entrypoint(name="doubling")(double).plan.graph_id == "doubling"


def test_a_generator_is_refused() -> None:
    def several(number: int) -> Iterator[int]:
        yield number

    async def many(number: int) -> AsyncIterator[int]:
        yield number

    for function in (several, many):
        with pytest.raises(GeneratorEntrypointError, match="Generators are not supported") as raised:
            entrypoint()(function)
        assert isinstance(raised.value, NotImplementedError)


def nothing() -> int:
    return 1


def keywords_only(*, previous: Any) -> int:
    return 1


@pytest.mark.parametrize("function", [nothing, keywords_only])
def test_a_function_without_a_parameter_for_its_input_is_refused(function: Callable[..., int]) -> None:
    with pytest.raises(ValueError, match="at least one parameter"):
        entrypoint()(function)


def test_a_parameter_that_nothing_fills_is_refused() -> None:
    def two(number: int, factor: int) -> int:
        return number * factor

    with pytest.raises(InvalidGraphError, match="parameter `factor` that nothing fills"):
        entrypoint()(two)


def test_the_decorator_without_parentheses_is_refused() -> None:
    with pytest.raises(InvalidGraphError, match="parentheses"):
        entrypoint(double)


def test_what_is_no_saver_is_refused() -> None:
    with pytest.raises(InvalidCheckpointerError):
        entrypoint(checkpointer=object())(double)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a function"):
        entrypoint()(3)  # type: ignore[arg-type]


def test_an_idle_timeout_of_a_sync_function_is_refused() -> None:
    with pytest.raises(InvalidGraphError, match="only supported for async"):
        entrypoint(timeout=TimeoutPolicy(idle_timeout=1))(double)


def test_partials_objects_and_lambdas_are_functions_too() -> None:
    class Doubling:
        def __call__(self, number: int) -> int:
            return number * 2

    cube, doubling = entrypoint()(functools.partial(pow, exp=3)), entrypoint()(Doubling())
    assert (list(cube.plan.nodes), list(doubling.plan.nodes)) == (["pow"], ["Doubling"])
    assert (cube.invoke(2), doubling.invoke(2)) == (8, 4)
    assert entrypoint()(lambda number: number + 1).invoke(2) == 3


@dataclass
class Tone:
    warm: bool


def test_json_schemas_are_those_of_its_annotations() -> None:
    @entrypoint(context_schema=Tone)
    def greet(names: list[str], runtime: Runtime[Tone]) -> entrypoint.final[int, dict[str, int]]:
        return entrypoint.final(value=1, save={})

    assert greet.get_input_jsonschema() == {"title": "LangGraphInput", "type": "array", "items": {"type": "string"}}
    assert greet.get_output_jsonschema() == {"title": "LangGraphOutput", "type": "integer"}
    assert greet.get_context_jsonschema() == {
        "title": "Tone",
        "type": "object",
        "properties": {"warm": {"title": "Warm", "type": "boolean"}},
        "required": ["warm"],
    }
    assert entrypoint()(lambda anything: anything).get_input_jsonschema() == {"title": "LangGraphInput"}


def test_it_is_drawn_between_start_and_end() -> None:
    drawn = entrypoint()(double).get_graph()
    assert list(drawn.nodes) == ["__start__", "double", "__end__"]
    assert [(edge.source, edge.target) for edge in drawn.edges] == [("__start__", "double"), ("double", "__end__")]
