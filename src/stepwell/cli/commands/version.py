"""`stepwell version`: which Stepwell this is, and what it stands on."""

from __future__ import annotations

import importlib.metadata
import platform

import click

from stepwell.cli.screen import write, write_json
from stepwell.cli.settings import Settings, global_options


@click.command("version")
@global_options
@click.pass_obj
def version(settings: Settings) -> None:
    """Print the versions of Stepwell, Python and SQLite."""
    import apsw

    found = {"stepwell": _installed(), "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    if settings.json:
        write_json(found)
    else:
        write(f"stepwell {found['stepwell']} (Python {found['python']}, SQLite {found['sqlite']})")


def _installed() -> str:
    try:
        return importlib.metadata.version("stepwell")
    except importlib.metadata.PackageNotFoundError:  # run from a folder of sources
        return "unknown"
