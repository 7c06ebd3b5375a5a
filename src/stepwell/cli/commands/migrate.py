"""`stepwell migrate`: bring a database to the schema of this release, or say what that would take."""

from __future__ import annotations

import click

from stepwell.cli.database import checked_schema, driver_told
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.faults import UnknownDatabaseError
from stepwell.cli.screen import say, write, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.savers.places import is_absent
from stepwell.savers.schema import migrate_schema, read_schema


@click.command("migrate")
@click.option("--check", is_flag=True, help="Change nothing: say what would run, and exit with 1 if anything would.")
@global_options
@click.pass_obj
def migrate(settings: Settings, check: bool) -> int:
    """Bring a database to the schema that this release writes, one transaction for each migration.

    Stop what still uses the old release first. A process killed half-way leaves the database as it was before the
    migration that ran.
    """
    where = checked_schema(settings)
    if is_absent(settings.path):
        told = f"There is no database {settings.path!r}, and nothing to migrate: `run` makes it with the newest schema."
        raise UnknownDatabaseError(f"{told} --db names another.", path=settings.path)
    with driver_told():
        schema = read_schema(settings.path, where)
        done = [] if check else migrate_schema(settings.path, where)
    left = [each.name for each in schema.pending] if check else []
    if settings.json:
        found = schema.found if check else schema.newest
        facts = {"database": settings.place, "version": found, "newest": schema.newest}
        write_json({**facts, "pending": left, "migrated": [each.name for each in done]})
        return FAILED if left else OK
    for name in left:
        write(f"would run {name}")
    for each in done:
        write(f"ran {each.name}")
    say(_sentence(settings, schema.found, schema.newest, check))
    return FAILED if left else OK


def _sentence(settings: Settings, found: int, newest: int, check: bool) -> str:
    if found == newest:
        return f"{settings.place}: schema version {found}, the newest that this release knows"
    if check:
        return f"{settings.place}: schema version {found}, this release writes version {newest}"
    return f"{settings.place}: schema version {newest}, from version {found}"
