"""Which types a registry lists: everything the schemas reach, and what the process registered."""

import enum
import re
import typing
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

import pytest
from pydantic import BaseModel, PrivateAttr

from stepwell.codec import Codec, Registry, register_type, type_name
from stepwell.errors import DuplicateTypeError, UnserializableValueError

if typing.TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]


@dataclass
class A:
    pass


@dataclass
class B:
    pass


@dataclass
class C:
    pass


class Colour(enum.Enum):
    RED = 1


@dataclass
class Node:
    children: "list[Node]"
    other: "Other | None"


@dataclass
class Other:
    a: A


@dataclass
class HalfResolvable:
    bad: "Missing"
    good: "B"
    nested: list["C"]


class Inner(NamedTuple):
    a: A


class Model(BaseModel):
    inner: Inner
    _hidden: B = PrivateAttr()


class Nested(TypedDict, total=False):
    model: Model


T = TypeVar("T", bound=A)
U = TypeVar("U", B, C)
Renamed = NewType("Renamed", A)


@dataclass
class Wrapper(Generic[T]):
    held: T
    klass: ClassVar[B]


@dataclass
class Late:
    pass


def reached(schema: Any) -> set[str]:
    return {cls.__qualname__ for cls in Registry.from_schemas(schema)}


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (A, {"A"}),
        (Optional[A], {"A"}),  # noqa: UP045
        (Union[A, B], {"A", "B"}),  # noqa: UP007
        (A | None, {"A"}),
        (Annotated[list[A], "reducer"], {"A"}),
        (Annotated[A, B], {"A"}),
        (dict[str, list[tuple[A, ...]]], {"A"}),
        (Sequence[A], {"A"}),
        (defaultdict[str, A], {"A"}),
        (Literal[Colour.RED, "x"], {"Colour"}),
        (Renamed, {"A"}),
        (T, {"A"}),
        (U, {"B", "C"}),
        (Callable[[A], B], set()),
        (Nested, {"Model", "Inner", "A", "B"}),
        (Node, {"Node", "Other", "A"}),
        (Wrapper[A], {"Wrapper", "A"}),
        (Wrapper, {"Wrapper", "A"}),
        (HalfResolvable, {"HalfResolvable", "B", "C"}),
        (re.Pattern[str], {"Pattern"}),
        (Any, set()),
        (int, set()),
    ],
    ids=lambda value: repr(sorted(map(str, value)) if isinstance(value, set) else value),
)
def test_annotations_are_followed_through_every_construct(schema: Any, names: set[str]) -> None:
    assert reached(schema) == names


def test_a_registry_lists_names_in_the_order_found() -> None:
    registry = Registry.from_schemas(Other, B)
    assert registry.names() == (f"{__name__}:Other", f"{__name__}:A", f"{__name__}:B")
    assert A in registry
    assert Late not in registry
    assert registry.with_types(A).names() == registry.names()


def test_a_registry_is_not_changed_by_what_is_made_from_it() -> None:
    registry = Registry()
    assert registry.with_types(A).names() == (f"{__name__}:A",)
    assert registry.names() == ()


def test_names_are_qualified() -> None:
    class Local:
        pass

    assert type_name(Local) == f"{__name__}:test_names_are_qualified.<locals>.Local"


def test_two_classes_under_one_name_are_refused() -> None:
    with pytest.raises(DuplicateTypeError, match="already registered"):
        Registry().with_types(type("Same", (), {}), type("Same", (), {}))


def test_a_type_registered_after_the_codec_was_made_is_seen() -> None:
    codec = Codec(Registry())
    with pytest.raises(UnserializableValueError):
        codec.dumps(Late())
    assert register_type(Late) is Late
    assert codec.copy([Late()]) == [Late()]
    register_type(Late)  # again is the same


@pytest.mark.parametrize("given", [3, "module:Class", list[int]])
def test_what_is_no_class_cannot_be_registered(given: Any) -> None:
    with pytest.raises(TypeError, match="register_type takes a class, not"):
        register_type(given)


def test_register_type_is_a_decorator_with_or_without_arguments() -> None:
    @register_type
    @dataclass
    class One:
        x: int

    @register_type(name="tests.registry:Two")
    @dataclass
    class Two:
        x: int

    codec = Codec(Registry())
    assert codec.copy([One(1), Two(2)]) == [One(1), Two(2)]
    assert b"tests.registry:Two" in codec.dumps(Two(2))


def test_a_moved_class_reads_its_old_records_under_a_registered_name() -> None:
    @dataclass
    class Before:
        x: int

    @register_type(name=type_name(Before))
    @dataclass
    class After:
        x: int

    data = Codec(Registry().with_types(Before)).dumps([Before(1)])
    assert Codec(Registry()).loads(data) == [After(1)]


def test_duplicate_names_are_an_error() -> None:
    register_type(type("First", (), {}), name="tests.registry:taken")
    with pytest.raises(DuplicateTypeError, match=r"tests\.registry:taken"):
        register_type(type("Second", (), {}), name="tests.registry:taken")


def test_one_class_has_one_name() -> None:
    cls: type[Any] = register_type(type("Twice", (), {}), name="tests.registry:once")
    with pytest.raises(DuplicateTypeError, match="one class has one name"):
        register_type(cls, name="tests.registry:again")


def test_a_process_wide_name_that_the_graph_uses_for_another_class_is_an_error() -> None:
    local, taken = type("Clash", (), {}), type("Taken", (), {})
    register_type(taken, name=type_name(local))
    with pytest.raises(DuplicateTypeError):
        Codec(Registry().with_types(local)).dumps(taken())


def test_hooks_registered_for_the_process_serve_a_class_the_schemas_reach() -> None:
    @dataclass
    class Hooked:
        x: int

    register_type(Hooked, name="tests.registry:hooked", dump=lambda h: h.x, load=Hooked)
    codec = Codec(Registry().with_types(Hooked))
    assert codec.copy(Hooked(1)) == Hooked(1)
    assert b"tests.registry:hooked" in codec.dumps(Hooked(1))


def test_dump_and_load_come_together() -> None:
    with pytest.raises(TypeError, match="both"):
        register_type(A, dump=lambda a: 1)


def test_patterns_are_off_until_a_schema_or_a_caller_names_them() -> None:
    pattern = re.compile("a+", re.IGNORECASE)
    with pytest.raises(UnserializableValueError):
        Codec(Registry()).dumps(pattern)
    assert Codec(Registry().with_types(re.Pattern)).copy(pattern) == pattern
