"""`Encryption`: what a saver is given to keep secret what it stores. The option, and nothing that acts on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NoReturn

from stepwell.errors import InvalidKeyError
from stepwell.stores.encrypted.cipher import KEY_BYTES
from stepwell.stores.encrypted.services import KeyContext, KeyService, LocalKeys


class Encryption:
    """Encrypt what is stored: `SqliteSaver("threads.db", encryption=Encryption({"2026": key}))`.

    `keys`: keys of 32 bytes by id, or a `KeyService` of your own. `current`: the id of the key that wraps new data
    keys, or a function from `KeyContext` to it, for a key per tenant; with one key it is that one. `accept_plaintext`:
    read rows that are not encrypted, as while a database is moved over; off, each is a PlaintextRecordError.
    `cached_keys`: how many threads' data keys are kept in memory.
    """

    __slots__ = ("accept_plaintext", "cached_keys", "service")

    def __init__(
        self,
        keys: Mapping[str, bytes] | KeyService,
        *,
        current: str | Callable[[KeyContext], str] | None = None,
        accept_plaintext: bool = False,
        cached_keys: int = 4096,
    ) -> None:
        if not isinstance(keys, Mapping):
            if not all(callable(getattr(keys, name, None)) for name in ("key_id", "wrap", "unwrap")):
                kind = type(keys).__name__
                raise InvalidKeyError(reason=f"Keys are a dict of them by id, or a KeyService, not a {kind}")
            if current is not None:
                raise InvalidKeyError(reason="A key service says itself which key wraps: leave current= out")
        if isinstance(cached_keys, bool) or not isinstance(cached_keys, int) or cached_keys < 1:
            raise InvalidKeyError(reason=f"cached_keys is a number from 1 on, not {cached_keys!r}")
        self.service: KeyService = LocalKeys(keys, current) if isinstance(keys, Mapping) else keys
        self.accept_plaintext = accept_plaintext
        self.cached_keys = cached_keys

    @staticmethod
    def new_key() -> bytes:
        """Return 32 random bytes: a key. Keep it where the database is not, and in more than one place."""
        return os.urandom(KEY_BYTES)

    def __repr__(self) -> str:
        return f"Encryption({self.service!r})" if isinstance(self.service, LocalKeys) else "Encryption(<key service>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Encryption holds keys and is not pickled: make one in each process")


def checked_encryption(given: object) -> Encryption | None:
    """Return what a saver was given as `encryption=`; InvalidKeyError where it is something else."""
    if given is None or isinstance(given, Encryption):
        return given
    raise InvalidKeyError(reason=f"encryption= takes an Encryption(...), not a {type(given).__name__}")
