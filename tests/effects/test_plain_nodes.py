"""What the harness finds where nothing is declared: a plain node that pays is run again, and pays again.

Were these tests to fail, the tests of effects beside them would prove nothing.
"""

from pathlib import Path

import pytest

from stepwell import points
from stepwell.testing.payments import Account, Fault
from tests.e2e.forked import Processes
from tests.effects.killing import HELD_BEFORE, HELD_CHARGED, Shop
from tests.effects.payment_child import SHAPES, Job
from tests.effects.tills import ANSWERED, CALLING

pytestmark = pytest.mark.crash


@pytest.mark.parametrize(
    "where", [f"{HELD_CHARGED}:1", f"{HELD_BEFORE}:1", f"{ANSWERED}:1", f"{points.TASK_FINISHED}:1"]
)
@pytest.mark.parametrize("api", ["sync", "async"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_plain_node_may_charge_twice(
    where: str, api: str, durability: str, keyless_account: Account, processes: Processes, tmp_path: Path
) -> None:
    """Killed between the call and the commit of what it returned. The graph's own state shows nothing of it."""
    shop = Shop(tmp_path, keyless_account, Job("single", durability=durability, api=api), processes)
    assert shop.run_killed(where)
    shop.run()
    assert shop.finished()[0] == shop.undisturbed()
    assert keyless_account.report().duplicates == {"order": 2}


@pytest.mark.parametrize("shape", ["pair", "loop", "sends"])
def test_a_plain_node_may_charge_twice_in_any_shape(
    shape: str, account: Account, processes: Processes, tmp_path: Path
) -> None:
    """Killed as the last of its payments is answered. That the server would honour a key helps nobody who has none."""
    shop = Shop(tmp_path, account, Job(shape), processes)
    assert shop.run_killed(f"{ANSWERED}:{len(SHAPES[shape])}")
    shop.run()
    assert shop.finished()[0] == shop.undisturbed()
    assert account.report().duplicates


@pytest.mark.parametrize(("shape", "times"), [("interrupts", 2), ("retries", 3)])
def test_a_plain_node_charges_again_whenever_it_is_run_again(
    shape: str, times: int, account: Account, processes: Processes, tmp_path: Path
) -> None:
    """It needs no crash: an answer and a next attempt run a node from its start."""
    shop = Shop(tmp_path, account, Job(shape), processes)
    shop.run()
    assert shop.finished()[0] == shop.undisturbed()
    assert account.report().charged == {"order": times}


@pytest.mark.parametrize("fault", [Fault("close"), Fault("reset"), Fault("hold")], ids=lambda fault: fault.what)
@pytest.mark.parametrize("api", ["sync", "async"])
def test_a_plain_node_charges_again_when_the_answer_is_lost(
    fault: Fault, api: str, account: Account, processes: Processes, tmp_path: Path
) -> None:
    """A read timeout or a lost connection is tried again by the default rules."""
    account.script(fault)
    timeout = 0.2 if fault.what == "hold" else 10.0
    shop = Shop(tmp_path, account, Job("single", api=api, timeout_seconds=timeout), processes)
    shop.run()
    assert account.report().duplicates


@pytest.mark.parametrize("api", ["sync", "async"])
def test_a_plain_node_charges_again_when_its_process_was_frozen_past_its_lease(
    api: str, account: Account, processes: Processes, heirs: Processes, tmp_path: Path
) -> None:
    """The fence keeps the frozen process out of the thread; it cannot keep its payment out of the world."""
    shop = Shop(tmp_path, account, Job("single", api=api), processes)
    shop.run_frozen(heirs)
    assert shop.finished()[0] == shop.undisturbed()
    assert account.report().duplicates == {"order": 2}


def test_a_plain_node_killed_before_it_calls_charges_once(
    account: Account, processes: Processes, tmp_path: Path
) -> None:
    """The harness does not cry without reason."""
    shop = Shop(tmp_path, account, Job("single"), processes)
    assert shop.run_killed(f"{CALLING}:1")
    shop.run()
    assert account.report().charged == {"order": 1}
