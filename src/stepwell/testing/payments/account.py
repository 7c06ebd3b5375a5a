"""What a test sees of one account: it scripts faults, waits for held requests, and reads what was charged.

Each test takes an account of its own, so tests share a server and nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple
from urllib.request import Request as HttpRequest, urlopen

from stepwell.testing.payments.client import Charge

LONGEST_SECONDS = 60.0


@dataclass(frozen=True)
class Fault:
    """What happens to one charging request in place of a plain answer.

    "refuse": told that the payment is refused. "close": the connection is closed without an answer; "reset": it is
    reset. "hold": nothing happens until `Account.release`, or until `seconds` have passed, and then it is answered.
    """

    what: Literal["refuse", "close", "reset", "hold"]
    charged: bool = True
    """Whether it happens after the charge or before. What is held before is charged after it; a refusal never is."""
    reference: str | None = None
    """Strike only the request for this reference; None for the next one, whatever it is for."""
    seconds: float | None = None


class Request(NamedTuple):
    """One charging request, as it came in."""

    key: str | None
    reference: str
    fate: str
    """"charged", "repeated" (the key was known: the old charge stands), "reused" (known with another charge),
    "refused", "dropped" (the connection ended before anything was charged) or "held"."""


@dataclass(frozen=True)
class Report:
    """What the server has seen and done on one account."""

    requests: tuple[Request, ...]
    charges: tuple[Charge, ...]

    @property
    def received(self) -> Mapping[str | None, int]:
        """Requests per idempotency key."""
        return Counter(request.key for request in self.requests)

    @property
    def charged(self) -> Mapping[str, int]:
        """Charges per reference."""
        return Counter(charge["reference"] for charge in self.charges)

    @property
    def duplicates(self) -> Mapping[str, int]:
        """The references charged more than once: charges per reference."""
        return {reference: count for reference, count in self.charged.items() if count > 1}


class Account:
    """One account of a running server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def script(self, *faults: Fault) -> None:
        """Let these faults strike the next requests, one each, in order."""
        self._post("script", [asdict(fault) for fault in faults])

    def wait_held(self, count: int = 1) -> None:
        """Return once so many requests are held."""
        self._get(f"held?count={count}")

    def release(self) -> None:
        """Let every held request go on, and hold none from now on."""
        self._post("release", [])

    def report(self) -> Report:
        """Return what was received and charged, once every request that came before is over or held."""
        told = self._get("report")
        return Report(tuple(Request(*request) for request in told["requests"]), tuple(told["charges"]))

    def _get(self, path: str) -> Any:
        with urlopen(f"{self.url}/{path}", timeout=LONGEST_SECONDS) as answer:
            return json.load(answer)

    def _post(self, path: str, body: Any) -> None:
        request = HttpRequest(f"{self.url}/{path}", json.dumps(body).encode(), method="POST")
        with urlopen(request, timeout=LONGEST_SECONDS):
            pass
