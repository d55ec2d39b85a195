"""The journal: an append-only log of entries for each task, read by cursors.

Its protocol, and the journal in memory.
"""
