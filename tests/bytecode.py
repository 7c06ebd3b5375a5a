"""Bytecode for the processes that tests start: where Python is told to write none, each of them compiles everything
anew, which takes longer than what most of them do."""

import os
import sys
from pathlib import Path


def keep_bytecode(folder: Path) -> None:
    """Have this process and those it starts keep their bytecode in a folder, if none would be kept."""
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
