"""Numpy arrays and array scalars.

Here: how they and their dtypes are written and read. Rule kept: numpy is imported only to read a record that holds an
array; a dtype is written only if what it is written as makes the same one on every machine, and the size an array
claims is checked against the bytes it has.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from typing import Any, Final

from stepwell.codec.containers import expect, expect_list
from stepwell.codec.kinds import Malformed, Refused, Unbuildable

_PLAIN: Final = re.compile(r"[<>|=]?[?a-zA-Z][0-9]{0,9}(\[[0-9]{0,9}[a-zA-Z]{1,2}\])?")
_VARYING: Final = "gG"  # longdouble: another number on another machine
_MOST_DIMENSIONS: Final = 64
_MOST_NESTED: Final = 16


def is_array(cls: type[Any]) -> bool:
    """Whether `cls` is exactly numpy's array."""
    return cls is getattr(sys.modules.get("numpy"), "ndarray", None)


def is_array_scalar(cls: type[Any]) -> bool:
    """Whether `cls` is one of numpy's own scalar types."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and cls.__module__ == "numpy" and issubclass(cls, numpy.generic)


def dump_array(value: Any, canonical: bool) -> list[Any]:
    """Return [dtype, shape, Fortran order, bytes]; canonically, the order in memory is no part of the value."""
    columns = bool(not canonical and value.flags.f_contiguous and not value.flags.c_contiguous)
    dtype = _dump_dtype(value.dtype)
    return [dtype, list(value.shape), columns, _without_gaps(value).tobytes("F" if columns else "C")]


def dump_scalar(value: Any) -> list[Any]:
    """Return [dtype, bytes]; of a text, which may end in zeros that its dtype does not count, [kind, text]."""
    if isinstance(value, str):
        return ["U", str.__str__(value)]
    if isinstance(value, bytes):
        return ["S", bytes.__getitem__(value, slice(None))]
    return [_dump_dtype(value.dtype), _without_gaps(value).tobytes()]


def _without_gaps(value: Any) -> Any:
    """Return the value of a structured dtype with zeros between its fields, where anything may stand."""
    if value.dtype.names is None:
        return value
    clean = _numpy(value).zeros(value.shape, value.dtype)
    clean[...] = value
    return clean


def load_array(payload: Any) -> Any:
    """Rebuild a writable array."""
    stored, shape, columns, data = expect_list(payload, 4)
    sizes = [expect(size, int) for size in expect(shape, list)]
    dtype = _load_dtype(stored, payload)
    fits = len(sizes) <= _MOST_DIMENSIONS and all(size >= 0 for size in sizes)
    if not fits or math.prod(sizes) * dtype.itemsize != len(expect(data, bytes)):
        raise Malformed("an array's shape does not fit its bytes")
    flat = _numpy(payload).ndarray(math.prod(sizes), dtype, data).copy()
    return flat.reshape(sizes, order="F" if expect(columns, bool) else "C")


def load_scalar(payload: Any) -> Any:
    """Rebuild an array scalar."""
    stored, data = expect_list(payload, 2)
    if stored in ("U", "S"):
        return _numpy(payload).str_(expect(data, str)) if stored == "U" else _numpy(payload).bytes_(expect(data, bytes))
    dtype = _load_dtype(stored, payload)
    if dtype.itemsize != len(expect(data, bytes)):
        raise Malformed("a scalar's type does not fit its bytes")
    return _numpy(payload).ndarray((), dtype, data).copy()[()]


def _dump_dtype(dtype: Any) -> Any:
    """Return a dtype as text; a structure as [names, dtypes, offsets, size, aligned]; its arrays as [dtype, shape]."""
    stored: Any = dtype.str
    if dtype.char in _VARYING:
        raise Refused(f": its dtype {dtype} is another one on another machine")
    if dtype.subdtype is not None:
        stored = [_dump_dtype(dtype.subdtype[0]), list(dtype.shape)]
    elif dtype.names is not None:
        fields = [dtype.fields[name] for name in dtype.names]
        parts = [_dump_dtype(field[0]) for field in fields], [field[1] for field in fields]
        stored = [list(dtype.names), *parts, dtype.itemsize, dtype.isalignedstruct]
    elif dtype.isbuiltin == 1 and _numpy(stored).dtype(stored).char != dtype.char:
        stored = dtype.char  # one of two C types of the same size
    if dtype.hasobject or dtype.metadata or not dtype.itemsize or not _alike(_loaded(stored), dtype):
        raise Refused(f": its dtype {dtype} is not a plain one")
    return stored


def _alike(made: Any, dtype: Any) -> bool:
    return bool(made == dtype and made.type is dtype.type and made.isalignedstruct == dtype.isalignedstruct)


def _loaded(stored: Any) -> Any:
    try:
        return _load_dtype(stored, stored)
    except (Malformed, TypeError, ValueError):
        return None


def _load_dtype(stored: Any, payload: Any, nested: int = 0) -> Any:
    if nested > _MOST_NESTED:
        raise Malformed("a dtype nests too deep")
    if type(stored) is list:
        dtype = _load_structure(stored, payload, nested + 1)
    elif _PLAIN.fullmatch(expect(stored, str)):
        dtype = _numpy(payload).dtype(stored)
    else:
        raise Malformed("not a plain dtype")
    if dtype.hasobject or not dtype.itemsize or dtype.char in _VARYING:
        raise Malformed("not a plain dtype")
    return dtype


def _load_structure(stored: list[Any], payload: Any, nested: int) -> Any:
    if len(stored) == 2:
        shape = tuple(expect(size, int) for size in expect(stored[1], list))
        return _numpy(payload).dtype((_load_dtype(stored[0], payload, nested), shape))
    names, dtypes, offsets, size, aligned = expect_list(stored, 2, 5)
    return _numpy(payload).dtype(
        {
            "names": [expect(name, str) for name in expect(names, list)],
            "formats": [_load_dtype(dtype, payload, nested) for dtype in expect(dtypes, list)],
            "offsets": [expect(offset, int) for offset in expect(offsets, list)],
            "itemsize": expect(size, int),
        },
        align=expect(aligned, bool),
    )


def _numpy(payload: Any) -> Any:
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        raise Unbuildable("numpy:ndarray", payload, "numpy is not installed") from error
