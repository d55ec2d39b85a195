"""The terminal client: a program of its own that speaks A2A. It shares `server/wire.py` and the form of commands.

`commands` call a server by `conversation`, which prints with `screen`. Imports go in this order.
"""
