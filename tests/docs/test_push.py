"""docs/push.md: its receiver verifies and prints what its request makes the server send."""

from __future__ import annotations

import re
import threading
from http.server import ThreadingHTTPServer
from queue import Queue
from typing import Any

from a2a_canvas.server.push.outbox import CLAIM_SECONDS, MAX_CONFIGS
from a2a_canvas.server.push.places import LARGE, MAX_FAILING, MAX_LARGE, MAX_PLACES, PER_TARGET, PER_USER
from a2a_canvas.server.push.retries import MAX_ATTEMPTS
from a2a_canvas.server.push.sending import TOTAL_SECONDS
from tests.docs.curl import Curl
from tests.docs.pages import blocks, page

PAGE = page("push")


def test_the_receiver_prints_what_the_request_makes_the_server_send(address: str) -> None:
    [code] = blocks(PAGE, "python")
    printed: Queue[str] = Queue()
    told: dict[str, Any] = {"__name__": "receiver", "print": lambda *words, **_: printed.put(" ".join(words))}
    exec(code, told)
    with ThreadingHTTPServer(("127.0.0.1", 0), told["Receiver"]) as server:
        told["Receiver"].log_message = lambda *_: None
        threading.Thread(target=server.serve_forever).start()
        try:
            [request] = blocks(PAGE.replace("127.0.0.1:9000", f"127.0.0.1:{server.server_address[1]}"), "bash")
            assert Curl.read(request).send(address).status == 200
            lines = [printed.get(timeout=60)]
            while "COMPLETED" not in lines[-1]:
                lines.append(printed.get(timeout=60))
        finally:
            server.shutdown()
    assert lines[0] == "statusUpdate TASK_STATE_WORKING"
    assert any(re.fullmatch(r"artifactUpdate [\w-]+\.md", line) for line in lines)


def test_the_check_takes_ten_lines() -> None:
    [code] = blocks(PAGE, "python")
    [check] = re.findall(r"^def verified.*?\n\n\n", code, re.MULTILINE | re.DOTALL)
    assert len(check.splitlines()) <= 10


def test_the_numbers_are_those_of_the_code() -> None:
    for said in (
        f"A task can have at most {MAX_CONFIGS} configs",
        f"2xx within {TOTAL_SECONDS:g} seconds",
        f"sends within {CLAIM_SECONDS:g} seconds",
        f"must not differ by {CLAIM_SECONDS - TOTAL_SECONDS:g} seconds",
        f"{MAX_ATTEMPTS} attempts in about nine hours",
        f"{MAX_PLACES} attempts at once: {PER_USER} of them for one user, {PER_TARGET} to one host and port, "
        f"{MAX_FAILING} to receivers that failed last time, and {MAX_LARGE} with a body of "
        f"more than {LARGE // 1024} KB",
    ):
        assert said in " ".join(PAGE.split())
