"""All keys of a graph's state, gathered from every schema it names, and the rule by which schemas share a key.

The first schema to declare a key decides its channel. A later one must declare the same kind of channel; a plain
annotation, which declares a LastValue, gives way to whatever was declared first.
"""

from __future__ import annotations

from typing import Any

from stepwell.errors import InvalidGraphError
from stepwell.graph.channels import Channel, LastValue
from stepwell.graph.schema import Schema, schema_of
from stepwell.graph.types import ROOT
from stepwell.ids import is_holdable


class StateKeys:
    """The channels, managed values and schemas of one graph."""

    def __init__(self) -> None:
        self.channels: dict[str, Channel] = {}
        self.managed: dict[str, str] = {}
        self.schemas: dict[Any, Schema] = {}

    def add(self, source: Any, *, allow_managed: bool = True) -> None:
        """Add the keys of a schema. Nothing is added where one of them does not agree."""
        if source in self.schemas:
            return
        schema = schema_of(source)
        if schema.managed and not allow_managed:
            raise InvalidGraphError(
                f"Invalid managed channels detected in {schema.name}: {', '.join(schema.managed)}. "
                "Managed channels are not permitted in Input/Output schema."
            )
        for key, channel in schema.channels.items():
            self._check_channel(key, channel)
        for key, name in schema.managed.items():
            if self.managed.get(key, name) != name or key in self.channels:
                raise InvalidGraphError(f"Managed value '{key}' already exists with a different type", key=key)
        self.schemas[source] = schema
        for key, channel in schema.channels.items():
            self.channels.setdefault(key, channel)
        self.managed.update(schema.managed)

    def _check_channel(self, key: str, channel: Channel) -> None:
        if key.startswith("__") and key.endswith("__") and key != ROOT:
            raise InvalidGraphError(f"Channel name '{key}' is reserved", key=key)
        if not is_holdable(key):
            raise InvalidGraphError(f"A channel name is valid Unicode without NUL, not {key!r}", key=key)
        if key in self.managed:
            raise InvalidGraphError(f"Channel '{key}' already exists with a different type", key=key)
        known = self.channels.get(key, channel)
        if known != channel and type(channel) is not LastValue:
            raise InvalidGraphError(f"Channel '{key}' already exists with a different type", key=key)
