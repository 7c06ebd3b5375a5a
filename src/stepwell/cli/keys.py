"""Where the command line finds the keys of an encrypted database: a file, the environment, or a name in a module.

The rule: a key is never an argument, where other users of the machine, and the shell's history, would see it; and no
message repeats one.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from stepwell.cli.settings import KEY_VARIABLE, Settings
from stepwell.cli.target import load_name
from stepwell.errors import UsageError
from stepwell.stores.encrypted.encryption import Encryption

_FORM = "a line `ID=KEY` for each key, KEY 32 bytes in base64 or 64 hex digits, the key that wraps first"


def encryption_of(settings: Settings) -> Encryption | None:
    """Return the keys this call was given; None where it was given none."""
    if settings.key_file is not None and settings.encryption is not None:
        raise UsageError("--key-file and --encryption both say where the keys are: leave one out.")
    if settings.encryption is not None:
        found = load_name(settings.encryption)
        if not isinstance(found, Encryption):
            raise UsageError(f"{settings.encryption} is a {type(found).__name__}, not a stepwell.Encryption.")
        return found
    if settings.key_file is not None:
        try:
            text = Path(settings.key_file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The key file {settings.key_file!r} cannot be read: {error}") from None
        return _parsed(text, f"the key file {settings.key_file!r}")
    text = os.environ.get(KEY_VARIABLE, "")
    return _parsed(text, KEY_VARIABLE) if text.strip() else None


def _parsed(text: str, place: str) -> Encryption:
    keys: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key_id, found, coded = stripped.partition("=")
        key = _decoded(coded.strip()) if found else None
        if key is None or not key_id.strip():
            raise UsageError(f"Line {number} of {place} is no key: {_FORM}.")
        keys[key_id.strip()] = key
    if not keys:
        raise UsageError(f"There is no key in {place}: {_FORM}.")
    return Encryption(keys, current=next(iter(keys)))


def _decoded(coded: str) -> bytes | None:
    try:
        key = bytes.fromhex(coded) if len(coded) == 64 else base64.b64decode(coded, validate=True)
    except (ValueError, binascii.Error):
        return None
    return key if len(key) == 32 else None
