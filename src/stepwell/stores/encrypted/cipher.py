"""A data key: encrypts what a row says, bound to which row it is.

AES-256-GCM. What is bound (associated data) is every column that tells the row apart, so that it decrypts in its own
place only. A nonce is a keyed hash of 16 random bytes, of what is bound and of what is encrypted: should the same
random bytes ever come twice (a cloned machine), two nonces are the same only where the two rows are. With nonces of 96
bits a data key serves 2**32 rows; each thread has its own. What is stored: one byte that begins nothing else, the
format, the name of the data key, the nonce, and what is encrypted, with its tag.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, NoReturn

import ormsgpack

from stepwell.errors import UnsupportedStorageError
from stepwell.store import ENCRYPTED

FORMAT = b"\x01"
NAME_BYTES = 8
KEY_BYTES = 32
_NONCE_BYTES = 12
_HEAD = len(ENCRYPTED) + len(FORMAT)
_NONCE_AT = _HEAD + NAME_BYTES
_BODY_AT = _NONCE_AT + _NONCE_BYTES
_packb = ormsgpack.packb


class NotAuthentic(Exception):
    """What is stored was not encrypted by this key, for this row: why, as far as that can be told."""


class DataKey:
    """The key of one thread's rows. It is never shown, and never leaves the process but wrapped."""

    __slots__ = ("_aead", "_content", "_nonces", "name")

    def __init__(self, name: bytes, secret: bytes) -> None:
        self.name = name
        self._aead = aead(_derived(secret, b"rows"))
        self._nonces = _derived(secret, b"nonces")
        self._content = _derived(secret, b"content")

    def seal(self, tag: str, bound: tuple[Any, ...], hidden: tuple[Any, ...]) -> bytes:
        """Encrypt values for the row that `bound` tells apart."""
        plain, given = _packb(hidden), _packb((tag, *bound))
        hedged = hashlib.blake2b(os.urandom(16), digest_size=_NONCE_BYTES, key=self._nonces)
        hedged.update(len(given).to_bytes(8))
        hedged.update(given)
        hedged.update(plain)
        nonce = hedged.digest()
        return b"".join((ENCRYPTED, FORMAT, self.name, nonce, self._aead.encrypt(nonce, plain, given)))

    def open(self, tag: str, bound: tuple[Any, ...], sealed: bytes) -> list[Any]:
        """Return what was encrypted for this row. NotAuthentic where it was not, or not by this key."""
        if len(sealed) < _BODY_AT or sealed[len(ENCRYPTED) : _HEAD] != FORMAT:
            raise NotAuthentic("it is of no format that this release knows")
        if name_in(sealed) != self.name:
            raise NotAuthentic("it was encrypted with another data key than its thread's")
        from cryptography.exceptions import InvalidTag

        try:
            plain = self._aead.decrypt(sealed[_NONCE_AT:_BODY_AT], sealed[_BODY_AT:], _packb((tag, *bound)))
        except InvalidTag:
            raise NotAuthentic("its tag does not fit it and its place") from None
        found: list[Any] = ormsgpack.unpackb(plain)
        return found

    def content(self, *parts: Any) -> bytes:
        """Return a digest by which equal parts are known, and which says nothing of them to who has not the key."""
        return hashlib.blake2b(_packb(parts), digest_size=16, key=self._content).digest()

    def __repr__(self) -> str:
        return f"<DataKey {self.name.hex()}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a data key is not pickled: it would leave the process")


def name_in(sealed: bytes) -> bytes:
    """Return the name of the data key with which this was encrypted."""
    return sealed[_HEAD:_NONCE_AT]


def aead(key: bytes) -> Any:
    """Return the cipher under a key of 32 bytes. UnsupportedStorageError where the library is not there."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise UnsupportedStorageError(
            'Encryption needs the package cryptography: pip install "stepwell[encryption]".', reason="not installed"
        ) from error
    return AESGCM(key)


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(key=secret, digest_size=KEY_BYTES, person=purpose).digest()
