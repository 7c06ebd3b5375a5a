"""The closed set of types a codec may write and rebuild.

Here: `Registry` (immutable, made from the schemas of one graph), `register_type` (the process-wide opt-in) and the
names types are stored under. Not here: which types a schema reaches (`reach`), how an instance becomes bytes (`encode`,
`objects`, `models`). Rule kept: a name in a record leads to a class only through these tables. Nothing is imported, and
no name means two classes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from stepwell.codec.reach import generic_parts, reachable
from stepwell.errors import DuplicateTypeError
from stepwell.ids import home_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered type. Without `dump` and `load` its fields are stored and it is rebuilt without calling it."""

    name: str
    cls: type[Any]
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None

    @property
    def custom(self) -> bool:
        """Whether the class brings its own dump and load."""
        return self.dump is not None


def type_name(cls: type[Any]) -> str:
    """Return the name a class is stored under: "module:qualname", and the arguments of a pydantic generic."""
    parts = generic_parts(cls)
    if parts is None:
        return f"{home_of(cls)}:{cls.__qualname__}"
    origin, args = parts
    return f"{type_name(origin)}[{', '.join(type_name(a) if isinstance(a, type) else repr(a) for a in args)}]"


def shown_name(cls: type[Any]) -> str:
    """Return the name a person reads in a message: built-ins without their module."""
    return cls.__qualname__ if cls.__module__ == "builtins" else type_name(cls)


class _Table:
    """Name to entry and class to entry, kept one to one."""

    def __init__(self, entries: tuple[Entry, ...] = ()) -> None:
        self.by_name: dict[str, Entry] = {}
        self.by_class: dict[type[Any], Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        held = self.by_name.get(entry.name)
        if held is not None and held.cls is not entry.cls and not _redefined(held.cls, entry.cls):
            raise DuplicateTypeError(type_name=entry.name)
        known = self.by_class.get(entry.cls)
        if known is not None and known.name != entry.name:
            raise DuplicateTypeError(
                f"{shown_name(entry.cls)} is already registered as {known.name!r}; one class has one name.",
                type_name=entry.name,
            )
        self.by_name[entry.name] = entry
        self.by_class[entry.cls] = entry


def _redefined(old: type[Any], new: type[Any]) -> bool:
    """Whether a notebook cell (or a REPL) ran the same class statement again."""
    return old.__module__ == new.__module__ == "__main__" and old.__qualname__ == new.__qualname__


_process = _Table()
_process_lock = threading.Lock()


class Registry:
    """A closed, immutable set of types, plus whatever `register_type` has opened for the whole process.

    The standard library's values, langchain-core's messages and documents, and numpy's arrays need no entry.
    """

    __slots__ = ("_table",)

    def __init__(self, entries: tuple[Entry, ...] = ()) -> None:
        self._table = _Table(entries)

    @classmethod
    def from_schemas(cls, *schemas: Any) -> Registry:
        """Collect every type the annotations of `schemas` reach, through any typing construct."""
        return cls().with_schemas(*schemas)

    def with_schemas(self, *schemas: Any) -> Registry:
        """Return a registry that also lists what `schemas` reach."""
        return self._with(reachable(*schemas))

    def with_types(self, *types: type[Any]) -> Registry:
        """Return a registry that also lists `types` and what their annotations reach. Raises `DuplicateTypeError`."""
        return self._with((*types, *reachable(*types)))

    def with_those_of(self, other: Registry) -> Registry:
        """Return a registry that also lists what the other one lists. Raises `DuplicateTypeError`."""
        return self._with(other)

    def _with(self, types: Iterable[type[Any]]) -> Registry:
        wanted = dict.fromkeys(types)
        new = tuple(Entry(type_name(cls), cls) for cls in wanted if cls not in self._table.by_class)
        return Registry((*self._table.by_name.values(), *new))

    def of_class(self, cls: type[Any]) -> Entry | None:
        """Return the entry instances of exactly `cls` are written with. What the process registered comes first."""
        entry = _process.by_class.get(cls)
        if entry is None:
            return self._table.by_class.get(cls)
        held = self._table.by_name.get(entry.name)
        if held is not None and held.cls is not cls:
            raise DuplicateTypeError(type_name=entry.name)
        return entry

    def of_name(self, name: str) -> Entry | None:
        """Return the entry a stored name leads to, with the hooks of its class wherever they were registered."""
        held = self._table.by_name.get(name)
        if held is None:
            return _process.by_name.get(name)
        return _process.by_class.get(held.cls, held)

    def names(self) -> tuple[str, ...]:
        """Return the names this registry lists, without the process-wide ones, in the order they were found."""
        return tuple(self._table.by_name)

    def __iter__(self) -> Iterator[type[Any]]:
        return iter(self._table.by_class)

    def __contains__(self, cls: object) -> bool:
        return cls in self._table.by_class or cls in _process.by_class

    def __repr__(self) -> str:
        return f"Registry({', '.join(self.names())})"


@overload
def register_type(
    cls: type[T],
    *,
    name: str | None = None,
    dump: Callable[[T], Any] | None = None,
    load: Callable[[Any], T] | None = None,
) -> type[T]: ...


@overload
def register_type(
    *,
    name: str | None = None,
    dump: Callable[[Any], Any] | None = None,
    load: Callable[[Any], Any] | None = None,
) -> Callable[[type[T]], type[T]]: ...


def register_type(
    cls: type[Any] | None = None,
    *,
    name: str | None = None,
    dump: Callable[[Any], Any] | None = None,
    load: Callable[[Any], Any] | None = None,
) -> Any:
    """Allow a type in the state of every graph of this process; also a decorator.

    `dump` turns an instance into supported values, `load` turns those back; both or neither. Each write of such an
    instance is loaded again and compared, so a `load` that cannot read what `dump` wrote fails at the write. `name` is
    what records hold: set it to keep old records readable after the class was moved. Raises `DuplicateTypeError` if the
    name belongs to another class.
    """
    if cls is None:
        return lambda decorated: register_type(decorated, name=name, dump=dump, load=load)
    if not isinstance(cls, type):
        raise TypeError(f"register_type takes a class, not {cls!r}")
    if (dump is None) != (load is None):
        raise TypeError(f"register_type({shown_name(cls)}): give both dump= and load=, or neither")
    with _process_lock:
        _process.add(Entry(name or type_name(cls), cls, dump, load))
    return cls
