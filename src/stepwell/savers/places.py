"""What the address of a database says: a file, or a server; and how much of it may be printed."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

SERVERS = ("postgresql://", "postgres://")
SCHEMA = "stepwell"
"""Where the tables are on a server, unless a saver is told otherwise."""
_SHOWN = ("host", "port", "dbname", "user", "sslmode", "target_session_attrs")
"""What of the parameters behind a `?` is no secret."""


def is_server(place: str) -> bool:
    """Tell whether an address is that of a PostgreSQL database."""
    return place.startswith(SERVERS)


def shown_place(place: str) -> str:
    """Return an address without what might be a secret: it leads there whoever may log in without it."""
    if not is_server(place):
        return place
    try:
        parts = urlsplit(place)
        user, at, host = parts.netloc.rpartition("@")
        given = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] in _SHOWN], safe="/")
    except ValueError:
        return SERVERS[0]
    if "#" in place or any("@" in part for part in (user, parts.path, parts.query)):
        return SERVERS[0]  # a password that was not quoted, and ends up anywhere
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}" + (f"?{given}" if given else "")


def is_absent(place: str) -> bool:
    """Tell whether there is no file at an address; a server is asked when it is used."""
    return not is_server(place) and not Path(place).exists()
