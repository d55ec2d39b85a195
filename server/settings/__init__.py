"""What an operator can set: options, variables and `agent.toml` as one frozen value, and the model that they name.

Nothing here opens a database or a socket.
"""
