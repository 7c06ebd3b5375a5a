"""Threads as files: files that cannot be written or read, and files that do not hold what they should."""

from __future__ import annotations

from stepwell.errors.root import UsageError
from stepwell.errors.storage import StoreError


class UnusableFileError(UsageError):
    """{path} cannot be {used}: {reason}. Nothing was {lost}. Give the path of a file that can be."""

    code = "unusable_file"


class ThreadFileError(StoreError, ValueError):
    """{path} is not the whole file of a thread: {reason}. Nothing was imported; export the thread again."""

    code = "thread_file"


class FileTakenError(UsageError):
    """{path} is there already, and nothing is written over it. Give another path, or move that file away."""

    code = "file_taken"


class ThreadFileNewerError(ThreadFileError):
    """{path} was written by a newer release (format {found}; this one reads up to {known}). Import it there. Nothing
    was imported."""

    code = "thread_file_newer"
