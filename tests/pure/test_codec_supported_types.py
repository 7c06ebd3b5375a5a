"""The published table of supported types: each row is stored exactly, and each kind of the format stands in a row."""

import datetime
import decimal
import fractions
import ipaddress
import pathlib
import re
import sys
import uuid
import zoneinfo
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from types import ModuleType
from typing import Any

import ormsgpack
import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage

from stepwell.codec import Codec, Registry
from stepwell.codec.kinds import Kind
from tests.pure.test_codec_sameness import same

PAGE = (Path(__file__).parents[2] / "docs" / "supported-types.md").read_text()
ROW = re.compile(r"^\| (?P<type>.+?) \| `(?P<example>.+?)` \|.*\|$", re.M)
ROWS = [(found["type"], found["example"].replace("\\|", "|")) for found in ROW.finditer(PAGE)]
NAMES: dict[str, Any] = {
    **{
        name: kind
        for module in (datetime, decimal, fractions, ipaddress, pathlib, uuid, zoneinfo)
        for name, kind in vars(module).items()
    },
    **{kind.__name__: kind for kind in (Document, HumanMessage, ToolMessage)},
    **{kind.__name__: kind for kind in (ChainMap, Counter, OrderedDict, defaultdict, deque)},
}


@pytest.fixture(scope="module")
def page() -> ModuleType:
    """Run the page's code block as a module of its own."""
    numpy = pytest.importorskip("numpy")
    module = ModuleType("supported_types_page")
    sys.modules[module.__name__] = module
    vars(module).update(NAMES, numpy=numpy)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(block, vars(module))
    return module


def codec_of(page: ModuleType) -> Codec:
    return Codec(Registry.from_schemas(page.State))


@pytest.mark.parametrize(("type_name", "example"), ROWS, ids=[name for name, _ in ROWS])
def test_each_row_is_stored_exactly(page: ModuleType, type_name: str, example: str) -> None:
    value = eval(example, dict(vars(page)))
    copied = codec_of(page).copy({"value": [value]})["value"][0]
    assert alike(copied, value), f"{type_name}: {value!r} came back as {copied!r}"


def alike(copied: Any, value: Any) -> bool:
    if type(value).__module__ == "numpy" and hasattr(value, "dtype") and value.ndim:
        return bool(copied.dtype == value.dtype and copied.tolist() == value.tolist())
    if type(value) is list:
        return type(copied) is list and len(copied) == len(value) and all(map(alike, copied, value))
    return same(copied, value)


def test_the_tables_hold_every_kind_of_the_format(page: ModuleType) -> None:
    codec, seen = codec_of(page), set[int]()

    def look(kind: int, data: bytes) -> tuple[int, bytes]:
        seen.add(kind)
        if kind in set(Kind) - _WITHOUT_PARTS:
            ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
        return kind, data

    for _, example in ROWS:
        data = codec.dumps([eval(example, dict(vars(page)))])
        ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
    foreign = (
        {Kind.WINDOWS_PATH}
        if pathlib.Path is not pathlib.WindowsPath and sys.platform != "win32"
        else {Kind.POSIX_PATH}
    )
    assert set(Kind) - seen == foreign


_WITHOUT_PARTS = {kind for kind in Kind if Kind.COMPLEX <= kind <= Kind.IPV6_INTERFACE and kind != Kind.FRACTION} | {
    Kind.TEXT,
    Kind.INT,
    Kind.BYTEARRAY,
}
