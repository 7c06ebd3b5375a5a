"""Several runs of one graph at once, each with an input of its own.

Each run is what `invoke` makes of it; nothing is shared but the limit. The rule kept: a run that fails stops no other,
as within a superstep.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from stepwell.errors import InvalidConfigError
from stepwell.runtime.config import merged_config
from stepwell.runtime.ports import SYNC_CALLS

Config = Mapping[str, Any] | None
Pair = tuple[Any, Config]


def pairs_of(inputs: Sequence[Any], config: Config | Sequence[Config], bound: Config) -> list[Pair]:
    """Return each input with its config. One config for several inputs must not name one thread for all of them."""
    if config is None or isinstance(config, Mapping):
        _check_shared(len(inputs), merged_config([bound, config]))
        return [(given, config) for given in inputs]
    if len(config) != len(inputs):
        raise InvalidConfigError(
            f"config must be a list of the same length as inputs, but got {len(config)} configs for "
            f"{len(inputs)} inputs",
            key="config",
        )
    return list(zip(inputs, config, strict=True))


def _check_shared(count: int, config: Mapping[str, Any]) -> None:
    shared = [key for key in ("thread_id",) if (config.get("configurable") or {}).get(key)]
    shared += ["run_id"] if config.get("run_id") else []
    if count > 1 and shared:
        raise InvalidConfigError(
            reason=f"{count} inputs share one {shared[0]}. Pass a list with a config for each input", key=shared[0]
        )


def limit_of(pairs: Sequence[Pair], bound: Config) -> int | None:
    """Return how many runs may be at work at once: the smallest `max_concurrency` there is."""
    configs = [config for _, config in pairs if config] + ([bound] if bound else [])
    return min((config["max_concurrency"] for config in configs if config.get("max_concurrency")), default=None)


def run_all(pairs: Sequence[Pair], limit: int | None, run: Callable[[Any, Config], Any]) -> list[Any]:
    """Return what each run returned or raised, in the order of the inputs."""

    def attempt(pair: Pair) -> Any:
        try:
            return run(*pair)
        except Exception as error:
            return _Raised(error)

    if len(pairs) < 2:
        return [attempt(pair) for pair in pairs]
    with ThreadPoolExecutor(min(max(1, limit or SYNC_CALLS), len(pairs)), thread_name_prefix="stepwell-batch") as pool:
        return [work.result() for work in [pool.submit(copy_context().run, attempt, pair) for pair in pairs]]


async def arun_all(pairs: Sequence[Pair], limit: int | None, run: Callable[[Any, Config], Awaitable[Any]]) -> list[Any]:
    """Do as `run_all`, on this event loop."""
    import asyncio

    turns = asyncio.Semaphore(limit or max(1, len(pairs)))

    async def attempt(pair: Pair) -> Any:
        async with turns:
            try:
                return await run(*pair)
            except Exception as error:
                return _Raised(error)

    return await asyncio.gather(*map(attempt, pairs))


def settled(results: list[Any], return_exceptions: bool) -> list[Any]:
    """Return the results; the first failure is raised, unless failures are to be returned."""
    for result in results:
        if isinstance(result, _Raised) and not return_exceptions:
            raise result.error
    return [result.error if isinstance(result, _Raised) else result for result in results]


class _Raised:
    """What a run raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error
