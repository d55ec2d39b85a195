"""The client's side of a conversation: the connection to a server, a task that is followed over broken connections.

It prints nothing but by `screen`.
"""
