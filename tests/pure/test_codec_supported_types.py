"""The published tables: what they allow is stored exactly, what they refuse is refused, and nothing is missing."""

import re
import sys
from typing import Any

import ormsgpack
import pytest
from langchain_core import messages

from stepwell.codec import Codec, Registry
from stepwell.codec.kinds import Kind
from stepwell.codec.listed import listed_entry_by_name, listed_names
from stepwell.errors import UnserializableValueError
from tests.pure.supported import OWN, PLAIN, REFUSED, Row
from tests.pure.supported_classes import State
from tests.pure.test_codec_sameness import same

CODEC = Codec(Registry.from_schemas(State))
BARE = Codec(Registry())
_WITHOUT_PARTS = {kind for kind in Kind if Kind.COMPLEX <= kind <= Kind.IPV6_INTERFACE and kind != Kind.FRACTION} | {
    Kind.TEXT,
    Kind.INT,
    Kind.BYTEARRAY,
    Kind.ELLIPSIS,
}


def type_of(row: Row) -> str:
    return row.type


@pytest.mark.parametrize("row", [*PLAIN, *OWN], ids=type_of)
def test_INV_12_each_row_is_stored_exactly(row: Row) -> None:
    codec = BARE if row in PLAIN else CODEC
    for value in row.values():
        for whole in (value, {"deep": [(value,)]}, {1: value}):
            copied = codec.copy(whole)
            assert same(copied, whole), f"{whole!r} came back as {copied!r}"
        assert codec.canonical(codec.copy(value)) == codec.canonical(value)


@pytest.mark.parametrize("row", REFUSED, ids=type_of)
def test_each_row_of_what_is_refused_is_refused_with_its_path(row: Row) -> None:
    shown, *more = row.values()
    for value in (*(shown if type(shown) is list else [shown]), *more):
        with pytest.raises(UnserializableValueError) as caught:
            CODEC.dumps({"a": [value]}, "state")
        assert caught.value.fields()["path"].startswith("state['a'][0]")


def test_the_tables_hold_every_kind_of_the_format_and_every_listed_class() -> None:
    kinds, names = set[int](), set[str]()

    def look(kind: int, data: bytes) -> None:
        kinds.add(kind)
        if kind in _WITHOUT_PARTS:
            return
        payload = ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
        if type(payload) is list and payload and type(payload[0]) is str:
            names.add(payload[0])

    for row in (*PLAIN, *OWN):
        data = CODEC.dumps(row.values())[:-6]
        ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
    assert set(Kind) - kinds == {Kind.POSIX_PATH if sys.platform == "win32" else Kind.WINDOWS_PATH}
    here = {name for name in listed_names() if listed_entry_by_name(name)}
    assert {name for name in here - names if not name.startswith(("builtins:", "stepwell.errors:"))} == set()


def test_every_message_class_of_langchain_is_listed() -> None:
    found = {name for name in messages.__all__ if re.search("Message(Chunk)?$", name)}
    listed = {name.partition(":")[2] for name in listed_names() if name.startswith("langchain_core.messages:")}
    assert found - listed == {"AnyMessage", "BaseMessage", "BaseMessageChunk"}


def test_a_listed_class_is_recognised_by_itself_and_not_by_its_name() -> None:
    for name in ("SimpleNamespace", "HTTPStatus", "ValueError", "AIMessage"):
        impostor: Any = type(name, (), {"__module__": "types"})
        with pytest.raises(UnserializableValueError, match=name):
            BARE.dumps([impostor()])
