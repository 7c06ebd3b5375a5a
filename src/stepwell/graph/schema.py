"""What a state schema declares and how a node's input is built from it: TypedDict, object, pydantic or root value.

A schema is read once, when the graph is built. The rule kept: building an input from stored values never validates and
never copies the values; values are validated where they are written, by `validate`, and only pydantic does.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from typing_extensions import is_typeddict

from stepwell.errors import InvalidGraphError
from stepwell.graph.annotations import channel_of
from stepwell.graph.channels import Channel
from stepwell.graph.declared import type_text
from stepwell.graph.managed import Managed
from stepwell.graph.types import MISSING, ROOT
from stepwell.ids import home_of


class Schema:
    """A view of the state: which keys it has, and how they become one value for a node.

    This class is the plain one: a dict with the keys that have values. Make schemas with `schema_of`.
    """

    is_root: ClassVar[bool] = False
    validates: ClassVar[bool] = False
    """Whether `validate` may change or refuse a value: False lets the engine skip it."""

    def __init__(self, source: Any, annotations: Mapping[str, Any]) -> None:
        declared = {key: channel_of(annotation, key) for key, annotation in annotations.items()}
        self.source = source
        """What the user passed: a class, or the type of a root value."""
        self.channels: dict[str, Channel] = {k: c for k, c in declared.items() if isinstance(c, Channel)}
        self.managed: dict[str, str] = {k: m.name for k, m in declared.items() if isinstance(m, Managed)}
        self.keys: tuple[str, ...] = tuple(self.channels)
        self.whole = False
        self.key = ROOT
        """The channel that holds the value, where it is one without keys."""

    def over(self, channels: Collection[str]) -> Self:
        """Return this schema for a graph with these channels. Seeing all of them makes `build` a plain copy."""
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound.whole = set(self.keys) == set(channels)
        return bound

    def build(self, values: Mapping[str, Any], managed: Mapping[str, Any] | None = None) -> Any:
        """Return the input of a node: the keys of this schema that have a value, in a value of its own.

        `managed` gives the managed values by state key.
        """
        return dict(values) if self.whole and not managed else self._present(values, managed)

    def validate(self, base: Mapping[str, Any], key: str, value: Any) -> Any:
        """Return `value` as the field `key` of a state with the values `base` would hold it."""
        return value

    def validate_input(self, value: Any, base: Mapping[str, Any] | None = None) -> Any:
        """Return the input of a run as a mapping of keys to the values to write, or as it is if it is no such value.

        `base` are the thread's values so far, if any.
        """
        from stepwell.graph.updates import items_of

        items = items_of(value, self.keys)
        return value if items is None else dict(items)

    def _present(self, values: Mapping[str, Any], managed: Mapping[str, Any] | None) -> dict[str, Any]:
        found = dict(values) if self.whole else {key: values[key] for key in self.keys if key in values}
        if self.managed and managed:
            found.update((key, managed[key]) for key in self.managed if key in managed)
        return found

    @property
    def name(self) -> str:
        """The schema's `module.qualname`: the graph id of a graph compiled without a name."""
        if isinstance(self.source, type) and not typing.get_origin(self.source):
            return f"{home_of(self.source)}.{self.source.__qualname__}"
        return type_text(self.source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class RootSchema(Schema):
    """A state that is one value without keys."""

    is_root = True

    def __init__(self, source: Any) -> None:
        super().__init__(source, {ROOT: source})
        if self.managed:
            raise InvalidGraphError(
                f"A managed value cannot be the whole state: {source!r} not allowed in this position"
            )

    def build(self, values: Mapping[str, Any], managed: Mapping[str, Any] | None = None) -> Any:
        return values.get(self.key, MISSING)

    def validate_input(self, value: Any, base: Mapping[str, Any] | None = None) -> Any:
        return value


class ObjectSchema(Schema):
    """A dataclass, or any class with annotations that is called with its keys. Absent keys take its defaults."""

    def build(self, values: Mapping[str, Any], managed: Mapping[str, Any] | None = None) -> Any:
        return self.source(**self._present(values, managed))


def schema_of(source: Any) -> Schema:
    """Return the schema that a class, or the type of a root value, declares."""
    if not is_schema_class(source):
        if isinstance(source, str) or not (isinstance(source, type) or typing.get_origin(source) or source is Any):
            raise TypeError(f"A state schema is a class or a type, not {source!r}")
        return RootSchema(source)
    if is_pydantic(source):
        from stepwell.graph.pydantic_schema import PydanticSchema

        return PydanticSchema(source)
    hints = class_hints(source)
    if dataclasses.is_dataclass(source):
        fields = [field.name for field in dataclasses.fields(source) if field.init]
        return ObjectSchema(source, {name: hints[name] for name in fields})
    keys = {name: hint for name, hint in hints.items() if name != "__slots__" and not _is_class_variable(hint)}
    return (Schema if is_typeddict(source) else ObjectSchema)(source, keys)


def is_schema_class(hint: Any) -> bool:
    """Return whether a type hint is a class whose annotations are the keys of a state."""
    if not isinstance(hint, type) or typing.get_origin(hint) is not None:
        return False
    if is_typeddict(hint) or dataclasses.is_dataclass(hint) or is_pydantic(hint):
        return True
    return any(inspect.get_annotations(cls) for cls in hint.__mro__[:-1])


def is_pydantic(cls: Any) -> bool:
    """Return whether `cls` is a pydantic model class, without importing pydantic."""
    return isinstance(cls, type) and hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_fields")


def class_hints(source: type[Any]) -> dict[str, Any]:
    """Return the class's annotations, resolved, or raise InvalidGraphError naming what cannot be."""
    try:
        return typing.get_type_hints(source, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidGraphError(
            f"The annotations of {source.__qualname__} cannot be resolved: {error}. "
            "Define the schema and what it names at module level, or leave out `from __future__ import annotations`.",
            schema=source.__qualname__,
        ) from error


def _is_class_variable(hint: Any) -> bool:
    return hint is ClassVar or typing.get_origin(hint) is ClassVar
