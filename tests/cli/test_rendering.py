"""Values as JSON: exact where JSON has the type, named where it has not, the same with the classes and without."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel

from stepwell import Decision, register_type
from stepwell.cli.rendering import Renderer, as_json, opaque_codec
from stepwell.cli.screen import brief, one_line, readable
from stepwell.codec import Codec, Registry


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Node:
    name: str
    inner: Any = None


class Model(BaseModel):
    n: int
    tags: set[str] = set()


@dataclass(frozen=True)
class Everywhere:
    n: int
    inner: Any = None


class Coin:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Coin) and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment]


register_type(Everywhere, name="shop:Everywhere")
register_type(Coin, name="shop:Coin", dump=lambda coin: {"cents": coin.cents}, load=lambda parts: Coin(**parts))


class Schema(TypedDict):
    colour: Colour
    pair: Pair
    node: Node
    model: Model


CODEC = Codec(Registry.from_schemas(Schema))
HOME = __name__


def typed(name: str, value: Any) -> dict[str, Any]:
    return {"$type": name, "$value": value}


def node(name: str, inner: Any = None) -> Any:
    return typed(f"{HOME}:Node", {"name": name, "inner": inner})


SHOWN = [
    (None, None),
    ({"a": [1, 2.5, "x", True]}, {"a": [1, 2.5, "x", True]}),
    ((1, (2,)), [1, [2]]),
    ({"b", "a"}, ["a", "b"]),
    (2**70, 2**70),
    (1 << 5000, typed("int", hex(1 << 5000))),
    (float("nan"), typed("float", "nan")),
    ({1: "x"}, typed("dict", [[1, "x"]])),
    ({"$type": "lie"}, typed("dict", [["$type", "lie"]])),
    (b"\x00\xff", typed("bytes", "00ff")),
    (Decimal("1.20"), typed("decimal:Decimal", "1.20")),
    (datetime(2026, 1, 2, tzinfo=UTC), typed("datetime:datetime", "2026-01-02T00:00:00+00:00")),
    (Colour.RED, typed(f"{HOME}:Colour", "RED")),
    (Pair(1, [2]), typed(f"{HOME}:Pair", {"left": 1, "right": [2]})),
    (Node("a", Node("b")), node("a", node("b"))),
    ({Node("a"): 1}, typed("dict", [[node("a"), 1]])),
    (Everywhere(1, Node("a")), typed("shop:Everywhere", {"n": 1, "inner": node("a")})),
    (Node("a", [Coin(5)]), node("a", [typed("shop:Coin", {"cents": 5})])),
    (
        Decision(status="approved", by="ann", at=datetime(2026, 1, 2, tzinfo=UTC), args={"to": Node("a")}),
        typed(
            "stepwell:Decision",
            {
                "status": "approved",
                "by": "ann",
                "at": typed("datetime:datetime", "2026-01-02T00:00:00+00:00"),
                "note": None,
                "args": {"to": node("a")},
            },
        ),
    ),
    (Model(n=1, tags={"x"}), typed(f"{HOME}:Model", {"n": 1, "tags": ["x"]})),
]


@pytest.mark.parametrize(("value", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_a_value_is_shown_the_same_with_its_class_and_without(value: Any, shown: Any) -> None:
    stored = as_json(opaque_codec().loads(CODEC.dumps(value)))
    assert stored == shown
    assert Renderer(CODEC).json(value) == shown
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored


def test_what_cannot_be_stored_is_shown_as_text() -> None:
    shown = Renderer(CODEC).json({"lock": object})
    assert shown == {"lock": typed("type", "<class 'object'>")}


def test_values_nested_as_deep_as_the_codec_allows_are_shown() -> None:
    value: Any = "bottom"
    for _ in range(250):
        value = [value]
    shown = Renderer(CODEC).json(value)
    assert json.loads(json.dumps(shown)) == value


LINES = [
    ("a\n  b", "a b"),
    ("x\x1b[2J\x9b", "x\\x1b[2J\\x9b"),
    ("", ""),
    ("żółw", "żółw"),
    ("\ud800", "\\ud800"),
]


@pytest.mark.parametrize(("text", "line"), LINES, ids=ascii)
def test_text_reaches_a_terminal_as_one_harmless_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_question_is_shown_to_a_person_as_text() -> None:
    assert readable("two\nlines\x07") == "two\nlines\\x07"
    assert readable({"draft": "two\nlines", "n": 1}) == "draft:\ntwo\nlines\nn:\n1"
    assert readable({"n": 1}) == '{\n  "n": 1\n}'
    assert brief("x" * 1000).endswith("... (1002 letters)")
    assert brief("\x9b") == '"\\u009b"'
