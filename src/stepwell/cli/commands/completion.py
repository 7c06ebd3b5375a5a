"""`stepwell completion`: the script by which a shell completes this command. The completion itself is click's."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from stepwell.cli.screen import write, write_json
from stepwell.cli.settings import Settings, global_options

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "stepwell"
VARIABLE = "_STEPWELL_COMPLETE"
"""By which a shell asks; click derives it from the program's name."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish")
@global_options
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and, where a database is at hand, thread ids."""
    settings: Settings = context.obj
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, PROGRAM, VARIABLE).source()
    if settings.json:
        write_json({"shell": shell, "script": script})
    else:
        write(script.rstrip("\n"))
