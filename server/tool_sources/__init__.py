"""What the agent's tools come from, besides the packaged ones: one foreign protocol per module."""
