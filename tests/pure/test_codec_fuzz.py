"""Records that nobody wrote, by the thousand: forged ones, whose parts are those of the format in the wrong places, and
damaged ones. Each ends in an error of Stepwell's own, or in a value that can be stored and read again.
"""

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from ormsgpack import Ext, packb

from stepwell.codec import Codec, Registry
from stepwell.codec.kinds import FORMAT, Kind
from stepwell.codec.listed import listed_names
from stepwell.errors import CorruptRecordError, UnknownTypeError, UnserializableValueError
from tests.pure.supported import OWN, PLAIN
from tests.pure.supported_classes import State

REGISTRY = Registry.from_schemas(State)
CODEC = Codec(REGISTRY)
NAMES = [*REGISTRY.names(), *sorted(listed_names()), "os:system", "a:b", "list", "int", "Decimal"]
NAMED = {Kind.ENUM, Kind.FLAG, Kind.OBJECT, Kind.NAMED_TUPLE, Kind.MODEL, Kind.CUSTOM, Kind.DEFAULTDICT}
FIELDS = ["x", "y", "left", "name", "tries", "phase", "content", "code", "_seen", "data", "root"]
PARTS = ["more", "unset", "base", "extra", "private"]
OF_ERRORS = [
    "__cause__",
    "__context__",
    "__suppress_context__",
    "errno",
    "filename",
    "value",
    "code",
    "object",
    "start",
]
DTYPES: list[Any] = [
    "<i8",
    "V0",
    "U0",
    "<U1",
    "M8",
    "M8[25s]",
    "a3",
    "q",
    "g",
    "T",
    "O",
    ["i2", [2]],
    [["a"], ["i4"], [0], 8, False],
]
LEAVES: list[Any] = [None, True, 0, -1, 2**40, 2**62, 1.5, float("nan"), "x", "", "<i8", b"", b"\xff\0", "\0"]


class Forger:
    """Makes packed values. What it makes depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int) -> bytes:
        chance = self.random.random()
        if depth <= 0 or chance < 0.35:
            return packb(self.random.choice([*LEAVES, self.random.choice(NAMES)]))
        if chance < 0.5:
            return self.sequence([self.value(depth - 1) for _ in range(self.random.randrange(4))])
        if chance < 0.6:
            count = self.random.randrange(3)
            return bytes([0x80 + count]) + b"".join(self.value(depth - 1) for _ in range(2 * count))
        return self.extension(depth)

    def sequence(self, items: list[bytes]) -> bytes:
        return bytes([0x90 + len(items)]) + b"".join(items)

    def mapping(self, names: list[str], depth: int) -> bytes:
        chosen = self.random.sample(names, self.random.randrange(4))
        return bytes([0x80 + len(chosen)]) + b"".join(packb(name) + self.value(depth) for name in chosen)

    def extension(self, depth: int) -> bytes:
        kind = self.random.choice([*Kind, 0, 99])
        usual = self.random.random() < 0.8
        if kind in NAMED and usual:
            body = self.instance(depth - 1)
        elif kind == Kind.ARRAY and usual:
            sizes = [self.random.choice([0, 1, 2, 2**40, 2**62, -1]) for _ in range(self.random.randrange(3))]
            body = packb(
                [self.random.choice(DTYPES), sizes, usual, self.random.randbytes(self.random.choice([0, 1, 8]))]
            )
        else:
            body = self.value(depth - 1) if usual else self.random.randbytes(self.random.randrange(12))
        return packb(Ext(int(kind), body))

    def instance(self, depth: int) -> bytes:
        parts = [packb(self.random.choice(NAMES)), self.mapping(FIELDS, depth)]
        for _ in range(self.random.randrange(3)):
            base = self.random.choice([self.error, self.items, self.value])
            named = b"\x81" + packb("base") + base(depth)
            parts.append(self.random.choice([named, self.mapping(PARTS, depth), self.value(depth)]))
        return self.sequence(parts)

    def error(self, depth: int) -> bytes:
        arguments = self.sequence([packb("text"), self.value(depth)][: self.random.randrange(3)])
        rest = self.mapping(OF_ERRORS, depth)
        return bytes([rest[0] + 1]) + packb("args") + arguments + rest[1:]

    def items(self, depth: int) -> bytes:
        code, size = self.random.choice("bBidfuqz"), self.random.choice([1, 2, 4, 8])
        return packb([code, size, self.random.randbytes(self.random.choice([0, 3, 8]))])


def framed(body: bytes) -> bytes:
    return body + (len(body) << 8 | FORMAT).to_bytes(6, "big")


def loaded(body: bytes) -> tuple[Any] | None:
    """Return what the bytes hold, unless they are refused."""
    try:
        return (CODEC.loads(framed(body), "record"),)
    except (CorruptRecordError, UnknownTypeError) as error:
        assert "record" in str(error)
        return None


def check(body: bytes) -> bool:
    """Load the bytes; whether they held a value. It must be one that a state may hold, and that comes back as it is."""
    if (found := loaded(body)) is None:
        return False
    data = CODEC.dumps(found)
    assert CODEC.canonical(CODEC.loads(data)) == CODEC.canonical(found)
    return True


def forge(seed: int, count: int) -> None:
    forger = Forger(seed)
    values = sum(check(forger.value(5)) for _ in range(count))
    assert count / 10 < values < count, "the forger makes values and refusals"


@pytest.mark.parametrize("seed", range(4))
def test_INV_12_a_forged_record_is_refused_or_holds_a_value_that_can_be_stored(seed: int) -> None:
    forge(seed, 1_500)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_forged_records_are_refused_or_hold_a_value_that_can_be_stored(seed: int) -> None:
    forge(seed, 10_000)


def test_forged_records_take_memory_in_proportion_to_their_size() -> None:
    forger = Forger(7)
    bodies = [forger.extension(4) for _ in range(500)]
    for body in bodies:  # what is imported and cached at the first reading is not counted
        loaded(body)
    tracemalloc.start()
    try:
        for body in bodies:
            tracemalloc.reset_peak()
            loaded(body)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000, body.hex()
    finally:
        tracemalloc.stop()


RECORDS = [CODEC.dumps(value)[:-6] for row in (*PLAIN, *OWN) for value in row.values()]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A record with bytes changed, cut out, put in, or taken from another one."""
    body = bytearray(draw(st.sampled_from(RECORDS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body)))
        other = draw(st.sampled_from(RECORDS))
        piece = draw(
            st.sampled_from([b"", b"\xff", b"\0", b"\xdd\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x2a", other])
        )
        body[at : at + draw(st.integers(0, 3))] = piece
    return bytes(body)


@settings(max_examples=250, deadline=None)
@given(damaged())
def test_a_damaged_record_is_refused_or_holds_a_value_that_can_be_stored(body: bytes) -> None:
    check(body)


def test_every_byte_of_a_short_record_may_be_damaged() -> None:
    """One byte at a time, to what opens something in the format, ends it, or is nearly the same."""
    for record in (record for record in RECORDS if len(record) <= 48):
        for at in range(len(record)):
            for byte in (0x90, 0xC1, 0xDD, record[at] ^ 1):
                loaded(record[:at] + bytes([byte]) + record[at + 1 :])


def test_nothing_a_name_leads_to_is_called_at_the_load() -> None:
    """Every listed name as every named kind, with content of every family: instances are made, never run."""
    bases: list[Any] = [{"args": []}, {"args": ["", []]}, None, "x", 1, [], {}, ["b", 1, b"x"], [0] * 11]
    for name in NAMES:
        for kind in NAMED:
            for content in ("x", 1, {}, {"x": 1}):
                loaded(packb(Ext(int(kind), packb([name, content]))))
        for base in bases:
            loaded(packb(Ext(int(Kind.OBJECT), packb([name, {}, {"base": base}]))))


@pytest.mark.parametrize("levels", [254, 255, 256, 10_000])
def test_a_value_of_any_depth_is_stored_or_refused(levels: int) -> None:
    value: Any = None
    for _ in range(levels):
        value = [value]
    if levels <= 255:
        assert CODEC.copy(value) == value
    else:
        with pytest.raises(UnserializableValueError, match="nests more than"):
            CODEC.dumps(value)
    body = b"\x91" * levels + b"\xc0"
    assert (loaded(body) is not None) == (levels <= 1_000)
