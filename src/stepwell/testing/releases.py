"""A release that is still to come: the migrations that it will add, for tests of what this one does about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stepwell.stores.shared.migrating import Migration, known_migrations, of_later_release
from stepwell.stores.sqlite.schema import SCRIPTS


@contextmanager
def later_release(*scripts: str, package: str = SCRIPTS) -> Iterator[tuple[Migration, ...]]:
    """Let this process be a later release inside the block: one whose migrations end in these scripts."""
    first = len(known_migrations(package)) + 1
    added = tuple(Migration(number, f"{number:04}_later", script) for number, script in enumerate(scripts, first))
    before = of_later_release.get(package, ())
    of_later_release[package] = before + added
    try:
        yield added
    finally:
        of_later_release[package] = before
