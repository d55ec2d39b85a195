"""What all protocols share: connections, shutdown, origins, SSE and metrics; the forms of times, page tokens, shares
and errors.
"""
