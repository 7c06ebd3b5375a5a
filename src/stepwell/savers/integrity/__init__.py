"""What is wrong with a database, what depends on it, and how a damaged thread goes on."""
