"""The client side of A2A: the terminal and the remote agents follow tasks of other servers with it.

It has the calls of the SDK's client (`agent_connection.py`), the meaning of their failures (`agent_fault.py`), and the
follower (`follower.py`), which sends a message, resumes broken streams with back-off and polls where there are none.
Time stamps without a zone are read as UTC (`timestamps.py`). It opens no HTTP client: its users do, with their limits.
"""
