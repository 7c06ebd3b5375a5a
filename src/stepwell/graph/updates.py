"""From an object a user returned to the keys it updates: dicts, pydantic models, dataclasses, annotated objects.

Which of the keys a graph has, and what a `Command` means besides, is the superstep layer's. The rule kept, as users of
LangGraph know it: an object updates the keys it carries; of a pydantic model, the fields that were set, and those that
differ from a default of None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepwell.graph.schema import is_pydantic, is_schema_class
from stepwell.graph.types import MISSING

Items = tuple[tuple[str, Any], ...]


def items_of(value: Any, keys: Iterable[str]) -> Items | None:
    """Return the (key, value) pairs among `keys` that `value` updates, or None if it is no such value.

    A dict may also hold other keys; they are left out.
    """
    if isinstance(value, dict):
        known = keys if isinstance(keys, set | frozenset | dict) else frozenset(keys)
        return tuple((key, item) for key, item in value.items() if key in known)
    if not is_schema_class(type(value)):
        return None
    return tuple((key, item) for key in keys if (item := _updated(value, key)) is not MISSING)


def _updated(value: Any, key: str) -> Any:
    """Return the value the object gives `key`, or MISSING where it says nothing about it."""
    item = getattr(value, key, MISSING)
    if item is not None or not is_pydantic(type(value)):
        return item
    field = type(value).model_fields.get(key)
    default_is_none = field is not None and field.default is None
    return MISSING if default_is_none and key not in value.model_fields_set else item
