"""Which leaf made a write or a load fail.

Here: the walks that name the exact path, taken only after a failure. Not here: anything on the way of a value that can
be stored. Rule kept: a path reads like the Python expression that reaches the leaf; nothing in this file recurses, so
depth and cycles cannot hurt it.
"""

from __future__ import annotations

import enum
from collections import ChainMap, deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping, MappingView
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import ormsgpack

from stepwell.codec.kinds import MAX_LEVELS, NATIVE_LEVELS, Kind, Malformed, NestsTooDeep, Refused, TooDeep, Unbuildable
from stepwell.codec.objects import ObjectPlan
from stepwell.codec.reach import is_model, is_named_tuple
from stepwell.codec.registry import shown_name
from stepwell.errors import CodecError, CorruptRecordError, StepwellError, UnknownTypeError, UnserializableValueError

if TYPE_CHECKING:
    from stepwell.codec.decode import Decoder
    from stepwell.codec.encode import Encoder

_ROOT: Final = "value"
_LONGEST: Final = 160
_DEEPEST: Final = NATIVE_LEVELS + MAX_LEVELS
_CYCLE: Final = ": it contains itself"
_HINTS: Final[dict[type[Any], str]] = {
    type: ": classes are code",
    Awaitable: ": it has not been waited for",
    Iterator: ": reading it uses it up, so store list(...) of it",
    MappingView: ": it is a window on a dict, so store list(...) of it",
}
_Child = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class _Open:
    """A value whose parts are being looked at."""

    value: Any
    path: str
    parts: Iterator[_Child]


# -- writing ----------------------------------------------------------------------------------------------------------


def write_error(encoder: Encoder, value: Any, path: str, error: Exception) -> Exception:
    """Describe why `value` cannot be written: the path of the leaf, its type, and what is wrong with it."""
    if isinstance(error, StepwellError | MemoryError):
        return error
    found_path, leaf, reason = _find(encoder, value, path) or (path or _ROOT, value, f": {error}")
    return UnserializableValueError(path=_shown(found_path), type_name=shown_name(type(leaf)), reason=reason)


def _find(encoder: Encoder, value: Any, path: str) -> tuple[str, Any, str] | None:
    """Walk depth first to the first value that fails although all its parts are sound."""
    sound: set[int] = set()
    deepest: tuple[str, Any] = (path or _ROOT, value)
    open_values: list[_Open] = []
    entering: list[_Child] = [(path, value)]
    while entering or open_values:
        if not entering:
            part = next(open_values[-1].parts, None)
            if part is None:
                done = open_values.pop()
                if (reason := _own_fault(encoder, done.value)) is not None:
                    return done.path or _ROOT, done.value, reason
                sound.add(id(done.value))
                continue
            entering.append(part)
        at, item = entering.pop()
        if id(item) in sound:
            continue
        if any(above.value is item for above in open_values):
            return at, item, _CYCLE
        if (reason := _refusal(encoder, item)) is not None:
            return at or _ROOT, item, reason
        if len(open_values) >= _DEEPEST:
            return at, item, TooDeep().reason
        parts = list(_parts(encoder, item, at))
        if parts and len(at) > len(deepest[0]):
            deepest = at, item
        open_values.append(_Open(item, at, iter(parts)))
    return _too_deep(encoder, value, deepest)


def _too_deep(encoder: Encoder, value: Any, deepest: tuple[str, Any]) -> tuple[str, Any, str] | None:
    try:
        encoder.pack(value)
    except TooDeep as error:
        return *deepest, error.reason
    except RecursionError:
        return *deepest, ": it nests too deep for the call stack it is written from"
    except Exception:
        return None
    return None


def _refusal(encoder: Encoder, value: Any) -> str | None:
    """Return why a value's type is refused, whatever it holds; None if it is not."""
    if type(value) in (dict, list, str, bytes, float, bool, type(None)):
        return None
    try:
        encoder.dumper(type(value))
    except Refused as error:
        return error.reason or _hint(value)
    return None


def _hint(value: Any) -> str:
    """Return what is likely to be wrong with a value of a type that nobody has registered."""
    for kind, hint in _HINTS.items():
        if isinstance(value, kind):
            return hint
    return ""


def _own_fault(encoder: Encoder, value: Any) -> str | None:
    """Return why a value whose parts are sound cannot be written; "" if it can, or if only its depth is wrong."""
    if type(value) in (dict, list, tuple):
        return None
    try:
        encoder.pack(value)
    except (TooDeep, RecursionError):
        return None
    except Refused as error:
        return error.reason
    except Exception as error:
        return f": {error!r}"
    return None


def _parts(encoder: Encoder, value: Any, path: str) -> Iterable[_Child]:
    """Return the parts of a value, each with its path."""
    cls = type(value)
    if isinstance(value, enum.Enum) or encoder.takes_over(cls):
        return []
    if is_model(cls):
        return _model_parts(value, path)
    if is_named_tuple(cls):
        return [(_dot(path, name), item) for name, item in zip(cls._fields, value, strict=True)]
    if isinstance(value, Mapping) and not isinstance(value, ChainMap):
        return _mapping_parts(value, path)
    if isinstance(value, list | tuple | deque):
        return [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        return [(f"{path}{{{index}}}", item) for index, item in enumerate(value)]
    if isinstance(value, ChainMap):
        return [(f"{_dot(path, 'maps')}[{index}]", item) for index, item in enumerate(value.maps)]
    if isinstance(value, slice):
        return [(_dot(path, name), getattr(value, name)) for name in ("start", "stop", "step")]
    plan = encoder.plans.get(cls)
    return (
        [(_dot(path, name), item) for name, item in plan.parts(value).items()] if isinstance(plan, ObjectPlan) else []
    )


def _model_parts(value: Any, path: str) -> list[_Child]:
    groups = (value.__dict__, value.__pydantic_extra__ or {}, value.__pydantic_private__ or {})
    return [(_dot(path, name), item) for group in groups for name, item in group.items()]


def _mapping_parts(value: Mapping[Any, Any], path: str) -> list[_Child]:
    keys = [(f"{path}.keys()[{index}]", key) for index, key in enumerate(value) if type(key) is not str]
    return keys + [(_at(path, key), item) for key, item in value.items()]


def _dot(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _at(path: str, key: Any) -> str:
    if not path and type(key) is str and key.isidentifier():
        return key
    return f"{path}[{repr(key) if _is_short(key) else f'<{type(key).__name__}>'}]"


def _is_short(key: Any) -> bool:
    if type(key) is int:
        return key.bit_length() < 128
    return type(key) in (bool, float, type(None)) or (type(key) in (str, bytes) and len(key) < _LONGEST)


def _shown(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…"


# -- loading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """An extension that is not rebuilt."""

    kind: int
    data: bytes


def load_error(decoder: Decoder, data: bytes, path: str, error: Exception) -> CodecError | CorruptRecordError:
    """Describe why bytes cannot be loaded: the path of the leaf, and what is wrong with it."""
    too_deep = isinstance(error, NestsTooDeep | RecursionError)
    where, cause = (None if too_deep else _find_stored(decoder, data, path)) or (path, error)
    shown = _shown(where or _ROOT)
    if isinstance(cause, Unbuildable):
        return UnknownTypeError(_message(cause, shown), type_name=cause.type_name, path=shown)
    reason = "it nests too deep to be loaded here" if isinstance(cause, RecursionError) else str(cause)
    return CorruptRecordError(record=shown, reason=reason)


def _message(cause: Unbuildable, path: str) -> str | None:
    """Return what to say instead of the error's own sentence, for a type that is listed."""
    if not cause.problem:
        return None
    hint = "Restore what the class had, or give the saver on_unknown_type= to convert it."
    return f"{path} holds a {cause.type_name} that cannot be rebuilt: {cause.problem}. {hint}"


def _find_stored(decoder: Decoder, data: bytes, path: str) -> tuple[str, Exception] | None:
    """Walk the stored form to the first extension that fails although all its parts load."""
    try:
        parts = [(path, _opened(data))]
    except ValueError:
        return None
    found: tuple[str, Exception] | None = None
    steps = 0
    while parts and steps < _DEEPEST * 1000:
        steps += 1
        at, item = parts.pop()
        if not isinstance(item, _Raw):
            parts.extend(reversed(_plain_parts(item, at)))
            continue
        failure = _failure(decoder, item)
        if failure is not None:
            found = at, failure
            parts = list(reversed(_stored_parts(item, at)))
    return found


def _failure(decoder: Decoder, item: _Raw) -> Exception | None:
    try:
        decoder.unpack(ormsgpack.packb(ormsgpack.Ext(item.kind, item.data)))
    except (Malformed, Unbuildable) as error:
        return error
    except Exception:
        return None
    return None


def _opened(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_Raw, option=ormsgpack.OPT_NON_STR_KEYS)


def _plain_parts(item: Any, path: str) -> list[_Child]:
    if type(item) is dict:
        return _mapping_parts(item, path)
    return [(f"{path}[{index}]", part) for index, part in enumerate(item)] if type(item) is list else []


def _stored_parts(item: _Raw, path: str) -> list[_Child]:
    """Return the parts of a stored value, each with the path it has in the value it would become."""
    try:
        payload = _opened(item.data)
    except ValueError:
        return []
    if item.kind == Kind.MAP or item.kind == Kind.ORDERED_DICT:
        return _pair_parts(payload, path)
    if type(payload) is list and item.kind in (Kind.DEQUE, Kind.DEFAULTDICT, Kind.CUSTOM):
        return [(path, part) for part in payload[1:]]
    if type(payload) is list and item.kind in (Kind.OBJECT, Kind.NAMED_TUPLE, Kind.MODEL):
        groups = [payload[1:2], [part for rest in payload[2:] if type(rest) is dict for part in rest.values()]]
        fields = [group for part in groups for group in part if type(group) is dict]
        return [(_dot(path, str(name)), part) for group in fields for name, part in group.items()]
    if item.kind in (Kind.SET, Kind.FROZENSET) and type(payload) is list:
        return [(f"{path}{{{index}}}", part) for index, part in enumerate(payload)]
    return _plain_parts(payload, path)


def _pair_parts(payload: Any, path: str) -> list[_Child]:
    flat = payload if type(payload) is list else []
    keys = [(f"{path}.keys()[{index}]", key) for index, key in enumerate(flat[::2])]
    return keys + [(_at(path, key), part) for key, part in zip(flat[::2], flat[1::2], strict=False)]
