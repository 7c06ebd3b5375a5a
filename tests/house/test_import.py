"""`import stepwell` costs what a user needs and no more: heavy modules load with their first use."""

import subprocess
import sys

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
