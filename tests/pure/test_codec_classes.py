"""Instances of registered classes come back exactly, uncalled, unvalidated; a class that changed is not guessed at."""

import dataclasses
import enum
import functools
import subprocess
import sys
import threading
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import pytest
from langchain_core import messages
from langchain_core.documents import Document
from pydantic import BaseModel, Field, HttpUrl, PrivateAttr, RootModel, SecretStr, field_validator, model_validator

from stepwell.codec import Codec, Registry
from stepwell.codec.registry import Entry
from stepwell.errors import UnknownTypeError, UnserializableValueError

T = TypeVar("T")


def codec_of(*types: Any, **hooks: Any) -> Codec:
    return Codec(Registry.from_schemas(*types), **hooks)


def named(cls: type[Any], name: str, **hooks: Any) -> Registry:
    return Registry((Entry(name, cls, **hooks),))


# -- dataclasses and plain classes ------------------------------------------------------------------------------------


@dataclass
class Base:
    kept: int
    made: list[int] = field(default_factory=list)
    calls: ClassVar[int] = 0

    def __post_init__(self) -> None:
        type(self).calls += 1


@dataclass
class Derived(Base):
    more: str = "m"
    computed: int = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.computed = self.kept * 2


@dataclass(frozen=True, slots=True)
class Frozen:
    x: int
    y: Any = None


@dataclass(frozen=True)
class Cached:
    x: int

    @functools.cached_property
    def double(self) -> int:
        return self.x * 2


@dataclass
class Parent:
    __slots__ = ("a",)
    a: int


@dataclass
class Child(Parent):
    b: int


class Plain:
    def __init__(self, a: int) -> None:
        raise AssertionError("the constructor is not called")


class Bag(dict[str, Any]):
    def __init__(self) -> None:
        super().__init__()
        self.label = "bag"

    def __setitem__(self, key: str, value: Any) -> None:
        raise AssertionError("no method of the class is called")


class Text(str):
    pass


def test_a_dataclass_is_rebuilt_without_calling_it() -> None:
    value = Derived(1, [2], "n")
    before = Base.calls, Derived.calls
    copied = codec_of(Derived).copy(value)
    assert (copied, type(copied)) == (value, Derived)
    assert (Base.calls, Derived.calls) == before


@pytest.mark.parametrize("value", [Frozen(1, (2,)), Cached(3), Child(1, 2)])
def test_frozen_slotted_and_inherited_fields_come_back(value: Any) -> None:
    copied = codec_of(type(value)).copy([value])[0]
    assert (copied, type(copied)) == (value, type(value))


def test_a_field_that_was_never_set_stays_unset() -> None:
    value = Derived(1)
    del value.computed
    assert not hasattr(codec_of(Derived).copy(value), "computed")


def test_attributes_beside_the_fields_are_kept() -> None:
    value = Cached(3)
    assert value.double == 6
    value.__dict__["note"] = (1,)
    assert codec_of(Cached).copy(value).__dict__ == {"x": 3, "double": 6, "note": (1,)}


def test_a_plain_class_that_is_registered_keeps_its_attributes() -> None:
    value = object.__new__(Plain)
    value.__dict__.update(a=1, b=(2,))
    copied = Codec(Registry().with_types(Plain)).copy(value)
    assert (type(copied), copied.__dict__) == (Plain, {"a": 1, "b": (2,)})


@pytest.mark.parametrize("base", [str, int, float, bytes, tuple, list, set, frozenset, dict, OrderedDict, deque])
def test_a_registered_subclass_of_a_builtin_type_keeps_class_and_content(base: type[Any]) -> None:
    content = {str: "text", int: 2**70, float: 1.5, bytes: b"x"}.get(base, [(2, "a"), (1, "b")])
    kind = type("Kind", (base,), {})
    value = kind(content)
    value.note = "n"
    copied = Codec(Registry().with_types(kind)).copy([value])[0]
    assert (copied, type(copied), copied.note) == (value, kind, "n")
    assert list(copied) == list(value) if base is OrderedDict else True


def test_a_subclass_is_filled_without_its_own_methods() -> None:
    value = Bag()
    dict.__setitem__(value, "a", 1)
    copied = Codec(Registry().with_types(Bag)).copy(value)
    assert (dict(copied), copied.label) == ({"a": 1}, "bag")


def test_a_registered_subclass_can_be_a_key() -> None:
    copied = Codec(Registry().with_types(Text)).copy({Text("a"): 1})
    assert [type(key) for key in copied] == [Text]


class Folder(PurePosixPath):
    pass


class Moment(datetime):
    pass


@pytest.mark.parametrize("kind", [Folder, Moment, type("Local", (threading.local,), {})])
def test_a_class_built_on_a_foreign_type_needs_hooks_of_its_own(kind: type[Any]) -> None:
    """A path keeps its hash, which another process computes otherwise; what C code holds nobody can see."""
    value = kind(2026, 1, 1) if kind is Moment else kind()
    with pytest.raises(UnserializableValueError, match=r"only dump= and load= can keep|is not safe"):
        Codec(Registry().with_types(kind)).dumps(value)


def test_an_attribute_whose_name_is_no_text_is_refused() -> None:
    value = object.__new__(Plain)
    value.__dict__[1] = 2  # type: ignore[index]
    with pytest.raises(UnserializableValueError, match="name of one of its attributes is no plain text"):
        Codec(Registry().with_types(Plain)).dumps(value)


# -- named tuples, enums ----------------------------------------------------------------------------------------------


class Typed(NamedTuple):
    x: int
    y: Frozen | None = None


class Renamed(Typed):
    pass


class Slim(Typed):
    __slots__ = ()


Single = namedtuple("Single", ["a"])
Untyped = namedtuple("Untyped", ["a", "b"], defaults=[0])


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"
    CRIMSON = 1  # noqa: PIE796


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.StrEnum):
    FAST = enum.auto()


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Mask(enum.IntFlag):
    ALL = -1
    ONE = 1


@pytest.mark.parametrize(
    "value",
    [
        Typed(1, Frozen(2)),
        Untyped(1),
        Renamed(1, Frozen(2)),
        Slim(1),
        Colour.BLUE,
        Level.LOW,
        Mode.FAST,
        Right.READ,
        Right.READ | Right.WRITE,
        Right(0),
        Mask(6),
    ],
)
def test_named_tuples_and_enums_come_back(value: Any) -> None:
    codec = codec_of(type(value))
    copied = codec.copy({"v": [value]})["v"][0]
    assert (copied, type(copied)) == (value, type(value))
    assert codec.copy({value: 1}) == {value: 1}
    assert isinstance(value, tuple) or copied is value


def test_a_named_tuple_that_holds_more_than_its_fields_is_refused() -> None:
    value = Renamed(1)
    value.note = "x"  # type: ignore[attr-defined]
    with pytest.raises(UnserializableValueError, match="attributes besides its fields"):
        codec_of(Renamed).dumps(value)


def test_an_alias_is_the_member_it_names() -> None:
    assert codec_of(Colour).copy(Colour.CRIMSON) is Colour.RED


# -- pydantic models --------------------------------------------------------------------------------------------------


class Doc(BaseModel):
    class Phase(str, enum.Enum):  # noqa: UP042
        DRAFT = "draft"
        FINAL = "final"

    model_config = {"extra": "allow"}
    validations: ClassVar[list[str]] = []

    phase: Phase
    title: str = "t"
    points: tuple[Frozen, ...] = ()
    _seen: int = PrivateAttr(default=0)
    _late: int = PrivateAttr()

    @field_validator("title")
    @classmethod
    def _check(cls, value: str) -> str:
        cls.validations.append("title")
        return value

    @model_validator(mode="after")
    def _check_all(self) -> "Doc":
        type(self).validations.append("model")
        return self


class Box(BaseModel, Generic[T]):
    content: T


class Numbers(RootModel[list[int]]):
    pass


def test_a_model_keeps_values_given_fields_extras_and_private_attributes() -> None:
    value = Doc(phase=Doc.Phase.DRAFT, points=(Frozen(1),), more=(1, 2))  # type: ignore[call-arg]
    value._seen = 7
    copied = codec_of(Doc).copy(value)
    assert copied == value
    assert type(copied.points) is tuple
    assert copied.phase is Doc.Phase.DRAFT
    assert copied.model_fields_set == {"phase", "points", "more"}
    assert copied.model_extra == {"more": (1, 2)}
    assert copied._seen == 7
    assert not hasattr(copied, "_late")


class Measured(BaseModel):
    side: int

    @functools.cached_property
    def area(self) -> int:
        return self.side**2


def test_a_cached_property_of_a_model_is_kept() -> None:
    value = Measured(side=3)
    assert value.area == 9
    copied = codec_of(Measured).copy([value])[0]
    assert (copied, copied.__dict__, copied.model_fields_set) == (value, {"side": 3, "area": 9}, {"side"})


class Page(BaseModel):
    url: HttpUrl
    key: SecretStr


def test_urls_and_secrets_of_pydantic_are_stored_once_somebody_says_how() -> None:
    page = Page(url=HttpUrl("http://host/path?q"), key=SecretStr("s"))
    with pytest.raises(UnserializableValueError, match="HttpUrl") as caught:
        codec_of(Page).dumps(page, "page")
    assert caught.value.fields()["path"] == "page.url"
    entries = [
        Entry("url", HttpUrl, str, HttpUrl),
        Entry("secret", SecretStr, SecretStr.get_secret_value, SecretStr),
        Entry("page", Page),
    ]
    assert Codec(Registry(tuple(entries))).copy(page) == page


def test_validators_are_not_called_at_load() -> None:
    codec = codec_of(Doc)
    data = codec.dumps(Doc(phase=Doc.Phase.DRAFT))
    Doc.validations.clear()
    codec.loads(data)
    assert Doc.validations == []


def test_a_model_that_violates_its_own_types_comes_back_as_it_is() -> None:
    value = Doc.model_construct(phase=(1,), title=None)
    assert codec_of(Doc).copy(value) == value
    bare = Doc.model_construct()
    del bare.__dict__["title"]
    assert codec_of(Doc).copy(bare).__dict__ == bare.__dict__


@pytest.mark.parametrize(
    "value", [Box[Frozen](content=Frozen(1)), Box(content=1), Box[Box[int]](content=Box[int](content=1)), Numbers([1])]
)
def test_generic_and_root_models_come_back(value: Any) -> None:
    copied = codec_of(type(value)).copy(value)
    assert (copied, type(copied)) == (value, type(value))


def test_parametrised_models_have_names_of_their_own() -> None:
    names = Registry.from_schemas(Box[int] | Box[str]).names()
    assert names == (f"{__name__}:Box[builtins:int]", f"{__name__}:Box", f"{__name__}:Box[builtins:str]")


PROGRAM = """
import sys
from stepwell.codec import Codec, Registry
import f1_models
codec = Codec(Registry.from_schemas(f1_models.State))
if sys.argv[1] == "write":
    sys.stdout.buffer.write(codec.dumps({"doc": f1_models.Doc(phase=f1_models.Doc.Phase.FINAL)}))
else:
    doc = codec.loads(sys.stdin.buffer.read())["doc"]
    print(doc.phase is f1_models.Doc.Phase.FINAL, type(doc).__qualname__, type(doc.phase).__qualname__)
"""
MODELS = """
import enum, typing
from pydantic import BaseModel
class Doc(BaseModel):
    class Phase(str, enum.Enum):
        FINAL = "final"
    phase: Phase
class State(typing.TypedDict):
    doc: Doc
"""


def test_F1_an_enum_inside_a_model_is_itself_after_a_reload_in_a_new_process(tmp_path: Path) -> None:
    (tmp_path / "f1_models.py").write_text(MODELS)
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(mode: str, stdin: bytes = b"") -> bytes:
        command = [sys.executable, str(tmp_path / "program.py"), mode]
        return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout

    assert run("read", run("write")).split() == [b"True", b"Doc", b"Doc.Phase"]


# -- langchain-core messages ------------------------------------------------------------------------------------------


def test_messages_need_no_registration_and_come_back_whole() -> None:
    call = {"name": "f", "args": {"a": (1, 2)}, "id": "c1", "type": "tool_call"}
    values = [
        messages.SystemMessage("s"),
        messages.HumanMessage([{"type": "text", "text": "hi"}], id="1", name="n"),
        messages.AIMessage(
            "", tool_calls=[call], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        ),
        messages.ToolMessage("ok", tool_call_id="c1", artifact={"rows": (1, {2})}, status="error"),
        messages.AIMessageChunk(content="part", response_metadata={"k": 1.5}),
        messages.RemoveMessage(id="1"),
        messages.ChatMessage(content="x", role="critic"),
    ]
    copied = Codec(Registry()).copy(values)
    assert copied == values
    assert list(map(type, copied)) == list(map(type, values))
    assert copied[3].artifact == {"rows": (1, {2})}
    assert [one.model_fields_set for one in copied] == [one.model_fields_set for one in values]


def test_documents_need_no_registration() -> None:
    value = Document("text", id="d", metadata={"page": (1, 2)})
    copied = Codec(Registry()).copy([value])[0]
    assert (copied, type(copied), copied.metadata["page"]) == (value, Document, (1, 2))


def test_a_message_class_of_the_user_must_be_listed() -> None:
    kind = type("AIMessage", (messages.AIMessage,), {"__module__": __name__})
    with pytest.raises(UnserializableValueError, match="AIMessage"):
        Codec(Registry()).dumps([kind("x")])


def test_a_message_is_loaded_in_a_process_that_has_not_imported_langchain() -> None:
    data = Codec(Registry()).dumps([messages.AIMessage("hi")])
    program = (
        "import sys; from stepwell.codec import *; print(Codec(Registry()).loads(sys.stdin.buffer.read())[0].content)"
    )
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    assert done.stdout.split() == [b"hi"]


def test_a_message_fails_with_its_path_where_langchain_is_not_installed() -> None:
    data = Codec(Registry()).dumps({"messages": [messages.AIMessage("hi")]})
    program = """
import sys
sys.modules["langchain_core"] = sys.modules["langchain_core.messages"] = None
from stepwell.codec import Codec, Registry
Codec(Registry()).loads(sys.stdin.buffer.read())
"""
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=False)
    assert "messages[0] holds a langchain_core.messages:AIMessage" in done.stderr.decode()


# -- classes that changed ---------------------------------------------------------------------------------------------


@dataclass
class Old:
    a: int
    gone: int = 1


@dataclass
class New:
    a: int
    made: list[int] = field(default_factory=list)


@dataclass
class Demanding:
    a: int
    needed: int


class OldModel(BaseModel):
    a: int
    gone: int = 1


class NewModel(BaseModel):
    a: int
    made: list[int] = Field(default_factory=list)


class OpenModel(BaseModel):
    model_config = {"extra": "allow"}
    a: int


def moved(value: Any, cls: type[Any], **hooks: Any) -> Any:
    """Write `value` under a name and read it when that name belongs to `cls`."""
    data = Codec(named(type(value), "m:C")).dumps({"k": [value]})
    return Codec(named(cls, "m:C"), **hooks).loads(data, "channel")["k"][0]


def test_a_new_field_with_a_default_is_filled_from_it() -> None:
    only_a = dataclasses.make_dataclass("OnlyA", ["a"])
    first, second = moved(only_a(1), New), moved(only_a(1), New)
    assert (first, first.made is not second.made) == (New(1), True)
    assert moved(OpenModel(a=1), NewModel) == NewModel(a=1)
    assert moved(Single(1), Untyped) == Untyped(1, 0)


def test_a_new_field_without_a_default_fails_with_its_path() -> None:
    only_a = dataclasses.make_dataclass("OnlyA", ["a"])
    with pytest.raises(UnknownTypeError, match="without the field 'needed'") as caught:
        moved(only_a(1), Demanding)
    assert (caught.value.fields()["path"], caught.value.fields()["type_name"]) == ("channel['k'][0]", "m:C")


def test_a_removed_field_is_not_dropped_in_silence() -> None:
    for value, cls in ((Old(1), New), (OldModel(a=1), NewModel)):
        with pytest.raises(UnknownTypeError, match="the field 'gone', which the class no longer has"):
            moved(value, cls)
    assert moved(OldModel(a=1), OpenModel).model_extra == {"gone": 1}


def test_a_removed_field_can_be_converted() -> None:
    assert moved(Old(1, 5), New, on_unknown_type=lambda name, stored: New(stored["a"], [stored["gone"]])) == New(1, [5])


def test_a_class_of_another_family_does_not_rebuild_what_it_was_not() -> None:
    for value, cls in ((Old(1), NewModel), (OldModel(a=1), New), (Typed(1), New), (Colour.RED, New), (New(1), Typed)):
        with pytest.raises(UnknownTypeError, match="m:C"):
            moved(value, cls)


def test_F2_a_class_that_is_gone_fails_with_path_and_type() -> None:
    data = codec_of(Old).dumps({"k": (Old(1),)})
    with pytest.raises(UnknownTypeError) as caught:
        Codec(Registry()).loads(data, "channel")
    assert caught.value.fields()["path"] == "channel['k'][0]"
    assert caught.value.fields()["type_name"] == f"{__name__}:Old"
    assert str(caught.value).startswith(
        f"channel['k'][0] holds a {__name__}:Old, which this graph's registry does not list"
    )


def test_F2_the_hook_for_unknown_types_decides_instead() -> None:
    seen: list[tuple[str, Any]] = []

    def convert(name: str, stored: Any) -> Any:
        seen.append((name, stored))
        return stored

    data = codec_of(Old, Colour, Typed).dumps([Old(1), Colour.RED, Typed(1)])
    assert Codec(Registry(), convert).loads(data) == [{"a": 1, "gone": 1}, "RED", {"x": 1, "y": None}]
    assert [name.partition(":")[2] for name, _ in seen] == ["Old", "Colour", "Typed"]


def test_F2_what_the_hook_raises_is_raised_as_it_is() -> None:
    class NoWay(Exception):
        pass

    cause = KeyError("why")

    def refuse(name: str, stored: Any) -> Any:
        raise NoWay(name) from cause

    with pytest.raises(NoWay, match="Old") as caught:
        Codec(Registry(), refuse).loads(codec_of(Old).dumps([(Old(1),)]))
    assert caught.value.__cause__ is cause


def test_F2_a_removed_enum_member_fails_with_its_path(blue: enum.Enum = Colour.BLUE) -> None:
    Colour = enum.Enum("Colour", {"RED": 1})
    with pytest.raises(UnknownTypeError, match="no member 'BLUE'") as caught:
        moved(blue, Colour)
    assert caught.value.fields()["path"] == "channel['k'][0]"


# -- hooks of the user ------------------------------------------------------------------------------------------------


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment]


class Handle:
    """Compares by identity."""

    def __init__(self, key: Any) -> None:
        self.key = key


def test_a_type_with_hooks_comes_back_through_them() -> None:
    codec = Codec(named(Money, "money", dump=lambda money: (money.cents,), load=lambda stored: Money(*stored)))
    assert codec.copy({"m": [Money(5)]}) == {"m": [Money(5)]}


def test_a_type_that_compares_by_identity_is_proven_by_what_it_dumps() -> None:
    codec = Codec(named(Handle, "handle", dump=lambda handle: handle.key, load=Handle))
    assert codec.copy(Handle((1, 2))).key == (1, 2)
    nested = Handle(1)
    for _ in range(30):
        nested = Handle([nested])
    assert codec.dumps(nested)


def raises(stored: Any) -> Any:
    raise ValueError("no longer valid")


def test_C5_a_value_whose_load_raises_fails_at_the_write_with_its_path() -> None:
    codec = Codec(named(Money, "money", dump=lambda money: money.cents, load=raises))
    with pytest.raises(UnserializableValueError, match="does not load: ValueError") as caught:
        codec.dumps({"calls": [Money(1)]}, "state")
    assert caught.value.fields()["path"] == "state['calls'][0]"


@pytest.mark.parametrize("load", [lambda stored: Money(0), lambda stored: stored, lambda stored: None])
def test_C5_a_value_that_loads_as_another_fails_at_the_write(load: Any) -> None:
    codec = Codec(named(Money, "money", dump=lambda money: money.cents, load=load))
    with pytest.raises(UnserializableValueError, match="loads as a different value"):
        codec.dumps([Money(1)])


def test_C5_a_dump_that_raises_or_gives_what_cannot_be_stored_fails_at_the_write() -> None:
    for dump in (raises, lambda money: object()):
        codec = Codec(named(Money, "money", dump=dump, load=Money))
        with pytest.raises(UnserializableValueError) as caught:
            codec.dumps({"a": Money(1)})
        assert caught.value.fields()["path"] == "a"


def test_C5_a_load_that_began_to_fail_after_the_write_names_the_path() -> None:
    data = Codec(named(Money, "money", dump=lambda money: money.cents, load=Money)).dumps({"a": (Money(1),)})
    later = named(Money, "money", dump=lambda money: money.cents, load=raises)
    with pytest.raises(
        UnknownTypeError, match=r"a\[0\] holds a money that cannot be rebuilt: its load\(\) raised ValueError"
    ):
        Codec(later).loads(data)
    assert Codec(later, lambda name, stored: stored).loads(data) == {"a": (1,)}
