"""Bytes to values.

Here: the call into ormsgpack and one loader for each kind of extension. Not here: what each type stores, and naming the
faulty leaf (`faults`). Rule kept: a class is reached only through the registry; a built-in kind that cannot be read is
malformed, a listed type that cannot be rebuilt is `Unbuildable`; depth is bounded before the next native call.
"""

from __future__ import annotations

import enum
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import ormsgpack
from ormsgpack import unpackb

from stepwell.codec import arrays, models
from stepwell.codec.containers import CONTAINERS, FACTORIES, PATTERN, expect, expect_list, load_pairs
from stepwell.codec.kinds import FREE_LEVELS, MAX_LEVELS, Kind, Malformed, NestsTooDeep, Refused, Unbuildable
from stepwell.codec.listed import listed_entry_by_name
from stepwell.codec.nesting import stored_levels
from stepwell.codec.objects import fields_of, load_flag, load_member, plan_for, split_payload, whole
from stepwell.codec.reach import is_model, is_named_tuple
from stepwell.codec.registry import Entry, Registry
from stepwell.codec.scalars import SCALARS

OnUnknownType = Callable[[str, Any], Any]
Loader = Callable[[bytes], Any]

_ANY_KEYS: Final = ormsgpack.OPT_NON_STR_KEYS
_CHEAP_LEVELS: Final = 8
_MAX_NATIVE: Final = MAX_LEVELS * (_CHEAP_LEVELS + 2)


class _Call(threading.local):
    """What the calls in progress on this thread share: the depth, and the error that ormsgpack would swallow."""

    depth = 0
    native = 0
    error: BaseException | None = None


class Decoder:
    """Unpack values with the types of one registry."""

    def __init__(self, registry: Registry, on_unknown_type: OnUnknownType | None) -> None:
        self._registry = registry
        self._on_unknown_type = on_unknown_type
        self._call = _Call()
        self._hook = self._load
        self._plans: dict[tuple[int, str], Callable[..., Any]] = {}
        self._loaders: dict[int, Loader] = {row.kind: _guarded(row.load) for row in SCALARS}
        self._loaders |= {row.kind: self._container(row.load) for row in CONTAINERS}
        self._loaders |= {
            Kind.MAP: self._container(load_pairs),
            Kind.DEFAULTDICT: self._container(self._load_defaultdict),
            Kind.PATTERN: self._container(self._load_pattern),
            Kind.ARRAY: self._container(arrays.load_array),
            Kind.ARRAY_SCALAR: self._container(arrays.load_scalar),
            Kind.ENUM: self._container(self._load_enum),
            Kind.FLAG: self._container(self._load_enum),
            Kind.OBJECT: self._container(self._load_object),
            Kind.NAMED_TUPLE: self._container(self._load_named_tuple),
            Kind.MODEL: self._container(self._load_model),
            Kind.CUSTOM: self._container(self._load_custom),
        }

    def unpack(self, data: bytes | memoryview) -> Any:
        """Unpack one value. Raises what really went wrong, wherever it did."""
        try:
            return unpackb(data, ext_hook=self._hook, option=_ANY_KEYS)
        except ValueError as error:
            trouble = error
        raise self._real(trouble)

    def unpack_inner(self, data: bytes) -> Any:
        """Unpack the content of a typed value, one level down."""
        call = self._call
        above, native = call.depth, call.native
        call.depth = above + 1
        try:
            if above >= FREE_LEVELS:
                call.native = native + stored_levels(data, _CHEAP_LEVELS)
            if above >= MAX_LEVELS or call.native > _MAX_NATIVE:
                raise NestsTooDeep("it nests too deep")
            return unpackb(data, ext_hook=self._hook, option=_ANY_KEYS)
        except ValueError as error:
            trouble = error
        finally:
            call.depth, call.native = above, native
        raise self._real(trouble)

    def reload(self, entry: Entry, data: bytes) -> Any:
        """Load what a custom dump has just given."""
        assert entry.load is not None
        return entry.load(self.unpack_inner(data))

    def _load(self, kind: int, data: bytes) -> Any:
        """Rebuild what one extension holds; a value nothing can rebuild goes to `on_unknown_type`, if there is one."""
        try:
            loader = self._loaders.get(kind)
            if loader is None:
                raise Malformed(f"extension code {kind} is not part of the format")
            return loader(data)
        except BaseException as error:
            if isinstance(error, Unbuildable) and self._on_unknown_type is not None:
                return self._converted(error)
            self._keep(error)
            raise

    def _converted(self, error: Unbuildable) -> Any:
        assert self._on_unknown_type is not None
        try:
            return self._on_unknown_type(error.type_name, error.payload)
        except BaseException as own:
            self._keep(own)
            raise

    def _keep(self, error: BaseException) -> None:
        """Remember the first error below this call: ormsgpack drops what a call-back raises."""
        if self._call.error is None:
            self._call.error = error

    def _real(self, trouble: ValueError) -> BaseException:
        error, self._call.error = self._call.error, None
        return error or (trouble if isinstance(trouble, Malformed) else Malformed(str(trouble)))

    def _container(self, load: Callable[[Any], Any]) -> Loader:
        rebuild, unpack = _guarded(load), self.unpack_inner
        return lambda data: rebuild(unpack(data))

    def _entry(self, name: str, payload: Any) -> Entry:
        entry = self._registry.of_name(name) or listed_entry_by_name(name)
        if entry is None:
            raise Unbuildable(name, payload)
        return entry

    def _plan(self, kind: Kind, name: str, payload: Any, fits: Callable[[type[Any]], bool], make: Any) -> Any:
        """Return the plan of a listed class, made once. A class of another family cannot rebuild what is stored."""
        plan = self._plans.get((kind, name))
        if plan is None:
            entry = self._entry(name, payload)
            if entry.custom or not fits(entry.cls):
                raise Unbuildable(name, payload, f"it was stored as {_FAMILY[kind]}, which the class no longer is")
            try:
                plan = self._plans[kind, name] = make(entry.cls, name)
            except Refused as error:
                raise Unbuildable(name, payload, f"the class cannot be rebuilt{error.reason}") from error
        return plan

    def _load_object(self, payload: Any) -> Any:
        name, fields, *more = split_payload(payload, 3)
        rest = fields_of(more[0]) if more else {}
        plan = self._plan(
            Kind.OBJECT, name, whole(expect(fields, dict), rest) if rest else fields, _has_fields, plan_for
        )
        return plan.load(expect(fields, dict), rest)

    def _load_named_tuple(self, payload: Any) -> Any:
        name, fields = split_payload(payload, 2)
        return self._plan(Kind.NAMED_TUPLE, name, fields, is_named_tuple, plan_for).load(expect(fields, dict), {})

    def _load_model(self, payload: Any) -> Any:
        name, fields, given, *rest = split_payload(payload, 4)
        plan = self._plan(Kind.MODEL, name, fields, is_model, models.ModelPlan)
        return plan.load(expect(fields, dict), given, fields_of(rest[0]) if rest else {})

    def _load_enum(self, payload: Any) -> Any:
        name, member = split_payload(payload, 2)
        cls = self._entry(name, member).cls
        if type(member) is str and issubclass(cls, enum.Enum):
            return load_member(cls, name, member)
        if type(member) is int and issubclass(cls, enum.Flag):
            return load_flag(cls, name, member)
        raise Unbuildable(name, member, "it was stored as an enum's member, which the class no longer fits")

    def _load_custom(self, payload: Any) -> Any:
        name, stored = split_payload(payload, 2)
        entry = self._entry(name, stored)
        if entry.load is None:
            raise Unbuildable(name, stored, "it was stored by a dump= the type no longer has")
        try:
            return entry.load(stored)
        except Exception as error:
            raise Unbuildable(name, stored, f"its load() raised {error!r}") from error

    def _load_defaultdict(self, payload: Any) -> Any:
        name, items = expect_list(payload, 2)
        if name is None:
            return defaultdict(None, expect(items, dict))
        if (factory := FACTORIES.get(expect(name, str))) is None:
            if (entry := self._registry.of_name(name)) is None:
                raise Unbuildable(name, items)
            factory = entry.cls
        return defaultdict(factory, expect(items, dict))

    def _load_pattern(self, payload: Any) -> Any:
        if PATTERN.cls not in self._registry:
            raise Unbuildable("re:Pattern", payload)
        return PATTERN.load(payload)


_FAMILY: Final = {
    Kind.OBJECT: "an object with fields",
    Kind.NAMED_TUPLE: "a named tuple",
    Kind.MODEL: "a pydantic model",
}


def _has_fields(cls: type[Any]) -> bool:
    return not (is_model(cls) or is_named_tuple(cls) or issubclass(cls, enum.Enum))


def _guarded(load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make whatever a built-in loader trips over one error: the payload does not have the shape of its kind."""

    def guarded(payload: Any) -> Any:
        try:
            return load(payload)
        except (Malformed, Unbuildable):
            raise
        except Exception as error:
            raise Malformed(f"{type(error).__name__}: {error}") from error

    return guarded
