"""From one annotation of a state schema to the channel, or the managed value, it declares.

`Annotated[T, channel]` declares that channel, `Annotated[T, reducer]` a folded one, anything else a LastValue. The rule
kept: a reducer that cannot be called with (value, write) is refused here, before any graph runs with it.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import ReadOnly

from stepwell.errors import InvalidGraphError
from stepwell.graph.channels import BinaryOperatorAggregate, Channel, LastValue
from stepwell.graph.managed import Managed

_QUALIFIERS = (Required, NotRequired, ReadOnly)


def unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the bare type of an annotation and all metadata around it, innermost first."""
    metadata: tuple[Any, ...] = ()
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            metadata = (*annotation.__metadata__, *metadata)
            annotation = annotation.__origin__
        elif origin in _QUALIFIERS:
            annotation = get_args(annotation)[0]
        else:
            return annotation, metadata


def channel_of(annotation: Any, key: str | None = None) -> Channel | Managed:
    """Return what the annotation of a key declares. Raises InvalidGraphError, naming the key, for a bad reducer."""
    typ, metadata = unwrap(annotation)
    if (managed := _managed(typ, metadata)) is not None:
        return managed
    for item in metadata:
        if isinstance(item, Channel):
            return item.typed(typ)
        if isinstance(item, type) and issubclass(item, Channel):
            return item(typ)
    if metadata and callable(metadata[-1]):
        _check_reducer(metadata[-1], key)
        return BinaryOperatorAggregate(typ, metadata[-1])
    return LastValue(typ)


def _managed(typ: Any, metadata: tuple[Any, ...]) -> Managed | None:
    for item in metadata:
        if isinstance(item, Managed):
            return item
    if get_origin(typ) in (Union, types.UnionType):
        found = (_managed(*unwrap(arg)) for arg in get_args(typ))
        return next((managed for managed in found if managed is not None), None)
    return None


def _check_reducer(reducer: Callable[..., Any], key: str | None) -> None:
    try:
        signature = inspect.signature(reducer)
    except (ValueError, TypeError):
        return  # a builtin that does not tell its parameters, such as max
    try:
        signature.bind(None, None)
    except TypeError:
        where = "" if key is None else f" At key {key!r}."
        raise InvalidGraphError(
            f"Invalid reducer signature. Expected (a, b) -> c. Got {signature}.{where}", reducer=reducer, key=key
        ) from None
