"""Answers a run's requests on the caller's thread: no event loop of its own, so it works inside a running one too."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from stepwell.runtime.async_calls import run_on_background_loop, start_on_background_loop
from stepwell.runtime.ctrl_c import check, driven, lets_ctrl_c_in, wakes_on_ctrl_c
from stepwell.runtime.ports import on_thread
from stepwell.runtime.requests import DURABLE, Ask, Blocking, Done, Mail, Perform, Settle, Sleep, Write
from stepwell.runtime.stream.consumer import Halted

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call
    from stepwell.runtime.run import Run
    from stepwell.store import Commit

Result = TypeVar("Result")


class SyncPort:
    """Mail for a run whose engine thread is the caller's."""

    leads = True
    __slots__ = ("_cancels", "_direct", "_mail", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self._direct = run.stream is None  # a consumer is handed what there is before anything goes on
        self._mail: SimpleQueue[Done | None] = SimpleQueue()
        self._cancels: dict[Call, Callable[[], Any]] = {}

    def perform(self, call: Call) -> Any:
        return _performed(call) if self._direct else Perform(call)

    def write(self, commit: Commit) -> bool:
        if self._direct:
            self.enqueue(commit)
        return self._direct

    def enqueue(self, commit: Commit) -> None:
        assert self.run.store is not None
        self.run.store.commit(commit)

    def launch(self, call: Call) -> None:
        if call.is_async:
            self._cancels[call] = start_on_background_loop(call, self._mail.put)
        else:
            on_thread(call, self._mail.put)

    def abandon(self, call: Call) -> None:
        cancel = self._cancels.pop(call, None)
        if cancel is not None:
            cancel()

    def wake(self) -> None:
        self._mail.put(None)

    # -- answers -----------------------------------------------------------------------------------------------------

    def answer(self, request: Ask) -> Any:
        """Carry out one request. What it raises is thrown into the run."""
        if isinstance(request, Perform):
            return _performed(request.call)
        if isinstance(request, Write):
            assert self.run.store is not None
            return self.run.store.commit(request.commit)
        if isinstance(request, Mail):
            return self._collect(request.timeout)
        if isinstance(request, Settle):
            store = request.store or self.run.store
            assert store is not None
            return store.settle(request.future)
        if isinstance(request, Sleep):
            return _sleep(request.seconds)
        assert isinstance(request, Blocking)
        return request.function()

    @wakes_on_ctrl_c
    def _collect(self, timeout: float | None) -> list[Done]:
        check()
        mail: list[Done] = []
        try:
            item = self._mail.get(timeout=timeout)
            while True:
                if item is not None:
                    self._cancels.pop(item.call, None)
                    mail.append(item)
                item = self._mail.get_nowait()
        except Empty:
            return mail


@lets_ctrl_c_in
def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _performed(call: Call) -> Any:
    check()
    return call.owner.take(run_on_background_loop(call)) if call.callee.is_async else call.owner.perform(call)


def drive_sync(coroutine: Coroutine[Ask, Any, Result], port: SyncPort) -> Result:
    """Run to the end on this thread; return what the run returns, raise what it raises."""
    result: Result = driven(_drive, coroutine, port)
    return result


def _drive(coroutine: Coroutine[Ask, Any, Any], port: SyncPort) -> Any:
    answer: Any = None
    send = coroutine.send
    try:
        request = send(None)
        while True:
            try:
                answer = port.answer(request)
            except BaseException as error:
                request = coroutine.throw(error)
            else:
                request = send(answer)
    except StopIteration as done:
        return done.value


def stream_sync(begin: Callable[[], Coroutine[Ask, Any, Any]], port: SyncPort) -> Iterator[Any]:
    """Run as far as the consumer pulls, yielding what the stream holds. Closing the iterator halts the run."""
    chunks = _chunks(begin, port)
    try:
        while (chunk := driven(next, chunks, _OVER)) is not _OVER:
            yield chunk
    finally:
        driven(chunks.close)


_OVER = object()


def _chunks(begin: Callable[[], Coroutine[Ask, Any, Any]], port: SyncPort) -> Generator[Any, None, None]:
    stream = port.run.stream
    assert stream is not None
    coroutine = begin()
    error: BaseException | None = None
    answer: Any = None
    while True:
        try:
            request = coroutine.throw(error) if error is not None else coroutine.send(answer)
        except StopIteration:
            break
        except Exception:
            yield from stream.rest()
            raise
        except BaseException:
            stream.close()
            raise
        try:
            yield from stream.take()
        except BaseException:  # the consumer has gone, or threw something in
            stream.close()
            halt(coroutine, port, request)
            raise
        answer, error = None, None
        try:
            answer = port.answer(request)
        except Exception as raised:
            error = raised
        except BaseException as raised:  # Ctrl-C: the consumer is handed nothing more
            stream.close()
            halt(coroutine, port, request, raised)
            raise
    yield from stream.rest()


def halt(
    coroutine: Coroutine[Ask, Any, Any], port: SyncPort, request: Ask, struck: BaseException | None = None
) -> None:
    """Stop a run, by what struck while its request was answered or, once a write it asked for is done, by `Halted`: it
    records what happened and frees its thread. How else it ends is on the thread, and not told to who has gone."""
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
                answer = port.answer(request)
            except BaseException as error:
                request = coroutine.throw(error)
            else:
                request = coroutine.send(answer)
    except (Exception, Halted):
        return
    except BaseException as error:
        if error is not struck:
            raise
