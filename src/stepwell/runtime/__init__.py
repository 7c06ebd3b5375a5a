"""Drives one run: carries out what the superstep layer decides, through a store it knows only by contract.

A run's way through this folder: `config` (what the caller asked) → `admission` (what the thread allows) → `drive` (the
loop) → `execute` (tasks) → `calls` and `scope` (user code) → `ledger` (rows, commits, durability modes). `drivers`
answer the loop's requests, on the caller's thread or on an event loop. `stream` shapes events; `loading` and `snapshot`
read.
"""
