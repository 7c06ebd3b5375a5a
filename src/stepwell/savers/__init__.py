"""The public savers. They stand above the runtime and the stores, so that they can read checkpoints as values."""
