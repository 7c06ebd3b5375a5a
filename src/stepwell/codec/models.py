"""Pydantic models.

Here: what of a model is stored, and how it is rebuilt without validation. Not here: other classes (`objects`). Rule
kept: pydantic is never imported, and nothing a model's author wrote is called.
"""

from __future__ import annotations

from typing import Any, Final

from stepwell.codec.carried import slots_of
from stepwell.codec.containers import expect
from stepwell.codec.kinds import Kind, Refused, Unbuildable
from stepwell.codec.objects import NO_DEFAULT, fields_of, fit_fields

_OWN_SLOTS: Final = {"__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}


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
        rest: dict[str, Any] = {}
        if (extra := value.__pydantic_extra__) is not None and (extra or not self._open):
            rest["extra"] = extra
        if (private := value.__pydantic_private__) is not None or self.cls.__private_attributes__:
            rest["private"] = private
        if held.keys() != self._names:
            held, odd = self._told_apart(held)
            rest |= odd
        parts = [self.name, held, None if given == self._names else sorted(given)]
        return [*parts, rest] if rest else parts

    def _told_apart(self, held: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the fields, and what else a model holds (cached properties) or lacks."""
        fields = {key: item for key, item in held.items() if key in self._names}
        more = {key: item for key, item in held.items() if key not in self._names}
        odd = {"more": more, "unset": sorted(self._names - held.keys())}
        return fields, {key: part for key, part in odd.items() if part}

    def load(self, fields: dict[str, Any], given: list[str] | None, rest: dict[str, Any]) -> Any:
        """Rebuild a model without validating it."""
        model = object.__new__(self.cls)
        extra = expect(rest.get("extra", {} if self._open else None), dict, type(None))
        given = list(fields) if given is None else expect(given, list)
        if fields.keys() != self._names:
            fields, extra = self._fitted(fields_of(fields), extra, expect(rest.get("unset", []), list))
        private = expect(rest.get("private", {}), dict, type(None))
        put = object.__setattr__
        put(model, "__dict__", {**fields, **fields_of(rest["more"])} if "more" in rest else fields)
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
