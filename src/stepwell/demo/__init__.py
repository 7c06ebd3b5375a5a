"""The demo: release notes drafted from a git history, by a run that is killed again and again.

`release_notes.py` is the graph, `commits.py` and `notes.py` are its text work, `publication.py` puts a file in place
once. `driver.py` runs the graph in child processes (`child.py`), kills them, and shows what was repeated, as the step
log (`step_log.py`) tells. The rule: the demo knows Stepwell by its public API alone.
"""
