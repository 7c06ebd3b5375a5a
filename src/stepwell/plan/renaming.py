"""What `compile(name=, version=, aliases=, migrate=, on_change=)` says, checked against the graph it was said of.

The rule kept: an alias that could do nothing is a mistake, refused when the graph is compiled and not when a thread
needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from stepwell.errors import InvalidGraphError
from stepwell.ids import is_holdable
from stepwell.plan.tables import Changed

ON_CHANGE = ("ignore", "warn", "raise")


def changed(
    aliases: Mapping[str, str] | None,
    migrate: Callable[[Any, str], Any] | None,
    on_change: str | Callable[[Any], None],
    version: str,
    nodes: Collection[str],
    channels: Collection[str],
) -> Changed:
    """Return what the user says about state that other code stored. Raises InvalidGraphError."""
    if aliases is not None and not isinstance(aliases, Mapping):
        raise InvalidGraphError(f"aliases are written as {{old name: name now}}, not {aliases!r}")
    if migrate is not None and not callable(migrate):
        raise InvalidGraphError(f"migrate is a function (values, from_version) -> values, not {migrate!r}")
    if migrate is not None and not version:
        raise InvalidGraphError(
            "migrate= converts the state of other versions, so the graph needs one: compile(version=...)."
        )
    if not callable(on_change) and on_change not in ON_CHANGE:
        raise InvalidGraphError(f"on_change is one of {', '.join(ON_CHANGE)}, or a function, not {on_change!r}")
    for old, new in (aliases or {}).items():
        _check(old, new, nodes, channels)
    return Changed(_among(aliases, nodes), _among(aliases, channels), migrate, on_change)


def stored_text(given: object, what: str) -> str:
    """Return a name or version as every row of a thread will hold it. Raises InvalidGraphError."""
    if not isinstance(given, str):
        raise InvalidGraphError(f"{what} is text, not {given!r}: write {what}={str(given)!r}")
    if not is_holdable(given):
        raise InvalidGraphError(f"{what} holds a NUL or is not valid Unicode: {given!r}")
    return given


def _check(old: str, new: str, nodes: Collection[str], channels: Collection[str]) -> None:
    if new not in nodes and new not in channels:
        raise InvalidGraphError(
            f"The alias {old!r} leads to {new!r}, which is neither a node nor a key of the state. "
            "Aliases are written as {old name: name now}.",
            alias=old,
        )
    if not ((new in nodes and old not in nodes) or (new in channels and old not in channels)):
        raise InvalidGraphError(
            f"The alias {old!r} stands for {new!r}, but the graph still has a {old!r} itself.", alias=old
        )


def _among(aliases: Mapping[str, str] | None, names: Collection[str]) -> Mapping[str, str]:
    return MappingProxyType({old: new for old, new in (aliases or {}).items() if new in names and old not in names})
