"""A cache whose results nobody can read, and whose keys tell nobody which input they are of.

Its data key lies in the cache itself, wrapped. A cache may lose anything at any time: what cannot be decrypted, was put
there by somebody else, or was kept under a key that is gone, is a result that is not found.
"""

from __future__ import annotations

import ormsgpack

from stepwell.clock import SystemClock
from stepwell.errors import InvalidConfigError, InvalidKeyError
from stepwell.store import WHOLE_DATABASE, KeyRow, is_encrypted
from stepwell.store.cache import Cache, CacheKey
from stepwell.stores.encrypted.cipher import DataKey, NotAuthentic
from stepwell.stores.encrypted.encryption import Encryption, checked_encryption
from stepwell.stores.encrypted.keyring import Keyring

_KEPT = CacheKey("", "", "data key")


class EncryptedCache:
    """Keep results encrypted in another cache: `EncryptedCache(SqliteCache("cache.db"), Encryption({"2026": key}))`.

    Graph ids and names of nodes and tasks stay readable. Closing it is the other cache's.
    """

    def __init__(self, cache: Cache, encryption: Encryption) -> None:
        if not all(callable(getattr(cache, verb, None)) for verb in ("get", "set")):
            raise InvalidConfigError(
                reason=f'a cache goes in here, as SqliteCache("cache.db"), not a {type(cache).__name__}', key="cache"
            )
        if checked_encryption(encryption) is None:
            raise InvalidKeyError(reason="A cache is encrypted by an Encryption(...), and None was given")
        self._cache = cache
        self._keys = Keyring(encryption, SystemClock(), self._read)

    @property
    def blocking(self) -> bool:
        return self._cache.blocking

    def get(self, key: CacheKey) -> bytes | None:
        data_key = self._key()
        place = _place(data_key, key)
        found = self._cache.get(place)
        if found is None or not is_encrypted(found):
            return None
        try:
            (value,) = data_key.open("cached", place, found)
        except NotAuthentic:
            return None
        return bytes(value)

    def set(self, key: CacheKey, value: bytes, ttl: float | None) -> None:
        data_key = self._key()
        place = _place(data_key, key)
        self._cache.set(place, data_key.seal("cached", place, (value,)), ttl)

    def clear(self, graph_id: str | None = None, callee: str | None = None) -> None:
        self._cache.clear(graph_id, callee)
        if graph_id is None:
            self._keys.forget(WHOLE_DATABASE)

    def _key(self) -> DataKey:
        held = self._keys.held(WHOLE_DATABASE)
        if not held.durable:
            self._cache.set(_KEPT, ormsgpack.packb(tuple(held.row)), None)
            held.durable = True
        return held.key

    def _read(self, thread_id: str) -> KeyRow | None:
        found = self._cache.get(_KEPT)
        return None if found is None else KeyRow._make(ormsgpack.unpackb(found))


def _place(key: DataKey, place: CacheKey) -> CacheKey:
    return place._replace(digest=key.content(*place).hex())
