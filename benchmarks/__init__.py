"""What Stepwell costs, measured against LangGraph and against itself: `python -m benchmarks [name ...] [--json]`.

Each family of rows is a module here: `chains, durable, fan_out, growth, resume, floor`. `engines.py` names the two
engines' public API, `graphs.py` writes each graph once for both, `measure.py` times, `report.py` prints.

The rules: both sides of a ratio run in one process, in turn, on fresh threads and files, and the best of the rounds
counts. A target is printed beside the ratio and never asserted: a busy machine is no bug.
"""
