"""What a worker learns from its parent, and keeps to itself."""

from __future__ import annotations

import os
import socket

import pytest

from a2a_canvas.server.commands.workers.worker_place import VARIABLE, WorkerPlace


def test_programs_that_a_worker_starts_have_neither_its_place_nor_its_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, shared = socket.socketpair()
    with channel, shared:
        for each in (channel, shared):
            each.set_inheritable(True)
        given = WorkerPlace(1, channel.fileno(), {"8000": shared.fileno()}, connections=6)
        monkeypatch.setenv(VARIABLE, given.environment()[VARIABLE])
        assert WorkerPlace.take() == given
        assert (channel.get_inheritable(), shared.get_inheritable()) == (False, False)
        assert VARIABLE not in os.environ
