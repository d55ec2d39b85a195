"""The socket that a server listens on: its own, or one that is lent by `serve --reload` or `serve --workers`."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from collections.abc import Mapping
from typing import Final

CHANNEL: Final = "_A2A_CANVAS_CHANNEL"
"""The variable with the number of the socket over which a server tells that it is ready, and gets the listening one."""


_lent: dict[int, int] = {}
"""The descriptors of the sockets that the parent of this worker lends, by port."""


def use_lent(sockets: Mapping[str, int]) -> None:
    """From now on, use these sockets, which the parent of this worker has bound, by their ports."""
    _lent.update({int(port): number for port, number in sockets.items()})


def listen(host: str, port: int, option: str = "") -> socket.socket:
    """A socket that listens there. One that was lent, which is given once, is bound, and listens when it is served.

    Args:
        option: with which the user can choose another port.

    Raises:
        OSError: it cannot; with one line for the user.
    """
    if port in _lent:
        # No duplicate: while any is open, the system gives it connections, which nobody accepts after the server's end.
        return socket.socket(fileno=_lent.pop(port))
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        why = os.strerror(number) if number > 0 else "no such host"  # the resolver's numbers are not the system's
        other = f", such as {option} {_next_port(port)}" if option and number == errno.EADDRINUSE else ""
        raise OSError(f"Cannot listen on {host}:{port}: {why}. Choose another host or port{other}.") from None


def reserve(host: str, port: int, option: str) -> socket.socket:
    """A socket that keeps a port free for processes of this user which bind it with SO_REUSEPORT, and listens itself
    not.

    Raises:
        OSError: as `listen`.
    """
    listen(host, port, option).close()
    keeper = bind_shared(host, port)
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)  # otherwise other programs could bind it, too
    return keeper


def bind_shared(host: str, port: int) -> socket.socket:
    """A socket for one of the processes that share a reserved port. It does not listen yet: the system distributes
    connections among those that do."""
    shared = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    for option in (socket.SO_REUSEPORT, socket.SO_REUSEADDR):  # connections of the last server may linger
        shared.setsockopt(socket.SOL_SOCKET, option, 1)
    if shared.family == socket.AF_INET6:
        shared.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as `listen` does
    shared.bind((host, port))
    return shared


def _next_port(port: int) -> int:
    return port + 1 if port < 65535 else 8000


def is_reloaded() -> bool:
    """Whether this server is one of `serve --reload`. Ask before `lent_socket`."""
    return CHANNEL in os.environ


def lent_socket(host: str, port: int) -> socket.socket | None:
    """In a server that has loaded its agent: the socket to serve on, as soon as the server before has stopped.

    Returns:
        None in a server that nobody reloads.
    """
    if not (number := os.environ.pop(CHANNEL, "")):
        return None
    with socket.socket(fileno=int(number)) as channel:
        channel.send(json.dumps([host, port]).encode())
        _, given, _, _ = socket.recv_fds(channel, 1, 1)
    if not given:  # it is not needed after all
        sys.exit(0)
    return socket.socket(fileno=given[0])
