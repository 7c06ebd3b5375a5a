"""Writes, routes and planned tasks as they stand in bodies: names beside the codec's own bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import UnserializableValueError
from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.types import MISSING, Send
from stepwell.plan.tables import Plan
from stepwell.superstep import blobs
from stepwell.superstep.outcome import Route, Write
from stepwell.superstep.state import Planned


def encode_writes(codec: Codec, plan: Plan, node: str, writes: Sequence[Write]) -> list[Any]:
    """Return writes as [channel, bytes] pairs; untracked channels are left out by storing nothing for them."""
    channels = plan.channels
    try:
        return [(key, codec.dumps(value, key) if channels[key].tracked else b"") for key, value in writes]
    except UnserializableValueError as error:
        raise blame(error, (node,)) from None


def decode_writes(codec: Codec, writes: Sequence[Any]) -> tuple[Write, ...]:
    """Return the writes that were stored."""
    return tuple((key, codec.loads(data, key)) for key, data in writes if data)


def encode_routes(codec: Codec, node: str, routes: Sequence[Route]) -> list[Any]:
    """Return the routes of a node as names and [node, bytes, limits] sends."""
    try:
        return [route if type(route) is str else _route(codec, route) for route in routes]
    except UnserializableValueError as error:
        raise blame(error, (node,)) from None


def _route(codec: Codec, route: Route) -> Any:
    if isinstance(route, str):
        return route
    limits = None if route.timeout is None else _limits(route.timeout)
    return (route.node, codec.dumps(route.arg, f"Send to {route.node}"), limits)


def decode_routes(codec: Codec, routes: Sequence[Any]) -> tuple[Route, ...]:
    """Return the routes that were stored."""
    return tuple(
        route
        if isinstance(route, str)
        else Send(route[0], codec.loads(route[1], f"Send to {route[0]}"), timeout=_timeout(route[2]))
        for route in routes
    )


def encode_planned(codec: Codec, planned: Planned) -> tuple[Any, ...]:
    """Return an entry of `next`."""
    node, at, arg, timeout = planned
    data: Any = None if arg is MISSING else codec.dumps(arg, _arg_path(planned))
    if data is not None and len(data) > blobs.ABOVE and type(arg) is dict and all(type(key) is str for key in arg):
        data = {key: codec.dumps(value, key) for key, value in arg.items()}  # as the channels it becomes are stored
    return (node, at, data, None if timeout is None else _limits(timeout))


def _arg_path(planned: Planned) -> str:
    return f"input of {planned.node}" if planned.at is None else f"Send[{planned.at}] to {planned.node}"


def decode_next(codec: Codec, planned: Sequence[Any]) -> tuple[Planned, ...]:
    """Return what is planned."""
    return tuple(
        Planned(node, index, MISSING if arg is None else _decode_arg(codec, node, arg), _timeout(limits))
        for node, index, arg, limits in planned
    )


def _decode_arg(codec: Codec, node: str, arg: Any) -> Any:
    if type(arg) is dict:  # a large one, stored key by key
        return {key: codec.loads(data, f"Send to {node}[{key!r}]") for key, data in arg.items()}
    return codec.loads(arg, f"Send to {node}")


def _limits(timeout: TimeoutPolicy) -> tuple[Any, ...]:
    return (timeout.run_timeout, timeout.idle_timeout, timeout.refresh_on)


def _timeout(limits: Sequence[Any] | None) -> TimeoutPolicy | None:
    return None if limits is None else TimeoutPolicy(*limits)


def blame(error: UnserializableValueError, nodes: Sequence[str]) -> UnserializableValueError:
    """Return the error naming the nodes that wrote the value."""
    known = error.fields()
    if not nodes or "node" in known:
        return error
    node = ", ".join(nodes)
    return UnserializableValueError(
        f"Node {node!r} wrote what cannot be stored: {error.args[0]}", **{**known, "node": node}
    )
