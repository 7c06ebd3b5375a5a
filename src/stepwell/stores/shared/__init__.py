"""What every body of the store shares: the queue of writes and its leader, and how processes are told apart.

A body adds its connection, its statements, its transaction and its errors. Nothing here knows which body it serves.
"""
