"""The commands, one a file and under its own name. The group in `application.py` imports each when it is called."""
