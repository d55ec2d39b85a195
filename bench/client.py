"""A client: reads SSE from a socket, folds the events as the SDK's client does, and records when each piece arrived.

It does only what every client must do (parse each event's JSON once, append each piece of text to a list), so that it
takes little of a core that it may share with the server.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from a2a_canvas.server.wire import TURN
from bench.pace import PIECE, SIZE, Order
from bench.sse import Reader, StreamError

COMPLETED = "TASK_STATE_COMPLETED"
HOST = "127.0.0.1"
RECEIVE_BUFFER = 1 << 20
"""Bytes, of a client that reads."""

Listen = Callable[[str, int], None]
"""Called with the text of each artifact event, and the monotonic time in nanoseconds at which its bytes arrived."""


class ClientError(Exception):
    """The server sent something that a client cannot accept."""


class Watcher:
    """The fold of the events that one reader of a task has received.

    Attributes:
        first: the length of the text in the snapshot that the stream began with.
        events: number of events.
        generations: of every event, if `turn:v1` is active.
        changes: the generations of the artifact's changes alone.

    Args:
        listen: called with every piece of text.
    """

    def __init__(self, listen: Listen | None = None) -> None:
        self.task_id = ""
        self.state = ""
        self.first = 0
        self.events = 0
        self.generations: list[int] = []
        self.changes: list[int] = []
        self.begun = asyncio.Event()
        self._artifacts: dict[str, list[str]] = {}
        self._listen = listen

    @property
    def text(self) -> str:
        """The text of all artifacts."""
        return "".join(piece for pieces in self._artifacts.values() for piece in pieces)

    def take(self, answer: dict[str, Any], at: int) -> None:
        """Fold one event.

        Raises:
            ClientError: it is an error, or appends to an artifact that does not exist.
        """
        self.events += 1
        match answer.get("result"):
            case {"artifactUpdate": event}:
                self._change(event, at)
            case {"statusUpdate": event}:
                self.state = event["status"]["state"]
            case {"task": event}:
                self._begin(event)
            case _:
                raise ClientError(f"not an event: {json.dumps(answer)[:300]}")
        if number := event.get("metadata", {}).get(TURN, {}).get("generation"):
            self.generations.append(int(number))
            if "artifact" in event:
                self.changes.append(int(number))

    def _begin(self, task: dict[str, Any]) -> None:
        self.task_id, self.state = task["id"], task["status"]["state"]
        self._artifacts = {artifact["artifactId"]: list(texts(artifact)) for artifact in task.get("artifacts", ())}
        self.first = len(self.text)
        self.begun.set()

    def _change(self, event: dict[str, Any], at: int) -> None:
        artifact = event["artifact"]
        new = list(texts(artifact))
        if not event.get("append"):
            self._artifacts[artifact["artifactId"]] = new
        elif artifact["artifactId"] in self._artifacts:
            self._artifacts[artifact["artifactId"]] += new
        else:
            raise ClientError(f"appends to {artifact['artifactId']!r}, which was never begun")
        if self._listen:
            self._listen("".join(new), at)


def texts(artifact: dict[str, Any]) -> Iterator[str]:
    """The text of each part."""
    return (part.get("text", "") for part in artifact["parts"])


# ------------------------------------------------------------------------- requests


def send(order: Order, key: str = "") -> bytes:
    """A `SendStreamingMessage` request, with or without an API key."""
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": str(order)}]}
    return request("SendStreamingMessage", {"message": message}, key=key)


def subscribe(task_id: str, *, turn: bool = False, key: str = "") -> bytes:
    """A `SubscribeToTask` request, with or without `turn:v1`."""
    return request("SubscribeToTask", {"id": task_id}, [TURN] if turn else [], key)


def request(method: str, params: dict[str, Any], extensions: Sequence[str] = (), key: str = "") -> bytes:
    """A JSON-RPC request that activates extensions."""
    return post("/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, extensions, key)


def post(path: str, content: dict[str, Any], extensions: Sequence[str], key: str = "") -> bytes:
    """An HTTP request that activates extensions, with an API key if there is one."""
    body = json.dumps(content).encode()
    activated = f"A2A-Extensions: {', '.join(extensions)}\r\n" if extensions else ""
    activated += f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"A2A-Version: 1.0\r\nConnection: close\r\n{activated}\r\n"
    )
    return head.encode() + body


async def watch(port: int, request: bytes, watcher: Watcher) -> Watcher:
    """Send a request and fold the answer to its end.

    Raises:
        ClientError: an event cannot be folded.
        StreamError: the answer is not a complete event stream.
        OSError: the connection broke.
    """
    loop = asyncio.get_running_loop()
    _, reader = await loop.create_connection(lambda: Reader(request, watcher.take), HOST, port)
    await reader.ended
    return watcher


def check_pieces(watcher: Watcher, count: int) -> None:
    """Raises `ClientError` if a reader did not get exactly so many equal pieces."""
    if watcher.state != COMPLETED or watcher.text != PIECE * count:
        raise ClientError(f"{watcher.state} with {len(watcher.text)} characters of {count * SIZE}")


async def get_text(port: int, task_id: str) -> str:
    """The text of a task's artifacts as `GetTask` has it."""
    answer = await exchange(port, request("GetTask", {"id": task_id}))
    return "".join(text for artifact in answer["result"].get("artifacts", ()) for text in texts(artifact))


async def get(port: int, path: str) -> Any:
    """The JSON at a path."""
    head = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    return await exchange(port, head.encode())


async def exchange(port: int, asked: bytes) -> Any:
    """Send a request and read the JSON of the answer, whatever its status.

    Raises:
        StreamError: the answer broke off.
        OSError: the connection broke.
    """
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(asked)
        return json.loads((await reader.read()).partition(b"\r\n\r\n")[2])
    except ValueError:
        raise StreamError("the answer broke off") from None
    finally:
        writer.close()


class Sleeper:
    """A client that sends its request and does not read the answer until `read` is called.

    Until then its receive buffer is as small as the system allows.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        self._socket.setblocking(False)
        self._port = port

    async def begin(self, request: bytes) -> None:
        """Send a request."""
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, (HOST, self._port))
        await loop.sock_sendall(self._socket, request)

    async def read(self) -> Watcher:
        """Read the whole answer."""
        loop = asyncio.get_running_loop()
        watcher = Watcher()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        _, reader = await loop.create_connection(lambda: Reader(b"", watcher.take), sock=self._socket)
        await reader.ended
        return watcher

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()
