"""How far a request travels through our code: `python -m bench.hops`.

Rule 1: for each flow, the functions of ours that run for it, each counted once, and the files that they are in. A
        reader who follows the flow meets roughly that many.
Rule 2: the server is in memory and runs in this process. What runs at its start, or for a flow that warms it up, does
        not count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx

from a2a_canvas import create_app
from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.settings.settings import load
from a2a_canvas.server.wire import CANVAS

ROOT = Path(__file__).parent.parent
OURS = tuple(f"{ROOT / 'a2a_canvas' / room}/" for room in ("server", "store", "tools"))
SCRIPT = """
rules:
  - match: {text: "edit"}
    rounds: [{text: "new words"}]
  - match: {text: "write"}
    rounds:
      - tools:
          - name: artifact_update
            input:
              append: false
              last_chunk: true
              artifact: {artifact_id: doc, name: doc.md, parts: [{kind: text, text: "Some words."}]}
      - text: Done.
  - match: {text: ""}
    rounds: [{text: Done.}]
"""
KEYS = {name: new_key(name) for name in ("ann", "bob")}
USERS = {name: {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"} for name, key in KEYS.items()}
Flow = Callable[[httpx.AsyncClient], Awaitable[object]]


class Hops:
    """What ran: code of ours, by function."""

    def __init__(self) -> None:
        self.code: set[CodeType] = set()

    @contextmanager
    def counted(self) -> Iterator[None]:
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # What has no name of its own is part of the function that contains it.
        if event == "call" and code.co_filename.startswith(OURS) and not code.co_name.startswith("<"):
            self.code.add(code)

    @property
    def files(self) -> int:
        return len({code.co_filename for code in self.code})


def message(number: str, text: str, user: str = "ann", **fields: Any) -> Flow:
    """Sends a message of a user as a stream, and reads the stream to its end."""
    said = {"messageId": number, "contextId": "hops", "role": "ROLE_USER", "parts": [{"text": text}], **fields}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": said}}
    return lambda http: http.post("/", json=call, headers=USERS[user])


def flows(number: int) -> Mapping[str, Flow]:
    """The flows, with ids of their own."""
    selection = {"unit": "codepoint", "start": 0, "end": 4, "text": "Some"}
    edit = {CANVAS: {"op": "edit", "artifactId": "doc", "baseVersion": number, "selection": selection}}
    return {
        "a message becomes a turn": message(f"m{number}", "hello"),
        "a document is written": message(f"w{number}", "write"),
        "a selection becomes a version": message(f"e{number}", "edit", metadata=edit),
        "a task of another user is not found": lambda http: http.get("/rest/tasks/none", headers=USERS["bob"]),
        "a wrong key is refused": lambda http: http.get("/artifacts", headers={"Authorization": "Bearer x"}),
    }


async def measure() -> Mapping[str, Hops]:
    """Each flow, after it has run once."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as script:
        script.write(SCRIPT)
        script.flush()
        keys = ",".join(f"{name}={key}" for name, key in KEYS.items())
        app = create_app(load({"model": f"script:{script.name}", "database": "memory", "api_keys": keys}))
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http,
        ):
            for flow in flows(1).values():
                await flow(http)
            found = {name: Hops() for name in flows(2)}
            for name, flow in flows(2).items():
                with found[name].counted():
                    answer: Any = await flow(http)
                if '"error"' in answer.text and answer.status_code == 200:
                    raise RuntimeError(f"{name}: {answer.text[:500]}")
    return found


def main() -> None:
    for name, hops in asyncio.run(measure()).items():
        print(f"{name:40} {len(hops.code):4} functions in {hops.files:3} files")


if __name__ == "__main__":
    main()
