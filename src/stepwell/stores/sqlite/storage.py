"""Where a database file may live. Nothing here opens it.

WAL keeps its index in shared memory and its locks in the kernel; over a network neither holds between hosts, and a
commit that was acknowledged can be lost. So those file systems are refused, not warned about.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from stepwell.errors import UnsupportedStorageError

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smbfs", "smb2", "smb3", "ncpfs", "afs", "coda", "9p", "ceph", "lustre", "gpfs"}
    | {"glusterfs", "beegfs", "orangefs", "pvfs2", "davfs"}
)
"""File systems whose locks or shared memory do not hold between the hosts that mount them."""

NETWORK_FUSE = frozenset(
    {"sshfs", "glusterfs", "s3fs", "rclone", "gcsfuse", "davfs2", "davfs", "cephfs", "ceph", "smbnetfs", "curlftpfs"}
    | {"goofys", "mfs"}
)

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://|file:")
"""How an address begins. A drive letter is no scheme."""


def check_place(path: str) -> None:
    """Refuse a path at which durable state cannot be kept, and what is no path."""
    if not path:
        raise UnsupportedStorageError("The path is empty; give the path of a file.", path=path)
    if "\0" in path:
        raise UnsupportedStorageError(f"{path!r} holds NUL, which no path does; give the path of a file.", path=path)
    if scheme := _ADDRESS.match(path):
        raise UnsupportedStorageError(  # the rest may hold a password
            f"A SQLite file is given by its path, not by an address ({scheme[0]}...); PostgresSaver and PostgresStore"
            " take that of a PostgreSQL server.",
            reason="an address",
        )
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise UnsupportedStorageError(f"{path!r} is a directory; give the path of a file in it.", path=path)
    if not place.parent.is_dir():
        raise UnsupportedStorageError(f"The directory of {path!r} does not exist; create it first.", path=path)
    kind = network_file_system(str(place), _mounts())
    if kind is not None:
        raise UnsupportedStorageError(
            f"{path!r} is on a network file system ({kind}), where SQLite can lose acknowledged commits."
            " Use a local disk, or PostgreSQL for many machines.",
            path=path,
        )


def network_file_system(path: str, mounts: str) -> str | None:
    """Return the kind of network file system a real path is on, by the lines of /proc/mounts; None if it is local."""
    if path.startswith(("\\\\", "//")):
        return "UNC share"
    kind, longest = "", ""
    for line in mounts.splitlines():
        _, point, found, *_ = [*line.split(" "), "", "", ""]
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point)
        if len(point) >= len(longest) and (path == point or path.startswith(point.rstrip("/") + "/")):
            kind, longest = found, point  # of two mounts on one point the later one is seen
    remote = kind in NETWORK_FILE_SYSTEMS or kind.removeprefix("fuse.") in NETWORK_FUSE
    return kind if remote else None


def _mounts() -> str:
    try:
        return Path("/proc/self/mounts").read_text("utf-8", "surrogateescape")
    except OSError:
        return ""  # no list of mounts on this platform: nothing is known to be remote
