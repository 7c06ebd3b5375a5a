"""JSON schemas of input, output and context, spelled as pydantic spells them."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from stepwell import START, BinaryOperatorAggregate, LastValue, RemainingSteps, StateGraph
from stepwell.graph.json_schema import class_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(TypedDict):
    x: int
    y: float


class Model(BaseModel):
    a: int
    b: Optional[str] = Field(None, description="about b")  # noqa: UP045 - as users write it


class Tree(TypedDict):
    value: int
    children: "list[Tree]"


@dataclass
class Options:
    a: int
    user_name: str = "q"
    c: list[int] = field(default_factory=list)


class State(TypedDict):
    """What the graph works on."""

    x: int
    y: Annotated[list[str], operator.add]
    z: NotRequired[str | None]


def compiled(schema: Any, **more: Any) -> Any:
    return StateGraph(schema, **more).add_node("a", lambda s: {}).add_edge(START, "a").compile()


def test_a_typed_dict_has_its_keys_types_and_description() -> None:
    expected = {
        "description": "What the graph works on.",
        "properties": {
            "x": {"title": "X", "type": "integer"},
            "y": {"items": {"type": "string"}, "title": "Y", "type": "array"},
            "z": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Z"},
        },
        "required": ["x", "y"],
        "title": "State",
        "type": "object",
    }
    graph = compiled(State)
    assert graph.get_input_jsonschema() == graph.get_output_jsonschema() == expected
    assert graph.get_context_jsonschema() is None


def test_input_output_and_context_each_have_their_own() -> None:
    class Given(TypedDict):
        x: int

    class Context(TypedDict, total=False):
        user: str

    graph = compiled(State, input_schema=Given, output_schema=Given, context_schema=Context)
    given = {
        "properties": {"x": {"title": "X", "type": "integer"}},
        "required": ["x"],
        "title": "Given",
        "type": "object",
    }
    assert graph.get_input_jsonschema() == graph.get_output_jsonschema() == given
    assert graph.get_context_jsonschema() == {
        "properties": {"user": {"title": "User", "type": "string"}},
        "title": "Context",
        "type": "object",
    }


@dataclass
class Gaps:
    a: int | None
    b: Annotated[float | None, "about b"]
    c: str = field(default=...)  # type: ignore[assignment]


def test_a_field_of_a_state_that_may_be_none_need_not_be_given() -> None:
    graph = compiled(Gaps, context_schema=Gaps)
    shown = graph.get_input_jsonschema()
    assert shown["required"] == ["c"], "an ellipsis is no default"
    assert [shown["properties"][key].get("default", "none at all") for key in "abc"] == [None, None, "none at all"]
    context = graph.get_context_jsonschema()
    assert context is not None
    assert context["required"] == ["a", "b", "c"], "a class of its own, as it is called"


def test_the_channels_of_a_graph_can_be_looked_at() -> None:
    class Sum(TypedDict):
        total: Annotated[int, operator.add]
        name: str

    channels = compiled(Sum).channels
    assert isinstance(channels["total"], BinaryOperatorAggregate)
    assert isinstance(channels["name"], LastValue)
    with pytest.raises(TypeError):
        channels["total"] = channels["name"]


def test_a_dataclass_has_its_defaults_and_the_graphs_name() -> None:
    graph = compiled(Options, context_schema=Options)
    shown = graph.get_input_jsonschema()
    assert shown == {
        "properties": {
            "a": {"title": "A", "type": "integer"},
            "user_name": {"default": "q", "title": "User Name", "type": "string"},
            "c": {"default": [], "items": {"type": "integer"}, "title": "C", "type": "array"},
        },
        "required": ["a"],
        "title": "LangGraphInput",
        "type": "object",
    }
    assert graph.get_output_jsonschema() == {**shown, "title": "LangGraphOutput"}
    assert graph.get_context_jsonschema() == TypeAdapter(Options).json_schema()


def test_a_pydantic_model_describes_itself() -> None:
    graph = compiled(Model, context_schema=Model)
    assert graph.get_input_jsonschema() == graph.get_context_jsonschema() == Model.model_json_schema()


def test_a_state_without_keys_is_its_type() -> None:
    shown = compiled(Annotated[list[int], operator.add]).get_input_jsonschema()
    assert shown == {"title": "LangGraphInput", "type": "array", "items": {"type": "integer"}}


def test_managed_values_are_no_part_of_it() -> None:
    class Bounded(TypedDict):
        x: int
        left: RemainingSteps

    assert list(compiled(Bounded).get_input_jsonschema()["properties"]) == ["x"]


class Everything(TypedDict, total=False):
    flag: bool
    number: float
    text: str
    raw: bytes
    when: datetime
    day: date
    key: UUID
    any_thing: Any
    few: Literal["a", "b"]
    one: Literal[1]
    mixed: Literal["a", 1]
    either: int | str
    pair: tuple[int, str]
    many: tuple[int, ...]
    names: set[str]
    frozen: frozenset[int]
    seq: Sequence[int]
    by_name: dict[str, int]
    mapping: Mapping[str, list[float]]
    colour: Colour
    point: Point
    points: list[Point]
    model: Model
    tree: Tree


@pytest.mark.parametrize("key", Everything.__annotations__)
def test_each_type_is_spelled_as_pydantic_spells_it(key: str) -> None:
    ours, theirs = class_schema(Everything), TypeAdapter(Everything).json_schema()
    assert ours["properties"][key] == theirs["properties"][key]


def test_classes_are_described_once_and_may_hold_themselves() -> None:
    assert class_schema(Everything)["$defs"] == TypeAdapter(Everything).json_schema()["$defs"]


def test_a_type_that_json_does_not_know_is_left_open() -> None:
    class Odd(TypedDict):
        thing: complex

    assert class_schema(Odd)["properties"] == {"thing": {"title": "Thing"}}
