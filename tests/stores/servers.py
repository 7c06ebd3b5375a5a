"""Servers for the tests: own initdb and start, on a socket in a folder of their own, as a user without rights.

`shared(version)` is one server a test session and version, started by whichever process needs it first, behind a lock
file; the process that began the session stops it, and a guard does so where that process is killed. It does not wait
for the disk. Tests that crash a server start their own, which does: `Server.started(...)`.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg

from tests.stores import binaries

SESSION = "STEPWELL_TEST_SERVERS"
"""Names the folder of the session's servers, for all its processes."""
PORT = 5432
"""Only names the socket: no server listens on a network."""

_FAST = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off", "-c", "autovacuum=off")
_ALWAYS = ("-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "log_min_messages=fatal")


@dataclass
class Server:
    """One server in one folder, which holds its data and its socket."""

    version: int
    folder: Path
    waits_for_disk: bool = True
    settings: tuple[str, ...] = ()

    def conninfo(self, database: str = "postgres") -> str:
        """Return how to connect to one of its databases."""
        return f"host={self.folder} port={PORT} user=postgres dbname={database}"

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return f"{self.folder}/.s.PGSQL.{PORT}"

    @contextmanager
    def admin(self, database: str = "postgres") -> Iterator[psycopg.Connection]:
        """Connect to it, each statement a transaction."""
        with psycopg.connect(self.conninfo(database), autocommit=True) as connection:
            yield connection

    def create(self) -> None:
        """Make its folder and its data: initdb runs once for each build of a server, what it made is copied."""
        self.folder.mkdir(parents=True, exist_ok=True)
        user = unprivileged()
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        built = (binaries.postgres(self.version) / "bin" / "postgres").stat().st_mtime_ns
        made = binaries.PLACE / f"data-{self.version}-{built}"
        if made.exists():
            shutil.copytree(made, self._data)
            if user is not None:
                self._hand_over(user)
            return
        locale = ("--encoding=UTF8", "--locale=C")
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "--no-sync", *locale)
        _keep(Path(self._data), made)

    def _hand_over(self, user: pwd.struct_passwd) -> None:
        for folder, _, names in os.walk(self._data):
            for path in (folder, *(f"{folder}/{name}" for name in names)):
                os.chown(path, user.pw_uid, user.pw_gid)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [*_ALWAYS, *(() if self.waits_for_disk else _FAST), *self.settings]
        given = " ".join(f"'{option}'" for option in ("-p", str(PORT), "-k", str(self.folder), "-h", "", *options))
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", f"{self.folder}/log", "-o", given)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: "immediate" without waiting for its clients, "fast" after sending them away."""
        if self.pid() is not None:
            self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", mode)

    def kill(self) -> None:
        """Kill its processes with SIGKILL, as a machine that loses power would."""
        main = self.pid()
        assert main is not None
        os.kill(main, signal.SIGSTOP)  # or it might start another one behind the list
        processes = [psutil.Process(main), *psutil.Process(main).children()]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for process in processes:
            while not _is_gone(process):
                os.sched_yield()
        for left in (Path(f"{self._data}/postmaster.pid"), Path(f"{self.socket}.lock")):
            left.unlink(missing_ok=True)  # it names a process that may be unreaped, and so seem alive

    def pid(self) -> int | None:
        """Return its main process, None where it does not run."""
        try:
            pid = int(Path(f"{self._data}/postmaster.pid").read_text().split("\n", 1)[0])
            return None if _is_gone(psutil.Process(pid)) else pid
        except (OSError, ValueError, psutil.NoSuchProcess):
            return None

    @property
    def _data(self) -> str:
        return f"{self.folder}/data"

    def _run(self, program: str, *arguments: str) -> None:
        home = self._home()
        command = [str(home / "bin" / program), *arguments]
        user = unprivileged()
        with tempfile.TemporaryFile() as told:  # never a pipe: the server would keep it open
            done = subprocess.run(
                command,
                cwd=self.folder,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                user=None if user is None else user.pw_uid,
                group=None if user is None else user.pw_gid,
                extra_groups=None if user is None else [],
                check=False,
            )
            told.seek(0)
            if done.returncode:
                raise binaries.NoServer(f"{program} of PostgreSQL {self.version} failed: {told.read().decode()}")

    def _home(self) -> Path:
        """Return the programs, copied where the server's user may not read them as they are."""
        home, copied = binaries.postgres(self.version), self.folder.parent / f"programs-{self.version}"
        if copied.exists():
            return copied
        if os.geteuid() != 0 or _may_run(home / "bin" / "postgres"):
            return home
        shutil.copytree(home, copied, symlinks=True)
        return copied


def _keep(data: Path, made: Path) -> None:
    """Keep what initdb made for the next server, if it may be kept; sessions that do so at once do not meet."""
    try:
        made.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as beside:
            shutil.copytree(data, f"{beside}/data")
            Path(f"{beside}/data").rename(made)
    except OSError:  # an environment that nobody may write to, or somebody was faster
        return


@contextmanager
def started(version: int, *settings: str, waits_for_disk: bool = True) -> Iterator[Server]:
    """Run a server of one's own. It waits for the disk, so that it can be killed."""
    with tempfile.TemporaryDirectory(prefix="stepwell-pg-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        server = Server(version, Path(place) / "server", waits_for_disk, settings)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def shared(version: int) -> Server:
    """Return the session's server of this version, started where this is the first to ask."""
    place = Path(os.environ[SESSION])
    server = Server(version, place / str(version), waits_for_disk=False)
    with (place / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if server.pid() is None:
            server.create()
            server.start()
            _guard(server)
    return server


def open_session() -> None:
    """Make the folder of the session's servers, in the process that began the session."""
    place = tempfile.mkdtemp(prefix="stepwell-pg-")
    Path(place).chmod(0o755)
    (Path(place) / "began-by").write_text(str(os.getpid()))
    os.environ[SESSION] = place


def close_session() -> None:
    """Stop the session's servers."""
    place = Path(os.environ.pop(SESSION))
    for version in binaries.VERSIONS:
        server = Server(version, place / str(version))
        if server.folder.exists():
            server.stop()
    shutil.rmtree(place, ignore_errors=True)


def _guard(server: Server) -> None:
    """Stop the server when the process that began the session has gone."""
    began = (server.folder.parent / "began-by").read_text()
    script = 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; kill -QUIT "$2"; sleep 1; rm -rf "$3"'
    command = ["sh", "-c", script, "guard", began, str(server.pid()), str(server.folder)]
    nowhere = subprocess.DEVNULL
    subprocess.Popen(command, start_new_session=True, stdin=nowhere, stdout=nowhere, stderr=nowhere)


def unprivileged() -> pwd.struct_passwd | None:
    """Return the user to run a server as; None: the one who runs the tests has no rights to shed."""
    return _user() if os.geteuid() == 0 else None


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise binaries.NoServer("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as.")


def _may_run(program: Path) -> bool:
    user = _user()
    try:
        done = subprocess.run(
            [str(program), "--version"], user=user.pw_uid, group=user.pw_gid, extra_groups=[], capture_output=True
        )
    except PermissionError:
        return False
    return done.returncode == 0


def _is_gone(process: psutil.Process) -> bool:
    """Tell whether it has ended: one that nobody has asked after yet is a zombie."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
