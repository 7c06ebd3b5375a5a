"""How many bytes of a body are whose: channel by channel, without decoding a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import ormsgpack

from stepwell.superstep import blobs, body as layout
from stepwell.superstep.compression import plain
from stepwell.superstep.lifecycle import SUCCEEDED

Weight = Callable[[Any], int]
"""Of bytes in a body, or of what stands for bytes that are stored apart."""


def channel_sizes(opened: layout.Opened, weight: Weight) -> Counter[str]:
    """Return the bytes of values and writes that a checkpoint's body holds itself."""
    sizes: Counter[str] = Counter()
    for outcome in opened.outcomes:
        if len(outcome) > 4:
            sizes.update(_writes(outcome[3], weight))
    for key, (kind, payload) in opened.channels.items():
        if kind == layout.FULL:
            sizes[key] += weight(payload)
        elif kind == layout.SNAPSHOT:
            sizes[key] += weight(payload[2])
        elif kind == layout.DELTA:
            parts = payload[2] if len(payload) > 2 else ()
            sizes[key] += sum(weight(part[0] if type(part) is list else part) for part in parts)
    return sizes


def record_sizes(kind: str, body: bytes, weight: Weight) -> Counter[str]:
    """Return the bytes of writes that a record of an outcome holds."""
    if kind != SUCCEEDED:
        return Counter()
    parts = ormsgpack.unpackb(plain(body), ext_hook=blobs.reference, option=ormsgpack.OPT_NON_STR_KEYS)
    return _writes(parts[1], weight)


def _writes(writes: Any, weight: Weight) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for key, data in writes:
        sizes[key] += weight(data)
    return sizes
