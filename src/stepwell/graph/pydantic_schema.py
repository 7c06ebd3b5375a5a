"""A pydantic model as state schema. pydantic is reached through the user's class, never imported at import time.

A node reads an instance that was not validated again; a written field is validated alone, with its field validators.
Validators of the whole model run on the input of a run, not on single fields: what two fields must fulfil together may
not hold between the write of the one and of the other.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from typing import Any

from stepwell.graph.schema import Schema, class_hints
from stepwell.graph.types import MISSING
from stepwell.graph.updates import items_of


class PydanticSchema(Schema):
    """A pydantic model class."""

    validates = True

    def __init__(self, source: Any) -> None:
        super().__init__(source, _field_annotations(source))
        self._aliased = frozenset(
            name for name, field in source.model_fields.items() if field.alias or field.validation_alias
        )

    def build(self, values: Mapping[str, Any], managed: Mapping[str, Any] | None = None) -> Any:
        return self._instance(self._present(values, managed))

    def _instance(self, fields: dict[str, Any]) -> Any:
        """Return an instance with these fields as they are, and the defaults of the others."""
        if not self._aliased:
            return self.source.model_construct(**fields)
        plain = {name: value for name, value in fields.items() if name not in self._aliased}
        instance = self.source.model_construct(_fields_set=set(fields), **plain)
        instance.__dict__.update((name, value) for name, value in fields.items() if name in self._aliased)
        return instance

    def validate(self, base: Mapping[str, Any], key: str, value: Any) -> Any:
        if key not in self.source.model_fields:
            return value
        fields = dict(self._instance(self._present(base, None)).__dict__)
        return _field_validator(self.source).validate_assignment(fields, key, value)[0][key]

    def validate_input(self, value: Any, base: Mapping[str, Any] | None = None) -> Any:
        if isinstance(value, self.source):
            return dict(items_of(value, self.keys) or ())
        items = items_of(value, self.keys)
        if items is None:
            return value
        given = dict(items)
        if base:
            return {key: self.validate(base, key, item) for key, item in given.items()}
        model = self.source.model_validate({**self._initials(), **self._by_alias(value, given)})
        wanted = given.keys() | (model.model_fields_set - self.channels_with_initials)
        return {key: getattr(model, key) for key in self.keys if key in wanted}

    def _by_alias(self, value: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Validation looks fields up by alias; a dict may spell them either way, an object has their names."""
        if not self._aliased:
            return given
        return {**value} if isinstance(value, dict) else given

    def _initials(self) -> dict[str, Any]:
        return {key: initial for key, c in self.channels.items() if (initial := c.initial()) is not MISSING}

    @functools.cached_property
    def channels_with_initials(self) -> frozenset[str]:
        """The keys that have a value before anything is written."""
        return frozenset(self._initials())


def _field_annotations(source: Any) -> dict[str, Any]:
    """Return the annotation of each field as written, so that reducers in it are seen."""
    try:
        hints = typing.get_type_hints(source, include_extras=True)
    except (NameError, TypeError):  # names pydantic found in the function that defines the class
        hints = {name: field.rebuild_annotation() for name, field in source.model_fields.items()}
    if missing := [name for name in source.model_fields if name not in hints]:
        hints = {**class_hints(source), **{name: source.model_fields[name].rebuild_annotation() for name in missing}}
    return {name: hints[name] for name in source.model_fields}


@functools.lru_cache(maxsize=256)
def _field_validator(source: Any) -> Any:
    """Return a validator that assigns single fields in a dict of them: the model's, without what judges the whole."""
    from pydantic_core import SchemaValidator

    schema, definitions = source.__pydantic_core_schema__, []
    if schema["type"] == "definitions":
        definitions, schema = schema["definitions"], schema["schema"]
    if schema["type"] == "definition-ref":
        schema = next(item for item in definitions if item.get("ref") == schema["schema_ref"])
    schema = _within(schema, "model")
    fields = _assignable(schema["schema"])
    if definitions:
        fields = {"type": "definitions", "schema": fields, "definitions": definitions}
    return SchemaValidator(fields, schema.get("config"))


def _within(schema: Any, kind: str) -> Any:
    """Return the schema of this kind inside the validators around it."""
    while schema["type"] != kind:
        schema = schema["schema"]
    return schema


def _assignable(schema: Any) -> Any:
    """Return the fields of a model, with the validators right around them, as none of them were frozen."""
    if schema["type"] != "model-fields":
        return {**schema, "schema": _assignable(schema["schema"])}
    fields = {name: {k: v for k, v in field.items() if k != "frozen"} for name, field in schema["fields"].items()}
    return {**schema, "fields": fields}
