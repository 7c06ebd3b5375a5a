"""Which process holds a lease, as text in the thread row, and whether that process is gone.

A holder is "boot id|pid namespace|pid|start time". It is declared dead early only where all of that can be compared:
same boot, same namespace, and no process with that pid and start time. Anything unknown counts as alive; the lease's
expiry and the epoch's fence do the rest.
"""

from __future__ import annotations

import os
from pathlib import Path

_GONE = ("Z", "X", "x")


def this_process(boot_id: str) -> str:
    """Return the holder text of the calling process."""
    pid = os.getpid()
    return f"{boot_id}|{_pid_namespace()}|{pid}|{_start_time(pid) or ''}"


def same_boot(holder: str, boot_id: str) -> bool:
    """Tell whether the holder's lease was measured on this boot's clock."""
    return holder.partition("|")[0] == boot_id


def is_gone(holder: str, boot_id: str) -> bool:
    """Tell whether the holder of a lease needs no waiting for: it is dead, or of another boot."""
    return not same_boot(holder, boot_id) or is_dead(holder, boot_id)


def is_dead(holder: str, boot_id: str) -> bool:
    """Tell whether the holder is certainly gone. False where that cannot be known."""
    boot, namespace, pid, started = ([*holder.split("|"), "", "", "", ""])[:4]
    if not (boot and namespace and started and pid.isdecimal()):
        return False
    if boot != boot_id or namespace != _pid_namespace():
        return False
    if not _exists(int(pid)):
        return True
    now = _start_time(int(pid))
    return now is not None and now != started


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # it is somebody else's
    return True


def _start_time(pid: int) -> str | None:
    """Return when the process started, in ticks since boot; "" once it has ended unreaped; None if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    state, threads, started = fields[0], fields[17], fields[19]
    ended = state in _GONE and int(threads) <= 1  # a zombie leader may still have live threads
    return "" if ended else started
