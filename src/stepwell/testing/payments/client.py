"""The client that the code under test charges with, from sync and from async code.

One connection a call, and no retry of its own: what went wrong is raised as the standard library raises it
(`ConnectionRefusedError`, `ConnectionResetError`, `TimeoutError`), so that the code under test has to deal with it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http.client import HTTPConnection, RemoteDisconnected
from typing import Any, NamedTuple, TypedDict
from urllib.parse import urlencode, urlsplit


class Charge(TypedDict):
    """A charge as the server has it in its books."""

    id: int
    reference: str
    amount: int
    key: str | None


class PaymentRefusedError(Exception):
    """The server refused the charge: nothing was charged."""


class KeyReusedError(Exception):
    """The server knows the idempotency key from another charge: nothing was charged."""


class _Call(NamedTuple):
    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]


class Payments:
    """One account of a payment server. `url` is `Account.url`; `timeout_seconds` limits connecting, and each read."""

    def __init__(self, url: str, *, timeout_seconds: float = 10.0) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path.rstrip("/")
        self._timeout_seconds = timeout_seconds

    def charge(self, amount: int, *, reference: str = "", idempotency_key: str | None = None) -> Charge:
        """Charge the amount for what `reference` names. A server that honours keys charges once a key.

        Raises PaymentRefusedError and KeyReusedError, after which nothing was charged; any other error says nothing of
        what the server has done.
        """
        return _charged(*self._exchange(self._charging(amount, reference, idempotency_key)))

    async def acharge(self, amount: int, *, reference: str = "", idempotency_key: str | None = None) -> Charge:
        """Charge as `charge` does, on an event loop. Cancelling it closes the connection, and nothing more."""
        return _charged(*await self._aexchange(self._charging(amount, reference, idempotency_key)))

    def find(self, *, reference: str | None = None, idempotency_key: str | None = None) -> list[Charge]:
        """Return the charges for this reference, or under this key, oldest first.

        The server answers when it is done with every request that came before and is not held.
        """
        return _found(*self._exchange(self._finding(reference, idempotency_key)))

    async def afind(self, *, reference: str | None = None, idempotency_key: str | None = None) -> list[Charge]:
        """Return the charges as `find` does, on an event loop."""
        return _found(*await self._aexchange(self._finding(reference, idempotency_key)))

    def _charging(self, amount: int, reference: str, key: str | None) -> _Call:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = json.dumps({"amount": amount, "reference": reference}).encode()
        return _Call("POST", f"{self._path}/charges", body, headers)

    def _finding(self, reference: str | None, key: str | None) -> _Call:
        asked = {"reference": reference, "key": key}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return _Call("GET", f"{self._path}/charges?{query}", b"", {})

    def _exchange(self, call: _Call) -> tuple[int, Any]:
        connection = HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)
        try:
            connection.request(call.method, call.path, call.body, call.headers)
            with connection.getresponse() as answer:
                return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    async def _aexchange(self, call: _Call) -> tuple[int, Any]:
        async with asyncio.timeout(self._timeout_seconds):
            reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            headers = {"Host": self._host, "Content-Length": str(len(call.body)), **call.headers}
            lines = [f"{call.method} {call.path} HTTP/1.0", *(f"{name}: {text}" for name, text in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode() + call.body)
            async with asyncio.timeout(self._timeout_seconds):
                answer = await reader.read()
        finally:
            writer.close()
        if not answer:
            raise RemoteDisconnected("Remote end closed connection without response")
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)


def _charged(status: int, answer: Any) -> Charge:
    if status == 402:
        raise PaymentRefusedError(answer["said"])
    if status == 422:
        raise KeyReusedError(answer["said"])
    charge: Charge = answer
    return charge


def _found(status: int, answer: Any) -> list[Charge]:
    charges: list[Charge] = answer
    return charges
