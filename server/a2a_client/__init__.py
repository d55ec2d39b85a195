"""A2A from the client's side: the terminal and the remote agents follow tasks of other servers with it.

It owns the calls of the SDK's client (`agent_connection.py`), what their failures mean (`agent_fault.py`), and the
follower (`follower.py`), which sends a message, resumes broken streams with back-off and polls where there are none.
Time stamps without a zone are read as UTC (`timestamps.py`). It opens no HTTP client: its users do, with their limits.
"""
