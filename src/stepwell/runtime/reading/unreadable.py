"""Values that cannot be read, kept as the bytes they are: to show, edit and leave behind a poisoned checkpoint.

A run never meets one: what a node is given is read strictly. The rule: whoever looks into one gets the error that
reading it raised, and it cannot be stored again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import InvalidUpdateError
from stepwell.graph.channel import overwritten
from stepwell.plan.tables import Plan
from stepwell.superstep.outcome import Write


class Unreadable:
    """A stored value that could not be read: its bytes are `data`, and looking into it raises `error`."""

    __slots__ = ("data", "error", "path")

    def __init__(self, path: str, data: bytes, error: Exception) -> None:
        self.path = path
        """The channel, or what else the value is."""
        self.data = data
        self.error = error

    def _refuse(self, *_: Any) -> Any:
        raise self.error

    __bool__ = __len__ = __getitem__ = __contains__ = __call__ = _refuse

    def __iter__(self) -> Iterator[Any]:
        raise self.error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and typing ask for these
            raise AttributeError(name)
        raise self.error

    def __repr__(self) -> str:
        return f"<unreadable {self.path}: {self.error}>"


class LenientCodec(Codec):
    """Reads as another codec does, and gives an `Unreadable` where that one raises."""

    def __init__(self, strict: Codec) -> None:
        self.__dict__.update(strict.__dict__)
        self._strict = strict

    def loads(self, data: bytes, path: str = "") -> Any:
        """Return the value, or what can be said of it."""
        try:
            return self._strict.loads(data, path)
        except Exception as error:  # a hook of the user's may raise anything
            return Unreadable(path, bytes(data), error)


def require_readable(plan: Plan, values: Mapping[str, Any], writes: Iterable[Write]) -> None:
    """Raise InvalidUpdateError where a write would be folded into a value that cannot be read."""
    poisoned = [key for key, value in values.items() if isinstance(value, Unreadable)]
    if not poisoned:
        return
    written: dict[str, list[Any]] = {}
    for key, value in writes:
        written.setdefault(key, []).append(value)
    for key in poisoned:
        made = written.get(key)
        if made and not plan.channels[key].single and not any(overwritten(write)[0] for write in made):
            raise InvalidUpdateError(
                f"The value of {key} cannot be read, so nothing can be added to it: {values[key].error} "
                f"Replace it, as in update_state(config, {{{key!r}: Overwrite(...)}}).",
                channel=key,
            )


def comparable(given: Any) -> Any:
    """Return a task's input so that two of them can be compared: what cannot be read is its bytes."""
    if isinstance(given, Unreadable):
        return "unreadable", given.data
    return {key: comparable(value) for key, value in given.items()} if type(given) is dict else given
