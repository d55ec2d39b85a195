"""An agent server that speaks A2A and streams artifacts while they are written."""
