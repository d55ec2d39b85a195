"""The terminal client: `a2a-canvas send`."""
