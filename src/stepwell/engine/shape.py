"""`CompiledGraph`: what can be known of a graph without running it. Nothing here reads a thread."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stepwell.engine.wiring import Config, Wired
from stepwell.graph.json_schema import class_schema, json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepwell.graph.channels import Channel
    from stepwell.plan.drawing import DrawnGraph


class Shape(Wired):
    """The shape of a compiled graph."""

    @property
    def channels(self) -> Mapping[str, Channel]:
        """The channels of the state, by key: which kind each is, and its reducer."""
        return MappingProxyType(dict(self.plan.channels))

    def get_graph(self, config: Config = None, *, xray: int | bool = False) -> DrawnGraph:
        """Return nodes and edges, to draw: `get_graph().draw_mermaid()`, `.draw_ascii()`, `.to_json()`.

        With `xray` graphs that are nodes are opened, as many levels deep as it says; True opens all.
        """
        from stepwell.plan.drawing.graph import drawable

        return drawable(*self.plan.drawn, xray)

    async def aget_graph(self, config: Config = None, *, xray: int | bool = False) -> DrawnGraph:
        """Do as `get_graph`."""
        return self.get_graph(config, xray=xray)

    def get_input_jsonschema(self, config: Config = None) -> dict[str, Any]:
        """Return the JSON schema of a run's input."""
        return json_schema(self.plan.input, f"{self.name}Input")

    def get_output_jsonschema(self, config: Config = None) -> dict[str, Any]:
        """Return the JSON schema of a run's output."""
        return json_schema(self.plan.output, f"{self.name}Output")

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the JSON schema of the context; None where the graph declares none."""
        return None if self.plan.context is None else class_schema(self.plan.context)
