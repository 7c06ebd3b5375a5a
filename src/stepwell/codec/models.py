"""Pydantic models, and langchain-core's messages and documents among them.

Here: what of a model is stored, and how it is rebuilt without validation. Not here: other classes (`objects`).
Rule kept: neither library is imported to write a value. A record can cause the import of two modules only, those in
`_LISTED`, whose classes are listed there by name and need no registry entry.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from stepwell.codec.containers import expect
from stepwell.codec.kinds import Kind, Refused, Unbuildable
from stepwell.codec.objects import NO_DEFAULT, fields_of, fit_fields, slots_of
from stepwell.codec.reach import is_model
from stepwell.codec.registry import Entry

_SPEAKERS: Final = ("AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage")
_LISTED: Final = {
    "langchain_core.messages": {*_SPEAKERS, *(f"{speaker}Chunk" for speaker in _SPEAKERS), "RemoveMessage"},
    "langchain_core.documents": {"Document"},
}
_OWN_SLOTS: Final = {"__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}


def listed_entry(cls: type[Any]) -> Entry | None:
    """Return the entry of a class in `_LISTED`, recognised in the module that is already imported."""
    for module, names in _LISTED.items():
        if cls.__name__ in names and getattr(sys.modules.get(module), cls.__name__, None) is cls:
            return Entry(f"{module}:{cls.__name__}", cls)
    return None


def listed_entry_by_name(name: str) -> Entry | None:
    """Return the entry a stored name of `_LISTED` leads to, importing its module if that has not happened."""
    module, _, member = name.partition(":")
    if member not in _LISTED.get(module, ()):
        return None
    try:
        cls = getattr(importlib.import_module(module), member, None)
    except ImportError:
        return None
    return Entry(name, cls) if isinstance(cls, type) and is_model(cls) else None


class ModelPlan:
    """How the instances of one pydantic model are taken apart and rebuilt."""

    kind = Kind.MODEL

    def __init__(self, cls: type[Any], name: str) -> None:
        if odd := sorted(slots_of(cls).keys() - _OWN_SLOTS):
            raise Refused(f": the model has slots of its own ({', '.join(odd)})")
        self.cls = cls
        self.name = name
        self._fields: dict[str, Any] = cls.model_fields
        self._names = frozenset(self._fields)
        self._open = cls.model_config.get("extra") == "allow"

    def dump(self, value: Any) -> list[Any]:
        """Return [name, fields, names of the fields that were given], with a fourth part for what is unusual."""
        held = value.__dict__
        given = value.__pydantic_fields_set__
        fields = held if held.keys() == self._names else {key: held[key] for key in held if key in self._names}
        rest: dict[str, Any] = {}
        if (extra := value.__pydantic_extra__) is not None and (extra or not self._open):
            rest["extra"] = extra
        if (private := value.__pydantic_private__) is not None or self.cls.__private_attributes__:
            rest["private"] = private
        if unset := sorted(self._names - held.keys()):
            rest["unset"] = unset
        parts = [self.name, fields, None if given == self._names else sorted(given)]
        return [*parts, rest] if rest else parts

    def load(self, fields: dict[str, Any], given: list[str] | None, rest: dict[str, Any]) -> Any:
        """Rebuild a model without validating it."""
        model = object.__new__(self.cls)
        extra = expect(rest.get("extra", {} if self._open else None), dict, type(None))
        given = list(fields) if given is None else expect(given, list)
        if fields.keys() != self._names:
            fields, extra = self._fitted(fields_of(fields), extra, expect(rest.get("unset", []), list))
        private = expect(rest.get("private", {}), dict, type(None))
        put = object.__setattr__
        put(model, "__dict__", fields)
        put(model, "__pydantic_fields_set__", set(given))
        put(model, "__pydantic_extra__", extra)
        put(model, "__pydantic_private__", self._with_gained_private(private))
        return model

    def _fitted(self, fields: dict[str, Any], extra: Any, unset: list[str]) -> tuple[dict[str, Any], Any]:
        if self._open:
            lost = {key: fields[key] for key in fields if key not in self._names}
            extra = {**lost, **(extra or {})}
            fields = {key: fields[key] for key in fields if key in self._names}
        gained = fit_fields(self.name, fields, self._names, unset, self._default)
        held = {**fields, **gained}
        return {key: held[key] for key in self._fields if key in held}, extra

    def _default(self, key: str) -> Any:
        field = self._fields[key]
        if field.is_required():
            return NO_DEFAULT
        if getattr(field, "default_factory_takes_validated_data", False):
            raise Unbuildable(self.name, {}, f"it was stored without {key!r}, whose default depends on other fields")
        return field.get_default(call_default_factory=True)

    def _with_gained_private(self, private: dict[str, Any] | None) -> dict[str, Any] | None:
        known = self.cls.__private_attributes__
        if private is None or not known:
            return private or None
        gained = {key: item.get_default() for key, item in known.items() if key not in private}
        return {**private, **{key: item for key, item in gained.items() if not _undefined(item)}}


def _undefined(value: Any) -> bool:
    return type(value).__name__ == "PydanticUndefinedType"
