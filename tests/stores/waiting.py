"""How a test waits for what another thread does: by looking, with an end."""

import time
from collections.abc import Callable

LONGEST_SECONDS = 30.0


def wait_until(true: Callable[[], bool]) -> None:
    """Look until it is so; fail where it never is."""
    end = time.monotonic() + LONGEST_SECONDS
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0)  # let the other thread go on
