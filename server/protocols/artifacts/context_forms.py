"""The list of the caller's contexts: from its query to a page of JSON. Pure.

Rule 1: a page has `nextPageToken` if another one follows. A token names the last context of its page, so it stays valid
        while contexts change.
Rule 2: an unknown parameter is ignored, as on all paths of this server's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from a2a_canvas.server.protocols.artifacts.json_forms import Json, timestamp
from a2a_canvas.server.protocols.artifacts.refusals import invalid_value
from a2a_canvas.server.protocols.edge.page_tokens import FOREIGN_TOKEN, page_token, position_of
from a2a_canvas.server.tasks.journal.owned_contexts import ContextPage, ContextQuery, ContextSummary, words_of
from a2a_canvas.server.wire import context_path
from a2a_canvas.store.text.wording import numbers

PAGE_SIZE = 50
MAX_PAGE_SIZE = 100


def context_query(given: Mapping[str, str], owner: str) -> ContextQuery:
    """What the parameters of a request ask for.

    Raises:
        ResourceError: one of them is invalid.
    """
    size, token = given.get("pageSize", ""), given.get("pageToken", "")
    after = position_of(token) if token else None
    if size and not (re.fullmatch("[0-9]{1,4}", size, re.ASCII) and 1 <= int(size) <= MAX_PAGE_SIZE):
        raise invalid_value("pageSize", f"is {size!r} and must be {numbers(MAX_PAGE_SIZE)}")
    if token and after is None:
        raise invalid_value("pageToken", FOREIGN_TOKEN)
    return ContextQuery(owner, words_of(given.get("query", "")), after, int(size or PAGE_SIZE))


def contexts_json(page: ContextPage, prefix: str) -> Json:
    """A page.

    Args:
        prefix: the path that `context_path` continues.
    """
    contexts = [context_json(each, prefix) for each in page.contexts]
    return {"contexts": contexts, "nextPageToken": page_token(page.contexts[-1].position) if page.more else ""}


def context_json(context: ContextSummary, prefix: str) -> Json:
    """One context. `createdAt` is left out if it is not known."""
    url = prefix + context_path(context.context_id)
    return {
        "contextId": context.context_id,
        "name": context.name,
        "request": context.request,
        **({"createdAt": timestamp(context.created_at)} if context.created_at else {}),
        "updatedAt": timestamp(context.changed_at),
        "tasks": context.tasks,
        "working": context.working,
        "artifacts": [{"artifactId": each, "name": name} for each, name in context.artifacts.items()],
        "urls": {"artifacts": url, "events": f"{url}/events"},
    }
