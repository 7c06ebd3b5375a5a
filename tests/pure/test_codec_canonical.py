"""Canonical bytes: the same value gives the same bytes in every process, whatever the order of its dicts and sets."""

import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell.codec import Codec, Registry, canonical
from stepwell.errors import UnserializableValueError


@dataclass
class Job:
    name: str
    tags: Any


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: "x", 2: "y"}, {2: "y", 1: "x"}),
        ({(1, 2): 1, date(2026, 1, 1): 2, "k": 3}, {"k": 3, date(2026, 1, 1): 2, (1, 2): 1}),
        ([{"deep": ({"a": 1, "b": {1, 2}},)}], [{"deep": ({"b": {2, 1}, "a": 1},)}]),
        (Counter("ab"), Counter("ba")),
        (defaultdict(int, a=1, b=2), defaultdict(int, b=2, a=1)),
    ],
    ids=repr,
)
def test_order_that_is_no_part_of_the_value_does_not_show(left: Any, right: Any) -> None:
    assert canonical(left) == canonical(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        ("1", b"1"),
        ((1,), [1]),
        ({1}, frozenset({1})),
        ([1, 2], [2, 1]),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        ({"a": None}, {}),
        (b"x", bytearray(b"x")),
    ],
    ids=repr,
)
def test_values_that_differ_have_other_bytes(left: Any, right: Any) -> None:
    assert canonical(left) != canonical(right)


@given(st.dictionaries(st.text() | st.integers() | st.dates(), st.sets(st.text() | st.integers())), st.randoms())
def test_any_order_gives_the_same_bytes(value: dict[Any, set[Any]], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    shuffled = {key: set(random.sample(sorted(held, key=repr), len(held))) for key, held in items}
    assert canonical(shuffled) == canonical(value)


def test_every_process_gives_the_same_bytes() -> None:
    program = """
from stepwell.codec import canonical
print(canonical({"s": {"a", "b", "c", 1, (2, "x")}, "f": frozenset("xyz"), 3: {b"k": 1, None: 2}}).hex())
"""
    outputs = {
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                       capture_output=True, check=True).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


def test_a_codec_brings_its_types() -> None:
    codec = Codec(Registry().with_types(Job))
    one, two = Job("n", {"a": 1, "b": 2}), Job("n", {"b": 2, "a": 1})
    assert canonical(one, codec) == canonical(two, codec) == codec.canonical(one)


def test_what_cannot_be_stored_has_no_canonical_bytes() -> None:
    with pytest.raises(UnserializableValueError) as caught:
        canonical({"a": [object()]}, path="inputs")
    assert caught.value.fields()["path"] == "inputs['a'][0]"
