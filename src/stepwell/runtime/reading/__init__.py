"""Reading back: a thread's state, its history page by page, its lineages, and what cannot be decoded any more."""
