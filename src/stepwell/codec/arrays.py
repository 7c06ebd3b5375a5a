"""Numpy arrays and array scalars.

Here: how they are written and read. Rule kept: numpy is imported only to read a record that holds an array; arrays of
Python objects and of structures are refused, and the size an array claims is checked against the bytes it has.
"""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

from stepwell.codec.containers import expect, expect_list
from stepwell.codec.kinds import Malformed, Refused, Unbuildable


def is_array(cls: type[Any]) -> bool:
    """Whether `cls` is exactly numpy's array."""
    return cls is getattr(sys.modules.get("numpy"), "ndarray", None)


def is_array_scalar(cls: type[Any]) -> bool:
    """Whether `cls` is one of numpy's own scalar types."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and cls.__module__ == "numpy" and issubclass(cls, numpy.generic)


def dump_array(value: Any) -> list[Any]:
    """Return [dtype, shape, Fortran order, bytes]."""
    columns = bool(value.flags.f_contiguous and not value.flags.c_contiguous)
    return [_dump_dtype(value.dtype), list(value.shape), columns, value.tobytes("F" if columns else "C")]


def dump_scalar(value: Any) -> list[Any]:
    """Return [dtype, bytes]."""
    return [_dump_dtype(value.dtype), value.tobytes()]


def load_array(payload: Any) -> Any:
    """Rebuild a writable array."""
    name, shape, columns, data = expect_list(payload, 4)
    sizes = [expect(size, int) for size in expect(shape, list)]
    dtype = _load_dtype(name, payload)
    if any(size < 0 for size in sizes) or math.prod(sizes) * dtype.itemsize != len(expect(data, bytes)):
        raise Malformed("an array's shape does not fit its bytes")
    flat = _numpy(payload).ndarray(math.prod(sizes), dtype, data).copy()
    return flat.reshape(sizes, order="F" if expect(columns, bool) else "C")


def load_scalar(payload: Any) -> Any:
    """Rebuild an array scalar."""
    name, data = expect_list(payload, 2)
    dtype = _load_dtype(name, payload)
    if dtype.itemsize != len(expect(data, bytes)):
        raise Malformed("a scalar's type does not fit its bytes")
    return _numpy(payload).ndarray((), dtype, data)[()]


def _dump_dtype(dtype: Any) -> str:
    text = str(dtype.str)
    if dtype.hasobject or dtype.fields is not None or dtype.subdtype is not None or _numpy(text).dtype(text) != dtype:
        raise Refused(f": its dtype {dtype} is not a plain one")
    return text


def _load_dtype(name: Any, payload: Any) -> Any:
    text = expect(name, str)
    if len(text) > 32 or "," in text or "O" in text:
        raise Malformed("not a plain dtype")
    return _numpy(payload).dtype(text)


def _numpy(payload: Any) -> Any:
    try:
        return importlib.import_module("numpy")
    except ImportError as error:
        raise Unbuildable("numpy:ndarray", payload, "numpy is not installed") from error
