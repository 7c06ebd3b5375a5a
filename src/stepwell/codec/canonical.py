"""Canonical bytes, for the digests of inputs and arguments.

Here: `canonical`. Not here: the digests themselves, and the sorting (`encode`).
Rule kept: same value, same bytes, in every process; types count, so 1, 1.0 and True differ. The order of an OrderedDict
is part of its value.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from stepwell.codec.codec import Codec
from stepwell.codec.registry import Registry


def canonical(value: Any, codec: Codec | None = None, path: str = "") -> bytes:
    """Return the canonical bytes of `value` under the types of `codec`; by default, those registered for the process.

    Raises `UnserializableValueError` as `Codec.dumps` does.
    """
    return (codec or _process_codec()).canonical(value, path)


@cache
def _process_codec() -> Codec:
    return Codec(Registry())
