"""Where tests put their files: in memory, if the system has a folder there with room for them all.

What tests kill are processes and servers, whose files are as they left them wherever those are; a test that cuts the
power brings the disk that loses what was not synced (`tests/stores/disk.py`). `TMPDIR` names another place.
"""

import os
import shutil
import tempfile
from pathlib import Path

IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""Many times what a run of the whole suite holds there at once: servers, and the files of failed tests are kept."""


def keep_files_in_memory() -> None:
    """Have this process and those it starts put their files in memory, unless somebody has said where."""
    if "TMPDIR" not in os.environ and IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= ROOM_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)
