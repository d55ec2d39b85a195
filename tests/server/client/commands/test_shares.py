"""`share`, `shares` and `unshare` against the whole application on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.client.commands.artifacts import format_author
from a2a_canvas.server.client.conversation.state_file import remember
from tests.server.app_server import Served, envelope, serving
from tests.server.client.client_harness import Result, typed

ANN, BOB = new_key("ann"), new_key("bob")
UNIQUE = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70"
"""The id of a context that can be shared with users."""


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(grpc=False, database="memory", api_keys=f"ann={ANN},bob={BOB}") as served:
        served.gate.open()
        for context in ("notes", UNIQUE):
            message = {"messageId": str(uuid4()), "contextId": context, "role": "ROLE_USER"}
            params = {"message": message | {"parts": [{"text": "write report"}]}}
            headers = bearer(ANN) | {"A2A-Version": "1.0"}
            await served.http.post("/", json=envelope("SendMessage", params), headers=headers)
        yield served


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def ann(served: Served, *words: str) -> Result:
    return await typed(*words, "--url", served.url, "--token", ANN)


async def test_a_conversation_is_shared_with_a_user_listed_and_taken_back(served: Served) -> None:
    assert (await ann(served, "share", UNIQUE, "--with", "bob", "--level", "edit")).out == "bob may read and edit it.\n"
    assert (await typed("show", "--context", UNIQUE, "--url", served.url, "--token", BOB)).out.startswith("# report")
    bob = ("--url", served.url, "--token", BOB)
    assert (await typed("contexts", *bob)).out.splitlines()[1].split()[:5] == [UNIQUE, "1", "shared", "by", "ann"]
    assert len((await typed("tasks", "--context", UNIQUE[:4], *bob)).out.splitlines()) == 2
    listed = (await ann(served, "shares", UNIQUE)).out.splitlines()
    assert listed[0].split() == ["share", "with", "level", "made", "until"]
    assert listed[1].split()[1:3] + listed[1].split()[4:] == ["bob", "edit", "–"]
    [mine] = json.loads((await typed("shares", UNIQUE, "--json", *bob)).out)["shares"]
    assert mine["user"] == "bob"
    assert (await typed("unshare", UNIQUE, "bob", *bob)).out == "Revoked bob's access.\n"
    assert (await typed("show", "--context", UNIQUE, *bob)).code != 0
    await ann(served, "share", UNIQUE, "--with", "bob")
    assert (await ann(served, "unshare", UNIQUE, "bob")).out == "Revoked bob's access.\n"
    assert (await ann(served, "shares", UNIQUE[:4])).err == "It is not shared.\n"


async def test_a_link_is_printed_alone(served: Served) -> None:
    got = await ann(served, "share", "notes", "--link", "--expires", "7d")
    [url] = got.out.splitlines()
    page, _, token = url.partition("/#share=")
    assert page == served.url
    assert (await served.http.get("/artifacts/notes", headers=bearer(token))).status_code == 200
    [link] = json.loads((await ann(served, "shares", "notes", "--json")).out)["shares"]
    assert token not in str(link)
    assert (await ann(served, "unshare", "notes", link["shareId"][:8])).code == 0
    assert (await served.http.get("/artifacts/notes", headers=bearer(token))).status_code == 401


async def test_without_a_conversation_the_last_one_is_shared(served: Served) -> None:
    remember(served.url, UNIQUE)
    assert (await ann(served, "share", "--with", "bob")).out == "bob may read it.\n"
    assert "bob" in (await ann(served, "shares", UNIQUE)).out


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("share", "notes"), 2, "With whom? Use --with USER or --link"),
        (("share", "notes", "--with", "bob", "--link"), 2, "Use either --with or --link, not both"),
        (("share", "notes", "--with", "bob", "--expires", "soon"), 2, "must be a duration such as 7d"),
        (("share", "notes", "--with", "ann"), 1, "The server refused: user is the owner of the context"),
        (("share", "notes", "--with", "bob"), 1, "share it by link"),
        (("share", "other", "--with", "bob"), 2, "There is no context 'other'"),
        (("unshare", "notes", "bob"), 2, "There is no share 'bob'"),
    ],
)
async def test_what_cannot_be_shared_is_told(served: Served, words: tuple[str, ...], code: int, reason: str) -> None:
    got = await ann(served, *words)
    assert (got.code, got.out) == (code, "")
    assert reason in got.err


async def test_who_does_not_own_a_conversation_or_has_a_link_alone_is_told_what_to_do(served: Served) -> None:
    await ann(served, "share", UNIQUE, "--with", "bob", "--level", "edit")
    refused = (await typed("share", UNIQUE, "--link", "--url", served.url, "--token", BOB)).err
    owner = f"The server refused: Only the owner of context '{UNIQUE}' can share it, or list and end its shares."
    assert refused == f"a2a-canvas: {owner}\n"
    token = (await ann(served, "share", "notes", "--link", "--level", "edit")).out.strip().partition("#share=")[2]
    alone = (await typed("send", "hi", "--url", served.url, "--token", token)).err
    said = (
        "The server refused: Your link gives access to one context: add --context ID, which a2a-canvas contexts lists."
    )
    assert alone == f"a2a-canvas: {said}\n"


@pytest.mark.parametrize("words", [("send", "hi"), ("contexts",), ("show", "report", "--context", "notes")])
async def test_a_key_that_is_missing_or_wrong_is_told_with_where_it_comes_from(
    served: Served, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("A2A_CANVAS_TOKEN", raising=False)
    missing = (await typed(*words, "--url", served.url)).err.splitlines()
    assert missing == [
        "a2a-canvas: This server needs a key: set A2A_CANVAS_TOKEN",
        "If you run the server: a2a-canvas key new NAME",
    ]
    wrong = "is wrong, expired or revoked. Ask the server's operator for a new one"
    typed_in = (await typed(*words, "--url", served.url, "--token", new_key("ann"))).err
    assert typed_in == f"a2a-canvas: The key in --token {wrong}\n"
    monkeypatch.setenv("A2A_CANVAS_TOKEN", new_key("ann"))
    assert (await typed(*words, "--url", served.url)).err == f"a2a-canvas: The key in A2A_CANVAS_TOKEN {wrong}\n"


def test_a_version_is_told_with_the_user_who_made_it() -> None:
    told = [format_author({"author": author, "by": by}) for author in ("user", "agent") for by in ("", "ann")]
    assert told == ["user", "ann", "agent", "agent for ann"]
