"""From `MODULE:GRAPH` to a graph: a module by its dotted name or by its file, and a name in it.

The rule: a file is imported under the name Python itself would give it, so that the types and graph ids stored from the
command line are those a program stores. Nothing is called: a factory is not a graph.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from stepwell.cli.complaints import raised
from stepwell.cli.faults import ImportFailedError
from stepwell.errors import UsageError

_FORM = "write MODULE:GRAPH, as in my_app.graphs:graph or examples/notes.py:graph"


def load_graph(target: str) -> Any:
    """Return the `StateGraph` or the compiled graph that `target` names."""
    found = load_name(target)
    if not _is_graph(found):
        kind = f"{type(found).__module__}.{type(found).__qualname__}"
        raise UsageError(f"{target} is a {kind}, not a stepwell.StateGraph or what its compile() returns.")
    return found


def load_name(target: str) -> Any:
    """Return whatever `MODULE:NAME` names."""
    place, _, path = target.rpartition(":")
    if not place or not path:
        raise UsageError(f"{target!r} names no graph: {_FORM}.")
    module = _import_file(Path(place)) if _is_file(place) else _import_name(place)
    found: Any = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise UsageError(f"{place} has no {path!r}. It has: {_graphs_in(module) or 'no graph'}.") from None
    return found


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place or "\\" in place


def _is_graph(value: Any) -> bool:
    from stepwell.engine import CompiledGraph
    from stepwell.graph.state_graph import StateGraph

    return isinstance(value, StateGraph | CompiledGraph)


def _graphs_in(module: ModuleType) -> str:
    return ", ".join(name for name, value in vars(module).items() if _is_graph(value))


def _import_name(name: str) -> ModuleType:
    _look_in(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"There is no module {name!r} in this environment or this folder: {_FORM}.") from None
        raise _import_failed(name, error) from error
    except (Exception, SystemExit) as error:
        raise _import_failed(name, error) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"There is no file {str(path)!r}: {_FORM}.")
    name, folder = _name_of(path.resolve())
    _look_in(folder)
    known = sys.modules.get(name)
    if known is not None and Path(getattr(known, "__file__", None) or "").resolve() != path.resolve():
        raise UsageError(f"{path} would be imported as {name!r}, which is another module's name: rename the file.")
    if "." in name:
        return _import_name(name)
    return known if known is not None else _execute(name, path)


def _name_of(path: Path) -> tuple[str, Path]:
    """Return the dotted name of a file, and the folder in which Python finds it under that name."""
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _execute(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file: {_FORM}.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_failed(str(path), error) from error
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _import_failed(module: str, error: BaseException) -> ImportFailedError:
    return ImportFailedError(module=module, raised=raised(error))
