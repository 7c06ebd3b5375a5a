"""Instances of registered classes: dataclasses, attrs and plain classes, named tuples, enums.

Here: what of an instance is stored, and how it is rebuilt from that. Not here: pydantic models (`models`), bytes
(`encode`, `decode`). Rule kept: neither direction calls a constructor, a property, a validator or `__setattr__`. What
is stored is what the instance holds; what a newer class has gained is filled from its defaults; what it has lost is
never dropped in silence.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from typing import Any, Final

from stepwell.codec import exceptions
from stepwell.codec.carried import carrier_of, slots_of
from stepwell.codec.containers import expect
from stepwell.codec.kinds import Kind, Malformed, Refused, Unbuildable
from stepwell.codec.reach import is_attrs, is_named_tuple

NO_DEFAULT: Final = object()
_NAMES: Final = frozenset({str})
_CACHED_HASH: Final = "_attrs_cached_hash"


class ObjectPlan:
    """How the instances of one class with fields are taken apart and rebuilt."""

    kind = Kind.OBJECT

    def __init__(self, cls: type[Any], name: str) -> None:
        self.cls = cls
        self.name = name
        self.names, self._defaults = _declared(cls)
        self._usual = self.names
        self._slots = slots_of(cls)
        self._has_dict = any("__dict__" in vars(base) for base in cls.__mro__)
        self._caches_hash = is_attrs(cls)
        self._carrier = carrier_of(cls)
        self.simple = self._has_dict and not self._slots and self._carrier is None
        self._check_buildable()

    def dump(self, value: Any) -> list[Any]:
        """Return [name, fields], with a third part for what is unusual about this instance."""
        if self.simple and value.__dict__.keys() == self._usual:
            return [self.name, value.__dict__]
        held = self.held(value)
        if self._has_dict and not set(map(type, held)) <= _NAMES:
            raise Refused(": the name of one of its attributes is no plain text")
        names = self.names
        if names is None:
            names = self._usual = frozenset(held)
        rest: dict[str, Any] = {}
        if more := {key: held[key] for key in held if key not in names}:
            rest["more"] = more
        if unset := sorted(key for key in names if key not in held):
            rest["unset"] = unset
        if self._carrier is not None:
            rest["base"] = self._carrier.take(value)
        fields = {key: held[key] for key in held if key in names}
        return [self.name, fields, rest] if rest else [self.name, fields]

    def held(self, value: Any) -> dict[str, Any]:
        """Return every attribute the instance itself holds."""
        held = dict(value.__dict__) if self._has_dict else {}
        for key, slot in self._slots.items():
            try:
                held[key] = slot.__get__(value)
            except AttributeError:
                continue
        if self._caches_hash and held.get(_CACHED_HASH) is not None:
            held[_CACHED_HASH] = None  # it is that of this process
        return held

    def parts(self, value: Any) -> dict[str, Any]:
        """Return every attribute of an instance, an exception's own among them."""
        return self.held(value) | (exceptions.parts(value) if isinstance(value, BaseException) else {})

    def load(self, fields: dict[str, Any], rest: dict[str, Any]) -> Any:
        """Rebuild an instance."""
        if self.names is None:
            fields_of(fields)
        elif fields.keys() != self.names:
            fields = self._fitted(fields_of(fields), expect(rest.get("unset", []), list))
        instance = self._rebuilt(fields, rest)
        if self.simple and not rest:
            instance.__dict__.update(fields)
            return instance
        for key, item in (*fields.items(), *expect(rest.get("more", {}), dict).items()):
            if key in self._slots:
                self._slots[key].__set__(instance, item)
            elif self._has_dict:
                instance.__dict__[expect(key, str)] = item
            else:
                raise Unbuildable(self.name, fields, f"the class has no room for the stored attribute {key!r}")
        return instance

    def _instance(self, content: Any) -> Any:
        """Make an instance without running any code of its class."""
        return object.__new__(self.cls) if self._carrier is None else self._carrier.make(self.cls, content)

    def _rebuilt(self, fields: dict[str, Any], rest: dict[str, Any]) -> Any:
        problem = "the built-in type it is built on is another"
        if (self._carrier is None) == ("base" in rest):
            raise Unbuildable(self.name, whole(fields, rest), problem)
        try:
            return self._instance(rest.get("base"))
        except (LookupError, TypeError, ValueError) as error:
            raise Unbuildable(self.name, whole(fields, rest), f"{problem} ({error})") from error

    def _check_buildable(self) -> None:
        if hasattr(self.cls, "__del__"):
            return
        try:
            self._instance(self._carrier and self._carrier.empty)
        except TypeError as error:
            raise Refused(f": {error}") from error

    def _fitted(self, fields: dict[str, Any], unset: list[str]) -> dict[str, Any]:
        assert self.names is not None
        fit = fit_fields(self.name, fields, self.names, unset, self._defaults)
        return {**fields, **fit}


def whole(fields: Any, rest: dict[str, Any]) -> Any:
    """Return all that is stored of an instance, for the hook for unknown types."""
    return {**fields, **rest.get("more", {}), "base": rest["base"]} if "base" in rest else fields


def fit_fields(
    name: str, fields: dict[str, Any], names: Iterable[str], unset: Iterable[str], default: Callable[[str], Any]
) -> dict[str, Any]:
    """Return the defaults of the fields a class has gained since `fields` were stored; fail if it has lost some."""
    if lost := [key for key in fields if key not in set(names)]:
        raise Unbuildable(name, fields, f"it was stored with {_listed(lost)}, which the class no longer has")
    gained = {key: default(key) for key in names if key not in fields and key not in unset}
    if missing := [key for key, item in gained.items() if item is NO_DEFAULT]:
        raise Unbuildable(name, fields, f"it was stored without {_listed(missing)}, for which the class has no default")
    return gained


def _listed(names: list[str]) -> str:
    return "the field " + repr(names[0]) if len(names) == 1 else "the fields " + ", ".join(map(repr, sorted(names)))


def _declared(cls: type[Any]) -> tuple[frozenset[str] | None, Callable[[str], Any]]:
    """Return the names of the declared fields (None: whatever an instance holds), and their defaults."""
    if is_attrs(cls):
        attributes = {attribute.name: attribute for attribute in cls.__attrs_attrs__}
        return frozenset(attributes), lambda key: _attrs_default(attributes[key].default)
    if dataclasses.is_dataclass(cls):
        fields = {field.name: field for field in dataclasses.fields(cls)}
        return frozenset(fields), lambda key: _dataclass_default(fields[key])
    return None, lambda key: NO_DEFAULT


def _dataclass_default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return NO_DEFAULT if field.default_factory is dataclasses.MISSING else field.default_factory()


def _attrs_default(default: Any) -> Any:
    factory = getattr(default, "factory", None)
    if factory is not None and type(default).__name__ == "Factory":
        return NO_DEFAULT if default.takes_self else factory()
    return NO_DEFAULT if getattr(default, "name", None) == "NOTHING" else default


class NamedTuplePlan:
    """How named tuples of one class are taken apart and rebuilt."""

    kind = Kind.NAMED_TUPLE

    def __init__(self, cls: type[Any], name: str) -> None:
        self.cls = cls
        self.name = name
        self._names: tuple[str, ...] = cls._fields

    def dump(self, value: Any) -> list[Any]:
        """Return [name, fields]."""
        if getattr(value, "__dict__", None):
            raise Refused(": it holds attributes besides its fields")
        return [self.name, dict(zip(self._names, tuple.__iter__(value), strict=True))]

    def load(self, fields: dict[str, Any], rest: dict[str, Any]) -> Any:
        """Rebuild a tuple."""
        defaults = self.cls._field_defaults
        if fields.keys() != set(self._names):
            fields_of(fields)
            gained = fit_fields(self.name, fields, self._names, (), lambda key: defaults.get(key, NO_DEFAULT))
            fields = {**fields, **gained}
        return tuple.__new__(self.cls, [fields[key] for key in self._names])


def plan_for(cls: type[Any], name: str) -> ObjectPlan | NamedTuplePlan:
    """Choose how instances of a registered class are written. Raises `Refused` if they cannot be without hooks."""
    return NamedTuplePlan(cls, name) if is_named_tuple(cls) else ObjectPlan(cls, name)


def load_member(cls: type[enum.Enum], type_name: str, member: str) -> enum.Enum:
    """Return an enum's member by its name, which runs no code of the enum."""
    found = cls._member_map_.get(expect(member, str))
    if found is None:
        raise Unbuildable(type_name, member, f"the enum has no member {member!r}")
    return found


def load_flag(cls: type[enum.Flag], type_name: str, value: int) -> enum.Flag:
    """Return a flag, or a combination of flags, by its value."""
    known = cls._value2member_map_.get(expect(value, int))
    if known is not None:
        return known  # type: ignore[return-value]
    try:
        return cls(value)
    except ValueError as error:
        raise Unbuildable(type_name, value, str(error)) from error


def split_payload(payload: Any, longest: int) -> list[Any]:
    """Check the frame of a typed payload: a list that begins with a type name."""
    if type(payload) is not list or not 2 <= len(payload) <= longest or type(payload[0]) is not str:
        raise Malformed("a type's name and content do not stand where they belong")
    return payload


def fields_of(part: Any) -> dict[str, Any]:
    """Check the fields of a stored object."""
    fields: dict[str, Any] = expect(part, dict)
    if not all(type(key) is str for key in fields):
        raise Malformed("a field's name is no text")
    return fields
