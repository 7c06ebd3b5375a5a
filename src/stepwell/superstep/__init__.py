"""What happens next: plain functions on immutable values. No await, thread, clock, database or randomness.

`state` and `outcome` are the values; `decide` says what to do with a base checkpoint, `merge` what its outcomes make of
it, `carry` what an edit or fork keeps; `body` is the layout of all of them in bytes.
"""
