"""The operations `share`, `shares` and `unshare` of `canvas:v1`: an owner manages the shares of a context, and a user
leaves one.

Rule 1: such a message is answered by a message. It starts no task: everyone with a share can read the tasks of the
        context, and the token of a link is sent to the owner only and never stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseDict

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.accounts.sharing import Sharing
from a2a_canvas.server.agent.operation_forms import InvalidOperation, OperationForm, read_form
from a2a_canvas.server.protocols.edge.share_forms import new_share_json, share_request, shares_json
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.ids import new_id
from a2a_canvas.store.models import JsonValue, Metadata

SHARE_OPERATIONS: Final = ("share", "shares", "unshare")


class _ListForm(OperationForm): ...


class _RevokeForm(OperationForm):
    share_id: str


def share_operation(metadata: Metadata) -> Mapping[str, JsonValue] | None:
    """The operation of a message with these metadata, if it is one of these."""
    given = metadata.get(CANVAS)
    return given if isinstance(given, dict) and given.get("op") in SHARE_OPERATIONS else None


async def answer_share_operation(
    operation: Mapping[str, JsonValue], message: pb.Message, caller: Caller, sharing: Sharing
) -> pb.Message:
    """The answer to a message (rule 1).

    Raises:
        InvalidOperation: the operation is invalid, or the message names a task, or no context.
        AccountError: as `Sharing` says.
    """
    if message.task_id:
        raise InvalidOperation("message.taskId", "must be omitted: a share is of the whole context")
    if not message.context_id:
        raise InvalidOperation("message.contextId", "is missing: say which context")
    result = await _carry_out(operation, message.context_id, caller, sharing)
    answer = pb.Message(message_id=new_id(), context_id=message.context_id, role=pb.ROLE_AGENT, extensions=[CANVAS])
    ParseDict(result, answer.parts.add(media_type="application/json").data)
    return answer


async def _carry_out(
    operation: Mapping[str, JsonValue], context_id: str, caller: Caller, sharing: Sharing
) -> dict[str, Any]:
    fields = {name: value for name, value in operation.items() if name != "op"}
    if operation["op"] == "share":
        new = await sharing.share(caller, context_id, share_request(fields, sharing.now()))
        return {"contextId": context_id, "share": new_share_json(new, sharing)}
    if operation["op"] == "unshare":
        left = await sharing.revoke(caller, context_id, read_form(_RevokeForm, fields).share_id)
        return shares_json(context_id, left)
    read_form(_ListForm, fields)
    return shares_json(context_id, await sharing.shares(caller, context_id))
