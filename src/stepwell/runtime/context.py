"""The run's `context`, made what the graph's context schema says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def coerce_context(schema: Any, context: Any) -> Any:
    """Return a dict as the dataclass or pydantic model the schema names; anything else as it is."""
    if schema is None or not isinstance(context, Mapping):
        return context
    if dataclasses.is_dataclass(schema) or hasattr(schema, "model_validate"):
        return schema(**context)
    return context
