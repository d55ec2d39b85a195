"""A user whose requests succeed, whatever others send: for tests and `make fuzz`.

Rule 1: the requests are those of `every_request`, one after the other, and then again from the first. For each the
        user makes what it is about; these requests must succeed, too.
Rule 2: an answer must be a success, of a run of AG-UI and of a task as well.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast
from uuid import uuid4

import grpc
import grpc.aio
import httpx
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from a2a_canvas.server.protocols.identity.browser_sessions import COOKIE
from a2a_canvas.server.protocols.sign_in.session_routes import FLOW_COOKIE
from a2a_canvas.server.wire import CANVAS
from tests.every_request import (
    CODE,
    COMMENT,
    CONFIGURED,
    CONTEXT,
    DONE,
    FILE,
    FLOW,
    FRIEND_NAME,
    GIVEN,
    GIVEN_CONTEXT,
    GRPC,
    GRPC_METHODS,
    HOOK,
    JSON,
    REMOVED,
    SESSION,
    SHARE,
    STATE,
    SUGGESTION,
    WAITING,
    WAITING_CONTEXT,
    Asked,
    every_call,
    every_request,
    message_10,
    requests_of_settings,
    resolved,
    rpc,
)
from tests.open_id_provider import Provider

VICTIM = "vic"
FRIEND = "friend"
_ASKS = [{"tools": [{"name": "ask_user", "input": {"question": "Which?"}}]}, {"text": "Done."}]
RULES = [
    {"match": {"text": "^ask$"}, "rounds": _ASKS},
    {"match": {"text": "^just say it$"}, "rounds": [{"text": "Done."}]},
]
"""What the script of the server must have."""
FAILED = ("RUN_ERROR", '"state":"TASK_STATE_FAILED"', '"state":"failed"')
_FAULTS = ("INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE_EXCEEDED")
"""The codes of gRPC with which a call has failed, and was not refused."""
CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    kind: str
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Failed(Exception):
    """A request of the user did not succeed."""


class Victim:
    """A user of a server, whose script has the `RULES`, and says something to everything else.

    Args:
        credentials: the headers of each user, by name.
        friend: who gives the user a context, and gets one.
        provider: signs users in on a server with every route (`every_route`); None for another server.
        channel: for calls of gRPC; without one the user makes none.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        credentials: Mapping[str, Mapping[str, str]],
        name: str = VICTIM,
        friend: str = FRIEND,
        *,
        provider: Provider | None = None,
        channel: grpc.aio.Channel | None = None,
    ) -> None:
        self._http = http
        http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))  # several users may share it
        self._channel = channel
        self._provider, self._sign_in = provider, dict[str, str]()
        self._headers, self._headers_of_friend = credentials[name], credentials[friend]
        self._friend = friend
        self._next = deque[Asked]()
        self._name = name
        self._context, self._given, self._asks, self._done = str(uuid4()), str(uuid4()), "", ""
        self.slowest = 0.0

    async def begin(self) -> None:
        """Begin what the requests are about."""
        self._done = await self._task("write report", self._context)
        put = {"op": "put", "artifactId": "mine", "name": "mine.md", "text": "The text"}
        for operation in (put, {"op": "put", "artifactId": "mine", "text": "The second text"}):
            await self._made(rpc("SendMessage", message_10(contextId=self._context, metadata={CANVAS: operation})))
        await self._task("write report", self._given, self._headers_of_friend)

    async def next_fault(self) -> str:
        """Make the next request; what is wrong with its answer, or nothing."""
        if not self._next:
            self._next.extend(every_request())
            self._next.extend(requests_of_settings() if self._provider else ())
            self._next.extend(every_call() if self._channel else ())
        asked = self._next.popleft()
        try:
            await self._made(await self.resolved(asked))
        except Failed as failed:
            return f"the victim's {failed}"
        return ""

    async def round(self) -> list[str]:
        """Make the rest of the requests, or all of them; the faults."""
        found = [await self.next_fault()]
        while self._next:
            found.append(await self.next_fault())
        return [fault for fault in found if fault]

    async def resolved(self, asked: Asked) -> Asked:
        """A request with the ids of what it is about, which are made for it."""
        return await resolved(
            asked,
            {
                CONTEXT: self._context,
                GIVEN_CONTEXT: self._given_context,
                DONE: self._done,
                WAITING: self._waiting_task,
                WAITING_CONTEXT: self._waiting_context,
                CONFIGURED: self._configured,
                REMOVED: self._context_to_remove,
                COMMENT: self._annotation,
                SUGGESTION: partial(self._annotation, replacement="T"),
                SHARE: partial(self._share, self._context, self._friend),
                GIVEN: self._share_of_friend,
                FILE: self._file,
                FRIEND_NAME: self._friend,
                FLOW: self._begun_sign_in,
                CODE: self._code,
                STATE: self._state,
                SESSION: self._session,
            },
        )

    async def answer(self, asked: Asked, headers: Mapping[str, str] | None = None) -> Answer:
        """What is answered; of a stream that may not end its first piece.

        Args:
            asked: its body may be bytes, which are sent as they are.
        """
        if asked.method == GRPC:
            return await self._answer_of_call(asked, headers or self._headers)
        is_json = asked.body is not None and not isinstance(asked.body, bytes)
        content = json.dumps(asked.body) if is_json else asked.body
        every = {**(JSON if content else {}), **asked.headers, **(headers or self._headers)}
        async with self._http.stream(asked.method, asked.url, content=content, headers=every) as response:
            text = ""
            async for piece in response.aiter_text():
                text += piece
                if asked.follows:
                    break
        self.slowest = max(self.slowest, response.elapsed.total_seconds())
        return Answer(response.status_code, response.headers.get("content-type", ""), text)

    async def _answer_of_call(self, asked: Asked, headers: Mapping[str, str]) -> Answer:
        called, channel = GRPC_METHODS[asked.url], cast(Any, self._channel)  # without a serializer it takes bytes
        request = asked.body if isinstance(asked.body, bytes) else message_of(asked).SerializeToString()
        options: Any = {"metadata": [(name.lower(), value) for name, value in headers.items()], "timeout": CALL_SECONDS}
        try:
            if called.server_streaming:
                stream = channel.unary_stream(asked.url)(request, **options)
                answered = await stream.read()
                stream.cancel()
            else:
                answered = await channel.unary_unary(asked.url)(request, **options)
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            return Answer(500 if code in _FAULTS else 400, "application/grpc", f"{code} {error.details()}")
        read = GetMessageClass(called.output_type).FromString(answered or b"")
        return Answer(200, "application/grpc", json.dumps(MessageToDict(read), separators=(",", ":")))

    async def _made(self, asked: Asked, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer of a success.

        Raises:
            Failed: it is none.
        """
        try:
            answer = await self.answer(asked, headers)
        except httpx.HTTPError as error:
            raise Failed(f"{asked}: {type(error).__name__}") from error
        if what := fault(answer):
            raise Failed(f"{asked}: {what}: {answer.status} {answer.text[:400]}")
        return answer

    async def _task(self, words: str, context: str, headers: Mapping[str, str] | None = None) -> str:
        params = message_10(contextId=context, parts=[{"text": words}])
        return str((await self._made(rpc("SendMessage", params), headers)).json["result"]["task"]["id"])

    async def _waiting_task(self) -> str:
        self._asks = str(uuid4())  # a new question in a context with one would be the answer
        return await self._task("ask", self._asks)

    async def _waiting_context(self) -> str:
        return self._asks

    async def _configured(self) -> str:
        await self._made(rpc("CreateTaskPushNotificationConfig", {"taskId": self._done, **HOOK}))
        return self._done

    async def _context_to_remove(self) -> str:
        context = str(uuid4())
        await self._task("write report", context)
        return context

    async def _share(self, context: str, user: str, headers: Mapping[str, str] | None = None) -> str:
        asked = Asked("POST", f"/artifacts/{context}/shares", {"user": user, "level": "edit"})
        return str((await self._made(asked, headers)).json["shareId"])

    async def _annotation(self, **fields: str) -> str:
        """Of the artifact `mine`, which the requests before it have made."""
        asked = {"op": "annotate", "artifactId": "mine", "selection": {"start": 0, "end": 1}, **fields}
        made = await self._made(rpc("SendMessage", message_10(contextId=self._context, metadata={CANVAS: asked})))
        return str(made.json["result"]["task"]["status"]["message"]["metadata"][CANVAS]["annotationIds"][0])

    async def _share_of_friend(self) -> str:
        return await self._share(self._given, self._name, self._headers_of_friend)

    async def _given_context(self) -> str:
        await self._share_of_friend()
        return self._given

    async def _begun_sign_in(self) -> str:
        """Go to the provider and back; the cookie that the callback expects."""
        assert self._provider
        answer = await self._http.get("/auth/sign-in")
        cookie = answer.cookies[FLOW_COOKIE]
        code, asked = self._provider.code_for(answer.headers["Location"])
        self._sign_in = {"code": code, "state": asked["state"]}
        return cookie

    async def _code(self) -> str:
        return self._sign_in["code"]

    async def _state(self) -> str:
        return self._sign_in["state"]

    async def _session(self) -> str:
        headers = {"Cookie": f"{FLOW_COOKIE}={await self._begun_sign_in()}"}
        answer = await self._http.get("/auth/callback", params=self._sign_in, headers=headers)
        return answer.cookies[COOKIE]

    async def _file(self) -> str:
        about = await self._made(Asked("GET", "/", None, {"Accept": "application/json"}))
        return f"/{about.json['assets']}/main.js"


def message_of(asked: Asked) -> Message:
    """The message of a call of gRPC.

    Raises:
        ParseError: its body is none.
    """
    return ParseDict(asked.body, GetMessageClass(GRPC_METHODS[asked.url].input_type)(), ignore_unknown_fields=True)


def fault(answer: Answer, *, refused: bool = False) -> str:
    """What is wrong with an answer.

    Args:
        refused: it may be a refusal.
    """
    if answer.status >= (500 if refused else 400):
        return f"HTTP {answer.status}"
    if not refused and any(word in answer.text for word in FAILED):
        return "it failed"
    body = json.loads(answer.text) if answer.kind.startswith("application/json") and answer.text else None
    error = body.get("error") if isinstance(body, dict) else None
    internal = "INTERNAL" in answer.text and "PERMISSION_DENIED" not in answer.text
    if isinstance(error, dict) and (internal or not refused):
        return json.dumps(error)
    return INTERNAL_ERROR if INTERNAL_ERROR in answer.text else ""
