"""What the tools do: each reads through the one door to contexts, or sends a message as its caller.

Rule 1: a tool's change is an operation of canvas:v1, and so a task, with the same checks, limits and merging as over
        A2A. Its author is the caller; the message names the program it came through (`VIA`).
Rule 2: what a model wrote approves no call and logs nobody in (`Incoming.of_model`). The user is asked by the host, if
        it can (`Approval`); otherwise the result says where to approve.
Rule 3: a refusal says what to do next, in the tools' own names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic_core import to_json

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.endings import approvals_of
from a2a_canvas.server.agent.events import State, StatusChanged, UserMessage
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.a2a_v1.projection.parts import check_text
from a2a_canvas.server.protocols.edge.version_origins import version_origins
from a2a_canvas.server.protocols.mcp_server.tool_forms import (
    AskAgentCall,
    CommentCall,
    CommentsCall,
    EditArtifactCall,
    HistoryCall,
    ListArtifactsCall,
    ReadArtifactCall,
    SuggestCall,
    ToolForm,
    UndoCall,
    WriteArtifactCall,
    format_id,
    parse_id,
)
from a2a_canvas.server.protocols.mcp_server.tool_passages import (
    as_material,
    find_passage,
    line_ends,
    require_text,
    show_text,
    with_line_ends,
)
from a2a_canvas.server.tasks.contexts import Context
from a2a_canvas.server.tasks.errors import QuestionChanged
from a2a_canvas.server.tasks.incoming import Incoming
from a2a_canvas.server.tasks.journal.owned_contexts import ContextQuery, words_of
from a2a_canvas.server.tasks.record import TaskRecord, fold
from a2a_canvas.server.tasks.runtime.runtime import Runtime
from a2a_canvas.server.wire import CANVAS, VIA, context_path
from a2a_canvas.store.annotations.annotation import PlacedAnnotation
from a2a_canvas.store.errors import ArtifactNotFound
from a2a_canvas.store.ids import public_id
from a2a_canvas.store.models import Artifact, DataPart, JsonValue, Part, TextPart, Version, text_part
from a2a_canvas.store.text.spans import Span, from_codepoints, splice
from a2a_canvas.store.text.wording import choice, nearest

Operation = Mapping[str, JsonValue]
"""Of canvas:v1, as in a message."""
MAX_CONTEXTS = 20
"""Contexts that one call lists, the last changed first."""
MAX_COMMENTS = 200
"""Comments and suggestions that one call lists, the newest."""
MAX_VERSIONS = 50
"""Versions that one call lists, the newest first."""


@dataclass(frozen=True, slots=True)
class McpHost:
    """The program whose user calls a tool.

    Attributes:
        name: what it calls itself; empty if it does not say.
        progress: tells it how far a call has come.
    """

    caller: Caller
    name: str
    progress: Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answers.

    Attributes:
        text, data: for the model, and the same for programs.
        shown: the text of the document, for the host's view alone.
    """

    text: str
    data: Mapping[str, JsonValue] = field(default_factory=dict)
    failed: bool = False
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A turn waits until the user approves calls; `answer` is for a host that cannot ask."""

    task_id: str
    generation: int
    question: str
    answer: ToolAnswer


class CanvasTools:
    """The tools of one server.

    Args:
        url: of the page; empty if the server has none.
        max_text_bytes: of a message to the agent.
    """

    def __init__(self, runtime: Runtime, url: str, max_text_bytes: int) -> None:
        self._runtime = runtime
        self._contexts = runtime.contexts
        self._url = url
        self._max_text_bytes = max_text_bytes
        self._calls: dict[type[ToolForm], Callable[[Any, McpHost], Awaitable[ToolAnswer | Approval]]] = {
            ListArtifactsCall: self._list,
            ReadArtifactCall: self._read,
            WriteArtifactCall: self._write,
            EditArtifactCall: self._edit,
            CommentsCall: self._comments,
            CommentCall: self._annotate,
            SuggestCall: self._annotate,
            HistoryCall: self._history,
            UndoCall: self._undo,
            AskAgentCall: self._ask,
        }

    async def call(self, form: ToolForm, host: McpHost) -> ToolAnswer | Approval:
        """Carry out a call. Raises what the door, the runtime and the store raise, and `InvalidOperation`."""
        return await self._calls[type(form)](form, host)

    # ---------------------------------------------------------------- reading

    async def open(self, given: str, caller: Caller) -> tuple[Context, Artifact]:
        """An artifact and its context. Raises `ContextNotFound`, `ArtifactNotFound`, `InvalidOperation`."""
        context_id, artifact_id = parse_id(given)
        context = await self._contexts.open(caller, context_id)
        await context.check_begun()
        try:
            return context, await context.artifacts.get(artifact_id)
        except ArtifactNotFound:
            known = [each.artifact_id for each in await context.artifacts.list()]
            near = choice((format_id(context_id, each) for each in nearest(artifact_id, known)), "and")
            reason = f"names no document. {f'There is {near}' if near else 'list_artifacts lists those there are'}"
            raise InvalidOperation("id", reason) from None

    async def _list(self, form: ListArtifactsCall, host: McpHost) -> ToolAnswer:
        more = ""
        if form.context:
            context = await self._contexts.open(host.caller, form.context)
            await context.check_begun()
            words = words_of(form.query)
            artifacts = [each for each in await context.artifacts.list() if _has_words(each.title, words)]
            listed = [(format_id(context.id, each.artifact_id), each.title) for each in artifacts]
            busy = {format_id(context.id, each.artifact_id) for each in artifacts if each.open}
            lines = [f"{where}: {name}{', being written' if where in busy else ''}" for where, name in listed]
        else:
            query = ContextQuery(words=words_of(form.query), limit=MAX_CONTEXTS)
            page, _ = await self._contexts.list(host.caller, query)
            listed, lines = [], []
            for each in page.contexts:
                context_id = public_id(each.context_id)
                of_context = [
                    (format_id(context_id, artifact), name or artifact) for artifact, name in each.artifacts.items()
                ]
                listed += of_context
                lines.append(f"Context {context_path(context_id)} ({each.title}):")
                lines += [f"  {where}: {name}" for where, name in of_context] or ["  no documents"]
            more = "\nThere are older ones: search with query." if page.next else ""
        found: list[JsonValue] = [{"id": where, "name": name} for where, name in listed]
        none = f"Nothing is named like {form.query!r}." if form.query else "There are no documents yet."
        return ToolAnswer(as_material("\n".join(lines)) + more if lines else none, {"artifacts": found})

    async def _read(self, form: ReadArtifactCall, host: McpHost) -> ToolAnswer:
        context, artifact = await self.open(form.id, host.caller)
        number = form.version or artifact.version
        content = artifact.content
        if form.version:
            content = (await context.artifacts.version(artifact.artifact_id, number)).content
        state = ", being written just now" if artifact.open and not form.version else ""
        head = f"{artifact.title} ({form.id}), version {number}{state}, "
        text = head + "\n".join(_show_part(part, form.lines, numbered=form.numbered) for part in content.parts)
        where = self._where(context.id, artifact.artifact_id, number) | {"name": artifact.title}
        return ToolAnswer(text, where, shown=None if form.lines else content.text)

    async def _comments(self, form: CommentsCall, host: McpHost) -> ToolAnswer:
        context, artifact = await self.open(form.id, host.caller)
        version, placed = await context.artifacts.annotations(artifact.artifact_id)
        if not placed:
            return ToolAnswer("There are no comments and no suggestions.")
        ends = line_ends(version.content.text if version else "")
        shown = placed[-MAX_COMMENTS:]
        older = f"\n{len(placed) - len(shown)} older ones are on the page." if len(shown) < len(placed) else ""
        lines = [line for each in shown for line in _describe(each, ends)]
        data: dict[str, JsonValue] = {"numbers": [each.annotation.number for each in shown]}
        return ToolAnswer(as_material("\n".join(lines)) + older, data)

    async def _history(self, form: HistoryCall, host: McpHost) -> ToolAnswer:
        context, artifact = await self.open(form.id, host.caller)
        versions = (await context.artifacts.versions(artifact.artifact_id))[-MAX_VERSIONS:]
        writers = await context.artifacts.suggested_by(artifact.artifact_id)
        origins = await version_origins(context, artifact.artifact_id, versions, writers)
        lines = [_describe_version(each, artifact.version, origins.describe(each)) for each in reversed(versions)]
        numbers: list[JsonValue] = [each.number for each in versions]
        where = self._where(context.id, artifact.artifact_id, artifact.version)
        return ToolAnswer(as_material("\n".join(lines)), where | {"versions": numbers})

    # ---------------------------------------------------------------- changing

    async def _write(self, form: WriteArtifactCall, host: McpHost) -> ToolAnswer:
        existing = await self._find_named(form.name, form.context, host.caller) if form.context else None
        if existing is None:
            if form.base_version:
                where = "this context has none of this name" if form.context else "without a context a new one is made"
                raise InvalidOperation("base_version", f"is for a document that exists, and {where}")
            new = {"op": "put", "artifactId": form.name, "name": form.name, "text": form.text}
            return await self._operate(form.context or "", new, host, f"Write {form.name}")
        where = format_id(form.context or "", existing.artifact_id)
        if not form.base_version:
            reason = f"is missing: {where} exists and has version {existing.version}. Read it before you replace it"
            raise InvalidOperation("base_version", reason)
        return await self._put(where, form.text, form.base_version, host, f"Write {existing.title}")

    async def _find_named(self, name: str, context_id: str, caller: Caller) -> Artifact | None:
        """The artifact with an id or a name, in a context that has begun: a model may have made up its id."""
        context = await self._contexts.open(caller, context_id)
        await context.check_begun()
        artifacts = await context.artifacts.list()
        if same := next((each for each in artifacts if each.artifact_id == name), None):
            return same
        named = [each for each in artifacts if each.name == name]
        if len(named) > 1:
            these = choice((format_id(context_id, each.artifact_id) for each in named), "and")
            raise InvalidOperation("name", f"is that of several documents, {these}: use edit_artifact with an id")
        return named[0] if named else None

    async def _edit(self, form: EditArtifactCall, host: McpHost) -> ToolAnswer:
        context, artifact = await self.open(form.id, host.caller)
        content = (await context.artifacts.version(artifact.artifact_id, form.base_version)).content
        text, new = require_text(content), with_line_ends(form.new, content.text)
        old = with_line_ends(form.old, text) if form.old else form.old
        if old and old not in text and old in artifact.content.text and artifact.version:
            now = f"It does in version {artifact.version}, the current one: use that as base_version"
            raise InvalidOperation("old", f"does not occur in version {form.base_version}. {now}")
        span = find_passage(text, old, form.lines, "old")
        return await self._put(form.id, splice(text, span, new), form.base_version, host, f"Edit {artifact.title}")

    async def _undo(self, form: UndoCall, host: McpHost) -> ToolAnswer:
        step: dict[str, JsonValue] = {"op": "restore", "version": form.restore} if form.restore else {"op": "undo"}
        return await self._change(form.id, host, {**step, "baseVersion": form.base_version})

    async def _put(self, given: str, text: str, base: int, host: McpHost, said: str) -> ToolAnswer:
        return await self._change(given, host, {"op": "put", "text": text, "baseVersion": base, "merge": True}, said)

    async def _annotate(self, form: CommentCall | SuggestCall, host: McpHost) -> ToolAnswer:
        context, artifact = await self.open(form.id, host.caller)
        version, placed = await context.artifacts.annotations(artifact.artifact_id)
        if isinstance(form, CommentCall) and form.reply_to is not None:
            found = next((each.annotation for each in placed if each.annotation.number == form.reply_to), None)
            if found is None:
                raise InvalidOperation("reply_to", f"is {form.reply_to}, and there is no such comment: see comments")
            return await self._change(form.id, host, {"op": "reply", "annotationId": found.annotation_id}, form.text)
        if version is None:
            raise InvalidOperation("id", "names a document that has no version yet: wait until it has been written")
        text = require_text(version.content)
        if isinstance(form, SuggestCall):
            span = find_passage(text, form.old and with_line_ends(form.old, text), form.lines, "old")
            more = {"replacement": with_line_ends(form.new, text)}
        else:
            span, more = find_passage(text, form.quote and with_line_ends(form.quote, text), form.lines, "quote"), {}
        selection = _selection(text, span)
        made: dict[str, JsonValue] = {"op": "annotate", "selection": selection, "baseVersion": version.number, **more}
        return await self._change(form.id, host, made, form.text)

    async def _change(
        self, given: str, host: McpHost, operation: Mapping[str, JsonValue], text: str = ""
    ) -> ToolAnswer:
        context_id, artifact_id = parse_id(given)
        return await self._operate(context_id, {"artifactId": artifact_id, **operation}, host, text)

    async def _operate(
        self, context_id: str, operation: Mapping[str, JsonValue], host: McpHost, text: str = ""
    ) -> ToolAnswer:
        message = UserMessage(str(uuid4()), (text_part(text),), {CANVAS: dict(operation), **_via(host)})
        record = await self._send(Incoming(message, context_id=context_id), host)
        return self._report_operation(record, str(operation["artifactId"]))

    def _report_operation(self, record: TaskRecord, artifact_id: str) -> ToolAnswer:
        """The answer to an operation: what its task says, and, if it was rejected, with what it conflicts."""
        told = record.message.metadata.get(CANVAS) if record.message else None
        now = told if isinstance(told, Mapping) else {}
        said = record.message.text if record.message else ""
        if record.state is not State.COMPLETED:
            conflicts = now.get("conflicts")
            if conflicts:
                again = f"Edit again with base_version {now.get('artifactVersion')}, and keep what you want of both."
                said = said.partition("Take over")[0] + again
            return ToolAnswer("\n".join((said, *_conflicts(conflicts))), failed=True)
        changed = record.artifacts.get(artifact_id)
        known = now.get("artifactVersion")
        version = changed.version if changed else known if isinstance(known, int) else 0
        where = self._where(public_id(record.context_id), artifact_id, version)
        if not version:  # a comment or a suggestion makes none
            number = re.search(r"\d+", said)
            return ToolAnswer(said, {"id": where["id"], **({"number": int(number[0])} if number else {})})
        merged = " Read it again before the next change." if said.startswith("Merged") else ""
        see = f" People see it at {where['url']}" if "url" in where else ""
        return ToolAnswer(f"{said}{merged} Its id is {where['id']}.{see}", where)

    def _where(self, context_id: str, artifact_id: str, version: int) -> dict[str, JsonValue]:
        where = format_id(context_id, artifact_id)
        page = {"url": f"{self._url}/#/{where}"} if self._url else {}
        return {"id": where, "context": context_path(context_id), "version": version, **page}

    # ---------------------------------------------------------------- the agent

    async def _ask(self, form: AskAgentCall, host: McpHost) -> ToolAnswer | Approval:
        context_id, metadata = form.context or "", _via(host)
        if form.context:
            await (await self._contexts.open(host.caller, form.context)).check_begun()
        if form.id:
            context, artifact = await self.open(form.id, host.caller)
            context_id, metadata[CANVAS] = context.id, {"artifactId": artifact.artifact_id}
        message = UserMessage(str(uuid4()), (text_part(form.text),), metadata)
        check_text(message, self._max_text_bytes, "text")
        return self._report_turn(await self._send(Incoming(message, context_id=context_id, of_model=True), host))

    async def answer(
        self, task_id: str, generation: int, approved: bool | None, host: McpHost
    ) -> ToolAnswer | Approval:
        """Answer what a turn asks the user to approve, as the user has.

        Args:
            generation: at which the user was asked; the user is asked again if the turn has gone on since.
            approved: None if the user has not said.
        """
        record = await self._runtime.get(task_id, host.caller)
        if record.generation == generation and approved is not None:
            message = UserMessage(str(uuid4()), (DataPart({"approved": approved}),), _via(host))
            with suppress(QuestionChanged):
                incoming = Incoming(message, task_id=task_id, generation=generation)
                return self._report_turn(await self._send(incoming, host))
            record = await self._runtime.get(task_id, host.caller)
        return self._report_turn(record)

    async def _send(self, incoming: Incoming, host: McpHost) -> TaskRecord:
        """The task that takes a message, once it has settled; the host receives its progress."""
        following = await self._runtime.send(incoming, host.caller)
        record = following.snapshot
        while not record.state.settled:
            entry = await anext(following)
            record = fold(record, entry)
            if isinstance(entry.event, StatusChanged) and entry.event.message and entry.event.message.label:
                await host.progress(entry.event.message.text)
        return record

    def _report_turn(self, record: TaskRecord) -> ToolAnswer | Approval:
        """The end of a turn, or what it asks."""
        context_id, said = public_id(record.context_id), record.message.text if record.message else ""
        changed = [self._where(context_id, each.artifact_id, each.version) for each in record.artifacts.values()]
        lines = [f"{each['id']}: version {each['version']}, at {each.get('url', 'the page')}" for each in changed]
        documents = "\n".join(("", "Documents of this turn:", *lines)) if lines else ""
        data: dict[str, JsonValue] = {
            "context": context_path(context_id),
            "state": record.state.value,
            "artifacts": [*changed],
        }
        page = f"{self._url}/#/{context_path(context_id)}" if self._url else "the page of this server"
        match record.state:
            case State.COMPLETED:
                return ToolAnswer(f"{as_material(said)}\nContext {context_path(context_id)}.{documents}", data)
            case State.INPUT_REQUIRED if approvals_of(record.message):
                waits = ToolAnswer(
                    f"The agent waits for approval by the user: {said}\nAsk the user to open {page}{documents}", data
                )
                return Approval(record.task_id, record.generation, said, waits)
            case State.AUTH_REQUIRED:
                return ToolAnswer(
                    f"The agent waits until the user logs in: {said}\nAsk the user to open {page}{documents}", data
                )
            case State.INPUT_REQUIRED:
                asks = (
                    f"The agent asks: {said}\nAnswer with ask_agent in context {context_path(context_id)}.{documents}"
                )
                return ToolAnswer(asks, data)
            case _:
                return ToolAnswer(f"The turn is {record.state.value}: {said}{documents}", data, failed=True)


def _via(host: McpHost) -> dict[str, JsonValue]:
    return {VIA: host.name} if host.name else {}


def _selection(text: str, span: Span) -> dict[str, JsonValue]:
    start, end = (from_codepoints(text, each, "utf16") for each in (span.start, span.end))
    return {"start": start, "end": end, "unit": "utf16", "text": span.extract(text)}


def _has_words(title: str, words: Sequence[str]) -> bool:
    return all(word in title.lower() for word in words)


def _show_part(part: Part, lines: str | None, *, numbered: bool) -> str:
    match part:
        case TextPart():
            return show_text(part.text, lines, numbered=numbered)
        case DataPart():
            return f"data:\n{as_material(to_json(part.data).decode())}"
        case _:
            return f"a file, {part.media_type or 'of unknown type'}, {part.size} bytes: the page shows it."


def _describe_version(version: Version, current: int, origin: Mapping[str, Any]) -> str:
    by = origin.get("by", "")
    who = f"agent for {by}" if version.author == "agent" and by else by or version.author
    via = f" via {origin['via']}" if "via" in origin else ""
    marked = " (current)" if version.number == current else ""
    return f"version {version.number}{marked}, by {who}{via}, {origin.get('timestamp')}: {origin.get('request', '')}"


def _describe(placed: PlacedAnnotation, ends: Sequence[int]) -> Iterator[str]:
    each = placed.annotation
    where = f", line {bisect_left(ends, placed.span.start) + 1}" if placed.span else ""
    change = "" if each.replacement is None else f" → {each.replacement!r}"
    who = each.writer.shown_name or "user"
    yield f"#{each.number} {each.kind} by {who} ({placed.state}){where}: {each.quote.exact!r}{change}"
    for remark in each.thread:
        yield f"  {remark.writer.shown_name or 'user'}: {remark.text}"


def _conflicts(given: object) -> Iterator[str]:
    """The places of a merge that need a decision."""
    for place in given if isinstance(given, list | tuple) else ():
        if isinstance(place, Mapping) and "base" in place:
            forms = (("Was", "base"), ("Is now", "current"), ("Yours", "yours"))
            yield as_material("\n".join(f"{told}: {place[name]!r}" for told, name in forms))
