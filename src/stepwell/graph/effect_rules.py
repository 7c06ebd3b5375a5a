"""Which exceptions of an effect's body say that nothing has happened: the default `fails_on`.

The rule: an exception means that nothing has happened where it was raised before a request was sent: the name did not
resolve, the connection was refused or not made, the address could not be used. Whatever else is raised leaves the
effect in doubt. An exception of a later request of the same call (after a redirect, or a client's own retry) says
nothing of the request before it, so it leaves the effect in doubt too.

Libraries are recognised by the names of their classes and are never imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

from stepwell.graph.retry_rules import layers, names


def default_fails_on(exc: BaseException) -> bool:
    """Tell whether `exc` says that no request was sent."""
    if isinstance(exc, BaseExceptionGroup):
        return all(default_fails_on(leaf) for leaf in exc.exceptions)
    if not isinstance(exc, Exception):
        return False
    found = list(layers(exc))
    return any(_before_a_request(layer) for layer in found) and not any(_after_a_request(layer) for layer in found)


_NOTHING_SENT = """
    builtins.ConnectionRefusedError socket.gaierror ssl.SSLCertVerificationError http.InvalidURL
    httpx.ConnectError httpx.ConnectTimeout httpx.PoolTimeout httpx.UnsupportedProtocol httpx.InvalidURL
    httpcore.ConnectError httpcore.ConnectTimeout httpcore.PoolTimeout httpcore.UnsupportedProtocol
    requests.ConnectTimeout requests.InvalidURL requests.InvalidSchema requests.MissingSchema requests.InvalidProxyURL
    urllib3.NewConnectionError urllib3.NameResolutionError urllib3.ConnectTimeoutError urllib3.LocationValueError
    aiohttp.ClientConnectorError aiohttp.InvalidURL
"""
_UNSENT = frozenset(_NOTHING_SENT.split())


def _before_a_request(exc: BaseException) -> bool:
    if any(name in _UNSENT for name in names(exc)):
        return True
    # asyncio has several addresses of a host refuse under one OSError
    return type(exc) is OSError and any(frame.f_code.co_name == "create_connection" for frame in _frames(exc))


_FOLLOWING = frozenset({"resolve_redirects", "http_error_302"})
"""Functions of requests and urllib that send a further request, where an answer asked for one."""


def _after_a_request(exc: BaseException) -> bool:
    """Tell whether it was raised by a request that followed another one."""
    frames = list(_frames(exc))
    tries = [frame.f_code for frame in frames if frame.f_code.co_name == "urlopen" and _package(frame) == "urllib3"]
    return len(tries) > len(set(tries)) or any(
        frame.f_code.co_name in _FOLLOWING or _has_history(frame) for frame in frames
    )


def _has_history(frame: FrameType) -> bool:
    """Tell whether a function of httpx or aiohttp has answers already: redirects that it follows."""
    return _package(frame) in ("httpx", "httpx2", "aiohttp") and bool(frame.f_locals.get("history"))


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _frames(exc: BaseException) -> Iterator[FrameType]:
    traceback = exc.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
