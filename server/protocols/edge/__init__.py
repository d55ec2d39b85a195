"""Transport concerns that all protocols share: connections, shutdown, origins, SSE, metrics, times and errors."""
