"""`POST /canvas/stream`: an AG-UI run, which is an A2A task in the context that the thread's id names.

Rule 1: an invalid request is refused before there is a task, as in A2A's REST binding.
Rule 2: a client that disconnects does not stop the task, unless `cancel_on_disconnect` is set and no other client
        follows the task.
Rule 3: if one task of a thread waits for an answer, the next message that is not an operation answers it, whether or
        not it names the interrupt. The runtime decides that, as for A2A.
Rule 4: a run that is sent again joins its first task, even if that waits or has ended.
Rule 5: the older request is translated here (older/); its run is a run like any other.
Rule 6: a guest who may not send messages is refused before anything is parsed. A large body is parsed and translated in
        the thread that all users share (guard/parsing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from a2a.utils.errors import A2AError, InvalidParamsError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.accounts.errors import OUTSIDE_LINK, ContextNotFound, ReadOnly
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.a2a_v1.errors import ERRORS, to_a2a_error
from a2a_canvas.server.protocols.a2a_v1.projection.parts import check_text
from a2a_canvas.server.protocols.agui.input import RunInput, in_forwarded_props, last_message_field, run_input
from a2a_canvas.server.protocols.agui.older.older_form import OlderRequest, check_no_selection, is_older, older_request
from a2a_canvas.server.protocols.agui.older.older_state import OlderState
from a2a_canvas.server.protocols.agui.older.request import (
    ThreadArtifact,
    TranslatedRun,
    find_run,
    in_older_names,
    needs_tasks,
    thread_artifact,
    translate_request,
)
from a2a_canvas.server.protocols.agui.run_events import RunProjection
from a2a_canvas.server.protocols.agui.state import CanvasState, RunState, VersionsByArtifact, at_record
from a2a_canvas.server.protocols.agui.stream import OpenedRun, run_response
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.protocols.edge.http_requests import caller_of, end_with_credential
from a2a_canvas.server.protocols.edge.shutdown import final_event_of
from a2a_canvas.server.protocols.edge.sse_response import wait_for_start
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal, check_content_type, check_json
from a2a_canvas.server.protocols.guard.error_forms import method_not_allowed, rest_response
from a2a_canvas.server.protocols.guard.parsing import ParsingThread
from a2a_canvas.server.tasks.contexts import Context
from a2a_canvas.server.tasks.errors import ContextMismatch, TaskFinished, TaskNotCancelable, TaskNotFound
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.journal import TaskSubscription
from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import AGUI_PATH
from a2a_canvas.store.changes import Change
from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import public_id
from a2a_canvas.store.models import JsonValue, text_of
from a2a_canvas.store.text.wording import format_value

MAX_BODY_VALUES = 100_000
"""JSON values in a request, which has the thread's whole history. `input.py` bounds its new part."""


@dataclass(frozen=True, slots=True)
class AgUiConfig:
    """What the route needs.

    Attributes:
        new_id: makes the run ids of older requests that have none.
        expose_thinking: clients may see the model's thinking.
        cancel_on_disconnect: when the last client of a task disconnects, the task is cancelled.
        metrics: measure how late entries are sent.
        parsing: where large bodies are parsed.
    """

    runtime: Runtime
    limits: BodyLimits
    new_id: Callable[[], str]
    parsing: ParsingThread = field(default_factory=ParsingThread)
    expose_thinking: bool = True
    cancel_on_disconnect: bool = False
    metrics: Metrics = field(default_factory=Metrics)
    encoded: EncodedEvents = field(default_factory=EncodedEvents)


def agui_routes(agui: AgUiConfig) -> list[Route]:
    """The route. It accepts every method, so that a wrong one is refused in REST's form."""
    return [Route(AGUI_PATH, _RunEndpoint(agui))]


class _RunEndpoint:
    def __init__(self, agui: AgUiConfig) -> None:
        self._agui = agui
        self._runtime = agui.runtime
        self._watching: dict[str, set[RunProjection]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            refusal = method_not_allowed(request.method, request.url.path, ("POST",))
            await rest_response(refusal)(scope, receive, send)
            return
        watch = _Watch(self._watching)
        with ExitStack() as counted:
            try:
                counted.enter_context(self._runtime.meter.stream(caller_of(request).account))
                opened = await wait_for_start(self._open(request, watch))
            except Exception as error:
                await rest_response(_refusal(error))(scope, receive, send)
                return
            try:
                on_disconnect = partial(self._leave, watch) if self._agui.cancel_on_disconnect else None
                response = run_response(
                    opened, final_event_of(scope), on_disconnect, self._agui.metrics, self._agui.encoded
                )
                await response(scope, receive, send)
            finally:
                watch.stop()

    async def _open(self, request: Request, watch: _Watch) -> OpenedRun:
        await round_robin().next_slice()
        caller = caller_of(request)
        await self._runtime.contexts.check_link(caller)
        raw, content_type = await request.body(), request.headers.get("content-type")
        parse = partial(_parse, raw, content_type, self._agui)
        parsed = await self._agui.parsing.run(caller.account, len(raw), parse)
        if isinstance(parsed, OlderRequest):
            run, following = await self._open_older(parsed, caller, len(raw))
        else:
            run, following = await self._open_run(*parsed, caller)
        end_with_credential(following, request.scope)
        watch.caller = caller
        watch.start(run, following.snapshot)
        return run, following

    async def _open_run(
        self, run: RunInput, body: Mapping[str, JsonValue], caller: Caller
    ) -> tuple[RunProjection, TaskSubscription]:
        try:
            self._check_text(run, "resume" if body.get("resume") else last_message_field(body))
            following = await self._send(run, caller)
        except (TaskNotFound, TaskFinished, ContextMismatch) as error:
            raise _interrupt_error(error) from None
        except InvalidOperation as error:
            raise in_forwarded_props(error, body) from None
        state, _ = await self._state(following.snapshot)
        return self._projection(run, following, state), following

    async def _open_older(
        self, request: OlderRequest, caller: Caller, size: int
    ) -> tuple[RunProjection, TaskSubscription]:
        run_id, plain = request.run_id or self._agui.new_id(), request.without_artifact()

        async def translate(request: OlderRequest, current: ThreadArtifact | None = None) -> TranslatedRun:
            """In the parsing thread, because the changes of both sides may have to be merged."""
            text = text_of(current.artifact.parts) if current else None
            translation = partial(translate_request, request, current, run_id)
            return await self._agui.parsing.run(caller.account, size + len(text.text if text else ""), translation)

        try:
            thread = await self._runtime.contexts.open(caller, request.thread_id)
            joined = await self._find_run((await translate(plain)).run, thread, caller) if request.run_id else None
            if joined:
                older, following = await translate(plain, await _thread_artifact(thread)), joined
            else:
                older = await translate(request, await _thread_artifact(thread))
                self._check_text(older.run, request.message_field)
                following = await self._send(older.run, caller, older.changes)
        except ContextNotFound:
            raise ReadOnly(OUTSIDE_LINK) from None
        except InvalidOperation as error:
            raise in_older_names(error) from None
        state, versions = await self._state(following.snapshot)
        older_state = OlderState(state, following.snapshot, versions, older.artifact_id)
        return self._projection(older.run, following, older_state), following

    def _check_text(self, run: RunInput, field: str) -> None:
        if run.message:
            check_text(run.message, self._agui.limits.max_text_bytes, field)

    async def _find_run(self, run: RunInput, thread: Context, caller: Caller) -> TaskSubscription | None:
        """The run that an earlier copy of the same request started."""
        tasks = await thread.tasks()
        found = find_run(run, [task for task in tasks if task.history and task.sender == caller.author])
        return await self._runtime.follow(found.task_id, caller) if found else None

    async def _send(
        self, run: RunInput, caller: Caller, changes: tuple[tuple[str, Change], ...] = ()
    ) -> TaskSubscription:
        if run.message is None:
            return await self._cancel(run.task_id, run.thread_id, caller)
        incoming = Incoming(run.message, context_id=run.thread_id, task_id=run.task_id, changes=changes)
        return await self._runtime.send(incoming, caller)

    async def _cancel(self, task_id: str, thread_id: str, caller: Caller) -> TaskSubscription:
        record = await self._runtime.get(task_id, caller)
        if public_id(record.context_id) != thread_id:
            raise ContextMismatch(task_id, thread_id)
        with suppress(TaskNotCancelable):  # it has ended: the run shows how
            await self._runtime.cancel(task_id, caller)
        return await self._runtime.follow(task_id, caller)

    async def _state(self, snapshot: TaskRecord) -> tuple[CanvasState, VersionsByArtifact]:
        stored = self._runtime.contexts.artifacts_beside(snapshot)
        artifacts = await stored.list()
        versions = {each.artifact_id: await stored.versions(each.artifact_id) for each in artifacts}
        shown, known = at_record(snapshot, artifacts, versions)
        return CanvasState(snapshot, shown, known), known

    def _projection(self, run: RunInput, following: TaskSubscription, state: RunState) -> RunProjection:
        return RunProjection(
            following.snapshot,
            state,
            thread_id=run.thread_id,
            run_id=run.run_id,
            expose_thinking=self._agui.expose_thinking,
            history=run.history,
        )

    async def _leave(self, watch: _Watch) -> None:
        """Rule 2."""
        if watch.stop() and watch.record and watch.run and not watch.run.ended:
            # The client has disconnected: these errors cannot be sent.
            with suppress(TaskNotCancelable, ReadOnly, TaskNotFound, Unavailable):
                await self._runtime.cancel(watch.record.task_id, watch.caller)


async def _thread_artifact(thread: Context) -> ThreadArtifact | None:
    artifacts = await thread.artifacts.list()
    tasks = await thread.tasks() if needs_tasks(artifacts) else ()
    artifact = thread_artifact(artifacts, tasks)
    if artifact is None:
        return None
    return ThreadArtifact(artifact, await thread.artifacts.versions(artifact.artifact_id))


class _Watch:
    """One client following a task, from the moment its run is open.

    Args:
        watching: the followed runs of all clients, by task.
    """

    def __init__(self, watching: dict[str, set[RunProjection]]) -> None:
        self._watching = watching
        self.run: RunProjection | None = None
        self.record: TaskRecord | None = None
        self.caller = ANONYMOUS

    def start(self, run: RunProjection, record: TaskRecord) -> None:
        self.run, self.record = run, record
        self._watching.setdefault(record.task_id, set()).add(run)

    def stop(self) -> bool:
        """Stop following. Returns whether this was the last client that followed the task."""
        if self.run is None or self.record is None:
            return False
        watching = self._watching.get(self.record.task_id, set())
        watching.discard(self.run)
        if not watching:
            self._watching.pop(self.record.task_id, None)
        return not watching


def _parse(
    raw: bytes, content_type: str | None, agui: AgUiConfig
) -> OlderRequest | tuple[RunInput, Mapping[str, JsonValue]]:
    """A body as the older request, or as a run together with the body, for the names of its fields."""
    body = check_content_type(content_type) or check_json(raw, agui.limits, MAX_BODY_VALUES)
    if isinstance(body, Refusal):
        raise body.error()
    if not isinstance(body, dict):
        raise InvalidParamsError(f"The body is {format_value(body)}; send one JSON object: AG-UI's RunAgentInput.")
    if is_older(body):
        return older_request(body, agui.new_id())
    check_no_selection(body)
    try:
        return run_input(body), body
    except InvalidOperation as error:
        raise in_forwarded_props(error, body) from None


def _interrupt_error(error: TaskNotFound | TaskFinished | ContextMismatch) -> A2AError:
    """The same error in AG-UI's words: only an answer to an interrupt names a task (`input.py`, rule 3)."""
    match error:
        case TaskNotFound():
            why = "there is no such interrupt"
        case TaskFinished(state=state):
            why = f"its task is {state.value}"
        case ContextMismatch():
            why = "it is an interrupt of another thread"
    return ERRORS[type(error)](f"resume.0.interruptId is {error.task_id!r}; {why}. Send the message without resume.")


def _refusal(error: Exception) -> Refusal:
    a2a_error = to_a2a_error(error)
    fields = (a2a_error.data or {}).get("errors", ())
    at_fault = tuple((field["field"], field["message"].removesuffix(".")) for field in fields)
    return replace(Refusal.from_error(a2a_error), fields=at_fault)
