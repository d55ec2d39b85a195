"""Contexts and artifacts as resources: `/artifacts…`. The paths are in paths.py.

Rule 1: a caller sees its own contexts, and those that are shared with it; all others are 404, with everything below
        them. A context that has tasks but no artifacts yet is an empty list; its event stream waits for the first
        artifact.
Rule 2: every response except the event stream has an ETag, and is 304 for a client that has it.
Rule 3: an error is a `google.rpc.Status`, as in A2A's REST binding, and its message says what to do next.
Rule 4: while the database is unavailable the answer is 503, as in A2A's REST binding.
Rule 5: the event stream is read from the journal alone, so that its snapshot and its changes agree.
Rule 6: a large artifact is encoded in a thread, so that it delays no other request; a ZIP file always is.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeVar, assert_never

from a2a.utils.errors import InvalidParamsError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from a2a_canvas.server.accounts.access import Level
from a2a_canvas.server.accounts.errors import InvalidShare, QuotaReached, StorageFull
from a2a_canvas.server.accounts.quotas import Meter
from a2a_canvas.server.accounts.sharing import Sharing
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.a2a_v1.errors import to_a2a_error
from a2a_canvas.server.protocols.artifacts.annotation_responses import read_annotations, read_critic
from a2a_canvas.server.protocols.artifacts.archive import ZIP, archive
from a2a_canvas.server.protocols.artifacts.change_forms import TickEnds
from a2a_canvas.server.protocols.artifacts.change_stream import read_stream, stream_query
from a2a_canvas.server.protocols.artifacts.context_forms import (
    AGENTS_SUGGEST,
    check_patch,
    context_json,
    context_query,
    contexts_json,
    new_agents_suggest,
    new_name,
    text_query,
    texts_json,
)
from a2a_canvas.server.protocols.artifacts.conversions import CRITIC, Conversions, parse_format
from a2a_canvas.server.protocols.artifacts.diff import unified_diff
from a2a_canvas.server.protocols.artifacts.documents.document_formats import DocumentFormat
from a2a_canvas.server.protocols.artifacts.documents.pandoc import Pandoc
from a2a_canvas.server.protocols.artifacts.event_stream import event_stream
from a2a_canvas.server.protocols.artifacts.file_names import attachment, file_name
from a2a_canvas.server.protocols.artifacts.json_forms import (
    artifact_summary,
    current_json,
    parts_size,
    version_json,
    version_summary,
)
from a2a_canvas.server.protocols.artifacts.paths import (
    AnnotationList,
    ArtifactList,
    ArtifactResource,
    ArtifactStream,
    ArtifactVersion,
    ContextEvents,
    ContextList,
    ContextPresence,
    ContextResource,
    CurrentArtifact,
    OneAnnotation,
    OneShare,
    Resource,
    ShareList,
    VersionDiff,
    VersionList,
    parse_path,
)
from a2a_canvas.server.protocols.artifacts.presence_forms import cursor_move
from a2a_canvas.server.protocols.artifacts.raw_content import (
    JSON,
    SANDBOXED,
    NoRawContent,
    RawContent,
    raw_content,
)
from a2a_canvas.server.protocols.artifacts.refusals import (
    ARTIFACT_NOT_FOUND,
    CONTEXT_ERRORS,
    PATH_NOT_FOUND,
    VERSION_NOT_FOUND,
    ResourceError,
    context_refusal,
    invalid_value,
    not_acceptable,
)
from a2a_canvas.server.protocols.edge.availability import UnavailableError, unavailable_error
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.protocols.edge.http_requests import (
    ANYTHING,
    caller_of,
    conditional_response,
    end_with_credential,
    negotiate,
    while_connected,
)
from a2a_canvas.server.protocols.edge.share_forms import new_share_json, share_request, shared_json, shares_json
from a2a_canvas.server.protocols.edge.sse_response import wait_for_start
from a2a_canvas.server.protocols.edge.version_origins import version_origins
from a2a_canvas.server.protocols.guard.checks import BodyLimits, Refusal
from a2a_canvas.server.protocols.guard.error_forms import method_not_allowed, rest_response
from a2a_canvas.server.protocols.guard.json_bodies import json_body
from a2a_canvas.server.protocols.pipeline.entrance import UnauthenticatedError
from a2a_canvas.server.tasks.contexts import Context, Contexts
from a2a_canvas.server.tasks.journal.context_log import ContextSubscription
from a2a_canvas.server.tasks.journal.round_robin import round_robin
from a2a_canvas.server.tasks.named_locks import NamedLocks
from a2a_canvas.server.wire import artifact_path, context_path
from a2a_canvas.store.annotations.annotation import PlacedAnnotation
from a2a_canvas.store.errors import ArtifactNotFound, ArtifactUnreadable, Unavailable, VersionNotFound
from a2a_canvas.store.models import Artifact, Content, JsonValue, TextPart, Version
from a2a_canvas.store.text.rope import Rope
from a2a_canvas.store.text.unicode import valid_id
from a2a_canvas.store.text.wording import choice, format_value, nearest, numbers

D = TypeVar("D", Artifact, Version)

JSON_TYPES = (JSON, "application/a2a+json")
CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept"}
"""Only the client may cache, and must revalidate each time."""

THREAD_THRESHOLD = 2**20
"""Artifacts of more bytes are encoded in a thread; smaller ones take milliseconds."""

NO_SUCH_PATH = (
    "There is nothing at {path}. There are /artifacts, /artifacts/{{context}}, and below it events, "
    "presence, shares[/{{share}}], {{artifact}}[/versions[/{{n}}[/diff]]], {{artifact}}/stream and "
    "{{artifact}}/annotations[/{{id}}]. "
    "A context's id is the contextId of its tasks; /artifacts lists them."
)


def artifact_routes(
    contexts: Contexts,
    sharing: Sharing,
    limits: BodyLimits,
    metrics: Metrics | None = None,
    meter: Meter | None = None,
    pandoc: Pandoc | None = None,
    encoded: EncodedEvents | None = None,
) -> list[Route]:
    """`/artifacts` and everything below it. The routes accept every method, and refuse a wrong one themselves."""
    conversions = Conversions(pandoc or Pandoc())
    shared = (metrics or Metrics(), meter or Meter(), conversions, encoded or EncodedEvents())
    endpoint = _ArtifactsEndpoint(contexts, sharing, limits, *shared)
    return [Route("/artifacts", endpoint), Route(f"/artifacts/{{rest:{ANYTHING}}}", endpoint)]


class _ArtifactsEndpoint:
    def __init__(
        self,
        contexts: Contexts,
        sharing: Sharing,
        limits: BodyLimits,
        metrics: Metrics,
        meter: Meter,
        conversions: Conversions,
        encoded: EncodedEvents,
    ) -> None:
        self._meter = meter
        self._encoded = encoded
        self._conversions = conversions
        self._sharing = sharing
        self._contexts = contexts
        self._limits = limits
        self._metrics = metrics
        self._searches = NamedLocks()
        self._tick_ends = TickEnds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as counted:
            response = await self._response(Request(scope, receive), counted)
            await response(scope, receive, send)

    async def _response(self, request: Request, counted: ExitStack) -> ASGIApp:
        """The answer. A stream is counted, through `counted`, until it has been sent."""
        try:
            return await self._answer(request, counted)
        except ResourceError as error:
            return rest_response(error.refusal)
        except CONTEXT_ERRORS as error:
            return rest_response(context_refusal(error))
        except VersionNotFound as error:
            return rest_response(Refusal(VERSION_NOT_FOUND, str(error)))
        except Unavailable as error:
            return rest_response(Refusal(UnavailableError, unavailable_error(error).message))
        except (ArtifactUnreadable, QuotaReached, StorageFull) as error:
            return rest_response(Refusal.from_error(to_a2a_error(error)))
        except UnauthenticatedError as error:  # a long poll ends with its credential
            return rest_response(Refusal.from_error(error))

    async def _answer(self, request: Request, counted: ExitStack) -> ASGIApp:
        prefix, rest = _raw_path(request)
        resource = parse_path(rest)
        if resource is None:
            raise ResourceError(Refusal(PATH_NOT_FOUND, NO_SUCH_PATH.format(path=format_value(request.url.path))))
        _check_method(request, resource)
        if isinstance(resource, ContextList):
            return await self._list(request, prefix)
        _check_ids(resource)
        if isinstance(resource, ShareList | OneShare):
            return await self._share(request, resource)
        level = Level.OWN if request.method in ("DELETE", "PATCH") else Level.READ
        context = await self._contexts.open(caller_of(request), resource.context_id, level)
        if request.method == "DELETE":
            await context.remove()
            return Response(status_code=204)
        if request.method == "PATCH":
            return await self._patch(request, context, prefix)
        if isinstance(resource, ContextEvents):
            counted.enter_context(self._meter.stream(caller_of(request).account))
            opening = await wait_for_start(_follow(context, request))
            last = request.headers.get("last-event-id")
            beside = context.activity(), context.presence()
            return event_stream(resource.context_id, context.key, opening, *beside, last, self._metrics, self._encoded)
        await context.check_begun()
        if isinstance(resource, ContextPresence):
            return await self._move(request, context)
        try:
            if isinstance(resource, ArtifactStream):
                return await self._changes(request, context, resource, counted)
            return await self._read(request, resource, context, prefix)
        except ArtifactNotFound as error:
            raise ResourceError(await _no_such_artifact(context, error.artifact_id)) from None

    async def _changes(
        self, request: Request, context: Context, resource: ArtifactStream, counted: ExitStack
    ) -> ASGIApp:
        query = stream_query(request)
        if query.live:
            counted.enter_context(self._meter.stream(caller_of(request).account))
        return await read_stream(request, context, resource.artifact_id, query, self._tick_ends, self._encoded)

    async def _read(
        self, request: Request, resource: ArtifactList | ArtifactResource, context: Context, prefix: str
    ) -> ASGIApp:
        if isinstance(resource, CurrentArtifact | ArtifactVersion) and (form := parse_format(request)):
            return await self._export(request, context, resource, form)
        return await _read(request, resource, context, prefix)

    async def _export(
        self,
        request: Request,
        context: Context,
        resource: CurrentArtifact | ArtifactVersion,
        form: DocumentFormat | Literal["critic"],
    ) -> Response:
        if form == CRITIC:
            return await read_critic(request, resource, context)
        content = await _content(context, resource)
        placed: Sequence[PlacedAnnotation] = ()
        if isinstance(resource, CurrentArtifact) and form.marks:
            placed = await _annotations_of(context, resource.artifact_id, content)
        return await self._conversions.answer(request, content, resource.artifact_id, form, placed)

    async def _patch(self, request: Request, context: Context, prefix: str) -> Response:
        body = await self._object(request, '{"name": "Tide pools"}')
        check_patch(body)
        name = new_name(body.get("name"))
        if AGENTS_SUGGEST in body:
            changed = await context.let_agents_suggest(new_agents_suggest(body[AGENTS_SUGGEST]))
        if "name" in body:
            changed = await context.rename(name)
        return _json(request, context_json(changed, prefix))

    async def _move(self, request: Request, context: Context) -> Response:
        try:
            moved = cursor_move(await self._object(request, '{"window": "1", "artifactId": "a", "start": 0, "end": 4}'))
        except InvalidOperation as error:
            raise invalid_value(error.field, error.reason) from None
        context.move(*moved)
        return Response(status_code=204)

    async def _list(self, request: Request, prefix: str) -> Response:
        caller = caller_of(request)
        if "text" in request.query_params:
            return await self._search(request, prefix)
        query = context_query(request.query_params)
        # Searches of one account run one at a time: another account's search waits for one page of them at most.
        async with self._searches.hold(f"of {caller.account}" if query.words else ""):
            page, shared = await self._contexts.list(caller, query)
        return _json(request, contexts_json(page, prefix, shared))

    async def _search(self, request: Request, prefix: str) -> Response:
        """What is found in texts, which takes long: a search in names does not wait for it."""
        caller, query = caller_of(request), text_query(request.query_params)

        async def answer() -> Response:
            async with self._searches.hold(f"in texts, of {caller.account}"):
                page, shared = await self._contexts.search(caller, query)
            return _json(request, texts_json(page, prefix, shared))

        # Nobody reads the other answer; it is no error, so that it does not count as a refusal.
        return await while_connected(request, answer()) or Response(status_code=204)

    async def _share(self, request: Request, resource: ShareList | OneShare) -> Response:
        caller, context_id = caller_of(request), resource.context_id
        if isinstance(resource, OneShare):
            await self._sharing.revoke(caller, context_id, resource.share_id)
            return Response(status_code=204)
        if request.method != "POST":
            return _json(request, shares_json(context_id, await self._sharing.shares(caller, context_id)))
        await self._sharing.check_owner(caller, context_id)  # before anything is read
        try:
            share = share_request(await self._object(request, '{"user": "bob", "level": "read"}'), self._sharing.now())
            new = await self._sharing.share(caller, context_id, share)
        except (InvalidOperation, InvalidShare) as error:
            raise invalid_value(error.field, error.reason) from None
        return JSONResponse(new_share_json(new, self._sharing), 201, {"Cache-Control": "no-store"})

    async def _object(self, request: Request, example: str) -> Mapping[str, JsonValue]:
        body = await json_body(request, self._limits)
        if isinstance(body, Refusal):
            raise ResourceError(body)
        if not isinstance(body, dict):
            text = f"The body is {format_value(body)}; send one JSON object, such as {example}."
            raise ResourceError(Refusal(InvalidParamsError, text))
        return body


async def _no_such_artifact(context: Context, artifact_id: str) -> Refusal:
    known = [artifact.artifact_id for artifact in await context.artifacts.list()]
    near = choice(map(repr, nearest(artifact_id, known)), "and")
    these = f"It has {near}." if near else f"They are listed at {context_path(context.id)}."
    return Refusal(ARTIFACT_NOT_FOUND, f"There is no artifact {artifact_id!r} in context {context.id!r}. {these}")


async def _read(request: Request, resource: ArtifactList | ArtifactResource, context: Context, prefix: str) -> ASGIApp:
    match resource:
        case ArtifactList():
            if _wants_zip(request):
                return await _archive(request, context)
            return _json(request, await _listing(context, prefix))
        case CurrentArtifact(artifact_id=artifact_id):
            return await _document(request, artifact_id, await context.artifacts.get(artifact_id), current_json)
        case VersionList(artifact_id=artifact_id):
            return _json(request, await _versions(context, artifact_id))
        case ArtifactVersion(artifact_id=artifact_id):
            version = await _version(context, resource)
            artifact = await context.artifacts.get(artifact_id)
            writers = await context.artifacts.suggested_by(artifact_id, version.number)
            origins = await version_origins(context, artifact_id, (version,), writers)
            return await _document(request, artifact_id, version, partial(version_json, artifact, origins))
        case VersionDiff():
            return await _diff(request, context, resource)
        case AnnotationList() | OneAnnotation():
            return await read_annotations(request, resource, context, prefix)
        case _:
            assert_never(resource)


async def _follow(context: Context, request: Request) -> ContextSubscription:
    await round_robin().next_slice()
    following = await context.follow()
    end_with_credential(following, request.scope)
    return following


async def _listing(context: Context, prefix: str) -> dict[str, Any]:
    artifacts = []
    for artifact in await context.artifacts.list():
        versions = await context.artifacts.versions(artifact.artifact_id)
        url = prefix + artifact_path(context.id, artifact.artifact_id)
        urls = {"artifact": url, "versions": f"{url}/versions"}
        artifacts.append(artifact_summary(artifact, versions) | {"urls": urls})
    events = f"{prefix}{context_path(context.id)}/events"
    shared = shared_json(context.owner, context.level) if context.level < Level.OWN else {}
    suggest = {AGENTS_SUGGEST: await context.agents_suggest()}
    return {"contextId": context.id, **suggest, "artifacts": artifacts, "urls": {"events": events}, **shared}


async def _archive(request: Request, context: Context) -> Response:
    summary = await context.summary()
    artifacts = [replace(each, content=_copy_for_thread(each.content)) for each in await context.artifacts.list()]
    disposition = {"Content-Disposition": attachment(f"{file_name(summary.title)}.zip")}
    body = await asyncio.to_thread(archive, artifacts)
    return conditional_response(request, body, ZIP, CACHING | SANDBOXED | disposition)


async def _versions(context: Context, artifact_id: str) -> dict[str, Any]:
    versions = await context.artifacts.versions(artifact_id)
    artifact = await context.artifacts.get(artifact_id)
    origins = await version_origins(context, artifact_id, versions, await context.artifacts.suggested_by(artifact_id))
    summaries = [version_summary(artifact, origins, version) for version in versions]
    return {"artifactId": artifact_id, "versions": summaries}


async def _version(context: Context, resource: ArtifactVersion | VersionDiff) -> Version:
    number = _number(resource.number)
    if number is None:
        text = f"{resource.number!r} is not the number of a version, such as 1; …/versions lists them."
        raise ResourceError(Refusal(VERSION_NOT_FOUND, text))
    return await context.artifacts.version(resource.artifact_id, number)


async def _content(context: Context, resource: CurrentArtifact | ArtifactVersion) -> Content:
    if isinstance(resource, ArtifactVersion):
        return (await _version(context, resource)).content
    return (await context.artifacts.get(resource.artifact_id)).content


async def _annotations_of(context: Context, artifact_id: str, content: Content) -> Sequence[PlacedAnnotation]:
    """The annotations of an artifact; none while another version is being written."""
    version, placed = await context.artifacts.annotations(artifact_id)
    return placed if version and version.content.text == content.text else ()


async def _diff(request: Request, context: Context, resource: VersionDiff) -> Response:
    new = await _version(context, resource)
    base = request.query_params.get("from")
    old = new.parent if base is None else _number(base)
    count = len(await context.artifacts.versions(resource.artifact_id))
    if old is None or old > count:
        raise invalid_value("from", f"is {base!r} and must be a version, {numbers(count)}, or 0 for the empty text")
    before = (await context.artifacts.version(resource.artifact_id, old)).content.text if old else ""
    # In a thread, because a large diff takes seconds.
    return await asyncio.to_thread(_diff_answer, request, (old, before), (new.number, new.content.text))


def _raw_path(request: Request) -> tuple[str, str]:
    """The percent-encoded path: up to and including `/artifacts/`, and the rest."""
    raw = request.scope["raw_path"].decode("latin-1").partition("?")[0]
    if "rest" not in request.path_params:
        return f"{raw}/", ""
    slashes = request.scope["path"].removesuffix(request.path_params["rest"]).count("/")
    pieces = raw.split("/")
    return "/".join((*pieces[:slashes], "")), "/".join(pieces[slashes:])


METHODS: Final[Mapping[type, Sequence[str]]] = {
    ArtifactList: ("GET", "HEAD", "PATCH", "DELETE"),
    ContextPresence: ("POST",),
    ShareList: ("GET", "HEAD", "POST"),
    OneShare: ("DELETE",),
}
"""The methods of resources that accept more than GET and HEAD."""


def _check_method(request: Request, resource: Resource) -> None:
    allowed = METHODS.get(type(resource), ("GET", "HEAD"))
    if request.method not in allowed:
        raise ResourceError(method_not_allowed(request.method, request.url.path, allowed))


def _check_ids(resource: ContextResource) -> None:
    """Raises `ResourceError` for an invalid id, named as in `NO_SUCH_PATH`."""
    ids = {
        "context": resource.context_id,
        "artifact": getattr(resource, "artifact_id", ""),
        "share": getattr(resource, "share_id", ""),
        "annotation": getattr(resource, "annotation_id", ""),
    }
    for name, given in ids.items():
        try:
            valid_id(given)
        except ValueError as error:
            raise invalid_value(name, str(error)) from None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,9}", text, re.ASCII) else None


def _json(request: Request, value: dict[str, Any], media_type: str = JSON) -> Response:
    body = json.dumps(value, ensure_ascii=False).encode()
    return conditional_response(request, body, media_type, CACHING)


def _wants_zip(request: Request) -> bool:
    form = request.query_params.get("format", "")
    if form not in ("", "json", "zip"):
        raise invalid_value("format", f"is {format_value(form)} and must be json or zip")
    accept = ",".join(request.headers.getlist("accept"))
    return form == "zip" or (not form and negotiate(accept, (*JSON_TYPES, ZIP)) == ZIP)


async def _document(request: Request, artifact_id: str, document: D, wire: Callable[[D], dict[str, Any]]) -> Response:
    """The response with an artifact or a version; `wire` makes its JSON."""

    def answer(document: D) -> Response:
        named = document.content.name, artifact_id
        return _negotiate_response(request, wire(document), raw_content(document.content), named)

    if parts_size(document.content.parts) <= THREAD_THRESHOLD:
        return answer(document)
    return await asyncio.to_thread(answer, replace(document, content=_copy_for_thread(document.content)))


def _copy_for_thread(content: Content) -> Content:
    """A copy for another thread: ropes share state that both reading and appending change."""
    parts = (replace(part, body=Rope(part.text)) if isinstance(part, TextPart) else part for part in content.parts)
    return replace(content, parts=tuple(parts))


def _diff_answer(request: Request, old: tuple[int, str], new: tuple[int, str]) -> Response:
    """The diff between two versions, each a number and its text."""
    diff = unified_diff(old[1], new[1], f"version {old[0]}", f"version {new[0]}")
    raw = RawContent(diff.encode(), "text/x-diff; charset=utf-8")
    return _negotiate_response(request, {"from": old[0], "to": new[0], "diff": diff}, (raw,), ("changes.diff",))


def _negotiate_response(
    request: Request, value: dict[str, Any], raw: tuple[RawContent, ...] | NoRawContent, named: tuple[str, ...] = ()
) -> Response:
    """JSON or the raw content (raw_content.py, rule 2).

    Args:
        named: names for a file with the raw content; the first valid one is used.
    """
    if request.query_params.get("raw", "") not in ("", "0"):
        if isinstance(raw, NoRawContent):
            raise not_acceptable(raw.reason)
        return _raw(request, raw[0], named)
    forms = {} if isinstance(raw, NoRawContent) else {form.media_type: form for form in raw}
    offers = (*JSON_TYPES, *forms)
    chosen = negotiate(",".join(request.headers.getlist("accept")), offers)
    if chosen is None:
        accept = ", ".join(request.headers.getlist("accept"))
        offered = (
            f"Accept is {format_value(accept)}, and this is {choice(offers)}. "
            "Ask for one of them, or for anything (*/*)."
        )
        raise not_acceptable(raw.reason if isinstance(raw, NoRawContent) else offered)
    return _raw(request, forms[chosen], named) if chosen in forms else _json(request, value, chosen)


def _raw(request: Request, raw: RawContent, named: tuple[str, ...]) -> Response:
    headers = CACHING | SANDBOXED
    if request.query_params.get("download", "") not in ("", "0"):
        headers = headers | {"Content-Disposition": attachment(file_name(*named, media_type=raw.media_type))}
    return conditional_response(request, raw.body, raw.media_type, headers)
