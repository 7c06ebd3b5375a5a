"""What state may hold and what it may not: the rows of the page, and values beyond what the page shows.

`tests/pure/test_codec_supported_types.py` stores every value; `tests/house/test_supported_page.py` compares the page.
"""

# ruff: noqa: F401  # what the examples need, which are source text

import array
import calendar
import decimal
import functools
import http
import io
import operator
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import types
import uuid
from asyncio import CancelledError, InvalidStateError
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from json import JSONDecodeError
from pathlib import Path, PurePosixPath, PureWindowsPath
from signal import Signals
from time import gmtime, struct_time
from types import MappingProxyType, SimpleNamespace
from typing import Any
from urllib.parse import urldefrag, urlparse, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from stepwell.errors import StepError
from stepwell.graph.message_shapes import PlainRemoveMessage
from tests.pure.supported_classes import Box, Colour, Doc, Job, Label, Money, Pair, Point, Refused, Right


@dataclass(frozen=True)
class Row:
    """One row of the page: the type, an example as its source text, and what is kept or why it is refused."""

    type: str
    example: str
    note: str = ""
    more: Callable[[], list[Any]] = list
    """Values of the same row that the page does not show."""

    def values(self) -> list[Any]:
        """Return the example and the values beyond it."""
        return [eval(self.example, globals()), *self.more()]


def nan(bits: int) -> float:
    value: float = struct.unpack(">d", struct.pack(">Q", bits))[0]
    return value


def raised(code: Callable[[], Any]) -> BaseException:
    try:
        code()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def caused() -> None:
    try:
        {"b": 1}["a"]
    except KeyError as error:
        error.add_note("looked up too early")
        raise ValueError("x", (1, 2)) from error


PLAIN = [
    Row("`None`, `bool`, `...`", "[None, True, False, ...]", more=lambda: [(..., slice(1))]),
    Row("`int`", "[0, -1, 2**63, -2**200]", "any size", lambda: [2**64, 2**64 - 1, -(2**63) - 1, -(2**63), 10**5000]),
    Row(
        "`float`",
        '[0.1, -0.0, float("inf")]',
        "signed zero, infinities, NaN with its payload",
        lambda: [5e-324, nan(0x7FF8_0000_0000_1234), nan(0xFFF0_0000_0000_0001), float("-inf")],
    ),
    Row("`complex`", "complex(-0.0, 1)", "both signs", lambda: [complex(nan(0x7FF8_0000_0000_0001), float("inf"))]),
    Row("`str`", r'["text", "żółw 🐢", "\ud800"]', "lone surrogates too", lambda: ["", "a\0b", {"\ud800": "\udfff\0"}]),
    Row(
        "`bytes`, `bytearray`",
        r'[b"\x00\xff", bytearray(b"\x00\xff")]',
        "which of the two it is",
        lambda: [b"", bytearray(), (bytearray(b"x"),), {1: {b"k": bytearray(b"v")}}],
    ),
    Row("`list`", "[1, [2, []]]"),
    Row("`tuple`", "(1, (2, ()), [3])"),
    Row(
        "`dict`",
        '{"b": 1, 2: "x", (1, 2): None, date(2026, 1, 2): []}',
        "insertion order; any supported hashable key",
        lambda: [
            {UUID(int=1): 1, True: 3, None: 4, b"b": 5, 1.5: 6, "": 7},
            {2**64: "over", 2**64 - 1: "under"},
            {"type": "Point", "__class__": "Point", "lc": 1, "$ext": [42, "x"], "py/object": "os.system"},
            {"\x01": {"\x2a": ["tests.pure.supported_classes:Point", {"x": 1}]}},
        ],
    ),
    Row("`set`, `frozenset`", '[{1, "a"}, frozenset({(1, 2)})]', more=lambda: [frozenset({frozenset({1})}), set()]),
    Row("`collections.deque`", "deque([1, 2], maxlen=3)", "`maxlen`", lambda: [deque(maxlen=0), deque([deque()])]),
    Row(
        "`collections.defaultdict`",
        'defaultdict(list, {"a": [1]})',
        "the factory: `None`, a built-in type, `Decimal`, `Fraction`, a type of `collections`, or a registered class",
        lambda: [defaultdict(None, a=1), *map(defaultdict, (Counter, Decimal, Label))],
    ),
    Row("`collections.OrderedDict`", "OrderedDict(b=1, a=2)", more=lambda: [OrderedDict({1: 2, "a": OrderedDict()})]),
    Row("`collections.Counter`", 'Counter("banana")', more=lambda: [Counter({"b": -1, ("a", 1): 0})]),
    Row("`collections.ChainMap`", 'ChainMap({"a": 1}, {"a": 2})', "each map", lambda: [ChainMap(OrderedDict(a=1))]),
    Row(
        "`collections.UserDict`, `UserList`, `UserString`",
        '[UserDict(a=1), UserList([1]), UserString("x")]',
    ),
    Row(
        "`types.MappingProxyType`",
        'MappingProxyType({"a": [1]})',
        "the mapping below it; the copy is a window on a copy",
        lambda: [MappingProxyType(OrderedDict(b=1, a=2))],
    ),
    Row("`types.SimpleNamespace`", "SimpleNamespace(a=1, b=(2,))"),
    Row(
        "`array.array`",
        'array.array("d", [1.5, -0.0])',
        "the type of its items",
        lambda: [
            *(array.array(code, [1, 2]) for code in "bBhHiIlLqQf"),
            array.array("d", [nan(0x7FF8_0000_0000_0001)]),
        ],
    ),
    Row("`range`", "range(10, 0, -3)", more=lambda: [range(2**70), range(0)]),
    Row("`slice`", "slice(None, 5)", more=lambda: [slice((1, 2), None, "x")]),
    Row(
        "`datetime.datetime`",
        'datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris"))',
        "microseconds, `fold`, the zone itself and not its offset",
        lambda: [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, fold=1)],  # noqa: DTZ001
    ),
    Row("`datetime.date`", "date(2026, 1, 2)", more=lambda: [date.min, date.max]),
    Row(
        "`datetime.time`",
        "time(23, 59, 59, 999999, tzinfo=UTC)",
        "`fold`, the zone",
        lambda: [time(1, 2, 3, 4, fold=1), time(0, tzinfo=ZoneInfo("Europe/Paris"))],
    ),
    Row("`datetime.timedelta`", "timedelta(days=-1, microseconds=1)", more=lambda: [timedelta.max, timedelta.min]),
    Row(
        "`datetime.timezone`",
        'timezone(timedelta(hours=5, minutes=30), "IST")',
        "its name",
        lambda: [UTC, timezone(timedelta(microseconds=-1), ";\0,|"), timezone(timedelta(1) / 2, "")],
    ),
    Row("`zoneinfo.ZoneInfo`", 'ZoneInfo("Europe/Paris")', "the key; zones read from a file have none and are refused"),
    Row("`time.struct_time`", "gmtime(0)", "its zone and offset", lambda: [struct_time(range(9))]),
    Row(
        "`decimal.Decimal`",
        'Decimal("-1.500E+7")',
        "trailing zeros, sign of zero, `NaN` and `sNaN` with their payload",
        lambda: [*map(Decimal, ("-0E+5", "sNaN123", "-NaN7", "-Infinity", "1E+1000000")), Decimal("1.50").as_tuple()],
    ),
    Row("`fractions.Fraction`", "Fraction(-1, 3)", more=lambda: [Fraction(2**100, 3)]),
    Row(
        "`uuid.UUID`",
        'UUID("12345678-1234-5678-1234-567812345678")',
        "`is_safe`",
        lambda: [UUID(int=7, is_safe=uuid.SafeUUID.safe), uuid.uuid1()],
    ),
    Row("`pathlib` pure paths", '[PurePosixPath("/a/b"), PureWindowsPath("c:/a")]', more=lambda: [PurePosixPath("")]),
    Row(
        "`pathlib.Path`",
        'Path("a") / "b"',
        "the kind of path of the system that wrote it; another system cannot load it",
        lambda: [Path("a/\udcff")],
    ),
    Row("`ipaddress` addresses", '[IPv4Address("10.0.0.1"), IPv6Address("fe80::1%eth0")]', "the scope"),
    Row("`ipaddress` networks", '[IPv4Network("10.0.0.0/8"), IPv6Network("fe80::/10")]'),
    Row("`ipaddress` interfaces", '[IPv4Interface("10.0.0.1/8"), IPv6Interface("fe80::1/10")]'),
    Row(
        "`urllib.parse` results",
        'urlsplit("https://host:1/path?q#f")',
        more=lambda: [
            part(url) for part in (urlparse, urlsplit, urldefrag) for url in ("http://a/b#c", b"http://a/b#c")
        ],
    ),
    Row(
        "enums of `http`, `signal`, `calendar`, `re`, `uuid`",
        "[http.HTTPStatus.OK, http.HTTPMethod.GET, Signals.SIGTERM]",
        more=lambda: [
            re.IGNORECASE | re.MULTILINE,
            uuid.SafeUUID.unsafe,
            *(getattr(calendar, name)(1) for name in ("Day", "Month") if hasattr(calendar, name)),
        ],
    ),
    Row(
        "Python's own exceptions",
        '[ValueError("no", 7), FileNotFoundError(2, "No such file", "a.txt")]',
        "arguments, fields, attributes, notes, cause and context; [not the traceback](#exceptions)",
        lambda: [raised(caused), ExceptionGroup("g", [ValueError(1)]), CancelledError("late"), InvalidStateError()],
    ),
    Row(
        "errors of Stepwell, exceptions of `json`, `subprocess`, `socket`",
        '[StepError(step_id="fetch:0"), JSONDecodeError("no value", "[1,", 3)]',
        "the same",
        lambda: [
            subprocess.CalledProcessError(1, ["ls"], b"out"),
            subprocess.TimeoutExpired("ls", 1.5),
            socket.gaierror(-2, "Name not known"),
            socket.herror(1, "Unknown host"),
        ],
    ),
    Row(
        "`langchain_core` messages, and Stepwell's `RemoveMessage` without it",
        '[HumanMessage("hi"), ToolMessage("ok", tool_call_id="1", artifact=(1, 2))]',
        "every field, which fields were given, extras",
        lambda: [
            AIMessage("", tool_calls=[{"name": "f", "args": {"a": (1, 2)}, "id": "c", "type": "tool_call"}]),
            AIMessage([{"type": "text", "text": "hi"}], usage_metadata=USAGE, response_metadata={"k": 1.5}, id="1"),
            SystemMessage("s", name="n", extra=(1,)),
            ChatMessage(content="x", role="critic"),
            FunctionMessage(content="x", name="f"),
            RemoveMessage(id="1"),
            PlainRemoveMessage("1"),
            AIMessageChunk(content="part", tool_call_chunks=[{"name": "f", "args": "{", "id": "c", "index": 0}]),
            HumanMessageChunk(content="a"),
            SystemMessageChunk(content="a"),
            ChatMessageChunk(content="a", role="critic"),
            FunctionMessageChunk(content="a", name="f"),
            ToolMessageChunk(content="a", tool_call_id="1", status="error"),
        ],
    ),
    Row("`langchain_core` documents", 'Document("text", id="d", metadata={"page": (1, 2)})', "every field"),
    Row(
        "`numpy.ndarray`",
        'numpy.arange(6, dtype="int16").reshape(2, 3)',
        "dtype, byte order, shape, order in memory; a view becomes an array",
        lambda: [numpy.zeros(2, ">f4"), numpy.array(["2026-01-01"], "M8[D]")],
    ),
    Row(
        "`numpy` structured arrays",
        'numpy.zeros(2, [("id", "<i8"), ("place", "<f4", (2,))])',
        "names, types, offsets",
    ),
    Row("`numpy` scalars", "[numpy.float32(0.1), numpy.int64(7)]", "the scalar's type", lambda: [numpy.str_("a\0")]),
]
USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}

OWN = [
    Row("`enum.Enum`, `IntEnum`, `StrEnum`", "Colour.RED", "the member, by its name", lambda: [Doc.Phase.DRAFT]),
    Row("`enum.Flag`, `IntFlag`", "Right.READ | Right.WRITE", "combinations", lambda: [Right(0), {Right.READ: 1}]),
    Row("dataclasses", "Point(1)", "frozen, slots, `init=False` and inherited fields, attributes set later"),
    Row("named tuples", "Pair(Point(1), Point(2))"),
    Row("attrs classes", 'Job("build", tries=2)', "slots, frozen, `init=False`, private fields"),
    Row("pydantic models", "Doc(phase=Doc.Phase.DRAFT)", "fields given, extras, private attributes, cached properties"),
    Row("generic pydantic models", "Box[Point](content=Point(1))", "the argument", lambda: [Box(content=(1,))]),
    Row("exceptions", 'Refused("payment", code=7)', "as Python's own", lambda: [[Refused("a", code=1)] * 2]),
    Row("registered built-in subclasses", 'Label("x")', "the class, its attributes", lambda: [{Label("k"): 1}]),
    Row("registered with `dump` and `load`", "Money(100)", "what the two keep; proven at every write"),
    Row("`re.Pattern`, if a schema names it or it is registered", 're.compile("a+", re.IGNORECASE)', "flags"),
]


class Unlisted:
    pass


class Text(str):
    __slots__ = ()


class Zone(tzinfo):
    pass


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def deep(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


REFUSED = [
    Row(
        "functions, lambdas, classes, type hints, modules",
        "[print, Unlisted, list[int], re]",
        "code is not data; store its name",
        lambda: [lambda: None, functools.partial(print), operator.itemgetter(0), int | str, NotImplemented],
    ),
    Row(
        "iterators, generators, coroutines, views of dicts",
        "[iter([1]), {}.items()]",
        "reading them uses them up, or shows another object; store `list(...)`",
        lambda: [(n for n in [1]), map(str, [])],
    ),
    Row(
        "locks, threads, open files, sockets, clients, random generators",
        "[threading.Lock(), io.BytesIO(), random.Random(1)]",
        "they belong to a process",
        lambda: [threading.current_thread(), sys.stdout, decimal.Context()],
    ),
    Row(
        "exceptions of classes that are not listed, alone or as a cause",
        "[type('Own', (Exception,), {})()]",
        "register the class, or store `repr(error)`",
        lambda: [ValueError(object())],
    ),
    Row(
        "data frames, URLs and secrets of pydantic, other values of foreign libraries",
        "[Unlisted()]",
        "register them with a `dump` and `load` you choose: `register_type(HttpUrl, dump=str, load=HttpUrl)`",
    ),
    Row(
        "subclasses of built-in types that are not registered",
        '[Text("a"), {Text("a"): 1}]',
        "the subclass would be lost",
        lambda: [type("Own", (kind,), {})() for kind in (int, float, list, dict, tuple, deque, OrderedDict, Counter)],
    ),
    Row("a `defaultdict` with a function as its factory", "[defaultdict(lambda: 0)]", "the factory is code"),
    Row("`memoryview`", 'memoryview(b"x")', "it is a window on another object's memory"),
    Row(
        "a time zone that is neither `timezone` nor `ZoneInfo`",
        "datetime(2026, 1, 1, tzinfo=Zone())",
        "only its author knows its rules",
    ),
    Row(
        "arrays of objects, of `longdouble`, with titles or metadata; masked arrays",
        "[numpy.array([None]), numpy.longdouble(1), numpy.ma.array([1])]",
        "another process or machine would read another value",
    ),
    Row(
        "a value that contains itself, or nests too deep",
        "[endless()]",
        "lists and dicts nest up to 255 levels; from the fourth value of another type on, up to 128 levels of any kind",
        lambda: [deep(300)],
    ),
]
