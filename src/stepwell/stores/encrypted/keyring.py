"""The data keys that this process knows, and how one comes to be.

Keys by name are what they are for good. Which key a thread has *now* may change, once: when it is deleted, begun anew
and given another. So a key to encrypt with is taken from a snapshot only if nothing was learnt about its thread since
that snapshot was opened; else it is read again. The rule: what this ring says a thread has was the newest that this
process knew, and a key that is not in the database yet is written with the first row that needs it, or not at all.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from stepwell import points
from stepwell.clock import Clock
from stepwell.errors import KeyServiceError, StepwellError, WrongKeyError
from stepwell.ids import is_holdable
from stepwell.store import KeyRow, seal_key
from stepwell.stores.encrypted.cipher import KEY_BYTES, NAME_BYTES, DataKey
from stepwell.stores.encrypted.encryption import Encryption
from stepwell.stores.encrypted.services import KeyContext

_STRIPES = 512
_UNKNOWN = object()
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Held:
    """The key a thread has."""

    key: DataKey
    row: KeyRow
    durable: bool
    """Whether the row is known to be in the database."""


class Keyring:
    """Data keys, unwrapped once and kept."""

    def __init__(self, encryption: Encryption, clock: Clock, read: Callable[[str], KeyRow | None]) -> None:
        self._service, self._limit = encryption.service, encryption.cached_keys
        self._clock = clock
        self._read = read
        self._lock = threading.Lock()
        _rings.add(self)
        self._unwrapped: OrderedDict[bytes, tuple[str, DataKey]] = OrderedDict()
        self._held: OrderedDict[str, Held | None] = OrderedDict()
        """The key of each thread of which that is known; None: it has none."""
        self._moved = [0] * _STRIPES
        """Counts, for each share of all threads, how often something was learnt about one of them."""

    # -- decrypting ---------------------------------------------------------------------------------------------------

    def key_of(self, row: KeyRow) -> DataKey:
        """Return the data key that a row wraps."""
        found = self._unwrapped.get(row.name)
        if found is not None and found[0] == row.thread_id:
            return found[1]
        key = DataKey(row.name, self._unwrap(row))
        with self._lock:
            self._unwrapped[row.name] = (row.thread_id, key)
            if len(self._unwrapped) > self._limit:
                self._unwrapped.popitem(last=False)
        return key

    # -- encrypting ---------------------------------------------------------------------------------------------------

    def held(self, thread_id: str) -> Held:
        """Return the key to encrypt with for a thread; one is made where it has none."""
        while True:
            held = self._held.get(thread_id, _UNKNOWN)
            if isinstance(held, Held):
                return held
            if held is None:
                made = self._made(thread_id)
                with self._lock:
                    if self._held.get(thread_id, _UNKNOWN) is None:
                        self._keep(thread_id, made)
            else:
                since = self.moments()
                self.offer(thread_id, self._read(thread_id), since)

    def moments(self) -> list[int]:
        """Return what to say to `offer` of a snapshot that is opened from now on."""
        return self._moved.copy()

    def offer(self, thread_id: str, row: KeyRow | None, since: list[int]) -> None:
        """Learn which key a thread has, as a snapshot shows it that was opened after `since`."""
        held = self._held.get(thread_id, _UNKNOWN)
        if isinstance(held, Held):
            if row is None and not held.durable:
                return
            if row is not None and row.name == held.row.name:
                held.durable = True
                return
        elif held is row:
            return
        if held is not _UNKNOWN:
            self.drop(thread_id)
            return
        found = None if row is None else Held(self.key_of(row), row, True)
        with self._lock:
            if thread_id not in self._held and since[_stripe(thread_id)] == self._moved[_stripe(thread_id)]:
                self._keep(thread_id, found)

    def drop(self, thread_id: str) -> None:
        """Forget which key a thread has: it is read again."""
        with self._lock:
            self._held.pop(thread_id, None)
            self._moved[_stripe(thread_id)] += 1

    def forget(self, thread_id: str) -> None:
        """Forget the key of a thread that was deleted, and what is kept of it."""
        held = self._held.get(thread_id, _UNKNOWN)
        self.drop(thread_id)
        if isinstance(held, Held):
            self._unwrapped.pop(held.key.name, None)

    def _keep(self, thread_id: str, held: Held | None) -> None:
        self._held[thread_id] = held
        self._moved[_stripe(thread_id)] += 1
        if len(self._held) > self._limit:
            longest, _ = self._held.popitem(last=False)
            self._moved[_stripe(longest)] += 1

    def _made(self, thread_id: str) -> Held:
        """Return a new data key, wrapped, that is in no database yet."""
        name, secret = os.urandom(NAME_BYTES), os.urandom(KEY_BYTES)
        row = self.wrapped(KeyRow(thread_id, name, "", b"", self._clock.now(), b""), secret)
        points.reach(points.DATA_KEY_WRAPPED)
        return Held(DataKey(name, secret), row, False)

    # -- wrapping -----------------------------------------------------------------------------------------------------

    def wrapped(self, row: KeyRow, secret: bytes) -> KeyRow:
        """Return the row with its data key wrapped by the key that is to wrap it now."""
        context = _context(row)
        key_id = self._key_id(context)
        wrapped: object = self._ask(context, lambda: self._service.wrap(key_id, secret, context))
        if not isinstance(wrapped, bytes | bytearray) or not wrapped:
            raise _answered(context, "wrap", wrapped, "bytes")
        return seal_key(row._replace(key_id=key_id, wrapped=bytes(wrapped), digest=b""))

    def rewrapped(self, row: KeyRow) -> KeyRow | None:
        """Return the row wrapped anew; None where the key that is to wrap it has done so already. What replaces the
        only copy of a data key is shown to open first."""
        if self._key_id(_context(row)) == row.key_id:
            return None
        secret = self._unwrap(row)
        anew = self.wrapped(row, secret)
        if self._unwrap(anew) != secret:
            raise WrongKeyError(key_id=anew.key_id, owner=_context(row).owner, thread_id=row.thread_id)
        return anew

    def _unwrap(self, row: KeyRow) -> bytes:
        context = _context(row)
        secret: object = self._ask(context, lambda: self._service.unwrap(row.key_id, row.wrapped, context))
        if not isinstance(secret, bytes | bytearray) or len(secret) != KEY_BYTES:
            raise WrongKeyError(key_id=row.key_id, owner=context.owner, thread_id=row.thread_id)
        return bytes(secret)

    def _key_id(self, context: KeyContext) -> str:
        key_id: object = self._ask(context, lambda: self._service.key_id(context))
        if not isinstance(key_id, str) or not key_id or not is_holdable(key_id):
            raise _answered(context, "key_id", key_id, "text that is not empty, valid Unicode and without NUL")
        return key_id

    def _ask(self, context: KeyContext, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except StepwellError:
            raise
        except Exception as error:  # the user's code: its text may hold anything, and a run's error is stored
            told = type(error).__name__
            raise KeyServiceError(owner=context.owner, reason=told, thread_id=context.thread_id) from error


def _context(row: KeyRow) -> KeyContext:
    return KeyContext(row.thread_id, row.name.hex())


def _answered(context: KeyContext, verb: str, answer: object, wanted: str) -> KeyServiceError:
    """Return the error of a service that breaks the protocol. Its answer may be secret: only the type is told."""
    told = f"{verb}() returned a {type(answer).__name__}, where {wanted} is due"
    return KeyServiceError(owner=context.owner, reason=told, thread_id=context.thread_id)


_rings: weakref.WeakSet[Keyring] = weakref.WeakSet()


def _after_fork() -> None:
    for ring in _rings:
        ring._lock = threading.Lock()  # a thread that is not in the child may have had it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _stripe(thread_id: str) -> int:
    return hash(thread_id) % _STRIPES
