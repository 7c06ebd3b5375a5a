"""Standard-library values without parts: each as bytes, and back, exactly.

Here: one row per type in `SCALARS`. Not here: containers (`containers`), instances of the user's classes (`objects`).
Rule kept: `load(dump(x))` is equal to x, has its type, and keeps what equality does not see (fold, zone name, NaN
payload, Decimal zeros); `load` validates what it reads and raises on anything else.
"""

from __future__ import annotations

import ipaddress
import pathlib
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from stepwell.codec.kinds import Kind, Malformed, Refused, Unbuildable


@dataclass(frozen=True, slots=True)
class Scalar:
    """How one type without parts is written and read."""

    kind: Kind
    cls: type[Any]
    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Any]


_COMPLEX: Final = struct.Struct(">dd")
_ZONE_KEY: Final = re.compile(r"[A-Za-z0-9_+\-]+(/[A-Za-z0-9_+\-]+)*")


def _dump_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _load_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _dump_text(value: Any) -> bytes:
    return str(value).encode("utf-8", "surrogatepass")


def _load_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _dump_ascii(value: Any) -> bytes:
    return str(value).encode("ascii")


def _as_text(build: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: build(_load_text(data))


def _load_path(cls: type[pathlib.PurePath]) -> Callable[[bytes], Any]:
    def load(data: bytes) -> Any:
        try:
            return cls(_load_text(data))
        except NotImplementedError as error:
            name = f"pathlib:{cls.__name__}"
            raise Unbuildable(name, _load_text(data), f"this system cannot make a {name}") from error

    return load


def _dump_complex(value: complex) -> bytes:
    return _COMPLEX.pack(value.real, value.imag)


def _load_complex(data: bytes) -> complex:
    return complex(*_COMPLEX.unpack(data))


def _dump_decimal(value: Decimal) -> bytes:
    return str(value).replace("e", "E").encode("ascii")


def _load_decimal(data: bytes) -> Decimal:
    value = Decimal(data.decode("ascii"))
    if _dump_decimal(value) != data:
        raise Malformed("not the text of a Decimal")
    return value


def _dump_uuid(value: UUID) -> bytes:
    return value.bytes if value.is_safe is SafeUUID.unknown else value.bytes + bytes([value.is_safe is SafeUUID.safe])


def _load_uuid(data: bytes) -> UUID:
    if len(data) == 16:
        return UUID(bytes=data)
    return UUID(bytes=data[:16], is_safe={b"\0": SafeUUID.unsafe, b"\1": SafeUUID.safe}[data[16:]])


def _dump_timedelta(value: timedelta) -> bytes:
    return b"%d,%d,%d" % (value.days, value.seconds, value.microseconds)


def _load_timedelta(data: bytes) -> timedelta:
    days, seconds, microseconds = map(int, data.split(b","))
    return timedelta(days, seconds, microseconds)


def _dump_timezone(value: tzinfo) -> bytes:
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]  # (offset,) or (offset, name)
    return b";".join((_dump_timedelta(offset), *map(_dump_text, name)))


def _load_timezone(data: bytes) -> timezone:
    offset, *name = data.split(b";", 1)
    return timezone(_load_timedelta(offset), *map(_load_text, name))


def _dump_zone(value: ZoneInfo) -> bytes:
    if value.key is None or not _ZONE_KEY.fullmatch(value.key):
        raise Refused(": its time zone has no key of the IANA database")
    return value.key.encode("ascii")


def _load_zone(data: bytes) -> ZoneInfo:
    key = data.decode("ascii")
    if not _ZONE_KEY.fullmatch(key):
        raise Malformed("not a time zone key")
    try:
        return ZoneInfo(key)
    except ZoneInfoNotFoundError as error:
        raise Unbuildable("zoneinfo:ZoneInfo", key, f"this system has no time zone {key!r}") from error


def _dump_clock(value: Any, bare: str) -> bytes:
    """Write an ISO text without zone, then fold, then the zone: none, "Z" for UTC, "+" an offset, "@" a key."""
    zone = value.tzinfo
    head = bare.encode("ascii") + (b"|1" if value.fold else b"|0")
    if zone is None:
        return head
    if zone is UTC:
        return head + b"Z"
    if type(zone) is timezone:
        return head + b"+" + _dump_timezone(zone)
    if type(zone) is ZoneInfo:
        return head + b"@" + _dump_zone(zone)
    raise Refused(f": its time zone is a {type(zone).__name__}, not a timezone or a ZoneInfo")


def _load_clock(data: bytes) -> tuple[str, int, tzinfo | None]:
    head, _, tail = data.partition(b"|")
    fold, mark, rest = tail[:1], tail[1:2], tail[2:]
    zone: tzinfo | None = None
    if mark == b"Z" and not rest:
        zone = UTC
    elif mark == b"+":
        zone = _load_timezone(rest)
    elif mark == b"@":
        zone = _load_zone(rest)
    elif mark:
        raise Malformed("not a time zone")
    return head.decode("ascii"), {b"0": 0, b"1": 1}[fold], zone


def _dump_datetime(value: datetime) -> bytes:
    return _dump_clock(value, value.replace(tzinfo=None).isoformat())


def _load_datetime(data: bytes) -> datetime:
    text, fold, zone = _load_clock(data)
    value = datetime.fromisoformat(text)
    return value.replace(tzinfo=zone, fold=fold) if zone is not None or fold else value


def _dump_time(value: time) -> bytes:
    return _dump_clock(value, value.replace(tzinfo=None).isoformat())


def _load_time(data: bytes) -> time:
    text, fold, zone = _load_clock(data)
    return time.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def _dump_date(value: date) -> bytes:
    return value.isoformat().encode("ascii")


def _load_ellipsis(data: bytes) -> Any:
    if data:
        raise Malformed("an ellipsis has no content")
    return ...


SCALARS: Final = (
    Scalar(Kind.INT, int, _dump_int, _load_int),
    Scalar(Kind.TEXT, str, _dump_text, _load_text),
    Scalar(Kind.BYTEARRAY, bytearray, bytes, bytearray),
    Scalar(Kind.COMPLEX, complex, _dump_complex, _load_complex),
    Scalar(Kind.ELLIPSIS, type(...), lambda value: b"", _load_ellipsis),
    Scalar(Kind.DATETIME, datetime, _dump_datetime, _load_datetime),
    Scalar(Kind.DATE, date, _dump_date, _as_text(date.fromisoformat)),
    Scalar(Kind.TIME, time, _dump_time, _load_time),
    Scalar(Kind.TIMEDELTA, timedelta, _dump_timedelta, _load_timedelta),
    Scalar(Kind.TIMEZONE, timezone, _dump_timezone, _load_timezone),
    Scalar(Kind.ZONE_INFO, ZoneInfo, _dump_zone, _load_zone),
    Scalar(Kind.DECIMAL, Decimal, _dump_decimal, _load_decimal),
    Scalar(Kind.UUID, UUID, _dump_uuid, _load_uuid),
    Scalar(Kind.PURE_POSIX_PATH, pathlib.PurePosixPath, _dump_text, _load_path(pathlib.PurePosixPath)),
    Scalar(Kind.PURE_WINDOWS_PATH, pathlib.PureWindowsPath, _dump_text, _load_path(pathlib.PureWindowsPath)),
    Scalar(Kind.POSIX_PATH, pathlib.PosixPath, _dump_text, _load_path(pathlib.PosixPath)),
    Scalar(Kind.WINDOWS_PATH, pathlib.WindowsPath, _dump_text, _load_path(pathlib.WindowsPath)),
    Scalar(Kind.IPV4_ADDRESS, ipaddress.IPv4Address, _dump_ascii, _as_text(ipaddress.IPv4Address)),
    Scalar(Kind.IPV6_ADDRESS, ipaddress.IPv6Address, _dump_text, _as_text(ipaddress.IPv6Address)),
    Scalar(Kind.IPV4_NETWORK, ipaddress.IPv4Network, _dump_ascii, _as_text(ipaddress.IPv4Network)),
    Scalar(Kind.IPV6_NETWORK, ipaddress.IPv6Network, _dump_text, _as_text(ipaddress.IPv6Network)),
    Scalar(Kind.IPV4_INTERFACE, ipaddress.IPv4Interface, _dump_ascii, _as_text(ipaddress.IPv4Interface)),
    Scalar(Kind.IPV6_INTERFACE, ipaddress.IPv6Interface, _dump_text, _as_text(ipaddress.IPv6Interface)),
)
