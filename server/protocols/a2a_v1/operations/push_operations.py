"""The four operations of push notification configs, and the config that comes with a message.

Rule 1: each caller who may edit a task has its own configs there; the handler has found the task for the caller. The
        owner of the task also lists, gets and deletes the configs of others. No caller replaces another's config.
Rule 2: no answer contains credentials. The token, and the url beyond its host, are sent only to the caller who
        registered the config.
Rule 3: an id that is left out is the task's, as in A2A's SDK: the one config that most tasks have needs no name, and a
        client of 0.3 may request it without one.
"""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.a2a_v1.projection.parts import check_characters
from a2a_canvas.server.protocols.edge.page_tokens import FOREIGN_TOKEN
from a2a_canvas.server.push.outbox import MAX_CONFIGS
from a2a_canvas.server.push.sending import TargetCheck
from a2a_canvas.server.push.signing import SIGNED
from a2a_canvas.server.push.targets import TargetRefused
from a2a_canvas.server.tasks.errors import PushConfigNotFound
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig, PushConfigs, config_key
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.ids import SEPARATOR, ContextKey
from a2a_canvas.store.text.unicode import MAX_ID

MAX_SECRET = 4096
"""Characters of a token, and of credentials."""

_REGISTRANT_MARK = "~"
"""Separates, in answers to the owner of a task, the id of another caller's config from that caller's mark."""
_SCHEME = re.compile(r"[A-Za-z][\w.+-]{0,63}", re.ASCII)
_SECRET = re.compile(r"(?! )[ -~]*(?<! )", re.ASCII)
"""Text that a header can carry unchanged."""


class PushOperations:
    """Reads and writes the configs of tasks.

    Args:
        check: refuses targets.
        is_owner: whether what belongs to an owner is a caller's own.
    """

    def __init__(self, configs: PushConfigs, check: TargetCheck, is_owner: Callable[[Caller, str], bool]) -> None:
        self._configs = configs
        self._check = check
        self._is_owner = is_owner

    async def read(
        self, params: pb.TaskPushNotificationConfig, caller: Caller, version: str, within: str = ""
    ) -> PushConfig:
        """A config as the client sent it, without its task.

        Args:
            within: its path in the request, for the names of fields in errors.

        Raises:
            InvalidParamsError: it cannot be used.
        """
        _check_fields(params, within)
        try:
            target = await self._check(params.url)
        except TargetRefused as refusal:
            raise invalid_field(f"{within}url", str(refusal)) from None
        return PushConfig(
            key=ConfigKey(ContextKey(""), "", params.id),
            registrant=caller,
            version=version,
            url=params.url,
            target=target.name,
            token=params.token,
            scheme=params.authentication.scheme,
            credentials=params.authentication.credentials,
        )

    async def create(
        self, record: TaskRecord, params: pb.TaskPushNotificationConfig, caller: Caller, version: str
    ) -> pb.TaskPushNotificationConfig:
        config = (await self.read(params, caller, version)).of_task(record)
        await self._configs.add(config)
        return _answer(config, caller)

    async def get(self, record: TaskRecord, config_id: str, caller: Caller) -> pb.TaskPushNotificationConfig:
        """Raises `PushConfigNotFound`."""
        config = await self._find(record, config_id, caller)
        if config is None or config.failure:
            raise PushConfigNotFound(config_id or record.task_id, config.failure if config else "")
        return _answer(config, caller)

    async def list(
        self, record: TaskRecord, params: pb.ListTaskPushNotificationConfigsRequest, caller: Caller
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        size = params.page_size or MAX_CONFIGS
        if not 1 <= size <= MAX_CONFIGS:
            raise invalid_field("pageSize", f"is {size} and must be 1 to {MAX_CONFIGS}")
        after = _position(params.page_token)
        every = await self._configs.list(record.context_id, record.task_id, "", 2 * MAX_CONFIGS)
        seen = (
            _answer(each, caller) for each in every if each.registrant == caller or self._is_owner(caller, record.owner)
        )
        found = sorted((each for each in seen if each.id > after), key=lambda each: each.id)
        return pb.ListTaskPushNotificationConfigsResponse(
            configs=found[:size], next_page_token=_token(found[size - 1].id) if len(found) > size else ""
        )

    async def delete(self, record: TaskRecord, config_id: str, caller: Caller) -> None:
        """Deleting a config that does not exist succeeds."""
        if config := await self._find(record, config_id, caller):
            await self._configs.remove(config.key)

    async def _find(self, record: TaskRecord, config_id: str, caller: Caller) -> PushConfig | None:
        found = await self._configs.get(config_key(record, caller, config_id))
        if found or not self._is_owner(caller, record.owner):
            return found
        name, mark, digest = config_id.rpartition(_REGISTRANT_MARK)
        named = f"{name}{SEPARATOR}{digest}" if mark else config_id or record.task_id
        return await self._configs.get(ConfigKey(record.context_id, record.task_id, named))


def _answer(config: PushConfig, caller: Caller) -> pb.TaskPushNotificationConfig:
    """A config as a caller may see it (rule 2)."""
    name, _, digest = config.key.config_id.partition(SEPARATOR)
    answer = pb.TaskPushNotificationConfig(id=name, task_id=config.key.task_id, url=config.url, token=config.token)
    if config.registrant != caller:
        answer.id = f"{name}{_REGISTRANT_MARK}{digest}" if digest else name
        answer.url = f"{config.url.partition(':')[0]}://{config.target}"
        answer.token = ""
    if config.scheme:
        answer.authentication.scheme = config.scheme
    return answer


def _check_fields(params: pb.TaskPushNotificationConfig, within: str) -> None:
    check_characters(f"{within}id", params.id)
    if len(params.id) > MAX_ID:
        raise invalid_field(f"{within}id", f"must not be longer than {MAX_ID} characters")
    _check_secret(f"{within}token", params.token)
    _check_secret(f"{within}authentication.credentials", params.authentication.credentials)
    scheme = params.authentication.scheme
    if scheme and not _SCHEME.fullmatch(scheme):
        raise invalid_field(f"{within}authentication.scheme", "must be the name of a scheme, such as Bearer")
    if scheme.lower() == SIGNED and not params.authentication.credentials:
        raise invalid_field(f"{within}authentication.credentials", f"must be the key, because the scheme is {scheme}")


def _check_secret(field: str, value: str) -> None:
    """Raises `InvalidParamsError`, which does not repeat it."""
    if len(value) > MAX_SECRET:
        raise invalid_field(field, f"must not be longer than {MAX_SECRET} characters")
    if not _SECRET.fullmatch(value):
        raise invalid_field(field, "must be printable ASCII, without leading or trailing blanks: it becomes a header")


def _token(config_id: str) -> str:
    return urlsafe_b64encode(config_id.encode()).decode()


def _position(token: str) -> str:
    """The id after which a page begins."""
    try:
        position = b64decode(token, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise invalid_field("pageToken", FOREIGN_TOKEN) from None
    check_characters("pageToken", position)
    return position
