"""The statements, one a file. Each opens with what it guarantees and what it locks."""
