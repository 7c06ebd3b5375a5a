"""Values as JSON: what JSON has is shown as it is, everything else as `{"$type": name, "$value": parts}`.

A value is shown from its stored form, so it looks the same with the graph's classes at hand and without, and no code
of theirs runs. Not here: where values come from. The rule: nothing is left out, and nothing looks like what it is not.
"""

from __future__ import annotations

import math
from collections import ChainMap, deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from stepwell.codec import Codec, Registry
from stepwell.codec.registry import Entry, shown_name
from stepwell.errors import CodecError
from stepwell.graph.approval import ApprovalRequest, Decision

TYPE: Final = "$type"
VALUE: Final = "$value"
_OWN: Final = "stepwell:"
"""How the names begin under which Stepwell's own types are stored."""
_MOST_BITS: Final = 4096
"""Larger integers are shown in hex: in decimal they take time that grows with their square."""


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A stored value whose class is not at hand: the name it is stored under, and its parts."""

    type_name: str
    parts: Any


class _Own(Registry):
    """Knows Stepwell's own types, and none that a program has opened for its process with `register_type`."""

    __slots__ = ()

    def of_name(self, name: str) -> Entry | None:
        return super().of_name(name) if name.startswith(_OWN) else None


def opaque_codec() -> Codec:
    """Return a codec that reads every sound record: values of classes become `Opaque`, but for Stepwell's own."""
    return Codec(_Own(), Opaque)


class Renderer:
    """Shows the values of one graph."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._opaque = opaque_codec()

    def json(self, value: Any) -> Any:
        """Return the value as JSON. What the graph cannot store is shown as text."""
        try:
            return as_json(self._opaque.loads(self._codec.dumps(value)))
        except CodecError:
            return as_json(value)


def as_json(value: Any) -> Any:
    """Return a decoded value as JSON."""
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if type(value) is int:
        return value if value.bit_length() <= _MOST_BITS else _typed("int", hex(value))
    if type(value) is float:
        return value if math.isfinite(value) else _typed("float", str(value))
    if isinstance(value, Opaque):
        return _typed(value.type_name, as_json(value.parts))
    if type(value) in (list, tuple, deque):
        return [as_json(item) for item in value]
    if type(value) in (set, frozenset):
        return [as_json(item) for item in sorted(value, key=repr)]
    if isinstance(value, Mapping) and not isinstance(value, ChainMap):
        return _mapping(value)
    if isinstance(value, ApprovalRequest | Decision):  # classes of ours that every codec reads
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return _typed(f"stepwell:{type(value).__name__}", {name: as_json(part) for name, part in parts.items()})
    return _typed(shown_name(type(value)), _parts(value))


def _mapping(value: Mapping[Any, Any]) -> Any:
    if all(type(key) is str for key in value) and TYPE not in value:
        return {key: as_json(item) for key, item in value.items()}
    return _typed("dict", [[as_json(key), as_json(item)] for key, item in value.items()])


def _parts(value: Any) -> Any:
    """Return what is inside a value of a type that JSON does not have."""
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(type(value), "model_fields"):  # a langchain-core message, the one class that needs no registry
        return as_json(dict(value.__dict__))
    return str(value)


def _typed(name: str, value: Any) -> dict[str, Any]:
    return {TYPE: name, VALUE: value}
