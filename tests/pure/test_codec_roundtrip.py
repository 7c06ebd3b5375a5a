"""INV-12 for the standard library's values: `loads(dumps(x))` is x, with equal types all the way down."""

import ipaddress
import math
import struct
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from stepwell.codec import Codec, Registry, is_scalar
from tests.pure.test_codec_sameness import same

CODEC = Codec(Registry())

ZONES = st.one_of(
    st.none(),
    st.just(UTC),
    st.sampled_from(["Europe/Paris", "America/New_York", "Asia/Kathmandu", "UTC"]).map(ZoneInfo),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)), st.text(max_size=4)),
)
TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=8)  # lone surrogates included
KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    TEXT,
    st.binary(max_size=4),
    st.dates(),
    st.uuids(),
    st.fractions(),
    st.tuples(st.integers(), TEXT),
    st.frozensets(st.integers(), max_size=2),
)
LEAVES = st.one_of(
    KEYS,
    st.floats(),
    st.complex_numbers(),
    st.binary(max_size=8).map(bytearray),
    st.datetimes(timezones=ZONES),
    st.times(timezones=ZONES),
    st.timedeltas(),
    st.decimals(),
    st.ip_addresses(),
    st.ip_addresses(v=4).map(ipaddress.ip_interface),
    TEXT.filter(lambda text: "\0" not in text).map(PurePosixPath),
    st.builds(range, st.integers(), st.integers(), st.integers().filter(bool)),
    st.builds(slice, st.none() | st.integers(), st.integers(), st.none()),
)


def deques(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda content, room: deque(content, len(content) + room), st.lists(items, max_size=3), st.integers(0, 3)
    )


def containers(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    dicts = st.dictionaries(KEYS, items, max_size=3)
    return st.one_of(
        st.lists(items, max_size=4),
        st.lists(items, max_size=3).map(tuple),
        st.dictionaries(TEXT, items, max_size=4),
        st.dictionaries(st.integers(-(2**70), 2**70), items, max_size=3),
        dicts,
        dicts.map(OrderedDict),
        dicts.map(Counter),
        st.tuples(st.sampled_from([None, int, list, dict, deque]), dicts).map(lambda parts: defaultdict(*parts)),
        st.lists(dicts, min_size=1, max_size=2).map(lambda maps: ChainMap(*maps)),
        st.sets(KEYS, max_size=3),
        deques(items),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(LEAVES, containers, max_leaves=12))
def test_INV_12_any_value_comes_back_the_same_with_equal_types(value: Any) -> None:
    assert same(CODEC.copy(value), value)


@settings(max_examples=100, deadline=None)
@given(st.recursive(LEAVES, containers, max_leaves=8))
def test_what_was_loaded_is_written_as_the_same_bytes(value: Any) -> None:
    canonical = CODEC.canonical(value)
    assert CODEC.canonical(CODEC.copy(value)) == canonical


@pytest.mark.parametrize(
    "value",
    [
        defaultdict(list, {"a": [1]}),
        defaultdict(None, {"a": 1}),
        defaultdict(Counter),
        Counter({"b": -1, ("a", 1): 2}),
        OrderedDict([("b", 1), ("a", 2)]),
        deque([1, 2], maxlen=2),
        deque(maxlen=0),
        deque([1]),
        ChainMap({"a": 1}, {"b": 2}),
        frozenset({frozenset({1}), (1, 2)}),
        {"outer": [defaultdict(dict, x={"y": deque([Counter("ab")], 7)})]},
    ],
    ids=repr,
)
def test_F4_containers_keep_type_factory_and_bound(value: Any) -> None:
    assert same(CODEC.copy(value), value)


def test_F4_a_reloaded_defaultdict_still_makes_its_defaults() -> None:
    state = CODEC.copy({"votes": defaultdict(list)})
    state["votes"]["new"].append(1)
    assert state["votes"]["new"] == [1]


@pytest.mark.parametrize(
    "value",
    [
        Fraction(-1, 3),
        complex(-0.0, math.inf),
        range(10, -10, -3),
        range(2**70),
        PurePosixPath("/a/b"),
        PureWindowsPath("c:/a"),
        Path("a/\udcff"),
        ZoneInfo("Europe/Paris"),
        timezone(timedelta(hours=5, minutes=30), "IST"),
        timedelta(days=-1, microseconds=1),
        ipaddress.ip_address("fe80::1%eth0"),
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_interface("fe80::1/10"),
        b"\x00\xff",
        bytearray(b"\x00\xff"),
        frozenset({1}),
        {(1, ("a", None)): 1},
        {UUID(int=1): 1, date(2026, 1, 1): 2, True: 3, None: 4, b"b": 5, 1.5: 6, "": 7},
        {2**64: "over", 2**64 - 1: "under"},
        {"\ud800": "\udfff"},
        2**63,
        2**64,
        -(2**63),
        -(2**63) - 1,
        10**5000,
        -0.0,
        math.nan,
        math.inf,
        Decimal("-0E+5"),
        Decimal("sNaN123"),
        Decimal("Infinity"),
        Decimal("1E+1000000"),
        UUID(int=7, is_safe=SafeUUID.safe),
        time(1, 2, 3, 4, fold=1),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris")),
        datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        slice((1, 2), None, "x"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_F5_scalars_of_the_standard_library_are_exact(value: Any) -> None:
    assert same(CODEC.copy(value), value)
    assert same(CODEC.copy({"deep": [(value,)]}), {"deep": [(value,)]})


def test_nan_keeps_its_payload() -> None:
    odd = struct.unpack(">d", b"\x7f\xf8\x00\x00\x00\x00\x12\x34")[0]
    assert struct.pack(">d", CODEC.copy([odd])[0]) == struct.pack(">d", odd)


@pytest.mark.parametrize("text", ["1.2345E+1000", "sNaN1", "-0E-7", "Infinity", "1E-999"])
def test_a_decimal_does_not_depend_on_the_context(text: str) -> None:
    narrow = Context(prec=1, Emax=1, Emin=-1, capitals=0, traps=list(Context().flags))
    value = Decimal(text)
    data = CODEC.dumps([value])
    with localcontext(narrow):
        assert CODEC.dumps([value]) == data
        assert CODEC.loads(data)[0].as_tuple() == value.as_tuple()


def test_a_zone_is_kept_and_not_its_offset() -> None:
    winter = CODEC.copy(datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Paris")))
    assert (winter + timedelta(days=180)).utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize("text", ["plain", "ąćę", "日本語", "ÅÄÖ ĆĚ"])
def test_bytes_and_bytearray_are_told_apart_beside_any_text(text: str) -> None:
    value = {"text": text, "deep": [{"b": [bytearray(b"x"), b"x"]}], "number": 0.1}
    assert same(CODEC.copy(value), value)


def test_dict_order_and_keys_survive_where_msgpack_has_none() -> None:
    value = {"z": 1, 3: {"y": 2, 1: {2.5: {None: {True: {b"": {(): "end"}}}}}}, "a": 4}
    assert same(CODEC.copy(value), value)


def test_shared_references_become_copies() -> None:
    shared = [1]
    one, two = CODEC.copy([shared, shared])
    assert one == two
    assert one is not two


def test_a_copy_shares_nothing_mutable_with_its_original() -> None:
    original = {"a": [1]}
    copied = CODEC.copy(original)
    copied["a"].append(2)
    assert original == {"a": [1]}


@pytest.mark.parametrize("value", [None, True, 1, 2**90, 1.5, "a", b"a"])
def test_immutable_leaves_are_scalars(value: Any) -> None:
    assert is_scalar(value)


@pytest.mark.parametrize("value", [[], (), {}, bytearray(), 1j, date(2026, 1, 1), type("Text", (str,), {})("a")])
def test_anything_else_is_no_scalar(value: Any) -> None:
    assert not is_scalar(value)
