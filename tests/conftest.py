"""What every test may use: savers of both kinds, the durability modes, and how hard hypothesis tries.

`HYPOTHESIS_PROFILE=ci` tries more examples.
"""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from stepwell import InMemorySaver, SqliteSaver, points
from tests.bytecode import keep_bytecode
from tests.folders import keep_files_in_memory
from tests.runtime.deaths import Deaths
from tests.stores import servers

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

# The plain run tries the same examples each time; `HYPOTHESIS_PROFILE=ci` looks for new ones.
settings.register_profile("dev", max_examples=25, deadline=None, derandomize=True, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in its background so: Ctrl-C is tested
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Make room for files, bytecode and the session's servers: the first test that needs one starts it."""
    pytest.register_assert_rewrite("stepwell.testing.store_suite")  # before any test imports it
    keep_files_in_memory()
    keep_bytecode(config.rootpath / ".pytest_cache" / "bytecode")
    if servers.SESSION not in os.environ:
        servers.open_session()
        config.add_cleanup(servers.close_session)


def pytest_collection_finish() -> None:
    """Spare collections of garbage what is there for as long as tests run: the tests themselves."""
    gc.freeze()


@pytest.fixture
def memory_saver() -> Iterator[InMemorySaver]:
    with InMemorySaver() as saver:
        yield saver


@pytest.fixture
def sqlite_saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        yield saver


@pytest.fixture(params=["memory", "file"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteSaver]:
    """A saver of each kind in turn. At the end every row of it must verify."""
    made = InMemorySaver() if request.param == "memory" else SqliteSaver(tmp_path / "threads.db")
    with made:
        yield made
        assert list(made.store.verify()) == []


@pytest.fixture(params=["sync", "async", "exit"])
def any_durability(request: pytest.FixtureRequest) -> str:
    """Each durability mode in turn."""
    return str(request.param)


@pytest.fixture
def deaths() -> Iterator[Deaths]:
    """A process that dies where a test wants it to."""
    yield Deaths()
    points.hook = None
