"""A port of the loopback address that nobody listens on."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""None of those that the system gives to clients: a client that keeps trying a port may be given that port for itself,
and then it is connected to nobody but itself."""


def free_port() -> int:
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
