"""The codec the rest of Stepwell uses: values to bytes and back, exactly or not at all.

Here: `Codec` and the frame around its bytes. Not here: how values are packed (`encode`), rebuilt (`decode`), or blamed
(`faults`). Rule kept: `loads(dumps(x)) == x` with equal types all the way down, or `dumps` raises and names the path. A
shared reference becomes a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stepwell.codec.kinds import FORMAT, Malformed, Unbuildable
from stepwell.codec.registry import Registry
from stepwell.errors import CorruptRecordError, NewerFormatError

# Five bytes of length, one of format: a trailer shows a cut or lengthened record, and costs no copy on the way back.
TRAILER: Final = 6
_IMMUTABLE: Final = frozenset({type(None), bool, int, float, str, bytes})


def is_scalar(value: Any) -> bool:
    """Whether `value` is an immutable leaf of a built-in type, so that copying it is pointless."""
    return type(value) in _IMMUTABLE


def framed(data: bytes) -> bytes:
    """Return packed bytes with the frame that `Codec.loads` expects."""
    return data + (len(data) << 8 | FORMAT).to_bytes(TRAILER, "big")


class Codec:
    """Turn values into bytes and back with the types of one registry. Safe to share between threads.

    `on_unknown_type(type_name, stored)` is called for a stored value that nothing listed can rebuild; what it returns
    takes the place of the value. Without it such a value raises `UnknownTypeError`.
    """

    def __init__(self, registry: Registry, on_unknown_type: Callable[[str, Any], Any] | None = None) -> None:
        import ormsgpack

        from stepwell.codec.decode import Decoder
        from stepwell.codec.encode import Encoder

        self.registry = registry
        self._decoder = Decoder(registry, on_unknown_type)
        self._encoder = Encoder(registry, self._decoder.reload)
        self._orderer = Encoder(registry, self._decoder.reload, ordered=True)
        self._pack = self._encoder.pack
        self._plain = ormsgpack.packb
        self._unpack = self._decoder.unpack

    def dumps(self, value: Any, path: str = "") -> bytes:
        """Return `value` as bytes. Raises `UnserializableValueError` naming the path of what cannot be stored."""
        try:
            data = self._plain(value) if type(value) in _IMMUTABLE else self._pack(value)
        except Exception:
            data = self._packed_slowly(value, path)
        return data + (len(data) << 8 | FORMAT).to_bytes(TRAILER, "big")  # as `framed`: a call costs too much here

    def _packed_slowly(self, value: Any, path: str) -> bytes:
        """Pack what a plain call refuses (a large int, a lone surrogate), or say what cannot be stored, and where."""
        try:
            return self._pack(value)
        except Exception as error:
            from stepwell.codec.faults import write_error

            raise write_error(self._encoder, value, path, error) from error

    def loads(self, data: bytes, path: str = "") -> Any:
        """Return the value `dumps` was given.

        Raises `CorruptRecordError` for anything `dumps` did not write and `UnknownTypeError`, with the path below
        `path`, for a type the registry does not list or a class that no longer fits what is stored. What
        `on_unknown_type` raises passes through.
        """
        body = memoryview(data)[:-TRAILER]
        if int.from_bytes(data[-TRAILER:], "big") != len(body) << 8 | FORMAT:
            raise _unfitting(data, path or "value")
        try:
            return self._unpack(body)
        except (Malformed, Unbuildable, RecursionError) as error:
            from stepwell.codec.faults import load_error

            raise load_error(self._decoder, bytes(body), path, error) from error

    def bytes_of(self, data: Any, path: str = "") -> bytes:
        """Return the bytes that are read as a value. A codec that reads what stands for them elsewhere finds them."""
        return bytes(data)

    def copy(self, value: Any, path: str = "") -> Any:
        """Return the value a reader of the record would get."""
        return self.loads(self.dumps(value, path), path)

    def canonical(self, value: Any, path: str = "") -> bytes:
        """Return bytes that are the same for the same value, whatever the order of its dicts and sets."""
        try:
            return self._orderer.pack(value)
        except Exception as error:
            from stepwell.codec.faults import write_error

            raise write_error(self._orderer, value, path, error) from error


def _unfitting(data: bytes, record: str) -> CorruptRecordError | NewerFormatError:
    """Return the error for bytes whose trailer is not that of this format."""
    length, found = divmod(int.from_bytes(data[-TRAILER:], "big"), 1 << 8)
    if length == len(data) - TRAILER and found > FORMAT:
        return NewerFormatError(record=record, found=found, known=FORMAT)
    return CorruptRecordError(record=record, reason="its length or format does not fit its trailer")
