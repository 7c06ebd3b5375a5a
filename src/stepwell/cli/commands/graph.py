"""`stepwell graph`: what a graph looks like, as text, as Mermaid or as JSON. No database is opened."""

from __future__ import annotations

import click

from stepwell.cli.arguments import target_argument
from stepwell.cli.screen import write, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.target import load_graph
from stepwell.errors import UsageError


@click.command("graph")
@target_argument
@click.option("--ascii", "as_ascii", is_flag=True, help="Draw boxes and lines; dotted lines are conditional. [default]")
@click.option("--mermaid", is_flag=True, help="Print Mermaid source, for a page that draws it.")
@click.option("--xray", is_flag=True, help="Open the graphs that are nodes.")
@global_options
@click.pass_obj
def graph(settings: Settings, target: str, as_ascii: bool, mermaid: bool, xray: bool) -> None:
    """Draw a graph. Its module is imported and nothing of it runs."""
    from stepwell.engine import CompiledGraph

    forms = {"--ascii": as_ascii, "--mermaid": mermaid, "--json": settings.json}
    chosen = [form for form, given in forms.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} cannot be had at once: leave all but one out.")
    found = load_graph(target)
    drawn = (found if isinstance(found, CompiledGraph) else found.compile()).get_graph(xray=xray)
    if settings.json:
        write_json(drawn.to_json())
    else:
        write((drawn.draw_mermaid() if mermaid else drawn.draw_ascii()).rstrip("\n"))
