"""Sockets that a server keeps, lends and borrows."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from a2a_canvas.server import listening
from a2a_canvas.server.listening import bind_shared, listen, reserve, use_lent
from tests.free_port import free_port

HOST = "127.0.0.1"


def test_a_reserved_port_is_for_processes_of_this_user_that_share_it_and_for_nobody_else() -> None:
    port = free_port()
    with reserve(HOST, port, "--grpc-port"):
        with pytest.raises(OSError, match=f"{port}: Address already in use"):
            listen(HOST, port)
        with pytest.raises(OSError, match="--grpc-port"):
            reserve(HOST, port, "--grpc-port")
        shared = [bind_shared(HOST, port) for _ in range(2)]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port))
        for each in shared:
            each.listen()
        socket.create_connection((HOST, port)).close()
        with pytest.raises(OSError, match="in use"):
            listen(HOST, port)
        for each in shared:
            each.close()
    listen(HOST, port).close()


def test_a_port_that_another_program_has_is_not_reserved() -> None:
    with listen(HOST, 0) as other, pytest.raises(OSError, match="Choose another host or port, such as --grpc-port"):
        reserve(HOST, other.getsockname()[1], "--grpc-port")


def test_a_lent_socket_is_listened_on_in_place_of_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_lent", {})
    lent = listen(HOST, 0)
    port = lent.getsockname()[1]
    use_lent({str(port): lent.detach()})
    listen(HOST, port).close()
    with pytest.raises(ConnectionRefusedError):  # nothing else keeps it open
        socket.create_connection((HOST, port))


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="needs IPv6")
def test_a_shared_port_of_all_ipv6_addresses_is_none_of_ipv4() -> None:
    with bind_shared("::", 0) as shared:
        assert shared.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1
