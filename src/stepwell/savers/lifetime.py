"""How long what users open lives: until `close()`, or to the end of its block, `with` or `async with`. Use after that,
setting up and entering a block included, is a `SaverClosedError`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from stepwell.errors import SaverClosedError


class Done:
    """What is over already, and may be awaited all the same: `setup()` with its `await` from LangGraph before it."""

    def __await__(self) -> Iterator[None]:
        return iter(())


DONE = Done()


class Closable(ABC):
    """The side of a saver or an item store that is opened and closed. A subclass says what closing is."""

    _is_closed = False

    def setup(self) -> Any:  # told as Any, since `setup()` and `await setup()` are both right
        """Do nothing: tables are made, and migrated, when the database is opened. It may be awaited."""
        self._check_open()
        return DONE

    async def asetup(self) -> None:
        """Do as `setup`, without blocking the event loop."""
        await asyncio.to_thread(self.setup)

    def close(self) -> None:
        """Finish what is queued and release what it holds. A second call does nothing."""
        self._is_closed = True
        self._release()

    async def aclose(self) -> None:
        """Close without blocking the event loop."""
        await asyncio.to_thread(self.close)

    @abstractmethod
    def _release(self) -> None:
        """Release what it holds; nothing where that is released."""

    def _check_open(self) -> None:
        if self._is_closed:
            raise SaverClosedError(reason="close() was called on it")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
