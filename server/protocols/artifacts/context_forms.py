"""The caller's contexts as JSON: the query for a list, a page of it, what was found in texts, a new name. Pure.

Rule 1: a page has `nextPageToken` if another one follows. A token names the last context of its page, or the last one
        that its search examined, so it stays valid while contexts change.
Rule 2: an unknown parameter is ignored, as on all of this server's own paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from a2a_canvas.server.accounts.access import Share
from a2a_canvas.server.protocols.artifacts.json_forms import Json
from a2a_canvas.server.protocols.artifacts.refusals import invalid_value
from a2a_canvas.server.protocols.edge.page_tokens import (
    FOREIGN_TOKEN,
    context_page_token,
    context_position_of,
    text_page_token,
    text_position_of,
)
from a2a_canvas.server.protocols.edge.share_forms import shared_json
from a2a_canvas.server.protocols.edge.wire_times import timestamp
from a2a_canvas.server.tasks.journal.owned_contexts import ContextPage, ContextQuery, ContextSummary, words_of
from a2a_canvas.server.tasks.journal.text_search import MAX_WORDS, FoundText, TextPage, TextQuery
from a2a_canvas.server.wire import artifact_path, context_path
from a2a_canvas.store.ids import ContextKey, public_id
from a2a_canvas.store.models import JsonValue
from a2a_canvas.store.text.unicode import valid_id
from a2a_canvas.store.text.wording import format_value, numbers

PAGE_SIZE = 50
MAX_PAGE_SIZE = 100
MAX_NAME = 200
"""Characters of a name."""
AGENTS_SUGGEST = "agentsSuggest"


def context_query(query: Mapping[str, str]) -> ContextQuery:
    """The query in the parameters of a request.

    Raises:
        ResourceError: one of them is invalid.
    """
    token = query.get("pageToken", "")
    after = context_position_of(token) if token else None
    if token and after is None:
        raise invalid_value("pageToken", FOREIGN_TOKEN)
    return ContextQuery(words=words_of(query.get("query", "")), after=after, limit=_page_size(query))


def text_query(query: Mapping[str, str]) -> TextQuery:
    """The query for texts in the parameters of a request.

    Raises:
        ResourceError: one of them is invalid.
    """
    token, words = query.get("pageToken", ""), words_of(query.get("text", ""))
    after = text_position_of(token) if token else None
    if token and after is None:
        raise invalid_value("pageToken", FOREIGN_TOKEN)
    if len(words) > MAX_WORDS:
        raise invalid_value("text", f"has {len(words)} words and may have {MAX_WORDS}")
    return TextQuery(words=words, after=after, limit=_page_size(query))


def _page_size(query: Mapping[str, str]) -> int:
    size = query.get("pageSize", "")
    if size and not (re.fullmatch("[0-9]{1,4}", size, re.ASCII) and 1 <= int(size) <= MAX_PAGE_SIZE):
        raise invalid_value("pageSize", f"is {size!r} and must be {numbers(MAX_PAGE_SIZE)}")
    return int(size or PAGE_SIZE)


def texts_json(page: TextPage, prefix: str, shared: Mapping[ContextKey, Share]) -> Json:
    """A page of artifacts in whose texts something was found; the arguments are those of `contexts_json`."""
    found = [_text_json(each, prefix) | _shared_json(shared.get(each.context_id)) for each in page.texts]
    return {"found": found, "nextPageToken": text_page_token(page.next) if page.next else ""}


def _text_json(text: FoundText, prefix: str) -> Json:
    context_id = public_id(text.context_id)
    return {
        "contextId": context_id,
        "title": text.title,
        "artifactId": text.artifact_id,
        "name": text.name,
        "version": text.version,
        "lines": [{"line": line.number, "text": line.text} for line in text.lines],
        "urls": {"artifact": prefix + artifact_path(context_id, text.artifact_id)},
    }


def _shared_json(share: Share | None) -> Json:
    return shared_json(share.owner, share.level) if share else {}


def contexts_json(page: ContextPage, prefix: str, shared: Mapping[ContextKey, Share]) -> Json:
    """A page.

    Args:
        prefix: the path that `context_path` continues.
        shared: the contexts that others share with the caller.
    """
    contexts = [context_json(each, prefix) | _shared_json(shared.get(each.context_id)) for each in page.contexts]
    return {"contexts": contexts, "nextPageToken": context_page_token(page.next) if page.next else ""}


def context_json(context: ContextSummary, prefix: str) -> Json:
    """One context."""
    context_id = public_id(context.context_id)
    url = prefix + context_path(context_id)
    return {
        "contextId": context_id,
        "name": context.name,
        "agentsSuggest": context.agents_suggest,
        "request": context.request,
        "createdAt": timestamp(context.created_at),
        "updatedAt": timestamp(context.changed_at),
        "tasks": context.tasks,
        "working": context.working,
        "waiting": context.waiting,
        "artifacts": [{"artifactId": each, "name": name} for each, name in context.artifacts.items()],
        "urls": {"artifacts": url, "events": f"{url}/events"},
    }


def check_patch(body: Mapping[str, JsonValue]) -> None:
    """Raises `ResourceError` if the body of a PATCH has no field of a context, or another one."""
    if others := [field for field in body if field not in ("name", AGENTS_SUGGEST)]:
        raise invalid_value(
            others[0] or '""', f"cannot be changed; send only the name of the context, or {AGENTS_SUGGEST}"
        )
    if not body:
        raise invalid_value("name", "is missing: send a text, or null to remove the name")


def new_agents_suggest(given: JsonValue) -> bool:
    """Whether agents suggest, by a PATCH. Raises `ResourceError`."""
    if not isinstance(given, bool):
        raise invalid_value(AGENTS_SUGGEST, f"is {format_value(given)} and must be true or false")
    return given


def new_name(given: JsonValue) -> str | None:
    """The name that a PATCH gives a context, without spaces around it; None to remove the name.

    Raises:
        ResourceError: the name is invalid.
    """
    if not isinstance(given, str | None):
        raise invalid_value("name", f"is {format_value(given)} and must be a text, or null")
    name = (given or "").strip()
    if len(name) > MAX_NAME:
        raise invalid_value("name", f"has {len(name)} characters and may have {MAX_NAME}")
    try:
        return valid_id(name) or None
    except ValueError as error:
        raise invalid_value("name", str(error)) from None
