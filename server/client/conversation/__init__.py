"""The client's side of a conversation: the connection to a server, and a task that is followed over broken connections.

`invocation.py` is one call of a command: server, headers, and how its output is written.
"""
