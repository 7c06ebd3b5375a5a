"""The retry rules, row by row, on exceptions that real libraries raised against a real server, or constructed.

No exception here is a stand-in: HTTP errors come from httpx, requests and urllib talking to a server on the loopback
interface that answers the status it is asked for, hangs, or drops the connection.
"""

import asyncio
import concurrent.futures
import errno
import http.client
import json
import math
import os
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
import requests
import urllib3

from stepwell.errors import (
    GraphInterrupt,
    GraphRecursionError,
    InvalidUpdateError,
    NodeCancelledError,
    NodeTimeoutError,
    ThreadBusyError,
)
from stepwell.graph.retry_rules import MAX_RETRY_AFTER_SECONDS, default_retry_on, delay, retry_after

NOW = 1_800_000_000.0
A_MOMENT = 0.05


# -- a server that fails on demand ------------------------------------------------------------------------------------


class Failing(BaseHTTPRequestHandler):
    """`/503` answers 503, `/hang` nothing until the test ends, `/drop` closes, `/short` breaks off in the body."""

    closing: Event

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        fail = getattr(self, f"fail_{path[1:]}", None)
        if fail is not None:
            fail()
        else:
            self.answer(int(path[1:]), {"Retry-After": urllib.parse.unquote(query)} if query else {})

    def answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def fail_hang(self) -> None:
        self.closing.wait()

    def fail_drop(self) -> None:
        self.close_connection = True

    def fail_short(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"not a thousand bytes")

    def fail_broken_chunk(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"100\r\nnot two hundred and fifty-six bytes")

    def fail_loop(self) -> None:
        self.answer(302, {"Location": "/loop"})

    def fail_nonsense(self) -> None:
        self.wfile.write(b"this is not HTTP\r\n\r\n")

    def fail_gzip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"oops")

    def fail_text(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"oops")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    closing = Event()
    handler = type("Handler", (Failing,), {"closing": closing})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def closed_url() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def raised(call: Callable[[], object]) -> Exception:
    """Return the exception that `call` raises."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def httpx_get(url: str, timeout: httpx.Timeout | float = 5) -> None:
    with httpx.Client(timeout=timeout, trust_env=False) as client:
        client.get(url).raise_for_status()


def httpx_follow(url: str) -> None:
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        client.get(url)


def requests_get(url: str, timeout: float = 5) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, timeout=timeout)
        answer.raise_for_status()
        return answer


def urllib_get(url: str, timeout: float = 5) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=timeout) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer too, with its connection
        raise


def urllib3_get(url: str, retries: urllib3.Retry) -> None:
    with urllib3.PoolManager() as pool:
        pool.request("GET", url, retries=retries)


GETS: dict[str, Callable[[str], object]] = {"httpx": httpx_get, "requests": requests_get, "urllib": urllib_get}


# -- HTTP answers -----------------------------------------------------------------------------------------------------

ANSWERS = {
    400: False,
    401: False,
    403: False,
    404: False,
    405: False,
    408: True,
    409: False,
    410: False,
    413: False,
    422: False,
    423: False,
    425: True,
    428: False,
    429: True,
    451: False,
    500: True,
    501: True,
    502: True,
    503: True,
    504: True,
    507: True,
    529: True,
}


@pytest.mark.parametrize("library", GETS)
@pytest.mark.parametrize(("status", "retried"), ANSWERS.items())
def test_M1_an_http_answer_is_judged_by_its_status(library: str, status: int, retried: bool, url: str) -> None:
    error = raised(lambda: GETS[library](f"{url}/{status}"))
    assert isinstance(error, httpx.HTTPStatusError | requests.HTTPError | urllib.error.HTTPError)
    assert default_retry_on(error) is retried


def test_M1_the_falsehood_of_an_error_response_does_not_hide_its_status(url: str) -> None:
    error = raised(lambda: requests_get(f"{url}/404"))
    assert isinstance(error, requests.HTTPError)
    assert error.response is not None
    assert not error.response  # the trap: requests says that an error answer is false
    assert default_retry_on(error) is False


@dataclass
class Answer:
    status_code: int


class ApiError(Exception):
    """How SDKs report an answer: a status on the error itself."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(attributes)
        self.__dict__.update(attributes)


class InvalidAnswer(ApiError, ValueError):
    pass


OTHER_ANSWERS = {
    "status_code 429": (ApiError(status_code=429), True),
    "status_code 422": (ApiError(status_code=422), False),
    "status 503": (ApiError(status=503), True),
    "status 401": (ApiError(status=401), False),
    "response.status_code 500": (ApiError(response=Answer(500)), True),
    "response.status_code 404": (ApiError(response=Answer(404)), False),
    "the response's status comes before the error's own": (ApiError(response=Answer(404), status=500), False),
    "an HTTPStatus": (ApiError(status_code=http.HTTPStatus.BAD_GATEWAY), True),
    "an AWS answer 503": (ApiError(response={"ResponseMetadata": {"HTTPStatusCode": 503}}), True),
    "an AWS answer 400": (ApiError(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), False),
    "an answer reported as a ValueError": (InvalidAnswer(status_code=503), True),
    "a status that is no HTTP status": (ApiError(status=3), True),
    "a status in words": (ApiError(status="404"), True),
    "a status that is a truth value": (ApiError(status=True), True),
    "a response that is None": (ApiError(response=None), True),
    "requests.HTTPError without a response": (requests.HTTPError("no answer"), True),
}


@pytest.mark.parametrize(("error", "retried"), OTHER_ANSWERS.values(), ids=OTHER_ANSWERS)
def test_M1_an_answer_is_recognised_whoever_reports_it(error: Exception, retried: bool) -> None:
    assert default_retry_on(error) is retried


# -- connections that fail --------------------------------------------------------------------------------------------

BROKEN: dict[str, tuple[Callable[[str], object], type[Exception]]] = {
    "httpx read timeout": (lambda url: httpx_get(f"{url}/hang", A_MOMENT), httpx.ReadTimeout),
    "httpx dropped": (lambda url: httpx_get(f"{url}/drop"), httpx.RemoteProtocolError),
    "httpx short body": (lambda url: httpx_get(f"{url}/short"), httpx.RemoteProtocolError),
    "httpx nonsense": (lambda url: httpx_get(f"{url}/nonsense"), httpx.RemoteProtocolError),
    "requests read timeout": (lambda url: requests_get(f"{url}/hang", A_MOMENT), requests.ReadTimeout),
    "requests dropped": (lambda url: requests_get(f"{url}/drop"), requests.ConnectionError),
    "requests short body": (lambda url: requests_get(f"{url}/short"), requests.exceptions.ChunkedEncodingError),
    "requests broken chunk": (
        lambda url: requests_get(f"{url}/broken_chunk"),
        requests.exceptions.ChunkedEncodingError,
    ),
    "urllib read timeout": (lambda url: urllib_get(f"{url}/hang", A_MOMENT), TimeoutError),
    "urllib dropped": (lambda url: urllib_get(f"{url}/drop"), http.client.RemoteDisconnected),
    "urllib short body": (lambda url: urllib_get(f"{url}/short"), http.client.IncompleteRead),
    "urllib nonsense": (lambda url: urllib_get(f"{url}/nonsense"), http.client.BadStatusLine),
    "urllib3 retries used up": (
        lambda url: urllib3_get(f"{url}/503", urllib3.Retry(0, status_forcelist=[503])),
        urllib3.exceptions.MaxRetryError,
    ),
}


@pytest.mark.parametrize(("call", "kind"), BROKEN.values(), ids=BROKEN)
def test_M1_a_broken_connection_is_retried(call: Callable[[str], object], kind: type[Exception], url: str) -> None:
    error = raised(lambda: call(url))
    assert isinstance(error, kind)
    assert default_retry_on(error) is True


REFUSED: dict[str, type[Exception]] = {
    "httpx": httpx.ConnectError,
    "requests": requests.ConnectionError,
    "urllib": urllib.error.URLError,
}


@pytest.mark.parametrize(("library", "kind"), REFUSED.items())
def test_M1_a_refused_connection_is_retried(library: str, kind: type[Exception], closed_url: str) -> None:
    error = raised(lambda: GETS[library](closed_url))
    assert isinstance(error, kind)
    assert default_retry_on(error) is True


@pytest.mark.parametrize(("library", "kind"), REFUSED.items())
def test_M1_a_name_that_does_not_resolve_is_retried(library: str, kind: type[Exception]) -> None:
    error = raised(lambda: GETS[library]("http://nowhere.invalid/"))
    assert isinstance(error, kind)
    assert default_retry_on(error) is True


def test_M1_a_pool_without_a_free_connection_is_retried(url: str) -> None:
    limits, timeout = httpx.Limits(max_connections=1), httpx.Timeout(5, pool=A_MOMENT)
    with httpx.Client(limits=limits, timeout=timeout, trust_env=False) as client, client.stream("GET", f"{url}/text"):
        error = raised(lambda: client.get(f"{url}/text"))
    assert isinstance(error, httpx.PoolTimeout)
    assert default_retry_on(error) is True


def test_M1_a_connection_reset_under_a_raw_socket_is_retried() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        error = raised(lambda: [ours.send(b"x") for _ in range(2)])
    assert isinstance(error, ConnectionError)
    assert default_retry_on(error) is True


async def test_M1_an_asyncio_timeout_is_retried() -> None:
    with pytest.raises(asyncio.TimeoutError) as caught:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    assert default_retry_on(caught.value) is True


async def test_M1_a_stream_that_ends_early_is_retried() -> None:
    reader = asyncio.StreamReader()
    reader.feed_eof()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await reader.readexactly(10)
    assert default_retry_on(caught.value) is True


# -- calls that would fail again --------------------------------------------------------------------------------------

WRONG_CALLS: dict[str, tuple[Callable[[str], object], type[Exception]]] = {
    "httpx unsupported protocol": (lambda _: httpx_get("gopher://localhost/"), httpx.UnsupportedProtocol),
    "httpx invalid URL": (lambda _: httpx_get("http://[::1/"), httpx.InvalidURL),
    "httpx local protocol": (
        lambda url: httpx.Client(trust_env=False).get(url, headers={"X": "a\nb"}),
        httpx.LocalProtocolError,
    ),
    "httpx redirects": (lambda url: httpx_follow(f"{url}/loop"), httpx.TooManyRedirects),
    "httpx decoding": (lambda url: httpx_get(f"{url}/gzip"), httpx.DecodingError),
    "requests missing schema": (lambda _: requests_get("localhost"), requests.exceptions.MissingSchema),
    "requests invalid schema": (lambda _: requests_get("gopher://localhost/"), requests.exceptions.InvalidSchema),
    "requests invalid URL": (lambda _: requests_get("http://"), requests.exceptions.InvalidURL),
    "requests redirects": (lambda url: requests_get(f"{url}/loop"), requests.TooManyRedirects),
    "requests decoding": (lambda url: requests_get(f"{url}/gzip"), requests.exceptions.ContentDecodingError),
    "requests JSON": (lambda url: requests_get(f"{url}/text").json(), requests.exceptions.JSONDecodeError),
    "urllib unknown type": (lambda _: urllib_get("gopher://localhost/"), urllib.error.URLError),
    "urllib invalid URL": (lambda url: urllib_get(f"{url}/a b"), http.client.InvalidURL),
    "urllib redirects": (lambda url: urllib_get(f"{url}/loop"), urllib.error.HTTPError),
    "http.client used wrongly": (
        lambda _: http.client.HTTPConnection("localhost").getresponse(),
        http.client.ResponseNotReady,
    ),
}


@pytest.mark.parametrize(("call", "kind"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_M1_a_wrong_call_is_not_retried(call: Callable[[str], object], kind: type[Exception], url: str) -> None:
    error = raised(lambda: call(url))
    assert isinstance(error, kind)
    assert default_retry_on(error) is False


def caused_by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def within(error: Exception, context: Exception) -> Exception:
    error.__context__ = context
    return error


UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNEXPECTED_EOF = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
POOL = urllib3.HTTPSConnectionPool("localhost")

TLS = {
    "ssl certificate": (UNTRUSTED, False),
    "httpx certificate": (caused_by(httpx.ConnectError("verify"), caused_by(Exception("core"), UNTRUSTED)), False),
    "requests certificate": (
        requests.exceptions.SSLError(
            urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.SSLError(UNTRUSTED))
        ),
        False,
    ),
    "urllib certificate": (urllib.error.URLError(UNTRUSTED), False),
    "a timeout while a bad certificate was handled": (within(TimeoutError(), UNTRUSTED), True),
    "ssl EOF": (UNEXPECTED_EOF, True),
    "ssl closed": (ssl.SSLZeroReturnError(6, "closed"), True),
    "ssl other": (ssl.SSLError(1, "no protocols available"), False),
    "requests ssl EOF": (
        requests.exceptions.SSLError(
            urllib3.exceptions.MaxRetryError(POOL, "/", urllib3.exceptions.SSLError(UNEXPECTED_EOF))
        ),
        True,
    ),
    "urllib ssl EOF": (urllib.error.URLError(UNEXPECTED_EOF), True),
}


@pytest.mark.parametrize(("error", "retried"), TLS.values(), ids=TLS)
def test_M1_a_bad_certificate_is_not_retried_and_a_lost_tls_connection_is(error: Exception, retried: bool) -> None:
    assert default_retry_on(error) is retried


# -- the operating system ---------------------------------------------------------------------------------------------

ERRNOS = {
    "ECONNRESET": True,
    "ECONNREFUSED": True,
    "ECONNABORTED": True,
    "EPIPE": True,
    "ETIMEDOUT": True,
    "EHOSTUNREACH": True,
    "ENETUNREACH": True,
    "ENETDOWN": True,
    "EAGAIN": True,
    "EINTR": True,
    "ENOENT": False,
    "EACCES": False,
    "EPERM": False,
    "EEXIST": False,
    "ENOSPC": False,
    "EROFS": False,
    "EMFILE": False,
    "EIO": False,
    "EISDIR": False,
    "ENOTDIR": False,
}


@pytest.mark.parametrize(("name", "retried"), ERRNOS.items())
def test_an_os_error_is_judged_by_its_number(name: str, retried: bool) -> None:
    number = getattr(errno, name)
    assert default_retry_on(OSError(number, os.strerror(number))) is retried


def test_a_file_that_is_not_there_is_not_retried() -> None:
    assert default_retry_on(raised(lambda: Path("/nowhere/at/all").stat())) is False


# -- everything else --------------------------------------------------------------------------------------------------


class CustomError(Exception):
    pass


class FlakyValue(ConnectionError, ValueError):
    pass


class BadAddress(ValueError, ConnectionError):
    pass


OTHERS: dict[str, tuple[BaseException, bool]] = {
    "ConnectionError": (ConnectionError(), True),
    "BrokenPipeError": (BrokenPipeError(), True),
    "TimeoutError": (TimeoutError(), True),
    "socket.timeout": (TimeoutError("timed out"), True),
    "socket.gaierror": (socket.gaierror(socket.EAI_AGAIN, "try again"), True),
    "OSError without a number": (OSError("disk"), False),
    "a class of one's own": (CustomError(), True),
    "ConnectionError before ValueError": (FlakyValue(), True),
    "ValueError before ConnectionError": (BadAddress(), False),
    "ValueError": (ValueError(), False),
    "json.JSONDecodeError": (raised(lambda: json.loads("{")), False),
    "UnicodeDecodeError": (raised(lambda: b"\xff".decode()), False),
    "TypeError": (TypeError(), False),
    "ZeroDivisionError": (ZeroDivisionError(), False),
    "ModuleNotFoundError": (ModuleNotFoundError(), False),
    "KeyError": (KeyError("x"), False),
    "IndexError": (IndexError(), False),
    "NameError": (NameError(), False),
    "SyntaxError": (SyntaxError(), False),
    "RuntimeError": (RuntimeError(), False),
    "RecursionError": (RecursionError(), False),
    "NotImplementedError": (NotImplementedError(), False),
    "ReferenceError": (ReferenceError(), False),
    "AssertionError": (AssertionError(), False),
    "AttributeError": (AttributeError(), False),
    "StopIteration": (StopIteration(), False),
    "StopAsyncIteration": (StopAsyncIteration(), False),
    "concurrent.futures.TimeoutError": (concurrent.futures.TimeoutError(), True),
    "concurrent.futures.CancelledError": (concurrent.futures.CancelledError(), False),
    "asyncio.CancelledError": (asyncio.CancelledError(), False),
    "KeyboardInterrupt": (KeyboardInterrupt(), False),
    "SystemExit": (SystemExit(1), False),
    "GeneratorExit": (GeneratorExit(), False),
    "a pause": (GraphInterrupt(["ready?"]), False),
    "a node's timeout": (NodeTimeoutError(node="fetch", kind="run", timeout=1.0, elapsed=1.1), True),
    "a cancelled node": (NodeCancelledError(node="fetch"), False),
    "the step limit": (GraphRecursionError(limit=25), False),
    "an invalid update": (InvalidUpdateError(reason="no such field"), False),
    "a busy thread": (ThreadBusyError(thread_id="t", holder="h", run_id="r", expires_in=1.0), False),
    "a group of transient failures": (ExceptionGroup("all", [TimeoutError(), ConnectionError()]), True),
    "a group with one bug": (ExceptionGroup("mixed", [TimeoutError(), ValueError()]), False),
    "a nested group": (ExceptionGroup("outer", [ExceptionGroup("inner", [TimeoutError()])]), True),
    "a nested group with a bug": (ExceptionGroup("outer", [ExceptionGroup("inner", [KeyError("x")])]), False),
    "a group with a pause": (BaseExceptionGroup("paused", [TimeoutError(), GraphInterrupt()]), False),
    "urllib3 location": (urllib3.exceptions.LocationParseError("x"), False),
}


@pytest.mark.parametrize(("error", "retried"), OTHERS.values(), ids=OTHERS)
def test_every_other_failure_has_its_row(error: BaseException, retried: bool) -> None:
    assert default_retry_on(error) is retried


# -- Retry-After ------------------------------------------------------------------------------------------------------

HEADERS = {
    "seconds": ("7", 7.0),
    "zero": ("0", 0.0),
    "a fraction": ("1.5", 1.5),
    "padded": ("  3 ", 3.0),
    "negative": ("-5", 0.0),
    "a date": (formatdate(NOW + 90, usegmt=True), 90.0),
    "a date of RFC 850": ("Friday, 15-Jan-27 08:01:30 GMT", 90.0),
    "a date of asctime": ("Fri Jan 15 08:01:30 2027", 90.0),
    "a date that has passed": (formatdate(NOW - 90, usegmt=True), 0.0),
    "words": ("soon", None),
    "not a number": ("nan", None),
    "infinite": ("inf", None),
    "an exponent": ("1e9", None),
    "too many digits": ("9" * 400, None),
    "no such day": ("Wed, 99 Foo 2027 99:99:99 GMT", None),
}


@pytest.mark.parametrize("library", GETS)
@pytest.mark.parametrize(("header", "seconds"), HEADERS.values(), ids=HEADERS)
def test_M1_retry_after_is_read(library: str, header: str, seconds: float | None, url: str) -> None:
    error = raised(lambda: GETS[library](f"{url}/429?{urllib.parse.quote(header)}"))
    assert retry_after(error, NOW) == seconds


@pytest.mark.parametrize("library", GETS)
@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_M1_retry_after_is_read_on_every_answer_that_is_retried(library: str, status: int, url: str) -> None:
    assert retry_after(raised(lambda: GETS[library](f"{url}/{status}?4")), NOW) == 4.0
    assert retry_after(raised(lambda: GETS[library](f"{url}/{status}")), NOW) is None


SILENT = {
    "no answer at all": ConnectionError(),
    "no headers": ApiError(response=Answer(503)),
    "headers that are no mapping": ApiError(headers=3),
}


@pytest.mark.parametrize("error", SILENT.values(), ids=SILENT)
def test_nothing_is_asked_where_no_answer_says_so(error: Exception) -> None:
    assert retry_after(error, NOW) is None


def test_headers_are_found_in_plain_dicts_and_in_aws_answers() -> None:
    assert retry_after(ApiError(headers={"RETRY-AFTER": 2}), NOW) == 2.0
    metadata = {"HTTPStatusCode": 503, "HTTPHeaders": {"retry-after": "3"}}
    assert retry_after(ApiError(response={"ResponseMetadata": metadata}), NOW) == 3.0


def test_a_group_asks_for_its_longest_wait() -> None:
    asked = [ApiError(headers={"Retry-After": seconds}) for seconds in ("2", "9", "4")]
    assert retry_after(ExceptionGroup("three", [*asked, TimeoutError()]), NOW) == 9.0


# -- delays -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    jitter: bool = False


DELAYS = {
    "first": (Policy(), 1, 0.5),
    "second": (Policy(), 2, 1.0),
    "fifth": (Policy(), 5, 8.0),
    "at the limit": (Policy(), 9, 128.0),
    "beyond the limit": (Policy(), 10, 128.0),
    "far beyond": (Policy(), 10_000, 128.0),
    "beyond every float": (Policy(), 10**12, 128.0),
    "an integer factor": (Policy(backoff_factor=3), 10**9, 128.0),
    "no growth": (Policy(backoff_factor=1.0), 10**9, 0.5),
    "shrinking": (Policy(backoff_factor=0.5), 3, 0.125),
    "no wait": (Policy(initial_interval=0.0), 50, 0.0),
    "a limit below the first wait": (Policy(max_interval=0.1), 1, 0.1),
}


@pytest.mark.parametrize(("policy", "attempt", "seconds"), DELAYS.values(), ids=DELAYS)
def test_the_wait_grows_up_to_its_limit(policy: Policy, attempt: int, seconds: float) -> None:
    assert delay(policy, attempt, TimeoutError(), NOW, jitter=0.75) == seconds


def test_jitter_is_added_only_where_the_policy_wants_it() -> None:
    assert delay(Policy(jitter=True), 1, TimeoutError(), NOW, jitter=0.75) == 1.25
    assert delay(Policy(jitter=True, max_interval=0.25), 9, TimeoutError(), NOW, jitter=0.75) == 1.0


ASKED = {
    "longer than the policy's wait": ("30", 30.0),
    "longer than the policy's limit": ("600", 600.0),
    "shorter than the policy's wait": ("0.1", 0.5),
    "at most an hour": ("86400", MAX_RETRY_AFTER_SECONDS),
    "a date": (formatdate(NOW + 60, usegmt=True), 60.0),
    "garbage": ("whenever", 0.5),
}


@pytest.mark.parametrize(("header", "seconds"), ASKED.values(), ids=ASKED)
def test_M1_the_wait_is_at_least_what_the_server_asks(header: str, seconds: float) -> None:
    error = ApiError(status_code=429, headers={"Retry-After": header})
    assert delay(Policy(), 1, error, NOW, jitter=0.0) == seconds


def test_every_delay_is_finite_and_not_negative() -> None:
    waits = [delay(Policy(), attempt, ApiError(headers={"Retry-After": "-9"}), NOW, 0.0) for attempt in (1, 99, 10**9)]
    assert all(math.isfinite(wait) and wait >= 0 for wait in waits)
