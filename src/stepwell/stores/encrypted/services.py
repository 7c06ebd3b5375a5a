"""Who wraps data keys: keys in this process, or a service of the user's own that never hands out its keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import ormsgpack

from stepwell.errors import InvalidKeyError, MissingKeyError, WrongKeyError
from stepwell.ids import is_holdable
from stepwell.stores.encrypted.cipher import KEY_BYTES, aead

_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class KeyContext:
    """Whose data key it is. It is bound to what is wrapped: under another context nothing is unwrapped."""

    thread_id: str
    """"" for the database's own key: that of items and of effects of the scope "global"."""
    name: str
    """By what the data key is known, 16 hex digits."""

    @property
    def owner(self) -> str:
        """The owner, for people."""
        return f"thread {self.thread_id!r}" if self.thread_id else "the database"

    def bound(self) -> bytes:
        """Return the bytes to bind: what a service of your own passes on as associated data or encryption context."""
        return ormsgpack.packb(("stepwell data key", self.thread_id, self.name))


class KeyService(Protocol):
    """Wraps data keys, and unwraps them. Called from any thread; may block; raises whatever it likes.

    A data key is unwrapped once and kept in memory, so a service is asked about once a thread and process.
    """

    def key_id(self, context: KeyContext) -> str:
        """Return the id of the key under which a data key is to be wrapped now: its tenant's, say, or the newest."""
        ...

    def wrap(self, key_id: str, data_key: bytes, context: KeyContext) -> bytes:
        """Encrypt a data key of 32 bytes."""
        ...

    def unwrap(self, key_id: str, wrapped: bytes, context: KeyContext) -> bytes:
        """Return the data key. Raise MissingKeyError for a key id that is not at hand."""
        ...


class LocalKeys:
    """Keys in this process, by id. `current`: the id to wrap with; a function of the context, for a key per tenant."""

    def __init__(self, keys: Mapping[str, bytes], current: str | Callable[[KeyContext], str] | None = None) -> None:
        for key_id, key in keys.items():
            if not isinstance(key_id, str) or not key_id:
                raise InvalidKeyError(reason="The id of a key is text that is not empty")
            if not is_holdable(key_id):
                raise InvalidKeyError(reason=f"The id of a key is valid Unicode without NUL, not {key_id!r}")
            if not isinstance(key, bytes | bytearray) or len(key) != KEY_BYTES:
                raise InvalidKeyError(reason=f"Key {key_id!r} is not {KEY_BYTES} bytes")
        if current is None and len(keys) != 1:
            raise InvalidKeyError(reason=f"Of {len(keys)} keys, current= must say which one wraps")
        if current is not None and not isinstance(current, str) and not callable(current):
            raise InvalidKeyError(reason=f"current= is the id of a key or a function, not a {type(current).__name__}")
        if isinstance(current, str) and current not in keys:
            raise InvalidKeyError(reason=f"current= names key {current!r}, which is not among them")
        self._current = next(iter(keys)) if current is None else current
        self._keys = {key_id: aead(bytes(key)) for key_id, key in keys.items()}

    def key_id(self, context: KeyContext) -> str:
        """Return the id of the key to wrap with."""
        return self._current if isinstance(self._current, str) else self._current(context)

    def wrap(self, key_id: str, data_key: bytes, context: KeyContext) -> bytes:
        """Encrypt a data key."""
        nonce = os.urandom(_NONCE_BYTES)
        wrapped: bytes = nonce + self._key(key_id, context).encrypt(nonce, data_key, context.bound())
        return wrapped

    def unwrap(self, key_id: str, wrapped: bytes, context: KeyContext) -> bytes:
        """Return the data key."""
        from cryptography.exceptions import InvalidTag

        try:
            nonce, sealed = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
            data_key: bytes = self._key(key_id, context).decrypt(nonce, sealed, context.bound())
        except (InvalidTag, ValueError):
            raise WrongKeyError(key_id=key_id, owner=context.owner, thread_id=context.thread_id) from None
        return data_key

    def _key(self, key_id: str, context: KeyContext) -> Any:
        try:
            return self._keys[key_id]
        except KeyError:
            raise MissingKeyError(key_id=key_id, owner=context.owner, thread_id=context.thread_id) from None

    def __repr__(self) -> str:
        return f"LocalKeys({sorted(self._keys)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are not pickled: give each process its own")
