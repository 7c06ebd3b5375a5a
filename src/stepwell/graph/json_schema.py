"""JSON schemas of what a graph takes and returns, read off the annotations of its schemas.

Spelled as pydantic spells them, and made without it, so that a graph has the same schema wherever it is looked at. A
pydantic model describes itself. A type that JSON does not know is left open rather than guessed at.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections import abc
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal, Union, get_args, get_origin
from uuid import UUID

from typing_extensions import is_typeddict

from stepwell.graph.annotations import unwrap
from stepwell.graph.schema import Schema, class_hints, is_pydantic

Json = dict[str, Any]

_SCALARS: tuple[tuple[type, Json], ...] = (
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (str, {"type": "string"}),
    (bytes, {"type": "string", "format": "binary"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (date, {"type": "string", "format": "date"}),
    (time, {"type": "string", "format": "time"}),
    (timedelta, {"type": "string", "format": "duration"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (PurePath, {"type": "string", "format": "path"}),
    (Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
)
_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)


def json_schema(schema: Schema, title: str) -> Json:
    """Return the JSON schema of a run's input or output. `title` names it where the schema has no name of its own."""
    source = schema.source
    if is_pydantic(source):
        return dict(source.model_json_schema())
    found = _Definitions()
    if schema.is_root:
        return found.around({"title": title, **found.of(source)})
    shown = found.fields(source, [key for key in _hints(source) if key not in schema.managed], factories=True)
    return found.around({**shown, "title": source.__name__ if is_typeddict(source) else title})


def class_schema(source: Any) -> Json:
    """Return the JSON schema of a context schema, under the name of its class."""
    if is_pydantic(source):
        return dict(source.model_json_schema())
    found = _Definitions()
    if not _has_fields(source):
        return found.around(found.of(source))
    return found.around({**found.fields(source, list(_hints(source))), "title": source.__name__})


class _Definitions:
    """The classes met so far, each described once, under "$defs"."""

    def __init__(self) -> None:
        self._described: Json = {}

    def around(self, schema: Json) -> Json:
        """Return the schema with the definitions it refers to."""
        return {**schema, "$defs": self._described} if self._described else schema

    def fields(self, source: Any, keys: list[str], *, factories: bool = False) -> Json:
        """Return an object schema of a class with annotated fields."""
        hints = _hints(source)
        defaults = _defaults(source, factories)
        shown: Json = {"type": "object", "properties": {key: self._field(key, hints[key], defaults) for key in keys}}
        if required := [key for key in keys if key not in defaults and _is_required(source, key)]:
            shown["required"] = required
        if is_typeddict(source) and source.__doc__:
            shown["description"] = inspect.cleandoc(source.__doc__)
        return shown

    def _field(self, key: str, hint: Any, defaults: Mapping[str, Any]) -> Json:
        shown = self.of(hint)
        if "$ref" not in shown:
            shown = {"title": key.replace("_", " ").title(), **shown}
        return {**shown, "default": defaults[key]} if key in defaults else shown

    def of(self, hint: Any) -> Json:
        """Return the schema of one type hint."""
        hint, _ = unwrap(hint)
        origin, args = get_origin(hint), get_args(hint)
        if hint is None or hint is type(None):
            return {"type": "null"}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(arg) for arg in args]}
        if origin is Literal:
            return _choice(list(args))
        kind = origin or hint
        if kind is tuple:
            return self._tuple(args)
        if kind in _LISTS or kind in _SETS:
            items = {"type": "array", "items": self.of(args[0]) if args else {}}
            return {**items, "uniqueItems": True} if kind in _SETS else items
        if kind in _MAPPINGS:
            values = self.of(args[1]) if len(args) > 1 else {}
            return {"type": "object", "additionalProperties": values or True}
        return self._class(kind) if isinstance(kind, type) else {}

    def _tuple(self, args: tuple[Any, ...]) -> Json:
        if not args:
            return {"type": "array", "items": {}}
        if args[-1] is Ellipsis:
            return {"type": "array", "items": self.of(args[0])}
        items = [self.of(arg) for arg in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def _class(self, kind: type[Any]) -> Json:
        if not (_has_fields(kind) or is_pydantic(kind) or issubclass(kind, Enum)):
            return next((dict(shown) for known, shown in _SCALARS if issubclass(kind, known)), {})
        if kind.__name__ not in self._described:
            self._described[kind.__name__] = {}  # met again inside itself, it is referred to
            self._described[kind.__name__] = self._definition(kind)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def _definition(self, kind: type[Any]) -> Json:
        if is_pydantic(kind):
            shown = dict(kind.model_json_schema())
            self._described |= shown.pop("$defs", {})
            return shown
        if issubclass(kind, Enum):
            return {"title": kind.__name__, **_choice([member.value for member in kind])}
        return {**self.fields(kind, list(_hints(kind))), "title": kind.__name__}


def _has_fields(source: Any) -> bool:
    return is_typeddict(source) or dataclasses.is_dataclass(source)


def _hints(source: Any) -> dict[str, Any]:
    hints = class_hints(source)
    if dataclasses.is_dataclass(source):
        return {field.name: hints[field.name] for field in dataclasses.fields(source) if field.init}
    return {key: hint for key, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def _is_required(source: Any, key: str) -> bool:
    if is_typeddict(source):
        return key in source.__required_keys__
    if dataclasses.is_dataclass(source):
        field = next(field for field in dataclasses.fields(source) if field.name == key)
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        return missing or field.default is ...  # how pydantic is told that there is none
    return not hasattr(source, key)


def _may_be_none(hint: Any) -> bool:
    hint, _ = unwrap(hint)
    return hint is type(None) or type(None) in typing.get_args(hint)


def _defaults(source: Any, factories: bool) -> dict[str, Any]:
    if not dataclasses.is_dataclass(source):
        return {}
    found: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(source)}
    for field in dataclasses.fields(source) if factories else ():
        if field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
        elif _is_required(source, field.name) and _may_be_none(_hints(source)[field.name]):
            found[field.name] = None
    return {key: value for key, value in found.items() if _is_json(value)}


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return value is None or type(value) in (str, int, float, bool)


def _choice(values: list[Any]) -> Json:
    shown: Json = {"const": values[0]} if len(values) == 1 else {"enum": values}
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and (kind := kinds.pop()) in (str, int, float, bool):
        shown["type"] = next(known["type"] for scalar, known in _SCALARS if scalar is kind)
    return shown
