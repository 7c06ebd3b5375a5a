"""A store over another store, for what is not to be read by whoever has the disk. It stores nothing itself.

Rows are encrypted where they are made (`sealer.py`) or, where only the store knows all of a row, on their way in
(`store.py`); they are decrypted on their way out (`reader.py`). Digests are those of what is stored, and nobody's
business here.
"""
