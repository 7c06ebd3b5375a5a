"""Mermaid source of a drawn graph, spelled as LangGraph's users have it in their documents and snapshot tests.

The rule kept: names and labels are text, whatever is in them; what Mermaid would read as its own syntax is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stepwell.graph.types import END, START
from stepwell.plan.drawing.graph import DrawnEdge, DrawnNode

STYLES = {
    "default": "fill:#f2f0ff,line-height:1.2",
    "first": "fill-opacity:0",
    "last": "fill:#bfb6fc",
}
_MARKUP = "*_`"
_PLAIN = re.compile(r"[\w./ -]+", re.ASCII)


class Look(NamedTuple):
    """How to draw."""

    with_styles: bool
    curve: str
    colors: Any
    words: int
    """Words in a line of a label."""
    frontmatter: Mapping[str, Any]


def draw(nodes: Iterable[DrawnNode], edges: Iterable[DrawnEdge], look: Look) -> str:
    """Return the source, ending in a line break."""
    lines = [*_frontmatter(look), "graph TD;"] if look.with_styles else ["graph TD;"]
    lines += _group(list(nodes), list(edges), (), look)
    if look.with_styles:
        lines += [f"\tclassDef {name} {_style(look.colors, name)}" for name in STYLES]
    return "\n".join(lines) + "\n"


def _group(nodes: list[DrawnNode], edges: list[DrawnEdge], path: tuple[str, ...], look: Look) -> Iterator[str]:
    """Yield the nodes and edges of one graph, then those of the graphs in it."""
    depth = len(path)
    if look.with_styles:
        yield from (_node(node) for node in nodes if _home(node.id) == path)
    own = [edge for edge in edges if _shared(edge)[: depth + 1] == path]
    own.sort(key=lambda edge: edge.source == edge.target)
    yield from (_edge(edge, look.words) for edge in own)
    inside = (_home(name) for edge in edges for name in (edge.source, edge.target))
    homes = dict.fromkeys([*(_home(node.id) for node in nodes), *inside])
    for name in dict.fromkeys(home[depth] for home in homes if len(home) > depth and home[:depth] == path):
        inner = (*path, name)
        yield f"\tsubgraph {_id(name)}"
        yield from _group(nodes, [edge for edge in edges if _shared(edge)[: depth + 1] == inner], inner, look)
        yield "\tend"


def _home(node_id: str) -> tuple[str, ...]:
    return tuple(node_id.split(":")[:-1])


def _shared(edge: DrawnEdge) -> tuple[str, ...]:
    """Return the innermost graph that both ends of an edge are in."""
    shared = []
    for left, right in zip(_home(edge.source), _home(edge.target), strict=False):
        if left != right:
            break
        shared.append(left)
    return tuple(shared)


def _node(node: DrawnNode) -> str:
    text = f"<p>{_text(node.name)}</p>" if node.name[0] in _MARKUP and node.name[-1] in _MARKUP else _text(node.name)
    if node.metadata:
        text += "<hr/><small><em>" + "\n".join(f"{k} = {_text(v)}" for k, v in node.metadata.items()) + "</em></small>"
    if node.id in (START, END):
        return f"\t{_id(node.id)}([{text}]):::{'first' if node.id == START else 'last'}"
    return f"\t{_id(node.id)}({text})"


def _edge(edge: DrawnEdge, words: int) -> str:
    line, label = ("-.", _label(edge.data, words)) if edge.conditional else ("--", _label(edge.data, words))
    if label is None:
        arrow = "-.->" if edge.conditional else "-->"
    else:
        arrow = f"{line} &nbsp;{label}&nbsp; {'.->' if edge.conditional else '-->'}"
    return f"\t{_id(edge.source)} {arrow} {_id(edge.target)};"


def _label(label: str | None, words: int) -> str | None:
    if label is None:
        return None
    said = _text(label).split()
    lines = [" ".join(said[at : at + words]) for at in range(0, len(said), max(1, words))]
    return "&nbsp<br>&nbsp".join(lines)


def _id(name: str) -> str:
    """Return a name as an id: what is no letter, digit, _ or - becomes a backslash and its code."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else f"\\{ord(c):x}" for c in name)


def _text(value: Any) -> str:
    return "".join(f"#{ord(c)};" if c in '<>"' or (c in "()" and isinstance(value, str)) else c for c in str(value))


def _style(colors: Any, name: str) -> str:
    given = colors.get(name) if isinstance(colors, Mapping) else getattr(colors, name, None)
    return str(given) if given else STYLES[name]


def _frontmatter(look: Look) -> list[str]:
    given = dict(look.frontmatter)
    config = dict(given.get("config") or {})
    config["flowchart"] = {"curve": look.curve, **dict(config.get("flowchart") or {})}
    return ["---", *_yaml({**given, "config": config}, ""), "---"]


def _yaml(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key in sorted(value):
        item = value[key]
        if isinstance(item, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml(item, indent + "  ")
        elif isinstance(item, str) and _PLAIN.fullmatch(item):
            yield f"{indent}{key}: {item}"
        else:
            yield f"{indent}{key}: {json.dumps(item)}"
