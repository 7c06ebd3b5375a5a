"""Schemas: which channels an annotation declares, and how a node's input is made of stored values."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NotRequired, Required, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator
from typing_extensions import ReadOnly

from stepwell.errors import InvalidGraphError
from stepwell.graph.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, UntrackedValue
from stepwell.graph.managed import IsLastStep, RemainingSteps
from stepwell.graph.messages import MessagesState
from stepwell.graph.schema import Schema, schema_of
from stepwell.graph.types import MISSING, ROOT
from stepwell.graph.updates import items_of


class Typed(TypedDict):
    a: int
    b: NotRequired[str]
    log: Annotated[list[str], operator.add]


@dataclass
class Data:
    a: int
    b: str = "none"
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    shared: ClassVar[int] = 0
    made: int = field(init=False, default=7)


class Model(BaseModel):
    a: int
    b: str | None = None
    log: Annotated[list[str], operator.add] = Field(default_factory=list)

    @field_validator("a")
    @classmethod
    def not_negative(cls, value: int) -> int:
        if value < 0:
            raise ValueError("negative")
        return value


class Plain:
    a: int
    log: Annotated[list[str], operator.add]

    def __init__(self, a: int = 0, log: Any = ()) -> None:
        self.a, self.log = a, log


@pytest.mark.parametrize("source", [Typed, Data, Model, Plain])
def test_keys_and_channels_are_read_from_every_kind_of_schema(source: Any) -> None:
    schema = schema_of(source)
    assert [key for key in schema.keys if key != "b"] == ["a", "log"]
    assert schema.channels["a"] == LastValue(int)
    assert schema.channels["log"] == BinaryOperatorAggregate(list, operator.add)
    assert schema.name == f"{source.__module__}.{source.__qualname__}"


def test_qualifiers_are_looked_through_inside_and_outside() -> None:
    class State(TypedDict, total=False):
        a: Required[Annotated[dict[str, int], operator.or_]]
        b: Annotated[NotRequired[list[int]], operator.add]
        c: NotRequired[RemainingSteps]
        d: Required[IsLastStep]
        e: ReadOnly[int]
        f: Annotated[Required[str], "note"]
        g: RemainingSteps | None

    schema = schema_of(State)
    assert schema.keys == ("a", "b", "e", "f")
    assert schema.channels["b"].typ == list[int]
    assert schema.channels["a"].declaration() == "BinaryOperatorAggregate(dict[str, int], _operator:or_)"
    assert schema.managed == {"c": "remaining_steps", "d": "is_last_step", "g": "remaining_steps"}


def test_a_channel_in_annotated_is_used_as_class_or_instance_wherever_it_stands() -> None:
    open_value = EphemeralValue(int, guard=False)

    class State(TypedDict):
        a: Annotated[str, "note", UntrackedValue, "more"]
        b: Annotated[int, open_value]
        c: Annotated[int, "only a note"]

    channels = schema_of(State).channels
    assert (type(channels["a"]), channels["a"].typ) == (UntrackedValue, str)
    assert channels["b"] is open_value
    assert type(channels["c"]) is LastValue


def test_only_the_last_metadata_can_be_a_reducer() -> None:
    class State(TypedDict):
        a: Annotated[list[int], operator.add, "note"]

    assert type(schema_of(State).channels["a"]) is LastValue


@pytest.mark.parametrize("bad", [lambda: 0, lambda a: a, lambda a, b, c: a, lambda *, a, b: a])
def test_a_reducer_that_does_not_take_two_values_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidGraphError, match=r"Invalid reducer signature. Expected \(a, b\) -> c. Got \("):
        schema_of(Annotated[list, bad])


def test_a_reducer_that_is_refused_is_named_by_its_key() -> None:
    class State(TypedDict):
        log: Annotated[list[int], operator.add]
        total: Annotated[int, lambda a: a]

    with pytest.raises(InvalidGraphError, match=r"Got \(a\)\. At key 'total'\.") as raised:
        schema_of(State)
    assert raised.value.fields()["key"] == "total"


def test_reducers_may_be_builtins_objects_and_have_defaults() -> None:
    class Reducer:
        def __call__(self, a: int, b: int) -> int:
            return a + b

    for reducer in (max, Reducer(), lambda a, b, c=None: a, lambda *values: values):
        assert isinstance(schema_of(Annotated[int, reducer]).channels[ROOT], BinaryOperatorAggregate)


@pytest.mark.parametrize("source", [list, dict, int, list[int], Annotated[list[int], operator.add], Any, int | None])
def test_a_type_without_keys_is_a_root_value(source: Any) -> None:
    schema = schema_of(source)
    assert schema.is_root
    assert schema.keys == (ROOT,)
    assert schema.build({ROOT: [1]}) == [1]
    assert schema.build({}) is MISSING


def test_a_root_value_cannot_be_managed_and_a_schema_must_be_a_type() -> None:
    with pytest.raises(InvalidGraphError, match="not allowed in this position"):
        schema_of(RemainingSteps)
    for wrong in ({"a": int}, "State", 3, Model(a=1)):
        with pytest.raises(TypeError, match="A state schema is a class or a type"):
            schema_of(wrong)


def test_annotations_that_cannot_be_resolved_are_named() -> None:
    class State(TypedDict):
        a: "Nowhere"  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidGraphError, match=r"annotations of .*State cannot be resolved: name 'Nowhere'"):
        schema_of(State)


def test_a_dict_input_has_the_keys_that_have_values_and_no_others() -> None:
    values = {"a": 1, "other": 2}
    assert schema_of(Typed).build(values) == {"a": 1}


def test_a_schema_that_sees_every_channel_copies_the_values() -> None:
    values = {"log": [], "a": 1}
    schema = schema_of(Typed).over(["a", "b", "log"])
    built = schema.build(values)
    assert list(built) == ["log", "a"]
    assert built is not values
    assert schema.whole
    assert not schema_of(Typed).over(["a", "b", "log", "private"]).whole


def test_managed_values_are_added_where_the_schema_asks_for_them() -> None:
    class State(TypedDict):
        a: int
        left: RemainingSteps

    assert schema_of(State).build({"a": 1}, {"left": 3, "other": True}) == {"a": 1, "left": 3}
    assert schema_of(Typed).build({"a": 1}, {"left": 3}) == {"a": 1}


def test_a_dataclass_is_called_with_the_keys_that_have_values() -> None:
    assert schema_of(Data).build({"a": 1, "log": ["x"], "other": 0}) == Data(1, log=["x"])
    assert schema_of(Data).keys == ("a", "b", "log")
    assert schema_of(Plain).build({"a": 2}).a == 2


def test_reading_a_model_never_validates_and_fills_defaults() -> None:
    built = schema_of(Model).build({"a": -1, "other": 0})
    assert type(built) is Model
    assert (built.a, built.b, built.log) == (-1, None, [])
    assert built.model_fields_set == {"a"}
    assert not hasattr(schema_of(Model).build({"b": "x"}), "a")


def test_aliased_fields_are_read_by_their_names() -> None:
    class Aliased(BaseModel):
        a: int = Field(alias="A")
        b: int = 0

    built = schema_of(Aliased).build({"a": 1})
    assert (built.a, built.b, built.model_fields_set) == (1, 0, {"a"})
    assert schema_of(Aliased).validate({}, "a", "2") == 2
    assert schema_of(Aliased).validate_input(Aliased(A=3)) == {"a": 3, "b": 0}


def test_one_field_is_validated_and_coerced_alone() -> None:
    schema = schema_of(Model)
    assert schema.validates
    assert schema.validate({}, "a", "3") == 3
    assert schema.validate({"a": 1}, "log", ("x",)) == ["x"]
    assert schema.validate({"a": 1}, "private", "kept") == "kept"
    with pytest.raises(ValidationError, match="negative"):
        schema.validate({}, "a", -1)
    with pytest.raises(ValidationError) as caught:
        schema.validate({"a": 1}, "b", 3)
    assert caught.value.errors()[0]["loc"] == ("b",)


def test_other_schemas_do_not_validate() -> None:
    for source in (Typed, Data, list):
        assert not schema_of(source).validates
        assert schema_of(source).validate({}, "a", "kept") == "kept"


def test_validating_a_field_does_not_change_the_base() -> None:
    base = {"a": 1, "log": ["x"]}
    schema_of(Model).validate(base, "a", 2)
    assert base == {"a": 1, "log": ["x"]}


class Ordered(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def in_order(self) -> "Ordered":
        assert self.low <= self.high
        return self


class Frozen(BaseModel):
    model_config = {"frozen": True}
    a: int
    child: "Frozen | None" = None


def test_rules_over_several_fields_do_not_hinder_writing_them_one_by_one() -> None:
    schema = schema_of(Ordered)
    assert schema.validate({"low": 1, "high": 2}, "low", "5") == 5
    assert schema.validate({}, "low", 5) == 5
    with pytest.raises(ValidationError):
        schema.validate_input({"low": 2, "high": 1})


def test_frozen_models_can_be_states() -> None:
    schema = schema_of(Frozen)
    assert schema.validate({"a": 1}, "a", "2") == 2
    assert schema.validate({"a": 1}, "child", {"a": 3}) == Frozen(a=3)
    with pytest.raises(ValidationError):
        schema.validate({"a": 1}, "child", {"b": 3})


def test_field_validators_see_the_other_fields() -> None:
    class State(BaseModel):
        prefix: str
        name: str

        @field_validator("name")
        @classmethod
        def prefixed(cls, value: str, info: Any) -> str:
            return str(info.data["prefix"] + value)

    assert schema_of(State).validate({"prefix": "x-", "name": ""}, "name", "y") == "x-y"


def test_the_input_of_a_run_is_validated_as_a_whole() -> None:
    class State(BaseModel):
        name: str
        text: str = ""
        extra: int = 13
        log: Annotated[list[str], operator.add]

        @field_validator("name")
        @classmethod
        def capital(cls, value: str) -> str:
            return "Validated " + value

        @model_validator(mode="before")
        @classmethod
        def enlarge(cls, values: Any) -> Any:
            return values | {"extra": 392}

    schema = schema_of(State)
    assert schema.validate_input({"name": "John"}) == {"name": "Validated John", "extra": 392}
    assert schema.validate_input({"text": "x"}, {"name": "Stored", "log": []}) == {"text": "x"}
    with pytest.raises(ValidationError, match="name"):
        schema.validate_input({"text": "x"})


def test_the_input_of_a_run_keeps_only_the_keys_of_the_schema() -> None:
    assert schema_of(Typed).validate_input({"a": 1, "other": 2}) == {"a": 1}
    assert schema_of(Data).validate_input(Data(1)) == {"a": 1, "b": "none", "log": []}
    assert schema_of(Model).validate_input(Model(a=1)) == {"a": 1, "log": []}
    assert schema_of(list).validate_input([1]) == [1]
    assert schema_of(Typed).validate_input(3) == 3
    assert schema_of(Model).validate_input(3) == 3


def test_an_object_updates_the_keys_it_carries() -> None:
    assert items_of({"a": 1, "other": 2}, ["a", "b"]) == (("a", 1),)
    assert items_of(Model(a=1, b=None), ["a", "b", "other"]) == (("a", 1), ("b", None))
    assert items_of(Model(a=1), ["a", "b"]) == (("a", 1),)
    assert items_of(Data(1), ["a", "b"]) == (("a", 1), ("b", "none"))
    assert items_of("text", ["a"]) is None


def test_messages_state_can_be_extended() -> None:
    class State(MessagesState):
        a: int

    assert schema_of(State).keys == ("messages", "a")
    assert schema_of(State).channels["messages"].invents_ids


def test_models_defined_in_a_function_may_name_each_other() -> None:
    class Inner(BaseModel):
        a: int

    class Outer(BaseModel):
        inner: Annotated["Inner | None", operator.or_] = None

    Outer.model_rebuild(_types_namespace={"Inner": Inner})
    schema: Schema = schema_of(Outer)
    assert schema.keys == ("inner",)
