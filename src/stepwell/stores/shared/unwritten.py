"""What every body says of a write that changed nothing."""


def unwritten(thread_id: str) -> str:
    """Say that a write changed nothing. Items belong to no thread."""
    return f"Nothing was written; thread {thread_id!r} is as it was." if thread_id else "Nothing was written."
