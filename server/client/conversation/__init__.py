"""The client's side of a conversation: the connection to a server, and following a task across broken connections.

`invocation.py` is one call of a command: its server, headers and output.
"""
