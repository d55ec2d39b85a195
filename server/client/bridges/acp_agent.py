"""`a2a-canvas acp`: an agent for editors that speak ACP (Zed, JetBrains, Neovim), which works on an A2A server.

Rule 1: a session is a context, whose id it has. A prompt is a message there, and its turn runs to its end or question.
Rule 2: a file that the user mentions is put on the server first, as an artifact of its path, so that the agent and all
        who watch have what the editor has. If lines of it are selected, they alone are rewritten.
Rule 3: what the turn wrote is shown as diffs. It gets into the user's files only if the user says yes.
Rule 4: a call of a tool that needs approval is a permission request. Without an answer it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import acp
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from acp import schema

from a2a_canvas.server.client.bridges.acp_prompt import Block, MentionedFile, Prompt, read_prompt
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession
from a2a_canvas.server.client.conversation.connection import Session, explain
from a2a_canvas.server.client.conversation.errors import ClientError
from a2a_canvas.server.client.conversation.exchange import converse, new_message
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.screen.fold import PAUSED, SeenTask, extension_data
from a2a_canvas.server.wire import CANVAS, TURN

YES, NO = "yes", "no"
OWN_TOOLS = ("artifact_update", "artifact_edit", "artifact_list", "artifact_read", "ask_user", "decline_task")
"""Tools whose work is shown otherwise: as diffs, as a question, as the end of the turn."""


@dataclass(slots=True)
class EditorSession:
    """One session.

    Attributes:
        canvas: its context on the server.
        folder: the editor's.
        texts, versions: of the artifacts, as they were last put or written, by id.
        task_id: of the turn that runs; empty for none.
        named: set while no turn waits for the server to name its task.
    """

    canvas: CanvasSession
    folder: str
    texts: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    task_id: str = ""
    cancelled: bool = False
    named: asyncio.Event = field(default_factory=asyncio.Event)


async def run_acp(invocation: Invocation) -> None:
    """Speak ACP on the standard input and output until the input ends."""
    async with AsyncExitStack() as stack:
        agent = EditorAgent(replace(invocation, quiet=True), stack)
        await acp.run_agent(agent)  # type: ignore[arg-type]  # it has the methods that its capabilities promise


class EditorAgent:
    """The agent's side of ACP.

    Args:
        stack: closes the connection to the server.
    """

    def __init__(self, invocation: Invocation, stack: AsyncExitStack) -> None:
        self._invocation = invocation
        self._stack = stack
        self._server: Session | None = None
        self._editor: Any = None
        self._can_read = self._can_write = False
        self._sessions: dict[str, EditorSession] = {}

    def on_connect(self, conn: Any) -> None:
        """Called once, with the editor's side."""
        self._editor = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """Say what the agent can do, and learn what the editor can."""
        files = client_capabilities.fs if client_capabilities else None
        self._can_read, self._can_write = bool(files and files.read_text_file), bool(files and files.write_text_file)
        prompts = schema.PromptCapabilities(image=True, embedded_context=True)
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(prompt_capabilities=prompts),
            agent_info=schema.Implementation(name="a2a-canvas", version=version("a2a-canvas")),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        """Begin a context."""
        server = self._server = self._server or await self._connect()
        context = str(uuid4())
        self._sessions[context] = EditorSession(CanvasSession(self._invocation, server, context), cwd)
        return schema.NewSessionResponse(session_id=context)

    async def _connect(self) -> Session:
        try:
            return await self._stack.enter_async_context(self._invocation.connect())
        except Exception as error:
            raise acp.RequestError(-32000, explain(error, self._invocation.url)) from error

    async def prompt(self, session_id: str, prompt: list[Block], **_: Any) -> schema.PromptResponse:
        """Run a turn."""
        session = self._sessions.get(session_id)
        if session is None:
            raise acp.RequestError.invalid_params({"sessionId": f"There is no session {session_id!r}."})
        session.cancelled, given = False, read_prompt(prompt, session.folder)
        session.named.clear()
        try:
            for file in given.files:
                await self._put(session, session_id, file)
            await self._turn(session, session_id, self._message(session, given))
        except acp.RequestError:
            raise
        except Exception as error:
            await self._say(session_id, explain(error, self._invocation.url))
        finally:
            session.task_id = ""
            session.named.set()
        return schema.PromptResponse(stop_reason="cancelled" if session.cancelled else "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the turn that runs."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        session.cancelled = True
        await session.named.wait()
        if session.task_id and self._server:
            with suppress(A2AError, ClientError):  # it may just have ended
                await self._server.client.cancel_task(
                    pb.CancelTaskRequest(id=session.task_id), context=self._server.call()
                )

    # ---------------------------------------------------------------- to the server

    async def _put(self, session: EditorSession, session_id: str, file: MentionedFile) -> None:
        """Have the server know a file as the editor has it (rule 2)."""
        text = file.text if file.text is not None else await self._read(session, session_id, file.name)
        if text is None or session.texts.get(file.name) == text:
            return
        base = session.versions.get(file.name)
        known = {"baseVersion": base, "merge": True} if base else {"name": file.name}
        done = await session.canvas.operate(file.name, f"Put {file.name}", {"op": "put", "text": text, **known})
        session.texts[file.name], session.versions[file.name] = text, done.version

    def _message(self, session: EditorSession, given: Prompt) -> pb.Message:
        message = new_message(given.text, session.canvas.context, parts=given.parts)
        known = [file for file in given.files if file.name in session.texts]
        if known:
            about: dict[str, Any] = {"artifactId": known[0].name}
            if given.selection and given.selection.lines:
                first, last = given.selection.lines
                about |= {"op": "edit", "selection": {"lineStart": first, "lineEnd": last}}
            message.metadata.update({CANVAS: about})
        return message

    async def _turn(self, session: EditorSession, session_id: str, message: pb.Message) -> None:
        """Send a message and follow its task; then offer what it wrote."""
        shown = _ShownTurn(session_id, self._editor.session_update, session)
        sending = asyncio.create_task(shown.send())
        try:
            assert self._server
            while True:
                seen = await converse(self._invocation, self._server, message, (TURN, CANVAS), shown.take)
                await shown.drain()
                if not seen.asked:
                    break
                answer = pb.Part()
                answer.data.struct_value.update({"approved": await self._may_run(session_id, seen)})
                message = new_message("", session.canvas.context, seen.task_id)
                del message.parts[:]
                message.parts.append(answer)
            if not shown.has_text and seen.message:
                await self._say(session_id, seen.message)
            elif seen.state in PAUSED and seen.message:
                await self._say(session_id, f"\n\n{seen.message}")
        finally:
            sending.cancel()
        if not session.cancelled:
            await self._offer(session, session_id, shown)

    # ---------------------------------------------------------------- to the editor

    async def _say(self, session_id: str, text: str) -> None:
        await self._editor.session_update(session_id, acp.update_agent_message_text(text))

    async def _may_run(self, session_id: str, seen: SeenTask) -> bool:
        """Ask the user for the calls that the turn waits for (rule 4)."""
        call = schema.ToolCallUpdate(
            tool_call_id=f"{seen.task_id}:approval",
            title=seen.message,
            kind="execute",
            status="pending",
            raw_input=[{"tool": each.tool, "input": dict(each.input)} for each in seen.asked],
        )
        return await self._ask(session_id, call, "Run it", "Do not run it")

    async def _ask(self, session_id: str, call: schema.ToolCallUpdate, yes: str, no: str) -> bool:
        options = [
            schema.PermissionOption(option_id=YES, name=yes, kind="allow_once"),
            schema.PermissionOption(option_id=NO, name=no, kind="reject_once"),
        ]
        answer = await self._editor.request_permission(session_id=session_id, tool_call=call, options=options)
        outcome = answer.outcome
        return isinstance(outcome, schema.AllowedOutcome) and outcome.option_id == YES

    async def _offer(self, session: EditorSession, session_id: str, shown: _ShownTurn) -> None:
        """Show what the turn wrote as diffs, and save it where the user says yes (rule 3)."""
        for artifact, call_id in shown.calls.items():
            name = _file_name(shown.names[artifact], artifact)
            session.versions[artifact] = int((await session.canvas.read(artifact)).get("version", 0))
            text = (await session.canvas.raw(artifact)).decode(errors="replace")
            old = session.texts.get(artifact)
            if text == old:
                continue
            path = str(Path(session.folder) / name)
            on_disk = await self._read(session, session_id, name)
            diff: list[Any] = [acp.tool_diff_content(path, text, on_disk)]
            done = acp.update_tool_call(call_id, status="completed", content=diff)
            await self._editor.session_update(session_id, done)
            session.texts[artifact] = text
            title = f"Save {name}"
            call = schema.ToolCallUpdate(tool_call_id=call_id, title=title, kind="edit", content=diff)
            if await self._ask(session_id, call, title, "Only keep it on the server"):
                await self._write(session_id, path, text)

    async def _read(self, session: EditorSession, session_id: str, name: str) -> str | None:
        """The text of a file of the folder; None if there is none."""
        path = Path(session.folder) / name
        try:
            if self._can_read:
                return str((await self._editor.read_text_file(session_id=session_id, path=str(path))).content)
            return await asyncio.to_thread(path.read_text)
        except (acp.RequestError, OSError, UnicodeDecodeError):
            return None

    async def _write(self, session_id: str, path: str, text: str) -> None:
        try:
            if self._can_write:
                await self._editor.write_text_file(session_id=session_id, path=path, content=text)
            else:
                await asyncio.to_thread(Path(path).write_text, text)
        except (acp.RequestError, OSError) as error:
            await self._say(session_id, f"\n\n{path} could not be saved: {error}")


class _ShownTurn:
    """What the editor is shown of a turn while it runs, in order.

    Attributes:
        calls: how the editor knows the writing of each artifact, by id.
        names: of the artifacts, by id.
        has_text: the agent has said something.
    """

    def __init__(self, session_id: str, update: Callable[[str, Any], Awaitable[None]], session: EditorSession) -> None:
        self.calls: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.has_text = False
        self._session_id, self._update, self._session = session_id, update, session
        self._queue = asyncio.Queue[Any]()
        self._tools: set[str] = set()

    async def send(self) -> None:
        while True:
            update = await self._queue.get()
            try:
                await self._update(self._session_id, update)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        await self._queue.join()

    def take(self, response: pb.StreamResponse, seen: SeenTask) -> None:
        """Take one response of the server."""
        self._session.task_id = seen.task_id
        self._session.named.set()
        if response.HasField("artifact_update"):
            artifact = response.artifact_update.artifact
            self._take_artifact(artifact.artifact_id, dict(seen.artifacts)[artifact.artifact_id], seen.task_id)
        elif response.HasField("status_update"):
            turn = extension_data(response.status_update.metadata, TURN)
            if turn:
                self._take_turn(str(turn.get("event_type")), turn.get("data") or {})

    def _take_artifact(self, artifact: str, name: str, task_id: str) -> None:
        self.names[artifact] = name or artifact
        if artifact not in self.calls:
            call_id = self.calls[artifact] = f"{task_id}:{artifact}"
            path = str(Path(self._session.folder) / _file_name(self.names[artifact], artifact))
            where = [schema.ToolCallLocation(path=path)]
            title = f"Write {self.names[artifact]}"
            self._put(acp.start_tool_call(call_id, title, kind="edit", status="in_progress", locations=where))

    def _take_turn(self, kind: str, data: dict[str, Any]) -> None:
        call_id = str(data.get("tool_use_id", ""))
        match kind:
            case "text_delta":
                self.has_text = True
                self._put(acp.update_agent_message_text(str(data["text"])))
            case "thinking":
                self._put(acp.update_agent_thought_text(str(data["content"])))
            case "tool_use_start" if data["name"] not in OWN_TOOLS:
                self._tools.add(call_id)
                self._put(acp.start_tool_call(call_id, str(data["name"]), kind="other", status="in_progress"))
            case "tool_result" | "tool_execution_error" if call_id in self._tools:
                text = str(data.get("content", data.get("error", "")))
                status = "completed" if kind == "tool_result" else "failed"
                shown = [acp.tool_content(acp.text_block(text))]
                self._put(acp.update_tool_call(call_id, status=status, content=shown))  # type: ignore[arg-type]
            case _:
                pass

    def _put(self, update: Any) -> None:
        self._queue.put_nowait(update)


def _file_name(name: str, artifact: str) -> str:
    """A path in the folder for an artifact. Its name comes from a model: it leads nowhere else."""
    parts = [part for part in Path(name or artifact).parts if part not in ("/", "..", ".")]
    return str(Path(*parts)) if parts and not parts[0].startswith(".") else "artifact"
