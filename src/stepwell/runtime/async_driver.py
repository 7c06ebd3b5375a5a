"""Answers a run's requests on the caller's event loop: the same run, the same requests, another thread of control.

Nothing here blocks the loop: sync user code goes to the pool, a store that touches a disk is reached through its queue.
A request that can be answered at once costs no turn of the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from stepwell.runtime.async_calls import follow, start
from stepwell.runtime.landing import land
from stepwell.runtime.ports import done, on_thread, pool
from stepwell.runtime.requests import DURABLE, Ask, Blocking, Done, Mail, Perform, Raised, Settle, Sleep, Started, Write
from stepwell.runtime.stream.consumer import Halted
from stepwell.runtime.sync_driver import SyncPort, halt

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call
    from stepwell.runtime.run import Run
    from stepwell.store import Commit, Queued, Store

Result = TypeVar("Result")
BUSY_SECONDS = 0.002
"""How long a worker may go from one call to the next without letting the loop, and so the engine, have a turn."""
CLEAN_UP_SECONDS = 5.0
"""How long a run that was stopped waits for its async nodes to take their cancellation."""


class AsyncPort:
    """Mail for a run on an event loop.

    Async calls are run by worker tasks: a worker takes the next call as soon as its last one is done, and the first
    call that has to wait lets a worker begin for each call that is left. So every waiting call has an asyncio task of
    its own and all of them begin in the same turn of the loop, and calls that never wait share one task.
    """

    leads = False

    def __init__(self, run: Run) -> None:
        self.run = run
        self._direct = run.stream is None  # a consumer is handed what there is before anything goes on
        self._loop = asyncio.get_running_loop()
        self._mail: list[Done] = []
        self._news = False
        self._waiter: asyncio.Future[None] | None = None
        self._ready: deque[Call] = deque()
        self._starting = 0
        self._running: dict[Call, asyncio.Task[None]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._cancelled: list[asyncio.Task[None]] = []
        self.stopping = False
        """Whether the run has been told to stop: a cancellation from here on does not keep it from saying so."""
        self.held_back: asyncio.CancelledError | None = None
        """A cancellation that a stopping run was not told of."""

    # -- the run's side ----------------------------------------------------------------------------------------------

    def perform(self, call: Call) -> Any:
        if self._direct and call.callee.is_async:
            result = start(call)
            return Perform(call, result) if type(result) is Started else call.owner.take(result)
        return Perform(call)

    def write(self, commit: Commit) -> bool:
        assert self.run.store is not None
        if self.run.store.blocking or not self._direct:
            return False
        self.run.store.commit(commit)
        return True

    def enqueue(self, commit: Commit) -> Queued | None:
        store = self.run.store
        assert store is not None
        if store.blocking:
            return store.queue(commit)
        store.commit(commit)
        return None

    def launch(self, call: Call) -> None:
        if call.is_async:
            self._ready.append(call)
            self._add_worker()
        else:
            on_thread(call, self._post_threadsafe)

    def abandon(self, call: Call) -> None:
        worker = self._running.pop(call, None)
        if worker is not None:
            worker.cancel()
            self._cancelled.append(worker)
        elif call in self._ready:
            self._ready.remove(call)

    async def settle(self) -> None:
        """Let the calls that were cancelled clean up, so that none outlives its run. One that goes on all the same is
        left to itself."""
        if self._cancelled:
            await asyncio.wait(self._cancelled, timeout=CLEAN_UP_SECONDS)

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._notify)

    # -- workers -----------------------------------------------------------------------------------------------------

    def _add_worker(self) -> None:
        if self._ready and not self._starting:
            self._add_workers(1)

    def _add_for_the_rest(self) -> None:
        self._add_workers(len(self._ready))

    def _add_workers(self, wanted: int) -> None:
        while self._starting < wanted:
            self._starting += 1
            worker = self._loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        self._starting -= 1
        me = asyncio.current_task()
        assert me is not None
        since = time.monotonic()
        while self._ready:
            call = self._ready.popleft()
            self._running[call] = me
            result = start(call)
            if type(result) is Started:
                self._add_for_the_rest()
                result = await self._follow(result)
            if self._running.pop(call, None) is None:
                return  # abandoned: this task was cancelled, and nobody waits for the call
            self._post(done(call, result))
            if time.monotonic() - since > BUSY_SECONDS:
                await asyncio.sleep(0)
                since = time.monotonic()

    async def _follow(self, started: Started) -> Any:
        try:
            return await follow(started)
        except BaseException as error:
            return Raised(error)

    # -- mail --------------------------------------------------------------------------------------------------------

    def _post(self, done: Done) -> None:
        self._mail.append(done)
        self._notify()

    def _post_threadsafe(self, done: Done) -> None:
        try:
            self._loop.call_soon_threadsafe(self._post, done)
        except RuntimeError:  # the loop is closed: nobody waits for this call any more
            return

    def _notify(self) -> None:
        self._news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _collect(self, timeout: float | None) -> list[Done]:
        if not self._news:
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(timeout, self._notify) if timeout is not None else None
            try:
                await self._waiter
            except asyncio.CancelledError as error:
                if not self.stopping:
                    raise
                self.held_back = error
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self._news = False
        mail, self._mail = self._mail, []
        return mail

    # -- answers -----------------------------------------------------------------------------------------------------

    def answer(self, request: Ask) -> Awaitable[Any]:
        """Carry out one request, awaited. What that raises is thrown into the run."""
        if isinstance(request, Write):
            return self._write(request.commit)
        if isinstance(request, Perform):
            return self._perform(request.call, request.started)
        if isinstance(request, Mail):
            return self._collect(request.timeout)
        if isinstance(request, Settle):
            return self._landed(request.future)
        if isinstance(request, Sleep):
            return asyncio.sleep(request.seconds)
        assert isinstance(request, Blocking)
        return blocking(request.function, self.run.store, self)

    async def _perform(self, call: Call, started: Started | None) -> Any:
        if not call.callee.is_async:
            return await self._perform_on_thread(call)
        result = start(call) if started is None else started
        if type(result) is Started:
            me = asyncio.current_task()
            before = me.cancelling() if me is not None else 0  # more than none in a task that winds up after its own
            try:
                result = await follow(result)
            except asyncio.CancelledError as error:
                if me is not None and me.cancelling() > before:
                    raise
                result = Raised(error)
            except BaseException as error:
                result = Raised(error)
        return call.owner.take(result)

    async def _perform_on_thread(self, call: Call) -> Any:
        """Run a sync call, and the sync routers after it, in one turn of a pool thread."""
        try:
            return await on_pool(lambda: call.owner.perform(call))
        except asyncio.CancelledError:
            call.owner.dropped = True
            raise

    def _write(self, commit: Commit) -> Awaitable[None]:
        store = self.run.store
        assert store is not None
        if store.blocking:
            return self._landed(store.queue(commit))
        store.commit(commit)
        return ready()

    async def _landed(self, future: Queued) -> None:
        """Wait for a write; a cancellation is delivered once it is over, unless it has failed."""
        cancelled = await land(future)
        if cancelled is not None and future.exception() is None:
            if not self.stopping:
                raise cancelled
            self.held_back = cancelled
        future.result()


async def ready() -> None:
    """Wait for nothing."""


async def to_the_end(future: asyncio.Future[Result], port: AsyncPort | None = None) -> Result:
    """Await what must not be left half done: a cancellation is delivered once it is over, unless it has failed. A run
    that is stopping already is not told again."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if future.cancelled():
                raise
            cancelled = error
        except Exception:
            break
    if cancelled is not None and future.exception() is None:
        if port is None or not port.stopping:
            raise cancelled
        port.held_back = cancelled
    return future.result()


async def blocking(function: Callable[[], Any], store: Store | None, port: AsyncPort | None = None) -> Any:
    """Call what may block on the store: on a thread, or here where the store never blocks."""
    if store is None or not store.blocking:
        return function()
    return await to_the_end(on_pool(function), port)


def on_pool(function: Callable[[], Any]) -> asyncio.Future[Any]:
    """Call a function on a pool thread; return the future of what it returns or raises."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = function()
        except StopIteration as raised:  # no future may raise it: as in a coroutine, it becomes another error
            error = RuntimeError(f"raised {raised!r}")
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(_resolve, future, value, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    pool.submit(work)
    return future


def _resolve(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if not future.done():
        future.set_exception(error) if error is not None else future.set_result(value)


async def drive_async(coroutine: Coroutine[Ask, Any, Result], port: AsyncPort) -> Result:
    """Run to the end on this loop; return what the run returns, raise what it raises."""
    send, answer = coroutine.send, port.answer
    try:
        request = send(None)
        while True:
            try:
                result = await answer(request)
            except GeneratorExit:  # nobody drives this coroutine any more: the run is stopped without its loop
                halt(coroutine, SyncPort(port.run), request, Halted())
                raise
            except BaseException as error:
                port.stopping = port.stopping or isinstance(error, asyncio.CancelledError)
                request = coroutine.throw(error)
            else:
                request = send(result)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    except asyncio.CancelledError:
        await port.settle()
        raise


async def stream_async(begin: Callable[[], Coroutine[Ask, Any, Any]], port: AsyncPort) -> AsyncIterator[Any]:
    """Run as far as the consumer pulls, yielding what the stream holds. Closing the iterator halts the run."""
    stream = port.run.stream
    assert stream is not None
    coroutine = begin()
    error: BaseException | None = None
    result: Any = None
    while True:
        try:
            request = coroutine.throw(error) if error is not None else coroutine.send(result)
        except StopIteration:
            break
        except Exception:
            for chunk in stream.rest():
                yield chunk
            raise
        except BaseException:
            stream.close()
            raise
        try:
            for chunk in stream.take():
                yield chunk
        except BaseException:  # the consumer has gone, or threw something in
            stream.close()
            await _halt(coroutine, port, request)
            raise
        result, error = None, None
        try:
            result = await port.answer(request)
        except Exception as raised:
            error = raised
        except GeneratorExit:
            stream.close()
            halt(coroutine, SyncPort(port.run), request, Halted())
            raise
        except BaseException as raised:  # the consumer was cancelled: it is handed nothing more
            stream.close()
            await _halt(coroutine, port, request, raised)
            raise
    for chunk in stream.rest():
        yield chunk


async def _halt(
    coroutine: Coroutine[Ask, Any, Any], port: AsyncPort, request: Ask, struck: BaseException | None = None
) -> None:
    """Stop a run, by what struck while its request was answered or, once a write it asked for is done, by `Halted`: it
    records what happened and frees its thread. How else it ends is on the thread, and not told to who has gone."""
    port.stopping = True
    halted = struck is not None
    try:
        if struck is not None:
            request = coroutine.throw(struck)
        while True:
            if not halted and not isinstance(request, DURABLE):
                halted = True
                request = coroutine.throw(Halted())
                continue
            try:
                result = await port.answer(request)
            except BaseException as error:
                request = coroutine.throw(error)
            else:
                request = coroutine.send(result)
    except (Exception, Halted, asyncio.CancelledError):
        await port.settle()
        if struck is None and port.held_back is not None:
            raise port.held_back from None
