"""A server for the requests and sessions that the pages show."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn

from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings.settings import load
from tests.loopback import listening


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server with the rehearsal model, as a reader has it, but not at a human pace."""
    with listening() as (listener, port):
        app = create_app(load({"port": port, "database": "memory", "push_allow": "127.0.0.1"}), Rehearsal(delay=0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        running.start()
        try:
            # The socket accepts from the first moment; an answer says that start-up is over.
            assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            running.join()
