"""The process the payment server runs in: started, killed, started again on the same port with the same books."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from stepwell.testing.payments.account import Account


class PaymentServer:
    """A payment server on the loopback interface, its books in `folder`. Leaving its context ends the process.

    `honours_keys=False` makes a server that takes no notice of idempotency keys. The process also ends with the one
    that started it.
    """

    def __init__(self, folder: str | Path, *, honours_keys: bool = True) -> None:
        self._folder, self._honours_keys = Path(folder), honours_keys
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> PaymentServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        """Start the process; return when it takes connections."""
        keys = "honour" if self._honours_keys else "ignore"
        command = [sys.executable, "-m", "stepwell.testing.payments.server", str(self._folder), keys, str(self._port)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill the process with SIGKILL. What it has charged stays charged; its script and what it held are gone."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def account(self, name: str) -> Account:
        """Return the account of this name; one that nobody has used yet is empty."""
        return Account(f"http://127.0.0.1:{self._port}/{quote(name, safe='')}")
