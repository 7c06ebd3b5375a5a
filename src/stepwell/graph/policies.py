"""What a node may be told: when to try again (`RetryPolicy`), how long to wait (`TimeoutPolicy`), and that what it
returned may serve again (`CachePolicy`).

The rules are declared here and carried out by the runtime. The rule kept: a policy that cannot work is refused when it
is written, not when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast

from stepwell.errors import InvalidGraphError
from stepwell.graph.retry_rules import default_retry_on

RetryOn = type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Try a failed node again, waiting longer each time. Intervals are seconds.

    `retry_on` is an exception class, a sequence of them, or a predicate.
    """

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    """Attempts in all, the first one included."""
    jitter: bool = True
    """Add up to a second to each wait, so that many failed runs do not return at once."""
    retry_on: RetryOn = default_retry_on

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise InvalidGraphError("max_attempts must be at least 1", max_attempts=self.max_attempts)
        for name in ("initial_interval", "backoff_factor", "max_interval"):
            if getattr(self, name) < 0:
                raise InvalidGraphError(f"{name} must not be negative")

    def matches(self, exc: Exception) -> bool:
        """Return whether this policy retries after `exc`."""
        rule = self.retry_on
        if isinstance(rule, Sequence):
            return isinstance(exc, tuple(rule))
        if isinstance(rule, type) and issubclass(rule, Exception):
            return isinstance(exc, rule)
        if callable(rule):
            return bool(cast(Callable[[Exception], object], rule)(exc))
        raise TypeError("retry_on must be an Exception class, a list or tuple of Exception classes, or a callable")


@dataclass(frozen=True, slots=True)
class TimeoutPolicy:
    """Limit one attempt of a node. Seconds or a `timedelta`.

    An async node that runs out of time is cancelled, a sync one abandoned: its thread goes on, what it returns is
    ignored. Either is a NodeTimeoutError, which says which limit it was (`kind`).
    """

    run_timeout: float | timedelta | None = None
    """The longest an attempt may take."""
    idle_timeout: float | timedelta | None = None
    """The longest an attempt may go without progress. For async nodes only: a sync one cannot be stopped."""
    refresh_on: Literal["auto", "heartbeat"] = "auto"
    """What counts as progress: `runtime.heartbeat()` alone, or with "auto" also what the node sends to a stream, what a
    graph that it runs does, and what langchain's callbacks tell of it."""

    @staticmethod
    def coerce(value: float | timedelta | TimeoutPolicy | None) -> TimeoutPolicy | None:
        """Return `value` as a policy in seconds, or None where it sets no limit.

        Raises InvalidGraphError for a limit that is not positive.
        """
        if value is None:
            return None
        policy = value if isinstance(value, TimeoutPolicy) else TimeoutPolicy(run_timeout=value)
        if policy.refresh_on not in ("auto", "heartbeat"):
            raise InvalidGraphError("refresh_on must be 'auto' or 'heartbeat'")
        run = _seconds("run_timeout", policy.run_timeout)
        idle = _seconds("idle_timeout", policy.idle_timeout)
        return None if run is None and idle is None else TimeoutPolicy(run, idle, policy.refresh_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """Let what was returned for an input serve again for an equal one, on any thread, where the graph has a cache.

    Errors and pauses are never kept, nor what hangs on an answer, performed an effect or wrote to the item store.
    """

    key_func: Callable[..., str | bytes] | None = None
    """Called as the function is (a node's with its input), it returns what tells inputs apart; without it, the whole
    input does."""
    ttl: float | timedelta | None = None
    """Seconds, or a timedelta, for which it may serve; None: until the cache is cleared."""

    def __post_init__(self) -> None:
        if self.key_func is not None and not callable(self.key_func):
            raise TypeError(f"key_func is a function of the input, not {self.key_func!r}")
        _seconds("ttl", self.ttl)

    @property
    def seconds(self) -> float | None:
        """How long a result may serve."""
        return _seconds("ttl", self.ttl)


def idle_needs_async(node: str) -> str:
    """Return why an idle timeout is refused for this node."""
    return (
        f"Idle timeouts are only supported for async nodes: a sync one cannot be stopped, and node {node!r} is sync. "
        "Make it async, or use run_timeout."
    )


def _seconds(field: str, value: float | timedelta | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise TypeError(f"{field} must be seconds or a timedelta, not {type(value).__name__}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not seconds > 0:
        raise InvalidGraphError(f"{field} must be greater than 0", field=field, value=seconds)
    return seconds
