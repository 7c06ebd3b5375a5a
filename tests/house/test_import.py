"""`import stepwell` costs what a user needs and no more: heavy modules load with their first use."""

import ast
import subprocess
import sys
from pathlib import Path

import stepwell

HEAVY = ["apsw", "asyncio", "click", "cryptography", "langchain_core", "ormsgpack", "psycopg", "pydantic", "rich"]


def test_import_loads_no_heavy_module() -> None:
    program = f"import stepwell, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


def test_every_public_name_is_there_without_the_extras() -> None:
    """`from stepwell import *`, completion and `inspect.getmembers` ask for all of them."""
    program = """if True:
        import sys
        for name in ("psycopg", "psycopg_pool", "cryptography", "click", "rich", "langchain_core", "pydantic"):
            sys.modules[name] = None
        from stepwell import *
        try:
            PostgresSaver("postgresql://host/database")
        except ImportError as error:
            print(str(error).rpartition(": ")[2])
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "pip install 'stepwell[postgres]'\n", "")


def test_every_error_and_every_name_that_types_are_told_of_is_a_public_name() -> None:
    """What a program catches it imports from where everything else is; and a checker promises no more than there is."""
    tree = ast.parse(Path(str(stepwell.__file__)).read_text())
    told = {alias.asname for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) for alias in each.names}
    names = {name for name in told if name is not None}
    kinds, errors = [stepwell.StepwellError], set[str]()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__.startswith("stepwell.errors"):
            errors.add(kind.__name__)
    assert errors <= names
    assert [name for name in sorted(names) if not hasattr(stepwell, name)] == []
