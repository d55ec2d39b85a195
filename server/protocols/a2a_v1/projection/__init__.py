"""Tasks, entries, parts and artifacts as A2A has them, and back. Pure.

`parts.py` is the only module that knows both shapes of a part.
"""
