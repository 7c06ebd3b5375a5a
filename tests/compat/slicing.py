"""Cut chosen test functions out of a module of tests, with everything they reach and nothing else.

A slice keeps the imports, helpers, fixtures and marks that the chosen functions use, directly or through one another.
An import from the package under test is made tolerant: a name that is not there becomes a `Missing`, so that it fails
the functions that use it and not the collection of the whole file. Nothing is run here.
"""

from __future__ import annotations

import ast
import symtable
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
TOLERANT = {"langgraph", "langgraph_sdk", "langchain_core", "langsmith", "tests"}
PREAMBLE = "from tests.missing import Missing as _Missing\n"


@dataclass(frozen=True)
class Slice:
    source: str
    imports: frozenset[tuple[str, str | None]]
    """(module, name) of every import in it; no name where the module itself is imported."""


@dataclass(frozen=True)
class Statement:
    """A top-level statement that is no import."""

    node: ast.stmt
    text: str
    binds: frozenset[str]

    @property
    def is_fixture(self) -> bool:
        return any("fixture" in ast.unparse(mark) for mark in getattr(self.node, "decorator_list", ()))

    @property
    def is_test(self) -> bool:
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef) and self.node.name.startswith("test_")

    @property
    def is_always_kept(self) -> bool:
        return "pytestmark" in self.binds or (self.is_fixture and "autouse=True" in self.text)


def slice_tests(path: Path, chosen: Iterable[str]) -> Slice:
    """Return the slice of the module at `path` that holds the functions `chosen`. KeyError where one is not in it."""
    source = path.read_text()
    tree = ast.parse(source)
    imports = dict(_imports(tree))
    statements = [
        Statement(node, _text(source, node), frozenset(_bound_by(node)))
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    kept = _reachable(statements, set(chosen))
    used = frozenset().union(*(_global_names(statement.text) for statement in kept)) & imports.keys()
    lines = ["from __future__ import annotations\n"] if _has_future(tree) else []
    lines += [PREAMBLE, *(_import(name, *imports[name]) for name in sorted(used))]
    body = "\n\n\n".join(statement.text for statement in statements if statement in kept)
    within = {found for statement in kept for found in _nested_imports(statement.node)}
    return Slice("".join(lines) + "\n\n" + body + "\n", frozenset({imports[name] for name in used} | within))


def _reachable(statements: list[Statement], chosen: set[str]) -> list[Statement]:
    """Return what the chosen tests need, themselves included."""
    tests = {name: statement for statement in statements if statement.is_test for name in statement.binds}
    binding: dict[str, list[Statement]] = {}
    for statement in statements:
        if not statement.is_test:
            for name in statement.binds:
                binding.setdefault(name, []).append(statement)
    fixtures = {name for statement in statements if statement.is_fixture for name in statement.binds}
    waiting = [tests[name] for name in sorted(chosen)] + [one for one in statements if one.is_always_kept]
    kept: list[Statement] = []
    while waiting:
        statement = waiting.pop()
        if statement not in kept:
            kept.append(statement)
            names = _global_names(statement.text) | (_asked_for(statement.node) & fixtures)
            waiting += [found for name in names for found in binding.get(name, ())]
    return kept


def _global_names(text: str) -> set[str]:
    """Return the names that a statement looks up in its module, those in quoted annotations too."""
    text = textwrap.dedent(text)
    found: set[str] = set()

    def visit(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
                found.add(symbol.get_name())
        for child in table.get_children():
            visit(child)

    visit(symtable.symtable(text, "<slice>", "exec"))
    for node in ast.walk(ast.parse(text)):
        for field in ("annotation", "returns"):
            annotation = getattr(node, field, None)
            if isinstance(annotation, ast.AST):
                found |= _annotated(annotation)
    return found


def _annotated(annotation: ast.AST) -> set[str]:
    found = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                found |= _annotated(ast.parse(node.value, mode="eval"))
            except SyntaxError:
                continue
    return found


def _asked_for(node: ast.AST) -> set[str]:
    """Return what may name a fixture: parameters, and texts such as those of `usefixtures`."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            found.add(inner.arg)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            found.add(inner.value)
    return found


def _bound_by(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, Definition):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
    else:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                yield from _bound_by(inner)


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str | None]]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            yield from ((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name.split(".")[0], (alias.name, None)) for alias in node.names)


def _nested_imports(statement: ast.stmt) -> Iterator[tuple[str, str | None]]:
    for node in ast.walk(statement):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def _has_future(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def _import(local: str, module: str, name: str | None) -> str:
    line = f"import {module}" if name is None else f"from {module} import {name}"
    if local != (name or module.split(".")[0]):
        line += f" as {local}"
    if module.split(".")[0] not in TOLERANT:
        return line + "\n"
    what = f"{module}.{name}" if name else module
    return f"try:\n    {line}\nexcept (ImportError, AttributeError):\n    {local} = _Missing({what!r})\n"


def _text(source: str, node: ast.stmt) -> str:
    """Return a statement as written, its decorators included."""
    first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", ()))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])
