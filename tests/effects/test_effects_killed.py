"""Killed at every point of an effect, in every mode and shape, and finished as if nothing had happened: paid once.

Each case kills a process somewhere and lets a second one finish. What the effects say in between decides what the
second one must be told: an intent without a receipt is in doubt, whatever has happened to the money, and nothing else
is.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from stepwell import points
from stepwell.testing.payments import PaymentServer
from tests.e2e.forked import Processes
from tests.effects.killing import HELD_BEFORE, HELD_CHARGED, Shop
from tests.effects.payment_child import SHAPES, Job
from tests.effects.tills import ANSWERED, CALLING

pytestmark = pytest.mark.crash

IN_DOUBT = (points.INTENT_DURABLE, CALLING, HELD_BEFORE, HELD_CHARGED, ANSWERED, points.BODY_RETURNED)
"""Where a process may die between intent and receipt, in the order of an effect's life."""

POLICIES = ("retry", "raise", "ask")
MODES = ("sync", "async", "exit")

OpenShop = Callable[[Job, str], Shop]


@pytest.fixture
def open_shop(
    honouring: PaymentServer, ignoring: PaymentServer, processes: Processes, tmp_path: Path
) -> Callable[[Job, str], Shop]:
    """Return a shop with a folder and an account of its own. Who pays with a key has a server that honours it."""

    def opened(job: Job, name: str) -> Shop:
        folder = tmp_path / name
        folder.mkdir()
        server = honouring if job.policy == "retry" else ignoring
        return Shop(folder, server.account(f"{tmp_path.parent.name}.{tmp_path.name}.{name}"), job, processes)

    return opened


def faults_of(shop: Shop, where: str) -> list[str]:
    """Kill one process there, let another finish; return what is wrong with what they have done together."""
    if not shop.run_killed(where) and shop.job.shape != "sends":  # sends share commits, now these, now those
        return [f"{where}: no process came by"]
    in_doubt = sorted(row.key for row in shop.effects() if row.status == "intent")
    shop.run()
    return [f"{where}: {fault}" for fault in [*faults_of_end(shop), *faults_of_doubts(shop, in_doubt)]]


def faults_of_end(shop: Shop) -> list[str]:
    """Return what is wrong with the end state, with what was paid, and with the receipts."""
    faults = []
    log, effects = shop.finished()
    if log != shop.undisturbed():
        faults.append(f"the thread ended with {log}")
    report = shop.account.report()
    if report.charged != dict.fromkeys(SHAPES[shop.job.shape], 1):
        faults.append(f"charged {dict(report.charged)}")
    if (statuses := [row.status for row in effects]) != ["done"] * len(SHAPES[shop.job.shape]):
        faults.append(f"the effects are {statuses}")
    if shop.job.policy == "retry" and set(report.received) != {row.key for row in effects}:
        faults.append(f"the server was given {dict(report.received)}, the keys are {[row.key for row in effects]}")
    return faults


def faults_of_doubts(shop: Shop, in_doubt: list[str]) -> list[str]:
    """Return what is wrong with who was told: without a key somebody is, once each; with one nobody needs to be."""
    told, due = sorted(shop.doubts()), in_doubt if shop.job.policy != "retry" else []
    return [] if told == due else [f"in doubt were {due}, told were {told}"]


def faults_of_effect(job: Job, open_shop: OpenShop) -> list[str]:
    """Kill at each point of the life of the job's last effect."""
    places = [f"{point}:{len(SHAPES[job.shape])}" for point in (*IN_DOUBT, points.RECEIPT_DURABLE)]
    return [fault for where in places for fault in faults_of(open_shop(job, where), where)]


def faults_anywhere(job: Job, open_shop: OpenShop) -> list[str]:
    """Kill at everything that an undisturbed process comes by."""
    undisturbed = open_shop(job, "undisturbed")
    undisturbed.run()
    faults = faults_of_end(undisturbed)
    for where in undisturbed.passed():
        faults += faults_of(open_shop(job, where), where)
    return faults


def id_of(job: Job) -> str:
    return "-".join(map(str, job[:4])) + "-fork" * job.forks


@pytest.mark.parametrize(
    "job", [Job("single", "retry"), Job("single", "ask", "exit"), Job("single", "raise", "async", "async")], ids=id_of
)
def test_an_effect_killed_anywhere_is_paid_once(job: Job, open_shop: OpenShop) -> None:
    """INV-7, at every point of the run: with a key it is repeated under that key, without one somebody is told."""
    assert faults_anywhere(job, open_shop) == []


OTHERS = [
    Job("single", "ask"),
    Job("single", "raise", "exit", "async"),
    Job("single", "retry", "async"),
    Job("pair", "raise"),
    Job("pair", "retry", "exit", "async"),
    Job("loop", "ask"),
    Job("loop", "retry", "exit"),
    Job("sends", "retry"),
    Job("sends", "ask", "async", "async"),
    Job("sends", "raise", "exit"),
    Job("interrupts", "retry"),
    Job("interrupts", "raise", "exit", "async"),
    Job("retries", "ask"),
    Job("retries", "retry", "async", "async"),
]
"""Each shape, policy and mode, with sync and with async nodes, if not each with each."""


@pytest.mark.parametrize("job", OTHERS, ids=id_of)
def test_an_effect_killed_in_any_shape_is_paid_once(job: Job, open_shop: OpenShop) -> None:
    """INV-7: in loops, among sends, with questions around it, on a next attempt, on an event loop."""
    assert faults_of_effect(job, open_shop) == []


@pytest.mark.parametrize("job", [Job("loop", "retry", forks=True), Job("sends", "ask", "exit", forks=True)], ids=id_of)
def test_a_fork_pays_nothing_again(job: Job, open_shop: OpenShop) -> None:
    """A replay from before the payment finds its receipt, also after a crash, in whichever lineage that happened."""
    shop = open_shop(job, "undisturbed")
    shop.run()
    assert faults_of_end(shop) == []
    assert faults_of_effect(job, open_shop) == []


EVERYTHING = [Job(*case, forks=True) for case in product(SHAPES, POLICIES, MODES, ("sync", "async"))]


@pytest.mark.soak
@pytest.mark.parametrize("job", EVERYTHING, ids=id_of)
def test_whatever_is_killed_anywhere_is_paid_once(job: Job, open_shop: OpenShop) -> None:
    """INV-7: every shape, policy, mode and kind of node, at every point passed on the way and in a fork of it."""
    assert faults_anywhere(job, open_shop) == []
