"""Numpy's arrays and scalars come back as they were: bytes, dtype, shape and order; no record makes numpy hang."""

import subprocess
import sys
from typing import Any

import ormsgpack
import pytest

from stepwell.codec import Codec, Registry
from stepwell.codec.kinds import FORMAT, Kind
from stepwell.errors import CorruptRecordError, UnserializableValueError
from tests.pure.test_codec_sameness import same

numpy: Any = pytest.importorskip("numpy")  # untyped, since its types refuse what is asked of it here
CODEC = Codec(Registry())
GRID = numpy.arange(24, dtype="i2").reshape(2, 3, 4)
NESTED = numpy.dtype([("a", "<i4"), ("b", ">f8", (2, 3)), ("c", [("x", "i1"), ("y", "U3")])])
ALIGNED = numpy.dtype([("a", "i1"), ("b", "f8")], align=True)
SPACED = numpy.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 16})

ARRAYS = [
    GRID,
    GRID.T,
    GRID.transpose(1, 0, 2),
    GRID[:, ::-2],
    GRID > 2,
    numpy.array(1.5),
    numpy.array(7, "q"),
    numpy.zeros((0, 3)),
    numpy.zeros((2, 0, 3), "f2", order="F"),
    numpy.array(["a", "bc", "\0d"]),
    numpy.array([b"a\0b", b""]),
    numpy.array([1, -2], ">i4"),
    numpy.array([1 + 2j, complex("nan")], "c8"),
    numpy.array(["2026-01-01", "NaT"], "M8[D]"),
    numpy.array([1, 2], ">m8[25s]"),
    numpy.array([b"abc"], "V3"),
    numpy.array([0x7FF0_0000_0000_1234], "u8").view("f8"),  # a signalling NaN
    numpy.ones(2, NESTED),
    numpy.ones((2, 2), ALIGNED),
    numpy.ones(3, SPACED)[::2],
]
SCALARS = [
    numpy.float16(0.1),
    numpy.float64(-0.0),
    numpy.complex128(1j),
    numpy.int64(7),
    numpy.longlong(7),
    numpy.intc(7),
    numpy.ulonglong(7),
    numpy.bool_(True),
    numpy.datetime64("2026-01-01"),
    numpy.datetime64("NaT", "s"),
    numpy.timedelta64(3, "25s"),
    numpy.void(b"abc"),
    numpy.ones(1, NESTED)[0],
    numpy.str_("a\0"),
    numpy.str_(""),
    numpy.str_("\ud800"),
    numpy.bytes_(b"a\0"),
    numpy.bytes_(b""),
]


@pytest.mark.parametrize("value", ARRAYS + SCALARS, ids=lambda value: f"{type(value).__name__} {value.dtype}"[:30])
def test_INV_12_arrays_and_scalars_keep_type_dtype_shape_and_bytes(value: Any) -> None:
    for copied in (CODEC.copy(value), CODEC.copy({"deep": [(value,)]})["deep"][0][0]):
        assert same(copied, value)
        assert CODEC.canonical(copied) == CODEC.canonical(value)


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: str(value.dtype)[:30])
def test_an_array_comes_back_writable_and_in_its_memory_order(value: Any) -> None:
    copied = CODEC.copy(value)
    assert copied.flags.writeable
    assert copied.flags.owndata or copied.base.flags.owndata
    columns = value.flags.f_contiguous and not value.flags.c_contiguous
    assert copied.flags.f_contiguous if columns else copied.flags.c_contiguous


def test_equal_arrays_have_the_same_canonical_bytes_however_they_lie_in_memory() -> None:
    assert CODEC.canonical(GRID.T) == CODEC.canonical(GRID.T.copy(order="C"))
    assert CODEC.canonical(GRID) != CODEC.canonical(GRID.reshape(4, 3, 2))


def test_a_scalar_is_a_key_of_its_own_type() -> None:
    copied = CODEC.copy({numpy.float64(1.5): 1, numpy.str_("a\0"): 2, numpy.int64(3): 3})
    assert [type(key) for key in copied] == [numpy.float64, numpy.str_, numpy.int64]
    assert copied == {1.5: 1, "a\0": 2, 3: 3}


def test_what_stands_between_the_fields_of_a_structure_is_not_stored() -> None:
    one, two = numpy.zeros(2, SPACED), numpy.zeros(2, SPACED)
    two.view("u1")[:] = 255
    two["a"] = 0
    assert CODEC.dumps(one) == CODEC.dumps(two)


@pytest.mark.parametrize(
    "value",
    [
        numpy.array([object()]),
        numpy.zeros(1, [("a", "O")]),
        numpy.zeros(1, "g"),
        numpy.longdouble(1),
        numpy.zeros(1, [("a", "g")]),
        numpy.zeros(2, "V0"),
        numpy.zeros(1, numpy.dtype("i4", metadata={"unit": "m"})),
        numpy.zeros(1, [("a", numpy.dtype("i4", metadata={"unit": "m"}))]),
        numpy.zeros(1, [(("title", "a"), "i4")]),
        numpy.zeros(1, numpy.dtype((numpy.record, [("a", "i4")]))),
        numpy.array(["x"], numpy.dtypes.StringDType()),
    ],
    ids=lambda value: str(value.dtype)[:30],
)
def test_a_dtype_that_would_come_back_as_another_is_refused(value: Any) -> None:
    with pytest.raises(UnserializableValueError, match="its dtype") as caught:
        CODEC.dumps({"a": value})
    assert caught.value.fields()["path"] == "a"


@pytest.mark.parametrize(
    "value", [numpy.ma.array([1]), numpy.zeros(1, [("a", "i4")]).view(numpy.recarray)], ids=lambda v: type(v).__name__
)
def test_a_subclass_of_array_is_refused(value: Any) -> None:
    with pytest.raises(UnserializableValueError, match=type(value).__name__):
        CODEC.dumps(value)


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("V0", [2**40], b""),  # numpy would copy them one by one
        ("<U0", [2**62], b""),
        ("V", [2**40], b""),
        ("<i8", [2**40], b"12345678"),
        ("<i8", [-1], b""),
        ("<i8", [1] * 65, b"12345678"),
        ("<i8", [2**64] * 3_000, b"12345678"),
        ("<i8", [2**62, 0, 2**62], b""),
        ("g", [1], bytes(16)),
        ("O", [1], b"12345678"),
        ("i4,i4", [1], b"12345678"),
        ("V99999999999", [1], b""),
        ("M8[99999999999999999999D]", [1], b"12345678"),
        ([["a"], ["O"], [0], 8, False], [1], b"12345678"),
        ([["a", "b"], ["i4", "i4"], [0, 100], 8, False], [1], b"12345678"),
        ([["a", "a"], ["i4", "i4"], [0, 4], 8, False], [1], b"12345678"),
        ([["a"], ["i8"], [-4], 8, False], [1], b"12345678"),
        ([[], [], [], 0, False], [2**40], b""),
        (["i4", [2**40]], [1], b"1234"),
        (["i4", [0]], [2**40], b""),
        ([[1], ["i4"], [0], 4, False], [1], b"1234"),
    ],
    ids=str,
)
def test_a_record_that_claims_another_array_than_it_holds_is_corrupt(dtype: Any, shape: Any, data: bytes) -> None:
    payload = ormsgpack.packb([dtype, shape, False, data], option=ormsgpack.OPT_PASSTHROUGH_BIG_INT, default=large)
    body = ormsgpack.packb(ormsgpack.Ext(Kind.ARRAY, payload))
    with pytest.raises(CorruptRecordError):
        CODEC.loads(body + (len(body) << 8 | FORMAT).to_bytes(6, "big"))


def large(value: int) -> ormsgpack.Ext:
    return ormsgpack.Ext(Kind.INT, value.to_bytes(9, "big"))


def test_a_dtype_that_nests_for_ever_is_corrupt() -> None:
    dtype: Any = "i4"
    for _ in range(100):
        dtype = [[f"f{_}"], [dtype], [0], 4, False]
    with pytest.raises(CorruptRecordError, match="dtype nests too deep"):
        body = ormsgpack.packb(ormsgpack.Ext(Kind.ARRAY_SCALAR, ormsgpack.packb([dtype, b"1234"])))
        CODEC.loads(body + (len(body) << 8 | FORMAT).to_bytes(6, "big"))


def test_a_record_with_an_array_says_so_where_numpy_is_not_installed() -> None:
    program = """
import sys
sys.modules["numpy"] = None
from stepwell.codec import Codec, Registry
data = sys.stdin.buffer.read()
print(Codec(Registry(), lambda name, stored: name).loads(data))
Codec(Registry()).loads(data, "state")
"""
    data = CODEC.dumps({"a": [numpy.zeros(1, "f4")]})
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=False)
    assert done.stdout.decode().strip() == "{'a': ['numpy:ndarray']}"
    expected = "UnknownTypeError: state['a'][0] holds a numpy:ndarray that cannot be rebuilt: numpy is not installed."
    assert expected in done.stderr.decode()


def test_only_a_record_with_an_array_imports_numpy() -> None:
    program = """
import sys
from stepwell.codec import Codec, Registry
codec = Codec(Registry())
codec.copy({"a": [(1.5, {"b"})]})
print("numpy" in sys.modules)
print(codec.loads(sys.stdin.buffer.read()).dtype)
"""
    data = CODEC.dumps(numpy.zeros(1, "f4"))
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    assert done.stdout.split() == [b"False", b"float32"]
