"""A stored value whose class is not at hand, as the plain parts it was stored in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RawValue:
    """What `on_unknown_type="raw"` gives for a value that nothing listed can rebuild. It cannot be stored again."""

    type_name: str
    """The name its class is stored under."""
    parts: Any
