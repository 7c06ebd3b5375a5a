"""Which process holds a lease, and when it is known to be gone. What is not known counts as alive."""

import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.stores.shared.holder import is_dead, same_boot, this_process

BOOT = "boot-1"

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this platform cannot tell")


def test_this_process_is_alive() -> None:
    assert not is_dead(this_process(BOOT), BOOT)


def test_a_process_that_ended_is_dead() -> None:
    boot, namespace, _, _ = this_process(BOOT).split("|")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        holder = f"{boot}|{namespace}|{process.pid}|{stat.rpartition(')')[2].split()[19]}"
        assert not is_dead(holder, BOOT)
        process.communicate(b"\n")
    assert is_dead(holder, BOOT)


def test_a_pid_used_again_is_dead() -> None:
    boot, namespace, pid, started = this_process(BOOT).split("|")
    assert is_dead(f"{boot}|{namespace}|{pid}|{int(started) + 1}", BOOT)


@pytest.mark.parametrize(
    "holder",
    [
        "",
        "|||",
        "boot-1",
        "boot-1|{ns}|999999999999999999999|1",
        "boot-2|{ns}|999999|1",
        "boot-1|pid:[1]|999999|1",
        "boot-1||999999|1",
        "boot-1|{ns}|999999|",
        "boot-1|{ns}|-5|1",
        "boot-1|{ns}|x|1",
        "somebody else's idea of a holder",
    ],
)
def test_what_cannot_be_compared_is_not_declared_dead(holder: str) -> None:
    namespace = this_process(BOOT).split("|")[1]
    text = holder.format(ns=namespace)
    assert is_dead(text, BOOT) == ("9999999999999" in text)


def test_a_boot_is_told_by_its_id() -> None:
    assert same_boot(this_process(BOOT), BOOT)
    assert not same_boot(this_process(BOOT), "boot-2")
    assert not same_boot("", BOOT)
