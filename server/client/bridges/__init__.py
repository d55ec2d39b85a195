"""Programs that hosts and editors start: they speak another protocol over stdio, and A2A or MCP with a server."""
