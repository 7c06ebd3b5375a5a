"""How many bytes of a body are whose: channel by channel, without decoding a value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ormsgpack

from stepwell.superstep import body as layout
from stepwell.superstep.lifecycle import SUCCEEDED


def channel_sizes(opened: layout.Opened) -> Counter[str]:
    """Return the bytes of values and writes that a checkpoint's body holds itself."""
    sizes: Counter[str] = Counter()
    for outcome in opened.outcomes:
        if len(outcome) > 4:
            sizes.update(_writes(outcome[3]))
    for key, (kind, payload) in opened.channels.items():
        if kind == layout.FULL:
            sizes[key] += len(payload)
        elif kind == layout.SNAPSHOT:
            sizes[key] += len(payload[2])
        elif kind == layout.DELTA:
            sizes[key] += sum(map(len, payload[5]))
    return sizes


def record_sizes(kind: str, body: bytes) -> Counter[str]:
    """Return the bytes of writes that a record of an outcome holds."""
    return _writes(ormsgpack.unpackb(body, option=ormsgpack.OPT_NON_STR_KEYS)[1]) if kind == SUCCEEDED else Counter()


def _writes(writes: Any) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for key, data in writes:
        sizes[key] += len(data)
    return sizes
