"""Threads that live at random, on both bodies of the store and from one to the other (see `living.py`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell.clock import Clock
from stepwell.store import Store
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.sqlite import SqliteStore
from stepwell.superstep import blobs
from stepwell.superstep.body import deltas
from tests.integrity.living import Life
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database, lasting_connections

ACTIONS = 12


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short lives have deltas, chains that end, and values that stand apart."""
    monkeypatch.setattr(deltas, "LIMITS", deltas.Limits(3, 2, 3))
    monkeypatch.setattr(blobs, "ABOVE", 300)


def on_a_file(path: Path) -> Callable[[Clock], Store]:
    return lambda clock: SqliteStore(path, clock=clock)


def on_postgres(version: int, worker: str) -> Callable[[Clock], Store]:
    conninfo = empty_database(version, worker)
    return lambda clock: PostgresStore(lasting_connections(conninfo), clock=clock)


def lived(seed: int, folder: Path, *others: Any) -> None:
    """Have a thread live, encrypted every second time, on two files and the other places in turn."""
    life = Life(
        seed, [on_a_file(folder / "one.db"), *others, on_a_file(folder / "two.db")], folder, is_encrypted=seed % 2 == 0
    )
    try:
        life.live(ACTIONS)
    except BaseException as error:
        error.add_note("\n".join(life.told))
        raise
    finally:
        life.end()


@pytest.mark.parametrize("seed", (2, 4, 7, 9, 12, 13))
def test_whatever_happens_to_a_thread_it_shows_what_it_did_and_harms_no_other(seed: int, tmp_path: Path) -> None:
    """INV-1, INV-2, INV-4 to INV-10."""
    lived(seed, tmp_path)


def test_so_it_does_on_postgres(tmp_path: Path, worker_id: str) -> None:
    lived(3, tmp_path, on_postgres(VERSIONS[-1], worker_id))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 400))
def test_so_it_does_for_long(seed: int, tmp_path: Path, worker_id: str) -> None:
    lived(seed, tmp_path, *(on_postgres(version, worker_id) for version in VERSIONS))
