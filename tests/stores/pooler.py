"""pgbouncer in transaction mode, on a socket in a folder of its own, as a user without rights."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stores import binaries
from tests.stores.servers import PORT, unprivileged
from tests.stores.waiting import wait_until

SETTINGS = """
[databases]
* = host={host} port={port} user=postgres
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
logfile = {folder}/log
"""


class Pooler:
    """One pooler in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        program, environment = binaries.pooler()
        user = unprivileged()
        process = subprocess.Popen(
            [str(program), "-q", f"{self.folder}/settings.ini"],
            env={**os.environ, **environment},
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: _listens(f"{self.folder}/.s.PGSQL.{PORT}") or process.poll() is not None)
        assert process.poll() is None, Path(f"{self.folder}/log").read_text()
        self._process = process

    def stop(self) -> None:
        """Stop it: its clients' connections and the server's are gone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)
            self._process = None


@contextmanager
def pooled(host: str, *, servers: int = 2) -> Iterator[Pooler]:
    """Run a pooler in front of the server whose socket is in `host`."""
    user = unprivileged()
    with tempfile.TemporaryDirectory(prefix="stepwell-pool-") as folder:
        Path(folder).chmod(0o755)
        text = SETTINGS.format(host=host, port=PORT, folder=folder, servers=servers)
        Path(f"{folder}/settings.ini").write_text(text)
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        pooler = Pooler(folder)
        pooler.start()
        try:
            yield pooler
        finally:
            pooler.stop()


def _listens(path: str) -> bool:
    """Tell whether somebody answers there: the socket is there a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0
