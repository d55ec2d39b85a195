"""`a2a-canvas share`, `shares` and `unshare`: with whom a conversation is shared. They are operations over A2A.

Rule: the token of a link is printed once, on its own line of the standard output, so that it can be piped.
"""

from __future__ import annotations

from typing import Any

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from a2a_canvas.server.client.conversation.canvas_session import CanvasSession, open_canvas
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError
from a2a_canvas.server.client.conversation.exchange import new_message
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.conversation.names import resolve
from a2a_canvas.server.client.screen.display import local_time
from a2a_canvas.server.wire import CANVAS

SHARE_COLUMNS = ("share", "with", "level", "made", "until")
_MAY = {
    "read": "read",
    "comment": "read and comment on",
    "edit": "read and edit",
    "approve": "read, edit and approve calls in",
}


async def share(
    invocation: Invocation, context: str | None, user: str | None, link: bool, level: str, expires: int | str | None
) -> None:
    """Share a conversation with a user, or make a link."""
    if link and user is not None:
        raise CannotBeDone("Use either --with or --link, not both")
    if not link and user is None:
        raise CannotBeDone("With whom? Use --with USER or --link")
    fields = {"user": user, "link": link or None, "level": level, "expires": expires}
    async with open_canvas(invocation, context) as canvas:
        answer = await _operate(canvas, "share", **fields)
    made = answer.get("share", {})
    if invocation.json:
        invocation.print_json(answer)
        return
    ends = f" until {local_time(made['expires'])}" if "expires" in made else ""
    who = "Anyone with this link" if link else made.get("user", "")
    back = invocation.line("unshare", canvas.context, str(made.get("shareId", "")))
    (invocation.note if link else invocation.say)(f"{who} may {_MAY[made['level']]} it{ends}.")
    if link:
        invocation.say(str(made.get("url") or made.get("token", "")))
    else:
        page = f"{canvas.base}/#/{canvas.context}"
        invocation.note(f"{who} sees it with {invocation.program} contexts, or at {page}")
    invocation.note(f"To end that: {back}")


async def shares(invocation: Invocation, context: str | None) -> None:
    """Print with whom a conversation is shared."""
    async with open_canvas(invocation, context) as canvas:
        answer = await _operate(canvas, "shares")
    if invocation.json:
        invocation.print_json(answer)
    else:
        invocation.table(SHARE_COLUMNS, map(share_row, answer.get("shares", [])), "It is not shared.")


async def unshare(invocation: Invocation, context: str, typed: str) -> None:
    """End a share, given by its id or its user."""
    async with open_canvas(invocation, context) as canvas:
        known = (await _operate(canvas, "shares")).get("shares", [])
        ended = resolve(typed, {each["shareId"]: each.get("user", "") for each in known}, "share")
        answer = await _operate(canvas, "unshare", shareId=ended)
    if invocation.json:
        invocation.print_json(answer)
    else:
        user = next(str(each.get("user", "")) for each in known if each["shareId"] == ended)
        invocation.say(f"Revoked {user}'s access." if user else f"Revoked the link {ended}.")


def share_row(share: dict[str, Any]) -> tuple[str, ...]:
    """A share as a row of a table."""
    until = str(share.get("expires", ""))
    return (
        str(share.get("shareId", "")),
        str(share.get("user") or "anyone with the link"),
        str(share.get("level", "")),
        local_time(str(share.get("createdAt", ""))),
        local_time(until) if until else "–",
    )


async def _operate(canvas: CanvasSession, op: str, **fields: Any) -> dict[str, Any]:
    """The server's answer to an operation; fields that are None are omitted."""
    if not canvas.session.offers(CANVAS):
        raise ClientError(
            f"The agent at {canvas.invocation.url} does not support sharing: its card does not list {CANVAS}"
        )
    message = new_message(op, canvas.context)
    given = {name: value for name, value in fields.items() if value is not None}
    message.metadata.update({CANVAS: {"op": op, **given}})
    request = pb.SendMessageRequest(message=message)
    async for response in canvas.session.client.send_message(request, context=canvas.session.call(CANVAS)):
        if response.HasField("message") and response.message.parts:
            return dict(MessageToDict(response.message.parts[0].data))
    raise ClientError("The server does not support sharing: it treated the operation as a message")
