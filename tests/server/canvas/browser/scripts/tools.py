"""What the agent of these tests can do beside writing: only if the user approves it."""

from typing import Any

from a2a_canvas import tool


@tool(approval="ask")
async def delete_file(path: str, reason: str = "", options: dict[str, Any] | None = None) -> str:
    """Deletes a file."""
    return f"{path} is gone."
