"""Values that cannot be read, kept as the bytes they are: to show, edit and leave behind a poisoned checkpoint.

A run never meets one: what a node is given is read strictly. The rule: whoever looks into one gets the error that
reading it raised, and it cannot be stored again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepwell.codec import Codec


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
