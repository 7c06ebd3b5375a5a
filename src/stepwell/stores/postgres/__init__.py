"""The PostgreSQL store: one schema of one database behind the contract of `stepwell.store`, for many processes at once.

SQL lives in `queries/` and `migrations/`, nowhere else. psycopg is imported here alone, and only where a store is made.
"""

MAX_SIZE = 16
MIN_SIZE = 4
"""How many connections of its own a store has at once, unless told otherwise, and how many of them stay open."""
