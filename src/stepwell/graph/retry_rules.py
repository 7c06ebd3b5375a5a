"""Which failures are worth another attempt, and how long to wait before it.

Here: the default `retry_on`, the reading of `Retry-After`, and the delay of a retry policy. Not here: the policy itself
(`policies.py`), choosing among several policies, counting attempts and sleeping (the runtime does that).

The rule: a failure is retried unless it says that it would happen again. It says so in this order:

1. what is not an `Exception` (a pause, a cancellation) and what Stepwell itself refuses are never retried; a node's
   timeout is; a group is retried when everything in it is;
2. an HTTP answer is judged by its status, whichever library reports it;
3. a certificate that does not verify is never retried, however deeply it is wrapped;
4. else the first class in the method resolution order that the table below lists decides; a class it does not list
   is retried.

Libraries are recognised by the names of their classes and are never imported. Everything is a function of its
arguments: the clock and the random number are handed in.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from typing import Any, Protocol

from stepwell.errors import NodeTimeoutError, StepwellError

MAX_RETRY_AFTER_SECONDS = 3600.0
"""The longest wait that a server's `Retry-After` is granted: one hour."""


class Backoff(Protocol):
    """The part of a retry policy that says how long to wait. Intervals are in seconds."""

    @property
    def initial_interval(self) -> float: ...
    @property
    def backoff_factor(self) -> float: ...
    @property
    def max_interval(self) -> float: ...
    @property
    def jitter(self) -> bool: ...


def default_retry_on(exc: BaseException) -> bool:
    """Tell whether `exc` is a failure that another attempt may not meet again."""
    if isinstance(exc, BaseExceptionGroup):
        return all(default_retry_on(leaf) for leaf in exc.exceptions)
    if not isinstance(exc, Exception):
        return False
    if isinstance(exc, StepwellError):
        return isinstance(exc, NodeTimeoutError)
    status = _http_status(exc)
    if status is not None:
        return status in _RETRIED_ANSWERS or status >= 500
    return not _is_bad_certificate(exc) and _by_class(exc)


def retry_after(exc: BaseException, now: float) -> float | None:
    """Return how many seconds the answer in `exc` asks to wait; None if it does not say, or not intelligibly.

    `now` is in seconds since the epoch; a moment that has passed is 0. A group asks for the longest of its members.
    """
    if isinstance(exc, BaseExceptionGroup):
        asked = (retry_after(leaf, now) for leaf in exc.exceptions)
        return max((seconds for seconds in asked if seconds is not None), default=None)
    text = _retry_after_header(exc)
    if text is None:
        return None
    if _SECONDS.fullmatch(text):
        return max(0.0, float(text))
    return _seconds_until(text, now)


def delay(policy: Backoff, attempt: int, exc: BaseException, now: float, jitter: float) -> float:
    """Return the seconds to wait after the failure of `attempt` (the first is 1).

    `jitter` is a random number in [0, 1), added as seconds if the policy wants it. A `Retry-After` of up to
    `MAX_RETRY_AFTER_SECONDS` is honoured even beyond the policy's `max_interval`.
    """
    wait = _interval(policy, attempt) + (jitter if policy.jitter else 0.0)
    asked = retry_after(exc, now)
    return wait if asked is None else max(wait, min(asked, MAX_RETRY_AFTER_SECONDS))


def _interval(policy: Backoff, attempt: int) -> float:
    try:
        grown = policy.initial_interval * float(policy.backoff_factor) ** (attempt - 1)
    except OverflowError:
        return float(policy.max_interval)
    return float(min(policy.max_interval, grown))


# -- HTTP answers -----------------------------------------------------------------------------------------------------

# Request Timeout, Too Early, Too Many Requests. Every 5xx is retried as well.
_RETRIED_ANSWERS = frozenset({408, 425, 429})

_SECONDS = re.compile(r"-?\d{1,15}(\.\d{0,9})?")


def _http_status(exc: BaseException) -> int | None:
    """Return the status of the error answer that `exc` carries.

    Never ask a response for its truth: in requests an error answer is false.
    """
    response = getattr(exc, "response", None)
    stated = [getattr(holder, name, None) for holder in (response, exc) for name in ("status_code", "status")]
    stated.append(_aws_metadata(response).get("HTTPStatusCode"))
    return next((int(status) for status in stated if isinstance(status, int) and 400 <= status <= 599), None)


def _aws_metadata(response: Any) -> Mapping[Any, Any]:
    """Return what botocore, whose response is a dict, says about the answer."""
    metadata = response.get("ResponseMetadata") if isinstance(response, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _retry_after_header(exc: BaseException) -> str | None:
    response = getattr(exc, "response", None)
    for headers in (
        getattr(response, "headers", None),
        getattr(exc, "headers", None),
        _aws_metadata(response).get("HTTPHeaders"),
    ):
        items = getattr(headers, "items", None)
        for name, value in items() if callable(items) else ():
            if str(name).lower() == "retry-after":
                return str(value).strip()
    return None


def _seconds_until(http_date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime  # costs 20 ms of an import that few runs need

    try:
        moment = parsedate_to_datetime(http_date)
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


# -- certificates -----------------------------------------------------------------------------------------------------


def _is_bad_certificate(exc: BaseException) -> bool:
    return any("ssl.SSLCertVerificationError" in names(layer) for layer in layers(exc))


def layers(exc: BaseException) -> Iterator[BaseException]:
    """Yield `exc` and whatever it was made from: its cause, its `reason`, exceptions among its arguments.

    The context is left out: an error that merely came up while another was handled says nothing about that other.
    """
    seen: set[int] = set()
    ahead = [exc]
    while ahead:
        layer = ahead.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        yield layer
        within = (layer.__cause__, getattr(layer, "reason", None), *layer.args)
        ahead.extend(each for each in within if isinstance(each, BaseException))


# -- classes ----------------------------------------------------------------------------------------------------------


def _by_class(exc: Exception) -> bool:
    for name in names(exc):
        verdict = _VERDICTS.get(name)
        if verdict is not None:
            return verdict(exc) if callable(verdict) else verdict
    return True


def names(exc: BaseException) -> Iterator[str]:
    """Yield top package and name of each class of `exc`, in method resolution order."""
    for cls in type(exc).__mro__:
        package = cls.__module__.partition(".")[0]
        yield f"{_SUCCESSORS.get(package, package)}.{cls.__name__}"


def _by_errno(exc: Exception) -> bool:
    return getattr(exc, "errno", None) in _TRANSIENT_ERRNOS


def _by_reason(exc: Exception) -> bool:
    reason = getattr(exc, "reason", None)
    return isinstance(reason, Exception) and reason is not exc and default_retry_on(reason)


_ERRNO_NAMES = """
    EAGAIN EWOULDBLOCK EINTR ETIMEDOUT ECONNRESET ECONNREFUSED ECONNABORTED ENOTCONN EPIPE ESHUTDOWN
    EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET EADDRNOTAVAIL ENOBUFS
"""

_TRANSIENT_ERRNOS = frozenset(
    number
    for name in _ERRNO_NAMES.split()
    for number in (getattr(errno, name, None), getattr(errno, f"WSA{name}", None))
    if number is not None
)

_RETRIED = """
    builtins.ConnectionError builtins.TimeoutError builtins.BlockingIOError builtins.InterruptedError
    socket.gaierror socket.herror
    ssl.SSLEOFError ssl.SSLZeroReturnError ssl.SSLSyscallError
    http.IncompleteRead http.BadStatusLine
    urllib.ContentTooShortError
    httpx.TransportError
    requests.ConnectionError requests.Timeout requests.ChunkedEncodingError requests.RetryError requests.HTTPError
    urllib3.TimeoutError urllib3.ProtocolError
    aiohttp.ClientConnectionError aiohttp.ClientPayloadError
"""

_NOT_RETRIED = """
    builtins.ValueError builtins.TypeError builtins.ArithmeticError builtins.ImportError builtins.LookupError
    builtins.NameError builtins.SyntaxError builtins.RuntimeError builtins.ReferenceError builtins.AssertionError
    builtins.AttributeError builtins.StopIteration builtins.StopAsyncIteration
    concurrent.CancelledError
    ssl.SSLError
    http.InvalidURL http.ImproperConnectionState http.UnknownProtocol http.UnknownTransferEncoding
    http.UnimplementedFileMode
    httpx.UnsupportedProtocol httpx.LocalProtocolError httpx.TooManyRedirects httpx.DecodingError httpx.InvalidURL
    httpx.CookieConflict
    httpcore.UnsupportedProtocol httpcore.LocalProtocolError
    requests.RequestException
    urllib3.DecodeError urllib3.InvalidHeader urllib3.ResponseNotChunked
    aiohttp.ContentTypeError aiohttp.TooManyRedirects aiohttp.InvalidURL
    aiohttp.ClientConnectorCertificateError aiohttp.ServerFingerprintMismatch
"""

# Packages that carry on another one's classes under a new name.
_SUCCESSORS = {"httpx2": "httpx", "httpcore2": "httpcore"}

# Keyed by the top package that defines the class, and its name. The numbers of `ssl` and `socket.gaierror` are not
# errnos, which is why those classes have rows of their own and come before OSError.
_VERDICTS: dict[str, bool | Callable[[Exception], bool]] = {
    **dict.fromkeys(_RETRIED.split(), True),
    **dict.fromkeys(_NOT_RETRIED.split(), False),
    "builtins.OSError": _by_errno,
    "urllib.URLError": _by_reason,
    "urllib3.MaxRetryError": _by_reason,
}
