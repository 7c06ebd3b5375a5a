"""The bodies behind the store contract, one folder a database, and the public savers that carry them."""
