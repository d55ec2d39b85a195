"""`POST /canvas/stream`: a run of AG-UI, which is an A2A task in the context that the thread's id names.

Rule 1: what cannot be asked for is refused before there is a task, as in A2A's REST binding.
Rule 2: a client that goes away does not stop the task, unless the operator wants it so and no other client follows it.
Rule 3: a thread whose newest conversation waits for an answer is given it by the next message that is no operation,
        whether or not it names the interrupt.
Rule 4: a run that is sent again joins the task that it went to when it first came, even if that waits or has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from a2a.utils.errors import InvalidParamsError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from a2a_canvas.server.agent.events import State, UserMessage
from a2a_canvas.server.agent.intent import intent_of
from a2a_canvas.server.agent.operations import Converse, InvalidOperation
from a2a_canvas.server.protocols.a2a_v1.errors import to_a2a_error
from a2a_canvas.server.protocols.a2a_v1.parts import check_text
from a2a_canvas.server.protocols.agui.input import in_forwarded_props, last_message, run_input
from a2a_canvas.server.protocols.agui.older.request import (
    Canvas,
    OlderRun,
    canvas_of,
    in_its_words,
    is_first_made,
    older_request,
)
from a2a_canvas.server.protocols.agui.run_events import RunProjection
from a2a_canvas.server.protocols.agui.stream import run_stream
from a2a_canvas.server.protocols.edge.caller import owner_of
from a2a_canvas.server.protocols.edge.shutdown import SHUTDOWN_GRACE, final_event_of
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_content_type, check_json
from a2a_canvas.server.protocols.guard.error_forms import rest_response, router_error
from a2a_canvas.server.tasks.errors import ContextMismatch, TaskNotCancelable
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.listing import TaskQuery
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.store.base import ArtifactStore
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.models import JsonValue, Ref, Version

MAX_BODY_VALUES = 1_000_000
"""Values of JSON in a request. A thread's whole past stands in it; what is new of it is bounded in agui_input.py."""

NO_LIMIT = 1_000_000
"""More tasks than a thread has."""


@dataclass(frozen=True, slots=True)
class AgUiConfig:
    """What the route needs.

    Attributes:
        expose_thinking: clients may see the model's thinking.
        cancel_on_disconnect: the last client that goes away takes its task with it.
        grace: seconds that the server has to stop.
    """

    runtime: Runtime
    store: ArtifactStore
    limits: BodyLimits
    new_id: Callable[[], str]
    expose_thinking: bool = False
    cancel_on_disconnect: bool = False
    grace: float = SHUTDOWN_GRACE


def agui_routes(agui: AgUiConfig) -> list[Route]:
    """The route. It answers every method, because a mount for tenants stands behind it."""
    return [Route("/canvas/stream", _RunEndpoint(agui))]


class _RunEndpoint:
    """The ASGI application at the route."""

    def __init__(self, agui: AgUiConfig) -> None:
        self._agui = agui
        self._runtime = agui.runtime
        self._store = agui.store
        self._watched: dict[str, set[RunProjection]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            await rest_response(router_error(405, request.method), {"Allow": "POST"})(scope, receive, send)
            return
        try:
            run, following = await self._asked(request)
        except Exception as error:
            await rest_response(_refusal(error))(scope, receive, send)
            return
        task_id = following.snapshot.task_id
        self._watched.setdefault(task_id, set()).add(run)
        try:
            left = self._left(run, following.snapshot)
            await run_stream(run, following, final_event_of(scope), left, self._agui.grace)(scope, receive, send)
        finally:
            self._leave(run, task_id)

    async def _asked(self, request: Request) -> tuple[RunProjection, TaskSubscription]:
        value = await self._body(request)
        older = "message" in value and "messages" not in value
        return await (self._older if older else self._run)(value, owner_of(request))

    # ---------------------------------------------------------------- what is asked for

    async def _body(self, request: Request) -> Mapping[str, JsonValue]:
        if refusal := check_content_type(request.headers.get("content-type")):
            raise refusal.error()
        # Elsewhere, because a long past takes its time.
        value = await asyncio.to_thread(check_json, await request.body(), self._agui.limits, MAX_BODY_VALUES)
        if isinstance(value, Refusal):
            raise value.error()
        if not isinstance(value, dict):
            raise InvalidParamsError("Send one JSON object: AG-UI's RunAgentInput.")
        return value

    async def _run(self, value: Mapping[str, JsonValue], owner: str) -> tuple[RunProjection, TaskSubscription]:
        try:
            asked = OlderRun(run_input(value), "", ())
            self._check_text(asked, "resume" if value.get("resume") else last_message(value))
            following = await self._accepted(asked, owner)
        except InvalidOperation as error:
            raise in_forwarded_props(error, value) from None
        return await self._projection(asked, following), following

    async def _older(self, value: Mapping[str, JsonValue], owner: str) -> tuple[RunProjection, TaskSubscription]:
        try:
            asked = await self._older_run(value)
            self._check_text(asked, "message")
            following = await self._accepted(asked, owner)
        except InvalidOperation as error:
            raise in_its_words(error) from None
        return await self._projection(asked, following, asked.artifact_id), following

    def _check_text(self, asked: OlderRun, field: str) -> None:
        if asked.run.message:
            check_text(asked.run.message, self._agui.limits.max_text_bytes, field)

    async def _older_run(self, value: Mapping[str, JsonValue]) -> OlderRun:
        older = older_request(value, self._agui.new_id())
        artifacts = await self._store.list(older.thread_id)
        tasks = await self._runtime.journal.context(older.thread_id) if is_first_made(artifacts) else ()
        artifact = canvas_of(artifacts, tasks)
        if artifact is None:
            return older.meaning(None)
        versions = await self._store.versions(Ref(older.thread_id, artifact.artifact_id, ""))
        return older.meaning(Canvas(artifact, versions))

    async def _accepted(self, asked: OlderRun, owner: str) -> TaskSubscription:
        run, message = asked.run, asked.run.message
        if message is None:
            return await self._abandoned(run.task_id, run.thread_id, owner)
        own = TaskQuery(owner, run.thread_id, limit=NO_LIMIT, artifacts=False)
        tasks = (await self._runtime.journal.list(own)).records
        repeated = next((task for task in tasks if message in task.history), None)
        if repeated:
            return await self._runtime.follow(repeated.task_id, owner)
        waits = any(task.state is State.INPUT_REQUIRED for task in tasks)
        task_id = run.task_id or (await self._waiting(message, run.thread_id, owner) if waits else "")
        return await self._runtime.send(Incoming(message, owner, run.thread_id, task_id, asked.changes))

    async def _waiting(self, message: UserMessage, thread_id: str, owner: str) -> str:
        """The newest conversation, if it waits for what is said now (rule 3)."""
        if not _converses(message):
            return ""
        tasks = [task for task in await self._runtime.journal.context(thread_id) if task.owner == owner]
        newest = next((task for task in reversed(tasks) if _converses(_first(task))), None)
        return newest.task_id if newest and newest.state is State.INPUT_REQUIRED else ""

    async def _abandoned(self, task_id: str, thread_id: str, owner: str) -> TaskSubscription:
        record = await self._runtime.get(task_id, owner)
        if record.context_id != thread_id:
            raise ContextMismatch(task_id, thread_id)
        with suppress(TaskNotCancelable):  # it has ended: the run says how
            await self._runtime.cancel(task_id, owner)
        return await self._runtime.follow(task_id, owner)

    # ---------------------------------------------------------------------- what is sent

    async def _projection(
        self, asked: OlderRun, following: TaskSubscription, legacy: str | None = None
    ) -> RunProjection:
        context_id = following.snapshot.context_id
        artifacts = await self._store.list(context_id)
        versions: dict[str, tuple[Version, ...]] = {
            artifact.artifact_id: await self._store.versions(Ref(context_id, artifact.artifact_id, ""))
            for artifact in artifacts
        }
        return RunProjection(
            following.snapshot,
            thread_id=asked.run.thread_id,
            run_id=asked.run.run_id,
            artifacts=artifacts,
            versions=versions,
            expose_thinking=self._agui.expose_thinking,
            legacy=legacy,
        )

    def _left(self, run: RunProjection, record: TaskRecord) -> Callable[[Message], Awaitable[None]] | None:
        """What to do when the client goes away (rule 2)."""

        async def cancel(message: Message) -> None:
            if self._leave(run, record.task_id) and not run.over:
                # There is nobody to be told that it cannot be done.
                with suppress(TaskNotCancelable, Unavailable):
                    await self._runtime.cancel(record.task_id, record.owner)

        return cancel if self._agui.cancel_on_disconnect else None

    def _leave(self, run: RunProjection, task_id: str) -> bool:
        """Whether nobody follows the task any more."""
        watching = self._watched.get(task_id, set())
        watching.discard(run)
        if not watching:
            self._watched.pop(task_id, None)
        return not watching


def _first(task: TaskRecord) -> UserMessage:
    return next(message for message in task.history if isinstance(message, UserMessage))


def _converses(message: UserMessage) -> bool:
    return isinstance(intent_of(message), Converse)


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, InvalidOperation):
        return Refusal(InvalidParamsError, str(error), ((error.field, error.reason),))
    known = to_a2a_error(error)
    fields = (known.data or {}).get("errors", ())
    return Refusal(type(known), known.message, tuple((field["field"], field["message"]) for field in fields))
