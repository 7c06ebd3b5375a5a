"""Keeps runs moving: leases. It knows the store's contract and the runtime, and no database."""
