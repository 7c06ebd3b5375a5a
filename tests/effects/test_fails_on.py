"""The default `fails_on`, on exceptions that real clients raised: nothing was sent, or who knows."""

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
import requests
import urllib3

from stepwell import EffectInDoubtError, GraphInterrupt
from stepwell.graph.effect_rules import default_fails_on


class Server(BaseHTTPRequestHandler):
    """`/drop` closes the connection, `/away` redirects to where nobody listens, any other path is its status."""

    nobody = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.send_response(303 if self.path == "/away" else int(self.path[1:]))
        if self.path == "/away":
            self.send_header("Location", self.nobody)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def nobody() -> Iterator[str]:
    """A port that refuses: bound, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture(scope="module")
def server(nobody: str) -> Iterator[str]:
    Server.nobody = nobody
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def by_httpx(url: str) -> Any:
    return httpx.post(url, content=b"x", follow_redirects=True).raise_for_status()


def by_async_httpx(url: str) -> Any:
    async def main() -> Any:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            return (await client.post(url, content=b"x")).raise_for_status()

    return asyncio.run(main())


def by_requests(url: str) -> Any:
    return requests.post(url, data=b"x", timeout=5).raise_for_status()


def by_urllib(url: str) -> Any:
    return urllib.request.urlopen(url, data=b"x", timeout=5)


def by_urllib3(url: str) -> Any:
    with urllib3.PoolManager(retries=urllib3.Retry(connect=0, read=0, redirect=3)) as pool:
        answer = pool.request("POST", url, body=b"x")
    if answer.status >= 400:
        raise OSError(answer.status)
    return answer


def by_asyncio(url: str) -> Any:
    async def main() -> Any:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port.partition("/")[0]))
        try:
            writer.write(b"POST /drop HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            return await reader.readexactly(1)
        finally:
            writer.close()

    return asyncio.run(main())


CLIENTS = [by_httpx, by_async_httpx, by_requests, by_urllib, by_urllib3, by_asyncio]
HTTP = CLIENTS[:-1]
Client = Callable[[str], Any]


def raised(client: Client, url: str) -> Exception:
    with pytest.raises(Exception) as caught:  # each client has its own
        client(url)
    if isinstance(caught.value, urllib.error.HTTPError):
        caught.value.close()
    return caught.value


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_connection_means_that_nothing_was_sent(client: Client, nobody: str) -> None:
    assert default_fails_on(raised(client, nobody))


@pytest.mark.parametrize("client", CLIENTS)
def test_so_does_a_name_that_does_not_resolve(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def unresolved(*args: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    assert default_fails_on(raised(client, "http://nowhere.invalid:80"))


def test_several_addresses_that_all_refuse_are_one_refusal(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(nobody.rpartition(":")[2])
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in (1, 2)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: found)
    error = raised(by_asyncio, f"http://somewhere.invalid:{port}")
    assert type(error) is OSError
    assert default_fails_on(error)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_connection_that_is_lost_after_the_request_was_sent_says_nothing(client: Client, server: str) -> None:
    assert not default_fails_on(raised(client, f"{server}/drop"))


@pytest.mark.parametrize("status", [400, 402, 409, 500, 503])
@pytest.mark.parametrize("client", HTTP)
def test_an_answer_that_is_an_error_says_nothing(client: Client, server: str, status: int) -> None:
    assert not default_fails_on(raised(client, f"{server}/{status}"))


@pytest.mark.parametrize("client", HTTP)
def test_a_refusal_after_a_redirect_says_nothing_of_the_request_before_it(client: Client, server: str) -> None:
    assert not default_fails_on(raised(client, f"{server}/away"))


def test_a_refusal_after_a_retry_of_the_client_says_nothing_of_the_try_before_it(server: str, nobody: str) -> None:
    pool = urllib3.PoolManager()
    tries = urllib3.Retry(total=1, allowed_methods=None, backoff_factor=0.0)
    connect = urllib3.connection.HTTPConnection.connect
    seen: list[int] = []

    def once(self: Any) -> None:
        seen.append(1)
        if len(seen) > 1:
            raise urllib3.exceptions.NewConnectionError(self, "refused")
        connect(self)

    urllib3.connection.HTTPConnection.connect = once  # type: ignore[method-assign]
    try:
        with pytest.raises(urllib3.exceptions.MaxRetryError) as caught:
            pool.request("POST", f"{server}/drop", body=b"x", retries=tries)
    finally:
        urllib3.connection.HTTPConnection.connect = connect  # type: ignore[method-assign]
        pool.clear()
    assert len(seen) == 2
    assert not default_fails_on(caught.value)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (httpx.ConnectTimeout("slow"), True),
        (httpx.PoolTimeout("full"), True),
        (httpx.UnsupportedProtocol("gopher"), True),
        (httpx.ReadTimeout("slow"), False),
        (httpx.WriteTimeout("slow"), False),
        (httpx.RemoteProtocolError("gone"), False),
        (requests.ConnectTimeout("slow"), True),
        (requests.exceptions.MissingSchema("no http"), True),
        (requests.ReadTimeout("slow"), False),
        (requests.ConnectionError("aborted"), False),
        (ConnectionRefusedError("no"), True),
        (ConnectionResetError("gone"), False),
        (BrokenPipeError("gone"), False),
        (TimeoutError("slow"), False),
        (ValueError("bad"), False),
        (EffectInDoubtError("inner"), False),
        (GraphInterrupt(()), False),
        (KeyboardInterrupt(), False),
        (ExceptionGroup("all", [ConnectionRefusedError("a"), ConnectionRefusedError("b")]), True),
        (ExceptionGroup("some", [ConnectionRefusedError("a"), ConnectionResetError("b")]), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_what_each_exception_says(error: BaseException, verdict: bool) -> None:
    assert default_fails_on(error) is verdict


def test_what_was_handled_when_it_was_raised_is_no_reason() -> None:
    try:
        try:
            raise ConnectionRefusedError("the proxy")
        except ConnectionRefusedError:
            raise RuntimeError("lost the answer of the second request")  # noqa: B904
    except RuntimeError as error:
        assert not default_fails_on(error)
