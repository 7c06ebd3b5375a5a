"""The payment server itself, run as a module: FOLDER, "honour" or "ignore" (keys), PORT or 0. It prints its port.

A request that was sent counts as under way from the moment its connection is accepted, and connections are accepted in
the order in which they were made: so what is asked after a request was sent is answered after that request is over, or
held. A connection that has sent nothing yet keeps nobody waiting.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from select import select
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from stepwell.testing.payments.books import Books


class Server(ThreadingTCPServer):
    """Accepts connections, and knows which requests are under way, which are held, and what shall go wrong."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, books: Books) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.books = books
        self._changed = threading.Condition()
        self._under_way = 0
        self._held: Counter[str] = Counter()
        self._released: Counter[str] = Counter()
        self._faults: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._under_way += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == RESET:
            request.close()  # a shutdown would say good-bye first
        else:
            super().shutdown_request(request)
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Not under way for as long as this lasts. Call with the lock held."""
        self._under_way -= 1
        self._changed.notify_all()
        try:
            yield
        finally:
            self._under_way += 1

    def wait_sent(self, connection: socket.socket) -> None:
        """Return when the connection has sent something, or ended."""
        if not select([connection], [], [], 0)[0]:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()
            select([connection], [], [])
            with self._changed:
                self._under_way += 1

    def wait_settled(self) -> None:
        with self._changed, self._aside():
            self._changed.wait_for(lambda: self._under_way == 0)

    def script(self, account: str, faults: list[dict[str, Any]]) -> None:
        with self._changed:
            self._faults[account] += faults

    def take_fault(self, account: str, reference: str) -> dict[str, Any] | None:
        """Return the fault that strikes this request; it strikes no other."""
        with self._changed:
            faults = self._faults[account]
            found = next((fault for fault in faults if fault["reference"] in (None, reference)), None)
            if found is not None:
                faults.remove(found)
            return found

    def hold(self, account: str, seconds: float | None) -> None:
        """Return when the account's held requests are released, or after so many seconds."""
        with self._changed, self._aside():
            round_now = self._released[account]
            self._held[account] += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._released[account] != round_now, seconds)
            self._held[account] -= 1

    def wait_held(self, account: str, count: int) -> None:
        with self._changed, self._aside():
            self._changed.wait_for(lambda: self._held[account] >= count)

    def release(self, account: str) -> None:
        with self._changed:
            self._faults[account] = [fault for fault in self._faults[account] if fault["what"] != "hold"]
            self._released[account] += 1
            self._changed.notify_all()


RESET = struct.pack("ii", 1, 0)
"""SO_LINGER so that closing resets the connection."""


class Handler(BaseHTTPRequestHandler):
    """One request: /ACCOUNT/charges is for the code under test, the other paths are for the test."""

    server: Server

    def handle(self) -> None:
        self.server.wait_sent(self.connection)
        super().handle()

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        _, account, asked = where.path.split("/")
        query = dict(parse_qsl(where.query, keep_blank_values=True))
        if asked == "held":
            self.server.wait_held(account, int(query["count"]))
            return self._answer(HTTPStatus.OK, {})
        self.server.wait_settled()
        books = self.server.books
        return self._answer(HTTPStatus.OK, books.report(account) if asked == "report" else books.find(account, query))

    def do_POST(self) -> None:
        _, account, asked = self.path.split("/")
        length = int(self.headers["Content-Length"])
        text = self.rfile.read(length)
        if len(text) < length:  # the client died while it was sending
            return None
        body = json.loads(text)
        if asked == "charges":
            return self._charge(account, body["reference"], body["amount"])
        if asked == "script":
            self.server.script(account, body)
        else:
            self.server.release(account)
        return self._answer(HTTPStatus.OK, {})

    def _charge(self, account: str, reference: str, amount: int) -> None:
        key, books = self.headers["Idempotency-Key"], self.server.books
        request = books.receive(account, key, reference)
        fault = self.server.take_fault(account, reference) or {"what": "", "charged": True}
        if fault["what"] == "refuse":
            books.settle(request, "refused")
            return self._answer(HTTPStatus.PAYMENT_REQUIRED, {"said": f"the payment of {reference} is refused"})
        if not fault["charged"] and self._strike(account, fault):
            return books.settle(request, "dropped")
        charge = books.charge(request, account, key, reference, amount)
        if fault["charged"] and self._strike(account, fault):
            return None
        if charge is None:
            return self._answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"said": f"the key {key} was used for another charge"})
        return self._answer(HTTPStatus.CREATED, charge)

    def _strike(self, account: str, fault: dict[str, Any]) -> bool:
        """Let the fault happen; return whether there will be no answer."""
        if fault["what"] == "hold":
            self.server.hold(account, fault["seconds"])
        elif fault["what"] == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return fault["what"] in ("close", "reset")

    def _answer(self, status: HTTPStatus, body: Any) -> None:
        """Answer, unless the client has gone."""
        try:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the report tells what happened."""


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main(folder: str, keys: str, port: str) -> None:
    """Serve until the process that started this one closes its end of stdin."""
    server = Server(int(port), Books(Path(folder) / "payments.db", keys == "honour"))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
