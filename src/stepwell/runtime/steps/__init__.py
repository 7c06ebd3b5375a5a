"""Durable steps: calls that a node makes, recorded when they are over, so that they are not made again.

`task` is the decorator; `calling` is what happens when one is called, written once; `driving` answers it on a thread or
on a loop; `children` knows what a node has started and waits for it.
"""
