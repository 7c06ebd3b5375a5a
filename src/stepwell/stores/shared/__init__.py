"""What every body of the store shares: the queue of writes and its leader, how processes are told apart, how schemas
are migrated; rows and their verification, the reader, the audit, history filters.

A body adds its connection, its queries, its transaction and its errors. Nothing here knows which body it serves.
"""
