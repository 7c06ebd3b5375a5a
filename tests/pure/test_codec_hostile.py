"""Bytes nobody wrote: they end in an error of Stepwell's own, in bounded memory, and call nothing unlisted."""

import subprocess
import sys
import threading
import tracemalloc
from dataclasses import dataclass
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, settings, strategies as st
from ormsgpack import Ext, packb

from stepwell.codec import Codec, Registry
from stepwell.codec.kinds import FORMAT, Kind
from stepwell.codec.nesting import levels, stored_levels
from stepwell.errors import CorruptRecordError, NewerFormatError, UnknownTypeError


@dataclass
class Point:
    x: Any
    y: Any = None


CODEC = Codec(Registry().with_types(Point))
NAME = f"{__name__}:Point"
SAMPLE = {"a": [Point(1, (2, {3})), {1: b"x"}], "b": "text"}


def framed(body: bytes) -> bytes:
    return body + (len(body) << 8 | FORMAT).to_bytes(6, "big")


def ext(kind: int, payload: Any) -> bytes:
    return packb(
        Ext(kind, payload if isinstance(payload, bytes) else packb(payload, option=ormsgpack.OPT_NON_STR_KEYS))
    )


def fails(body: bytes) -> Exception:
    with pytest.raises((CorruptRecordError, UnknownTypeError)) as caught:
        CODEC.loads(framed(body), "channel")
    return caught.value


@pytest.mark.parametrize("extra", [b"\0", b"\xc0", b"garbage", CODEC.dumps(1)])
def test_trailing_bytes_are_corrupt(extra: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="channel"):
        CODEC.loads(CODEC.dumps(SAMPLE) + extra, "channel")


def test_every_truncation_is_corrupt() -> None:
    data = CODEC.dumps(SAMPLE)
    for length in range(len(data)):
        with pytest.raises(CorruptRecordError):
            CODEC.loads(data[:length])


def test_a_format_that_never_was_is_corrupt_and_one_that_may_come_is_newer() -> None:
    data = CODEC.dumps(SAMPLE)
    with pytest.raises(CorruptRecordError):
        CODEC.loads(data[:-1] + bytes([FORMAT - 1]))
    with pytest.raises(NewerFormatError):
        CODEC.loads(data[:-1] + bytes([FORMAT + 1]))


@pytest.mark.parametrize(
    "body",
    [
        b"\xc1",
        b"",
        b"\xa1\xff",  # bad UTF-8
        b"\xdd\xff\xff\xff\xff",  # 4 billion items
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\xdd\xff\xff\xff\xff" * 64,
        b"\x91" * 5_000,
        b"\x81" * 5_000,
        b"\x81\x81\x01\x01\x01",  # a dict as a key
    ],
    ids=lambda body: body[:6].hex(),
)
def test_malformed_msgpack_is_corrupt(body: bytes) -> None:
    assert isinstance(fails(body), CorruptRecordError)


@pytest.mark.parametrize(
    "payload",
    [None, 1, "x", b"\x80", [], [1], [1, 2, 3, 4, 5], {"a": 1}, ["x"], [None] * 4, [[1]], ["a", "b"], b"", b"\xc1"],
)
@pytest.mark.parametrize("kind", sorted(Kind), ids=lambda kind: kind.name)
def test_payloads_of_the_wrong_shape_never_escape_as_another_error(kind: Kind, payload: Any) -> None:
    try:
        CODEC.loads(framed(ext(kind, payload)))
    except (CorruptRecordError, UnknownTypeError):
        pass


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Kind.MAP, [1]),
        (Kind.MAP, [[], 1]),
        (Kind.SET, [[]]),
        (Kind.DEQUE, [1, [1, 2]]),
        (Kind.FRACTION, [1, 0]),
        (Kind.RANGE, [1, 2, 0]),
        (Kind.RANGE, [1, 2, 1.5]),
        (Kind.UUID, b"short"),
        (Kind.DECIMAL, b"1.5junk"),
        (Kind.DATETIME, b"2026-13-01T00:00:00|0"),
        (Kind.DATETIME, b"2026-01-01T00:00:00|0@../../etc/passwd"),
        (Kind.ZONE_INFO, b"../../etc/passwd"),
        (Kind.ZONE_INFO, b"/etc/passwd"),
        (Kind.TIMEDELTA, b"999999999999,0,0"),
        (Kind.OBJECT, [NAME, {1: 2}]),
        (Kind.OBJECT, [NAME, {"x": 1}, []]),
        (Kind.OBJECT, [1, {}]),
        (Kind.ARRAY, ["<i8", [2**40], False, b"12345678"]),
        (Kind.ARRAY, ["O", [1], False, b"12345678"]),
        (Kind.ARRAY, ["<i8", [-1], False, b""]),
    ],
)
def test_built_in_kinds_that_cannot_be_read_are_corrupt(kind: Kind, payload: Any) -> None:
    assert isinstance(fails(ext(kind, payload)), CorruptRecordError)


def test_extension_codes_outside_the_format_are_corrupt() -> None:
    for code in (-1, 0, 39, 48, 99, 127):
        body = b"\xd4" + code.to_bytes(1, "big", signed=True) + b"x"
        assert f"extension code {code} " in str(fails(body))


def test_a_corrupt_leaf_is_named() -> None:
    body = b"\x81\xa1a\x92\x01" + ext(
        Kind.OBJECT, b"\x92" + packb(NAME) + b"\x82\xa1x\x01\xa1y" + ext(Kind.UUID, b"short")
    )
    error = fails(body)
    assert isinstance(error, CorruptRecordError)
    assert error.fields()["record"] == "channel['a'][1].y"


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "subprocess:Popen", "langchain_core.messages:messages_from_dict", "a:b"]
)
@pytest.mark.parametrize(
    "kind", [Kind.OBJECT, Kind.NAMED_TUPLE, Kind.MODEL, Kind.ENUM, Kind.FLAG, Kind.CUSTOM, Kind.DEFAULTDICT]
)
def test_INV_12_names_the_registry_does_not_list_lead_nowhere(kind: Kind, name: str) -> None:
    payload: list[Any] = [name, {}] if kind not in (Kind.ENUM, Kind.FLAG) else [name, "x"]
    error = fails(ext(kind, [*payload, None] if kind == Kind.MODEL else payload))
    assert isinstance(error, UnknownTypeError)
    assert (error.fields()["path"], error.fields()["type_name"]) == ("channel", name)


def test_INV_12_loading_imports_no_module_a_record_names() -> None:
    names = ["xmlrpc.client:ServerProxy", "antigravity:x", "this:x", "ctypes:CDLL", "langchain_core.load:load"]
    bodies = [framed(ext(kind, [name, {}])).hex() for name in names for kind in (Kind.OBJECT, Kind.CUSTOM, Kind.ENUM)]
    program = f"""
import sys
from stepwell.codec import Codec, Registry
from stepwell.errors import UnknownTypeError
codec = Codec(Registry())
from stepwell.codec import faults
before = set(sys.modules)
for body in {bodies!r}:
    try:
        codec.loads(bytes.fromhex(body))
    except UnknownTypeError:
        continue
    raise SystemExit("loaded")
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def nested(depth: int, lists: int) -> bytes:
    body = b"\x01"
    for _ in range(depth):
        body = ext(Kind.TUPLE, b"\x91" + b"\x91" * lists + body)
    return body


@pytest.mark.parametrize(("depth", "lists"), [(1_000, 0), (3_000, 0), (200, 900), (1_000, 30), (20, 1_000)])
def test_deep_nesting_through_extensions_is_corrupt_and_does_not_exhaust_the_stack(depth: int, lists: int) -> None:
    body = nested(depth, lists)
    errors: list[Exception] = []
    thread = threading.Thread(target=lambda: errors.append(fails(body)))
    thread.start()
    thread.join()
    assert isinstance(errors[0], CorruptRecordError)


def test_huge_claims_take_little_memory() -> None:
    bodies = [
        b"\x91" * 60 + b"\xdd\xff\xff\xff\xff",
        ext(Kind.TUPLE, b"\xdd\xff\xff\xff\xff"),
        ext(Kind.RANGE, [0, 2**62, 1]),
        ext(Kind.DECIMAL, b"1E+999999999999999999"),
        ext(Kind.DEQUE, [2**62, []]),
    ]
    tracemalloc.start()
    for body in bodies:
        try:
            CODEC.loads(framed(body))
        except CorruptRecordError:
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_flipped_bytes_end_in_a_value_or_an_error_of_our_own(data: st.DataObject) -> None:
    body = bytearray(CODEC.dumps(SAMPLE)[:-6])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        CODEC.loads(framed(bytes(body)))
    except (CorruptRecordError, UnknownTypeError):
        pass


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.sampled_from(sorted(Kind)))
def test_any_bytes_end_in_a_value_or_an_error_of_our_own(body: bytes, kind: Kind) -> None:
    for attempt in (body, ext(kind, body)):
        try:
            CODEC.loads(framed(attempt))
        except (CorruptRecordError, UnknownTypeError):
            pass


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.integers() | st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_the_nesting_of_bytes_is_that_of_the_value(value: Any) -> None:
    try:
        packed = packb(value)
    except TypeError:  # beyond 64 bits
        return
    assert stored_levels(packed, 0) == levels(value)
