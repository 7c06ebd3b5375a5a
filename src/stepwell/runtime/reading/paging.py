"""Long lists, handed out page by page: nothing is read before it is asked for, and a cut is always said.

Not here: what is listed. The rule: a page is one short read of its own, so a list that is not read to its end holds
nothing open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from stepwell.errors import InvalidConfigError

Item = TypeVar("Item")
Turn = Callable[[int], tuple[Sequence[Item], Any]]
"""Return the next items, at most so many, and where to go on: None where nothing is left."""

FIRST_PAGE, LARGEST_PAGE = 16, 256


class Paged(Iterator[Item], Generic[Item]):
    """An iterator over a list that may be long. Pages grow while it is read on.

    `more` tells, once the iterator has ended, whether a `limit` cut the list: it is what to pass as `before=` to go on
    from there, and None where the list was told to its end.
    """

    def __init__(self, turn: Turn[Item], limit: int | None = None) -> None:
        self._turn = turn
        self._left = checked_limit(limit)
        self._size = FIRST_PAGE
        self._ready: deque[Item] = deque()
        self._ended = False
        self._at: Any = None

    @property
    def more(self) -> Any:
        """What to pass as `before=` to go on behind a limit; None where nothing is left, or nothing was cut yet."""
        return self._at if self._ended and not self._ready else None

    def __iter__(self) -> Paged[Item]:
        return self

    def __next__(self) -> Item:
        if not self._ready and not self._ended:
            self.read_page()
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def read_page(self) -> None:
        """Read on, if anything is left to be read."""
        size = self._size if self._left is None else min(self._size, self._left)
        self._size = min(self._size * 4, LARGEST_PAGE)
        found, self._at = self._turn(size)
        if self._left is not None:
            self._left -= len(found)
        self._ready.extend(found)
        self._ended = self._at is None or self._left == 0


class AsyncPaged(AsyncIterator[Item], Generic[Item]):
    """The same for a loop: each page is read without blocking it."""

    def __init__(self, open_list: Callable[[], Paged[Item]], off_loop: Callable[[Any], Awaitable[Any]]) -> None:
        self._open = open_list
        self._off_loop = off_loop
        self._paged: Paged[Item] | None = None

    @property
    def more(self) -> Any:
        """What to pass as `before=` to go on behind a limit; None where nothing is left, or nothing was cut yet."""
        return None if self._paged is None else self._paged.more

    def __aiter__(self) -> AsyncPaged[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._paged is None:
            self._paged = await self._off_loop(self._open)
        if not self._paged._ready and not self._paged._ended:
            await self._off_loop(self._paged.read_page)
        try:
            return next(self._paged)
        except StopIteration:
            raise StopAsyncIteration from None


def checked_limit(limit: int | None) -> int | None:
    """Return the limit; InvalidConfigError where it is none."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise InvalidConfigError(reason=f"limit is a number of items, 0 or more, not {limit!r}", key="limit")
    return limit


def checked_filter(wanted: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the filter; InvalidConfigError where it is none."""
    if wanted is not None and not isinstance(wanted, Mapping):
        raise InvalidConfigError(reason=f"filter is a dict of what to compare, not {wanted!r}", key="filter")
    return wanted
