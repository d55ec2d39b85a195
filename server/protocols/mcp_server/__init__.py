"""MCP: hosts such as Claude, Cursor and VS Code read and write artifacts, and ask the agent (docs/mcp-hosts.md).

`server.py` alone knows the SDK of the protocol, and is imported with the first request: MCP is an extra.
"""
