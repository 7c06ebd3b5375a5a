"""Values to bytes.

Here: the one call into ormsgpack that packs plain state, the call-back for every other type, and the slower ways taken
only when that call refuses. Not here: what each type stores (`scalars`, `containers`, `objects`, `models`, `arrays`),
and naming the faulty leaf (`faults`). Rule kept: a plain str-keyed state costs one `packb`. ormsgpack converts a few
types in silence; each is caught before the bytes leave.
"""

from __future__ import annotations

import enum
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import ormsgpack
from ormsgpack import Ext, packb

from stepwell.codec import arrays, models
from stepwell.codec.containers import CONTAINERS, FACTORY_NAMES, PATTERN, Container, pairs
from stepwell.codec.kinds import FREE_LEVELS, MAX_LEVELS, NATIVE_LEVELS, Kind, Refused, TooDeep
from stepwell.codec.listed import listed_entry
from stepwell.codec.nesting import holds_buffer, levels
from stepwell.codec.objects import NamedTuplePlan, ObjectPlan, plan_for
from stepwell.codec.reach import is_model
from stepwell.codec.registry import Entry, Registry
from stepwell.codec.scalars import SCALARS, Scalar

Dumper = Callable[[Any], Any]

_EXACT: Final = (
    ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
)
_LOWERED: Final = frozenset({dict, list, str, bytearray, memoryview})
_NATIVE_KEYS: Final[frozenset[type[Any]]] = frozenset({str, int, float, bool, bytes, type(None)})


class _Call(threading.local):
    """What the calls in progress on this thread share: the depth, and the error that ormsgpack would swallow."""

    depth = 0
    error: BaseException | None = None
    verifying = False


class Encoder:
    """Pack values with the types of one registry. `ordered` sorts what has no order of its own, for digests."""

    def __init__(self, registry: Registry, reload: Callable[[Entry, bytes], Any], ordered: bool = False) -> None:
        self._registry = registry
        self._reload = reload
        self._ordered = ordered
        self._call = _Call()
        self._option = _EXACT | (ormsgpack.OPT_SORT_KEYS if ordered else 0)
        self._hook = self._default
        self.plans: dict[type[Any], ObjectPlan | NamedTuplePlan | models.ModelPlan] = {}
        self._dumpers: dict[type[Any], Dumper] = {row.cls: _scalar(row) for row in SCALARS}
        self._dumpers |= {row.cls: self._container(row) for row in CONTAINERS}
        self._dumpers[defaultdict] = self._dump_defaultdict
        if ordered:
            self._dumpers |= {set: self._ordered_set(Kind.SET), frozenset: self._ordered_set(Kind.FROZENSET)}

    def pack(self, value: Any) -> bytes:
        """Pack one value. Raises what really went wrong, wherever it did."""
        try:
            data = packb(value, self._hook, self._option)
        except TypeError:
            data = b""
        # Without one of msgpack's three binary headers among its bytes, nothing in `data` was a bytearray.
        if data and not ((0xC4 in data or 0xC5 in data or 0xC6 in data) and holds_buffer(value)):
            return data
        return self._pack_lowered(value)

    def pack_inner(self, value: Any) -> bytes:
        """Pack the content of a typed value, one level down."""
        call = self._call
        above = call.depth
        call.depth = above + (1 if above < FREE_LEVELS else max(1, levels(value) - 1))
        try:
            if call.depth > MAX_LEVELS:
                raise TooDeep
            return self.pack(value)
        finally:
            call.depth = above

    def dumper(self, cls: type[Any]) -> Dumper:
        """Return how instances of exactly `cls` are written. Raises `Refused`."""
        found = self._dumpers.get(cls)
        if found is None:
            found = self._dumpers[cls] = self._made(cls)
        return found

    def takes_over(self, cls: type[Any]) -> bool:
        """Whether instances of `cls` are written by a dump function of their own."""
        entry = self._registry.of_class(cls)
        return entry is not None and entry.custom

    def _default(self, value: Any) -> Any:
        try:
            return (self._dumpers.get(type(value)) or self.dumper(type(value)))(value)
        except BaseException as error:
            if self._call.error is None:
                self._call.error = error
            raise

    def _raise_swallowed(self) -> None:
        error, self._call.error = self._call.error, None
        if error is not None:
            raise error

    def _pack_lowered(self, value: Any) -> bytes:
        """Pack again with what msgpack cannot hold replaced: first keeping int keys native, then no keys but str."""
        self._raise_swallowed()
        if not self._ordered:
            try:
                return packb(self._lower(value, _NATIVE_KEYS), self._hook, self._option | ormsgpack.OPT_NON_STR_KEYS)
            except TypeError:
                self._raise_swallowed()
        try:
            return packb(self._lower(value, frozenset({str})), self._hook, self._option)
        except TypeError:
            self._raise_swallowed()
            raise

    def _lower(self, value: Any, native: frozenset[type[Any]], level: int = 0) -> Any:
        kind = type(value)
        if level >= NATIVE_LEVELS and (kind is list or kind is dict):
            raise TooDeep
        if kind is list:
            return [self._lower(item, native, level + 1) if type(item) in _LOWERED else item for item in value]
        if kind is dict:
            return self._lower_dict(value, native, level)
        if kind is bytearray or (kind is str and not _encodable(value)):
            return self._dumpers[kind](value)
        if kind is memoryview:
            raise Refused(": it is a window on memory that belongs to another object")
        return value

    def _lower_dict(self, value: dict[Any, Any], native: frozenset[type[Any]], level: int) -> Any:
        plain = set(map(type, value)) <= native
        if plain and (len(native) > 1 or all(map(_encodable, value))):
            below = level + 1
            lower = self._lower
            return {k: lower(item, native, below) if type(item) in _LOWERED else item for k, item in value.items()}
        return Ext(Kind.MAP, self.pack_inner(self._pairs(value)))

    def _pairs(self, value: dict[Any, Any]) -> list[Any]:
        if not self._ordered:
            return pairs(value)
        return [part for pair in sorted(value.items(), key=lambda pair: self.pack(pair[0])) for part in pair]

    def _container(self, row: Container) -> Dumper:
        kind, dump, pack = int(row.kind), row.dump, self.pack_inner
        return lambda value: Ext(kind, pack(dump(value)))

    def _ordered_set(self, kind: Kind) -> Dumper:
        return lambda value: Ext(kind, self.pack_inner(sorted(value, key=self.pack)))

    def _dump_defaultdict(self, value: defaultdict[Any, Any]) -> Any:
        factory = value.default_factory
        name = None if factory is None else FACTORY_NAMES.get(factory) if callable(factory) else None
        if name is None and factory is not None:
            entry = self._registry.of_class(factory) if isinstance(factory, type) else None
            if entry is None:
                shown = getattr(factory, "__qualname__", type(factory).__qualname__)
                raise Refused(f": its default factory {shown} is neither a built-in type nor a registered one")
            name = entry.name
        return Ext(Kind.DEFAULTDICT, self.pack_inner([name, dict(value)]))

    def _made(self, cls: type[Any]) -> Dumper:
        """Choose how instances of a class that is met for the first time are written."""
        entry = self._registry.of_class(cls) or listed_entry(cls)
        if entry is None:
            return self._unlisted(cls)
        if entry.custom:
            return self._custom(entry)
        if issubclass(cls, enum.Enum):
            return self._flag(entry.name) if issubclass(cls, enum.Flag) else _member(entry.name)
        if cls is PATTERN.cls:
            return self._container(PATTERN)
        plan = models.ModelPlan(cls, entry.name) if is_model(cls) else plan_for(cls, entry.name)
        self.plans[cls] = plan
        kind, dump, pack = int(plan.kind), plan.dump, self.pack_inner
        return lambda value: Ext(kind, pack(dump(value)))

    def _unlisted(self, cls: type[Any]) -> Dumper:
        if arrays.is_array(cls):
            return lambda value: Ext(Kind.ARRAY, self.pack_inner(arrays.dump_array(value, self._ordered)))
        if arrays.is_array_scalar(cls):
            return lambda value: Ext(Kind.ARRAY_SCALAR, self.pack_inner(arrays.dump_scalar(value)))
        raise Refused

    def _flag(self, name: str) -> Dumper:
        return lambda value: Ext(Kind.FLAG, self.pack([name, value._value_]))

    def _custom(self, entry: Entry) -> Dumper:
        def dump(value: Any) -> Any:
            data = self._dump_custom(entry, value)
            self._verify(entry, value, data)
            return Ext(Kind.CUSTOM, self.pack_inner([entry.name, ormsgpack.Fragment(data)]))

        return dump

    def _dump_custom(self, entry: Entry, value: Any) -> bytes:
        assert entry.dump is not None
        try:
            stored = entry.dump(value)
        except Exception as error:
            raise Refused(f": its dump() raised {error!r}") from error
        return self.pack_inner(stored)

    def _verify(self, entry: Entry, value: Any, data: bytes) -> None:
        """Load what was just dumped, so that a value which cannot come back fails at the write, not at the resume."""
        if self._call.verifying:
            return
        self._call.verifying = True
        try:
            restored = self._reload(entry, data)
            same = type(restored) is type(value)
            same = same and (_equal(restored, value) or self._dump_custom(entry, restored) == data)
        except Exception as error:
            raise Refused(f": what its dump() gave does not load: {error!r}") from error
        finally:
            self._call.verifying = False
        if not same:
            raise Refused(": what its dump() gave loads as a different value")


def _scalar(row: Scalar) -> Dumper:
    kind, dump = int(row.kind), row.dump
    return lambda value: Ext(kind, dump(value))


def _member(name: str) -> Dumper:
    known: dict[str, Any] = {}

    def dump(value: enum.Enum) -> Any:
        member = value._name_
        if member not in known:
            known[member] = Ext(Kind.ENUM, packb([name, member]))
        return known[member]

    return dump


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _equal(restored: Any, value: Any) -> bool:
    try:
        return bool(restored == value)
    except Exception:
        return False
