"""A wire between a client and a server that a test can count on and cut: before, within and after what is sent."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any

from tests.stores.servers import PORT

SYNC = b"S\x00\x00\x00\x04"
"""What asks the server to answer all before it."""


class Cut(Enum):
    """Where the wire breaks, seen from a statement of the client."""

    BEFORE_SEND = "nothing of it reaches the server"
    PART_SENT = "half of it reaches the server"
    AFTER_SEND = "all of it reaches the server, and the client learns nothing more"
    BEFORE_ANSWER = "the server has answered, and nothing of that reaches the client"
    PART_ANSWERED = "half of the answer reaches the client"


class Relay:
    """A socket that leads to a server's. Used as a block."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self.folder = tempfile.mkdtemp(prefix="stepwell-wire-")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{self.folder}/.s.PGSQL.{PORT}")
        self._listening.listen()
        self._cut: tuple[Cut, bytes] | None = None
        self._down = False
        self.cuts = 0
        self.round_trips = 0
        """How often a client sent something after it was answered, or first."""
        self.sent: list[bytes] = []
        self._stop_read, self._stop_write = os.pipe()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Relay:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stop_write, b"x")
        for thread in self._threads:
            thread.join()
        self._listening.close()
        os.close(self._stop_read)
        os.close(self._stop_write)
        shutil.rmtree(self.folder, ignore_errors=True)

    def cut(self, cut: Cut, when: bytes, *, for_good: bool = False, then: Callable[[], None] | None = None) -> None:
        """Cut the wire of the next client that sends these bytes, for good that of all after it, too; then do this."""
        self._cut, self._for_good, self._then = (cut, when), for_good, then

    def _accept(self) -> None:
        while True:
            ready = _readable(self._listening, self._stop_read)
            if self._stop_read in ready:
                return
            client, _ = self._listening.accept()
            if self._down:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._upstream)
            except OSError:
                client.close()
                continue
            thread = threading.Thread(target=self._carry, args=(client, server), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        answered, cutting, asked = True, None, b""
        # what is to be done then is done before the client sees its wire cut: it finds what has come of it
        with client, server, contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            while True:
                ready = _readable(client, server, self._stop_read)
                if self._stop_read in ready:
                    return
                if client in ready:
                    data = client.recv(1 << 20)
                    if not data:
                        return
                    self.round_trips += answered
                    answered = False
                    self.sent.append(data)
                    asked += data
                    cutting = cutting or self._strikes(asked)
                    asked = b"" if SYNC in asked else asked
                    if cutting is not None and self._then is not None:
                        stack.callback(self._then)
                        self._then = None
                    if cutting is Cut.BEFORE_SEND:
                        return
                    server.sendall(data[: len(data) // 2] if cutting is Cut.PART_SENT else data)
                    if cutting is Cut.PART_SENT:
                        return
                    if cutting is Cut.AFTER_SEND:
                        server.recv(1)  # it has begun to answer: all of it was read
                        return
                if server in ready:
                    data = server.recv(1 << 20)
                    if not data or cutting is Cut.BEFORE_ANSWER:
                        return
                    answered = True
                    client.sendall(data[: len(data) // 2] if cutting is Cut.PART_ANSWERED else data)
                    if cutting is Cut.PART_ANSWERED:
                        return

    def _strikes(self, data: bytes) -> Cut | None:
        if self._cut is None or self._cut[1] not in data:
            return None
        if self._cut[0] not in (Cut.BEFORE_SEND, Cut.PART_SENT) and SYNC not in data:
            return None  # more is to come before the server answers
        (cut, _), self._cut = self._cut, None
        self.cuts += 1
        self._down = self._for_good
        return cut


def _readable(*sources: Any) -> list[Any]:
    return select.select(list(sources), [], [])[0]
