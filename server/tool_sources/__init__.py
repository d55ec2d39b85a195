"""What the agent's tools come from, besides the packaged ones: a Python file, MCP servers, other agents."""
