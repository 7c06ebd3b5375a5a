"""Ctrl-C while a run is driven on the main thread: it strikes where the run can be stopped and recorded.

Python raises KeyboardInterrupt between any two bytecodes, also between those that record the end of a run. So while the
engine is at work, and nobody has a handler of their own, it is held back until user code runs, the run waits, or the
call is over; the nearest marked frame says which, as trio has it. Pressed again with the first still held back, it
strikes at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])


class _Held:
    """Whether Ctrl-C is being held back. The main thread's."""

    back = False


_held = _Held()
_open: set[CodeType] = set()
_waiting: set[CodeType] = set()


def lets_ctrl_c_in(function: Function) -> Function:
    """Mark a function whose work is user code's, or waiting: Ctrl-C strikes there."""
    _open.add(function.__code__)
    return function


def wakes_on_ctrl_c(method: Function) -> Function:
    """Mark a method that waits for what must not be lost: on Ctrl-C `wake` of its object is called. It asks `check`
    before it waits."""
    _waiting.add(method.__code__)
    return method


def check() -> None:
    """Raise KeyboardInterrupt, if Ctrl-C was held back until here."""
    if _held.back and threading.current_thread() is threading.main_thread():
        _held.back = False
        raise KeyboardInterrupt


def driven(function: Callable[..., Result], *args: Any) -> Result:
    """Call a function that drives a run, and hold Ctrl-C back in it where nothing marked lets it in."""
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        result = function(*args)
        check()  # within another call that is driven
        return result
    signal.signal(signal.SIGINT, _on_ctrl_c)
    try:
        return function(*args)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        check()


def _on_ctrl_c(number: int, frame: FrameType | None) -> None:
    while frame is not None and frame.f_code is not driven.__code__ and frame.f_code not in _open:
        if frame.f_code in _waiting:
            break
        frame = frame.f_back
    if frame is None or frame.f_code in _open or _held.back:
        _held.back = False
        raise KeyboardInterrupt
    _held.back = True
    if frame.f_code in _waiting:
        frame.f_locals["self"].wake()
