"""The operations of push notification configs, for callers who have been let through to the task."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller
from a2a_canvas.server.agent.events import State, StatusChanged
from a2a_canvas.server.protocols.a2a_v1.operations.push_operations import MAX_SECRET, PushOperations
from a2a_canvas.server.push.fair_choice import FreePlaces
from a2a_canvas.server.push.outbox import InMemoryPush
from a2a_canvas.server.tasks.errors import PushConfigNotFound
from a2a_canvas.server.tasks.record import Entry, TaskRecord
from tests.server.protocols.push_fixtures import push_operations

AT = datetime(2026, 1, 1, tzinfo=UTC)
TASK = TaskRecord("t", "c", "ann", AT)
ANN, BOB, LINK = Caller("ann"), Caller("bob"), Caller(link="l")


def config(config_id: str = "", **fields: Any) -> pb.TaskPushNotificationConfig:
    return pb.TaskPushNotificationConfig(**{"id": config_id, "url": "https://hooks.example.com/x", **fields})


async def listed(push: PushOperations, size: int = 0, token: str = "") -> pb.ListTaskPushNotificationConfigsResponse:
    return await push.list(TASK, pb.ListTaskPushNotificationConfigsRequest(page_size=size, page_token=token), ANN)


async def test_an_id_that_is_left_out_is_the_one_of_the_task() -> None:
    push = push_operations()
    made = await push.create(TASK, config(), ANN, "1.0")
    assert (made.id, made.task_id) == ("t", "t")
    assert await push.get(TASK, "", ANN) == made
    await push.delete(TASK, "", ANN)
    with pytest.raises(PushConfigNotFound):
        await push.get(TASK, "", ANN)


@pytest.mark.parametrize("registrant", [ANN, BOB, LINK], ids=["owner", "user", "link"])
async def test_a_token_is_told_to_who_registered_it_and_credentials_to_nobody(registrant: Caller) -> None:
    push = push_operations()
    authentication = pb.AuthenticationInfo(scheme="Bearer", credentials="s3cret")
    made = await push.create(TASK, config(token="t0ken", authentication=authentication), registrant, "1.0")
    assert (made.token, made.authentication) == ("t0ken", pb.AuthenticationInfo(scheme="Bearer"))
    assert await push.get(TASK, "", registrant) == made
    for other in {ANN, BOB, LINK, Caller("carol"), Caller(link="m")} - {registrant}:
        told = str(await push.list(TASK, pb.ListTaskPushNotificationConfigsRequest(), other))
        assert not any(secret in told for secret in ("t0ken", "s3cret", "/x"))


@pytest.mark.parametrize("guest", [BOB, LINK], ids=["user", "link"])
async def test_the_config_of_a_guest_replaces_and_shows_none_of_the_owners(guest: Caller) -> None:
    push = push_operations()
    hers = await push.create(TASK, config(url="https://hooks.example.com/ann"), ANN, "1.0")
    his = await push.create(TASK, config(url="https://hooks.example.com/bob"), guest, "1.0")
    assert (await push.get(TASK, "", ANN), await push.get(TASK, "", guest)) == (hers, his)
    assert [*(await push.list(TASK, pb.ListTaskPushNotificationConfigsRequest(), guest)).configs] == [his]
    await push.delete(TASK, "", guest)
    await push.delete(TASK, "", guest)
    assert [*(await listed(push)).configs] == [hers]


async def test_the_owner_lists_and_deletes_the_configs_of_guests_without_what_is_behind_their_hosts() -> None:
    push = push_operations()
    hers = await push.create(TASK, config("hook"), ANN, "1.0")
    for guest in (BOB, LINK):
        await push.create(TASK, config("hook", token="t0ken"), guest, "1.0")
    mine, *others = (await listed(push)).configs
    assert mine == hers
    assert [each.id.partition("~")[0] for each in others] == ["hook", "hook"]
    assert {each.url for each in others} == {"https://hooks.example.com:443"}
    for each in others:
        with pytest.raises(PushConfigNotFound):
            await push.get(TASK, each.id, BOB)
        assert await push.get(TASK, each.id, ANN) == each
        await push.delete(TASK, each.id, BOB)
        await push.delete(TASK, each.id, ANN)
    assert [*(await listed(push)).configs] == [hers]


async def test_who_has_adopted_a_task_lists_and_deletes_the_configs_that_were_registered_before() -> None:
    push, task = push_operations(adopter="ann"), replace(TASK, owner="")
    for config_id in ("", "hook"):
        await push.create(task, config(config_id, token="t0ken"), ANONYMOUS, "1.0")
    found = (await push.list(task, pb.ListTaskPushNotificationConfigsRequest(), ANN)).configs
    assert [(each.id, each.token) for each in found] == [("hook", ""), ("t", "")]
    assert [await push.get(task, each.id, ANN) for each in found] == [*found]
    for config_id in ("", "hook"):
        await push.delete(task, config_id, BOB)
        assert await push.get(task, config_id, ANN)
        await push.delete(task, config_id, ANN)
    assert not (await push.list(task, pb.ListTaskPushNotificationConfigsRequest(), ANONYMOUS)).configs


async def test_a_list_has_pages() -> None:
    push = push_operations()
    for number in range(5):
        await push.create(TASK, config(f"c{number}"), ANN, "1.0")
    seen, token = [], ""
    for size in (2, 2, 1):
        page = await listed(push, 2, token)
        assert len(page.configs) == size
        seen += [each.id for each in page.configs]
        token = page.next_page_token
    assert (seen, token) == ([f"c{number}" for number in range(5)], "")
    whole = await listed(push)
    assert (len(whole.configs), whole.next_page_token) == (5, "")


@pytest.mark.parametrize(("size", "token"), [(-1, ""), (101, ""), (0, "x"), (0, "é"), (0, "AAAA")])
async def test_a_page_that_cannot_be_is_refused(size: int, token: str) -> None:
    with pytest.raises(InvalidParamsError):
        await listed(push_operations(), size, token)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"url": "ftp://a"}, "url must be an address such as"),
        ({"url": "https://user:pw@a/"}, "url must not have a user"),
        ({"id": "\0"}, "id"),
        ({"id": "x" * 257}, "id must not be longer than 256"),
        ({"token": "x\r\nX: y"}, "token must be printable ASCII"),
        ({"token": " x"}, "token must be printable ASCII"),
        ({"token": "x" * (MAX_SECRET + 1)}, "token must not be longer"),
        ({"authentication": {"scheme": "Bearer\n", "credentials": "x"}}, "authentication.scheme must be the name"),
        ({"authentication": {"scheme": "Bearer", "credentials": "é"}}, "authentication.credentials must be printable"),
        ({"authentication": {"scheme": "HMAC-SHA256"}}, "authentication.credentials must be the key"),
    ],
)
async def test_a_config_that_cannot_be_used_is_refused(fields: dict[str, Any], says: str) -> None:
    if "authentication" in fields:
        fields = {"authentication": pb.AuthenticationInfo(**fields["authentication"])}
    with pytest.raises(InvalidParamsError) as refused:
        await push_operations().create(TASK, config(**fields), ANN, "1.0")
    assert says in str(refused.value)
    assert "pw" not in str(refused.value)


async def test_a_host_that_is_not_public_is_refused() -> None:
    with pytest.raises(InvalidParamsError, match="has no address on the public internet"):
        await push_operations(addresses=("1.1.1.1", "10.0.0.1")).create(TASK, config(), ANN, "1.0")


async def test_a_config_that_was_given_up_says_why_and_is_not_listed() -> None:
    configs = InMemoryPush(lambda: AT)
    push = push_operations(configs)
    await push.create(TASK, config(), ANN, "1.0")
    configs.put(TASK, Entry(1, 2, AT, StatusChanged(State.COMPLETED)))
    [delivery] = await configs.claim(FreePlaces(1, 1, 1, 1, 1))
    await configs.give_up(delivery, "after 20 attempts the receiver answered 500")
    assert not (await listed(push)).configs
    with pytest.raises(PushConfigNotFound, match="because after 20 attempts the receiver answered 500"):
        await push.get(TASK, "", ANN)
    await push.create(TASK, config(), ANN, "1.0")
    assert (await push.get(TASK, "", ANN)).id == "t"
