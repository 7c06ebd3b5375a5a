"""`import stepwell` costs what a user needs and no more: heavy modules load with their first use."""

import subprocess
import sys

HEAVY = ["apsw", "asyncio", "click", "cryptography", "langchain_core", "ormsgpack", "psycopg", "pydantic", "rich"]


def test_import_loads_no_heavy_module() -> None:
    program = f"import stepwell, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")
