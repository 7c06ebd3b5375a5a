"""What cannot be stored exactly is refused before anything is written, and the refusal names the leaf."""

import collections
import decimal
import enum
import io
import random
import re
import sys
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, PrivateAttr

from stepwell.codec import Codec, Registry
from stepwell.errors import CorruptRecordError, UnserializableValueError


@dataclass
class Frame:
    body: Any
    left: Any = None


class Pair(NamedTuple):
    one: Any
    two: Any


class Model(BaseModel):
    model_config = {"arbitrary_types_allowed": True, "extra": "allow"}

    field: Any
    _private: Any = PrivateAttr(default=None)


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Real(float):
    pass


class Items(list[Any]):
    pass


class Map(dict[str, Any]):
    pass


class Group(tuple[Any, ...]):
    __slots__ = ()


class Moment(datetime):
    pass


class Zone(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta()

    def tzname(self, moment: datetime | None) -> str:
        return "zone"

    def dst(self, moment: datetime | None) -> None:
        return None


class Colour(enum.StrEnum):
    RED = "red"


class Unlisted:
    pass


class Failure(Exception):
    pass


CODEC = Codec(Registry().with_types(Frame, Pair, Model))
LOCK = threading.Lock()


def refusal(value: Any, path: str = "") -> UnserializableValueError:
    with pytest.raises(UnserializableValueError) as caught:
        CODEC.dumps(value, path)
    return caught.value


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ({"a": [0, 1, 2, Frame(LOCK)]}, "frames", "frames['a'][3].body"),
        ({"frames": {"a": [LOCK]}}, "", "frames['a'][0]"),
        ({"not a name": LOCK}, "", "['not a name']"),
        (LOCK, "", "value"),
        (LOCK, "channel", "channel"),
        ([[LOCK]], "", "[0][0]"),
        ((1, (2, LOCK)), "x", "x[1][1]"),
        (deque([1, LOCK]), "x", "x[1]"),
        ({1: {(1, 2): LOCK}}, "x", "x[1][<tuple>]"),
        ({1: 2, (1, LOCK): 3}, "x", "x.keys()[1][1]"),
        (defaultdict(list, a=[LOCK]), "x", "x['a'][0]"),
        (collections.OrderedDict(a=LOCK), "x", "x['a']"),
        (collections.ChainMap({}, {"a": LOCK}), "x", "x.maps[1]['a']"),
        ({LOCK}, "x", "x{0}"),
        (Pair(1, LOCK), "x", "x.two"),
        (Frame(1, Frame(Pair({"k": LOCK}, 0))), "x", "x.left.body.one['k']"),
        (Model(field={"k": LOCK}), "x", "x.field['k']"),
        (Model.model_validate({"field": 1, "more": LOCK}), "x", "x.more"),
        (slice(LOCK), "x", "x.stop"),
        ({"ok": bytearray(b"x"), "bad": LOCK}, "x", "x['bad']"),
        ({1: "one", "bad": LOCK}, "x", "x['bad']"),
    ],
)
def test_a_refusal_names_the_exact_path(value: Any, path: str, expected: str) -> None:
    error = refusal(value, path)
    assert (error.fields()["path"], error.fields()["type_name"]) == (expected, "_thread:lock")
    assert str(error).startswith(f"{expected} is a _thread:lock, which cannot be stored exactly")
    assert "register_type" in str(error)


def test_a_private_attribute_is_named_too() -> None:
    model = Model(field=1)
    model._private = [LOCK]
    assert refusal(model, "m").fields()["path"] == "m._private[0]"


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (print, "builtin_function_or_method"),
        (lambda: None, "function"),
        (Unlisted, "type"),
        (Unlisted(), f"{__name__}:Unlisted"),
        (sys, "module"),
        (Failure("x"), f"{__name__}:Failure"),
        (LOCK, "_thread:lock"),
        (io.StringIO(), "_io:StringIO"),
        ((n for n in range(2)), "generator"),
        (memoryview(b"x"), "memoryview"),
        (object(), "object"),
        (Colour.RED, f"{__name__}:Colour"),
        (Text("a"), f"{__name__}:Text"),
        (Number(1), f"{__name__}:Number"),
        (Real(1), f"{__name__}:Real"),
        (Items(), f"{__name__}:Items"),
        (Map(a=1), f"{__name__}:Map"),
        (Group((1,)), f"{__name__}:Group"),
        (Moment(2026, 1, 1), f"{__name__}:Moment"),
        ({}.items(), "dict_items"),
        (iter([]), "list_iterator"),
        (list[int], "types:GenericAlias"),
        (decimal.Context(), "decimal:Context"),
        (random.Random(1), "random:Random"),
        (NotImplemented, "NotImplementedType"),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_values_that_are_not_data_are_refused_wherever_they_stand(value: Any, type_name: str) -> None:
    assert refusal(value, "x").fields()["type_name"] == type_name
    assert refusal({"a": [value]}, "x").fields()["path"] == "x['a'][0]"
    assert refusal((value,), "x").fields()["path"] == "x[0]"


def test_F7_an_open_file_is_refused_with_its_path(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert refusal({"report": file}, "").fields()["path"] == "report"


def test_F11_an_opaque_member_inside_a_dict_is_an_error_and_not_null() -> None:
    assert refusal({"frame": object(), "rest": 1}).fields()["path"] == "frame"


def test_F4_a_factory_that_is_neither_builtin_nor_registered_is_refused() -> None:
    error = refusal({"d": defaultdict(lambda: 1)})
    assert error.fields()["path"] == "d"
    assert "default factory" in str(error)


def test_a_subclass_as_a_key_is_refused() -> None:
    assert refusal({Text("a"): 1}, "x").fields()["path"] == "x.keys()[0]"
    assert refusal({1: 0, Number(2): 1}, "x").fields()["path"] == "x.keys()[1]"


def test_a_foreign_time_zone_is_refused() -> None:
    assert "time zone is a Zone" in str(refusal([datetime(2026, 1, 1, tzinfo=Zone())], "x"))


def test_a_time_zone_without_a_key_is_refused() -> None:
    header = b"TZif" + bytes(16)
    counts = b"".join(count.to_bytes(4, "big") for count in (0, 0, 0, 0, 1, 4))
    zone = ZoneInfo.from_file(io.BytesIO(header + counts + bytes(4) + bytes(2) + b"XYZ\0"))
    assert refusal([zone], "x").fields()["path"] == "x[0]"
    assert refusal([datetime(2026, 1, 1, tzinfo=zone)], "x").fields()["path"] == "x[0]"


def test_a_pattern_that_prints_itself_when_it_is_compiled_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    codec = Codec(Registry().with_types(re.Pattern))
    with pytest.raises(UnserializableValueError, match="would print it"):
        codec.dumps([re.compile("a", re.DEBUG)])
    capsys.readouterr()
    data = codec.dumps([re.compile("a")])
    with pytest.raises(CorruptRecordError, match="not the flags of a pattern"):
        codec.loads(data.replace(b"\xa1a\x20", b"\xa1a\x21"))
    assert capsys.readouterr().out == ""


def test_a_list_that_contains_itself_is_refused_at_the_place_where_it_does() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    error = refusal(loop, "x")
    assert error.fields()["path"] == "x[1]['again']"
    assert "contains itself" in str(error)


@pytest.mark.parametrize("wrap", [lambda inner: (inner,), lambda inner: Frame(inner), lambda inner: Pair(inner, 1)])
def test_a_cycle_through_any_type_is_refused(wrap: Any) -> None:
    inner: list[Any] = []
    inner.append(wrap(inner))
    assert "contains itself" in str(refusal(inner, "x"))


def test_a_cycle_through_a_dict_with_other_keys_is_refused() -> None:
    loop: dict[Any, Any] = {}
    loop[1] = loop
    assert refusal(loop, "x").fields()["path"] == "x[1]"


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: {1: inner}])
@pytest.mark.parametrize("depth", [300, 100_000])
def test_lists_and_dicts_that_nest_too_deep_are_refused(wrap: Any, depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    error = refusal(value, "x")
    assert "nests more than" in str(error)
    assert len(error.fields()["path"]) < 200


@pytest.mark.parametrize(
    "wrap", [lambda inner: (inner,), Frame, lambda inner: {"a": (inner,)}, lambda inner: deque([inner])]
)
@pytest.mark.parametrize("depth", [200, 5_000])
def test_other_values_that_nest_too_deep_are_refused(wrap: Any, depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    assert "nests" in str(refusal(value, "x"))


def test_what_nests_as_deep_as_allowed_is_stored() -> None:
    plain: Any = 1
    for _ in range(255):
        plain = [plain]
    typed: Any = None
    for _ in range(128):
        typed = Frame(typed)
    assert CODEC.copy(plain) == plain
    assert CODEC.copy(typed) == typed


def test_mixed_nesting_is_stored_or_refused_but_never_stored_unreadable() -> None:
    value: Any = 1
    accepted = 0
    for level in range(300):
        value = (value,) if level % 7 == 0 else [value]
        try:
            data = CODEC.dumps(value)
        except UnserializableValueError:
            continue
        accepted = level
        assert CODEC.loads(data) == value
    assert accepted > 150


def test_nesting_is_safe_on_a_small_stack() -> None:
    """Every typed level with as many lists as fit: refused by count, on a thread with the default stack."""
    value: Any = 1
    for _ in range(100):
        for _ in range(250):
            value = [value]
        value = (value,)
    assert "nests" in str(refusal(value, "x"))


def test_an_interrupt_in_a_hook_is_not_turned_into_an_error() -> None:
    class Stop(BaseException):
        pass

    def stop(value: Any) -> Any:
        raise Stop

    from stepwell.codec.registry import Entry

    codec = Codec(Registry((Entry("stop", Unlisted, stop, stop),)))
    with pytest.raises(Stop):
        codec.dumps([Unlisted()])
    assert codec.copy([1]) == [1]


def test_a_refused_value_leaves_the_codec_usable() -> None:
    refusal({"a": LOCK})
    assert CODEC.copy({"a": (1,)}) == {"a": (1,)}


def test_the_error_keeps_its_cause() -> None:
    error = refusal({"a": LOCK})
    assert error.__cause__ is not None
    assert error.fields() == {"path": "a", "type_name": "_thread:lock", "reason": ""}
