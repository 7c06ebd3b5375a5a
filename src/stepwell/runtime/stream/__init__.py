"""What a consumer sees of a run: its chunks, their shapes, and when they are handed out."""
