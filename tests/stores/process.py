"""A process that drives a thread: what the tests of several processes start. Told what to do by its arguments.

It prints a line per thing done, so that a test knows without waiting blindly what has happened.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from stepwell.stores.sqlite import SqliteStore
from stepwell.testing import arm_from_environment
from stepwell.testing.store_suite.drive import Drive, started

Start = Callable[..., subprocess.Popen[str]]
ROOT = Path(__file__).parents[2]


def start_process(*arguments: str, crash_at: str = "") -> subprocess.Popen[str]:
    """Start this file as a process of its own."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "STEPWELL_CRASH_AT": crash_at,
    }
    command = [sys.executable, "-m", "tests.stores.process", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def told(process: subprocess.Popen[str]) -> str:
    """Return the next line the process prints; "" once it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Let the process read a line."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def say(line: str) -> None:
    print(line, flush=True)


def steps(path: str, count: str) -> None:
    """Admit a thread and commit steps with two records each."""
    store = SqliteStore(path)
    drive = started(store)
    say("admitted")
    for _ in range(int(count)):
        drive.commit(records=2)
        say(f"committed {drive.seq}")
    store.close()


def queued(path: str, count: str) -> None:
    """Admit a thread and queue steps, some in one group."""
    store = SqliteStore(path)
    drive = started(store)
    say("admitted")
    futures = [(store.queue(drive.step(records=2)), drive.seq) for _ in range(int(count))]
    for future, seq in futures:
        future.result()
        say(f"committed {seq}")
    store.close()


def late(path: str) -> None:
    """Admit a thread, hold it, and commit when told to."""
    store = SqliteStore(path)
    drive = started(store)
    say("admitted")
    sys.stdin.readline()
    try:
        drive.commit(records=1)
        say("committed")
    except Exception as error:
        say(type(error).__name__)
    say(f"renewed {store.renew(drive.thread_id, drive.run_id, drive.epoch, 30.0)}")
    store.close()


def many(path: str, name: str, count: str) -> None:
    """Wait for a line, then commit steps of a thread of its own."""
    store = SqliteStore(path)
    say("ready")
    sys.stdin.readline()
    drive = Drive(store, f"thread-{name}", run_id=f"run-{name}")
    drive.admit()
    for _ in range(int(count)):
        drive.commit()
    store.close()
    say(f"done {drive.seq}")


if __name__ == "__main__":
    signal.alarm(100)  # a test that failed leaves nothing behind
    arm_from_environment()
    {"steps": steps, "queued": queued, "late": late, "many": many}[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
