"""MCP servers as tool sources. The only package that imports `mcp`; `config` can be imported without it."""
